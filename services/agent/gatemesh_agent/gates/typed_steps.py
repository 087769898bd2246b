"""Log probabilities of a usual chat, read straight from JSON without what no gate looks at. Pure.

Of each candidate only its figure becomes an object: with 20 candidates a token, making and
forgetting the rest takes as long as all gates together.
"""

import msgspec

from gatemesh_agent.gates.steps import TokenStep, id_of, step_of, text_of_bytes


class Candidate(msgspec.Struct, gc=False):
    """One candidate of a token."""

    logprob: float | None


class Entry(msgspec.Struct, gc=False):
    """One token of a choice."""

    token: str
    logprob: float | None
    top_logprobs: list[Candidate]
    bytes: list[int] | None = None


class ChatLogprobs(msgspec.Struct, gc=False):
    """What a chat choice or delta holds under `logprobs`."""

    content: list[Entry]

    def steps(self) -> tuple[TokenStep, ...]:
        """Return what `steps_of_chat` makes of the same JSON."""
        return tuple([step_in(entry) for entry in self.content])


DECODER = msgspec.json.Decoder(ChatLogprobs)


def read_chat_logprobs(data: bytes) -> ChatLogprobs:
    """Read the value of `logprobs`.

    Raises:
        ValueError: it is no JSON, or not built as engines build it; parse all of it then.
        RecursionError: it is nested too deep.
    """
    if not data.isascii():
        # What is skipped is not looked at for this.
        data.decode()
    return DECODER.decode(data)


def step_in(entry: Entry) -> TokenStep:
    """Return one step."""
    token_id = id_of(entry.token)
    text = entry.token if token_id is None else text_of_bytes(entry.bytes)
    figures = tuple([candidate.logprob for candidate in entry.top_logprobs])
    return step_of((text, entry.logprob, figures, True, token_id))
