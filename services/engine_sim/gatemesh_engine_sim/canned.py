"""Plausible steps for a written text: real probability profiles under other tokens."""

import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from gatemesh_engine_sim.steps import Candidate, Step, Steps
from gatemesh_engine_sim.vocabulary import Vocabulary

Profile = tuple[float, ...]
"""Log probabilities of the 20 likeliest tokens of a recorded greedy step, falling."""


FIRST_IDEOGRAPH = "\u2e80"


@dataclass(frozen=True, slots=True)
class Palette:
    """What steps are painted with: profiles, and the tokens that did not get chosen."""

    profiles: Sequence[Profile]
    latin: Sequence[str]
    han: Sequence[str]
    vocabulary: Vocabulary

    def others(self, token: str) -> Sequence[str]:
        """Tokens of the same script; part of a character belongs to an ideograph."""
        return self.latin if token and token[0] < FIRST_IDEOGRAPH else self.han


def paint(text: str, palette: Palette) -> Steps:
    """Steps whose visible text is `text`; the same text always gives the same figures."""
    steps: list[Step] = []
    for place, (token, token_id) in enumerate(palette.vocabulary.tokens(text)):
        # Same figures in every process: `hash` of a str differs between processes.
        rng = random.Random(zlib.crc32(f"{place}{text[:24]}{token_id}".encode()))  # noqa: S311
        profile = rng.choice(palette.profiles)
        sampled = rng.sample(palette.others(token), len(profile))
        rest = zip((other for other in sampled if other != token), profile[1:], strict=False)
        top = (Candidate(token, profile[0]), *(Candidate(*pair) for pair in rest))
        steps.append(Step(token, token, token_id, profile[0], top))
    return tuple(steps)
