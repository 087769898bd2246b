"""One answer as the engine makes it: step by step, each with the tokens it might have been."""

import math
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
    fragments: dict[int, bytes] = field(default_factory=dict, repr=False)

    @property
    def is_finite(self) -> bool:
        """False when the engine computed NaN here."""
        return not math.isnan(self.logprob)

    @property
    def ends(self) -> bool:
        """True for the end of the turn."""
        return self.token == END_TOKEN and not self.text

    def chat_logprob(self, count: int) -> bytes:
        """The entry of `logprobs.content` with `count` candidates, as compact JSON."""
        fragment = self.fragments.get(count)
        if fragment is None:
            entry = _entry(Candidate(self.token, self.logprob))
            entry["top_logprobs"] = [_entry(one) for one in self.top[:count]]
            fragment = self.fragments[count] = orjson.dumps(entry)
        return fragment


Steps = tuple[Step, ...]


def text_of(steps: Steps) -> str:
    """All visible text of an answer."""
    return "".join(step.text for step in steps)


def _entry(one: Candidate) -> dict[str, object]:
    return {"token": one.token, "logprob": one.logprob, "bytes": list(one.token.encode())}
