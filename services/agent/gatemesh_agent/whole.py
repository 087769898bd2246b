"""Answers that are not streamed: read, judged and parted from what was added."""

from gatemesh_agent.cases import Attempt
from gatemesh_agent.judging import AnswerJudge
from gatemesh_agent.requests import Route
from gatemesh_agent.stream import cut_whole, parse_plain
from gatemesh_agent.strippers import Stripper
from gatemesh_agent.upstream import Reply

TELLING_ENDS = (Route.CHAT, Route.COMPLETIONS)
"""Routes whose every choice says how it ended."""


def is_torn(attempt: Attempt, reply: Reply, judge: AnswerJudge) -> bool:
    """Return True for an answer that cannot be read, or does not say how it ended."""
    route = attempt.case.request.asked.route
    if not reply.is_plain_json or route not in TELLING_ENDS:
        return False
    return judge.given_up or judge.first.finish_reason is None


def judged_whole(body: bytes, judge: AnswerJudge, reply: Reply, stripper: Stripper | None) -> bytes:
    """Judge an answer that is not streamed; return what the client gets.

    Without a stripper nothing was added to the request.
    """
    if not reply.is_plain_json:
        judge.give_up("unreadable")
        return body
    try:
        if stripper is None:
            judge.take_event(parse_plain(body, 0))
            return body
        parted = stripper.part(body, 0)
    except (ValueError, RecursionError):
        judge.give_up("unreadable")
        return cut_whole(body, stripper) if stripper else body
    judge.take_event(parted.fields)
    return parted.rest
