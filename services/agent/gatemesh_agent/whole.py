"""Answers that are not streamed: read, judged and parted from what was added."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from gatemesh_agent.cases import Attempt
from gatemesh_agent.dialects import read_choices
from gatemesh_agent.errors import StreamBrokenError
from gatemesh_agent.gates.judgement import GATE_VERSION, Judgement
from gatemesh_agent.judging import AnswerJudge
from gatemesh_agent.requests import Asked, Route
from gatemesh_agent.stream import cut_whole, parse_plain
from gatemesh_agent.strippers import Stripper
from gatemesh_agent.upstream import Reply
from gatemesh_common.messages import CheckLevel, Outcome, Reason

TELLING_ENDS = (Route.CHAT, Route.COMPLETIONS)
"""Routes whose every choice says how it ended."""


def is_torn(attempt: Attempt, reply: Reply, judge: AnswerJudge) -> bool:
    """Return True for an answer that cannot be read, or does not say how it ended."""
    route = attempt.case.request.asked.route
    if not reply.is_plain_json or route not in TELLING_ENDS:
        return False
    return judge.given_up or judge.first.finish_reason is None


HIDDEN_TOKENS = 16
"""Beyond one a byte: a token that shows is a byte at least, and a few more may end the answer."""
HIDING = ("tools", "functions", "stop", "stop_token_ids", "use_beam_search", "echo", "ignore_eos")
"""Fields with which engines keep back what they wrote."""


def counted(asked: Asked, fields: dict[str, Any]) -> tuple[int, str] | None:
    """Return the tokens that an engine counts and the one text they are; None if not only those."""
    body, usage = asked.body or {}, fields.get("usage")
    if asked.route not in TELLING_ENDS or not isinstance(usage, Mapping):
        return None
    if any(body.get(name) for name in HIDING) or body.get("include_reasoning") is False:
        return None
    parts, tokens = list(read_choices(fields, None)), usage.get("completion_tokens")
    if len(parts) != 1 or type(tokens) is not int or usage.get("completion_tokens_details"):
        return None
    reading = parts[0].reading
    return None if reading.other_output or reading.calls else (tokens, reading.text)


def hidden_tokens(asked: Asked, fields: dict[str, Any]) -> Judgement | None:
    """Find tokens that an engine counts and that cannot be in the one text of its answer."""
    found = counted(asked, fields)
    if found is None:
        return None
    tokens, text = found
    limit = len(text.encode("utf-8", "surrogatepass")) + HIDDEN_TOKENS
    return hiding(tokens, limit) if tokens > limit else None


def hiding(tokens: int, limit: float) -> Judgement:
    """Return the failure of an answer of more tokens than its text can be."""
    return Judgement(
        CheckLevel.L1,
        Outcome.FAILED,
        Reason.TOKENS_WITHOUT_TEXT,
        score=float(tokens),
        threshold=float(limit),
        gate_version=GATE_VERSION,
    )


def take_whole(asked: Asked, fields: dict[str, Any], judge: AnswerJudge) -> None:
    """Have the gates judge an answer, and what it counts besides."""
    hidden = hidden_tokens(asked, fields)
    if hidden is not None:
        judge.object(hidden)
    judge.take_event(fields)


def judged_whole(
    body: bytes, judge: AnswerJudge, reply: Reply, stripper: Stripper | None, asked: Asked
) -> bytes:
    """Judge an answer that is not streamed; return what the client gets.

    Without a stripper nothing was added to the request.
    """
    if not reply.is_plain_json:
        judge.give_up("unreadable")
        return body
    try:
        if stripper is None:
            take_whole(asked, parse_plain(body, 0), judge)
            return body
        parted = stripper.part(body, 0)
    except (ValueError, RecursionError):
        judge.give_up("unreadable")
        return cut_whole(body, stripper) if stripper else body
    take_whole(asked, parted.fields, judge)
    return parted.rest


LARGEST_ERROR_BYTES = 2**20
ERROR_END_S = 0.5
"""So long what follows an error event may take: an engine may keep the connection open."""


async def whole_error(reply: Reply, begun: bytes) -> bytes:
    """Return the error with which a stream opens, and what follows it at once."""
    data = begun
    with suppress(StreamBrokenError):
        while len(data) < LARGEST_ERROR_BYTES:
            told = b"\n\n" in data
            more = await (reply.within(ERROR_END_S) if told else reply.more())
            if not more:
                break
            data += more
    return data
