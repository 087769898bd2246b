"""Where two answers to one greedy request part, and whether it was a near-tie. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Token:
    """One step of the second answer: its id, and the log probabilities of the candidates."""

    token_id: int
    candidates: dict[int, float]
    """Log probability (nats) by token id, of the likeliest tokens."""


@dataclass(frozen=True, slots=True)
class Split:
    """The first step at which two answers differ."""

    step: int
    gap_nats: float
    """How much likelier the second instance found its own token; a lower bound where the first
    instance's token is not among the candidates."""


def first_split(first: Sequence[int], second: Sequence[Token]) -> Split | None:
    """Return where the answers part; None when one is the beginning of the other."""
    for step, (token_id, token) in enumerate(zip(first, second, strict=False)):
        if token_id != token.token_id:
            return Split(step, _gap(token_id, token))
    return None


def _gap(token_id: int, token: Token) -> float:
    own = token.candidates.get(token.token_id, 0.0)
    floor = min(token.candidates.values(), default=own)
    return own - token.candidates.get(token_id, floor)
