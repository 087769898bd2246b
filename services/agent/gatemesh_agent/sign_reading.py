"""The cheap signs at work: read off judged answers and refusals, reported as soft evidence."""

import time
from collections.abc import Callable

import orjson

from gatemesh_agent.after import Answered
from gatemesh_agent.attribution import Accusation, ClientRequest
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.reporting import Life, Reporter
from gatemesh_agent.signs import Signs, note_of

BAD_REQUEST = 400


class SignReader:
    """Hands every answer and refusal to the signs and reports what they show."""

    def __init__(
        self, signs: Signs, reporter: Reporter, accuse: Callable[[Accusation], None]
    ) -> None:
        self._signs = signs
        self._reporter = reporter
        self._accuse = accuse

    def answered(self, answer: Answered) -> None:
        """Take in a judged answer that came to its end."""
        if answer.first.finish_reason is None:
            return
        request, life = answer.request, answer.life
        note = note_of(answer.first, prompt_of(request), time.monotonic())
        said = {failure.gate for failure in answer.failures}
        for judgement in self._signs.answered(life, note):
            if judgement.gate in said:
                # Its own gate saw it: one answer is not to count twice.
                continue
            verdict = self._reporter.verdict(judgement, 0, request.origin, life, judgement.details)
            self._reporter.count(judgement, life)
            self._reporter.publish(verdict)

    def refused(self, request: ClientRequest, life: Life, status: int, body: bytes) -> None:
        """Take in an error: one that names no parameter may be the engine's own fault.

        Whether others refuse the same is found out first: then it is the client's.
        """
        if status != BAD_REQUEST or names_parameter(body):
            return
        judgement = self._signs.refused(life, prompt_of(request), time.monotonic())
        if judgement is not None:
            self._accuse(self._accusation(judgement, request, life))

    def _accusation(self, judgement: Judgement, request: ClientRequest, life: Life) -> Accusation:
        verdict = self._reporter.verdict(judgement, 0, request.origin, life, judgement.details)
        return Accusation(verdict, request, life, tokens=0, only_if_instance=True)


def prompt_of(request: ClientRequest) -> str:
    """Return what tells prompts apart."""
    return request.origin.prompt_fingerprint or request.origin.request_id


def names_parameter(body: bytes) -> bool:
    """Return True for an error that says which parameter is wrong, or that is no engine's."""
    try:
        error = orjson.loads(body).get("error")
    except (orjson.JSONDecodeError, AttributeError):
        return True
    return not isinstance(error, dict) or error.get("param") is not None
