"""One answer as the engine makes it: step by step, each with the tokens it might have been."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

NAN = math.nan
"""What a broken engine computes; written to JSON as `null`, refused in whole answers."""

END_TOKEN = "<|im_end|>"  # noqa: S105 - a token of text
"""Ends a turn; an answer whose last step is this one finished by itself."""

SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    END_TOKEN,
    "<repo_name>",
    "<reponame>",
    "<file_sep>",
    "<filename>",
    "<gh_stars>",
    "<issue_start>",
    "<issue_comment>",
    "<issue_closed>",
    "<jupyter_start>",
    "<jupyter_text>",
    "<jupyter_code>",
    "<jupyter_output>",
    "<jupyter_script>",
    "<empty_output>",
)
"""In the order of their ids, from 0."""


IdOf = Callable[[str], int]
"""The id of a token's text."""


class Candidate(NamedTuple):
    """A token the step could have chosen, with its log probability in nats."""

    token: str
    logprob: float


@dataclass(slots=True, eq=False)
class Step:
    """One generation step; compared by identity, so that its JSON is made once."""

    text: str
    """What the client sees; empty for special tokens and parts of a character."""
    token: str
    token_id: int
    logprob: float
    top: tuple[Candidate, ...]
    """Up to 20 candidates, the chosen one first, then by rank, as vLLM lists them."""
    fragments: dict[tuple[int, bool], bytes] = field(default_factory=dict, repr=False)

    @property
    def is_finite(self) -> bool:
        """False when the engine computed NaN here."""
        return not math.isnan(self.logprob)

    @property
    def ends(self) -> bool:
        """True for the end of the turn."""
        return self.token == END_TOKEN and not self.text

    def chat_logprob(self, count: int, id_of: IdOf | None = None) -> bytes:
        """The entry of `logprobs.content` with `count` candidates, as compact JSON.

        With `id_of` tokens are named by their ids; only the chosen one keeps its own bytes.
        """
        key = (count, id_of is not None)
        fragment = self.fragments.get(key)
        if fragment is None:
            fragment = self.fragments[key] = orjson.dumps(self._chat_entry(count, id_of))
        return fragment

    def named(self, count: int, id_of: IdOf | None) -> list[Candidate]:
        """The first candidates, by text or by id."""
        top = self.top[:count]
        return list(top) if id_of is None else [self._by_id(one, id_of) for one in top]

    def name(self, id_of: IdOf | None) -> str:
        """The chosen token, by text or by id."""
        return self.token if id_of is None else id_name(self.token_id)

    def _chat_entry(self, count: int, id_of: IdOf | None) -> dict[str, object]:
        entry = _entry(Candidate(self.token, self.logprob)) | {"token": self.name(id_of)}
        return entry | {"top_logprobs": [_entry(one) for one in self.named(count, id_of)]}

    def _by_id(self, one: Candidate, id_of: IdOf) -> Candidate:
        is_chosen = one.token == self.token
        return Candidate(id_name(self.token_id if is_chosen else id_of(one.token)), one.logprob)


Steps = tuple[Step, ...]


def id_name(token_id: int) -> str:
    """How vLLM names a token by its id."""
    return f"token_id:{token_id}"


def text_of(steps: Steps) -> str:
    """All visible text of an answer."""
    return "".join(step.text for step in steps)


def _entry(one: Candidate) -> dict[str, object]:
    return {"token": one.token, "logprob": one.logprob, "bytes": list(one.token.encode())}
