"""Signs become verdicts; refusals only where somebody else does better."""

from datetime import UTC, datetime

import pytest
from tests.unit.agent.test_sampling import LIFE, SOFT, answer

from gatemesh_agent.after import Answered
from gatemesh_agent.attribution import Accusation, ClientRequest
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.reading import Reading
from gatemesh_agent.reporting import Origin, Reporter
from gatemesh_agent.sign_reading import SignReader, names_parameter
from gatemesh_agent.signs import Signs
from gatemesh_agent.telemetry import Telemetry
from gatemesh_agent.transcript import Transcript
from gatemesh_common.messages import Message, Reason, Verdict

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NULL = b'{"error":{"message":"x","type":"BadRequestError","param":null,"code":400}}'


class Bench:
    """A reader of signs, and where its findings go."""

    def __init__(self) -> None:
        self.published: list[Message] = []
        self.accused: list[Accusation] = []
        telemetry = Telemetry("a", "p", NOON)
        reporter = Reporter("a", "p", telemetry, self.published.append, lambda: NOON)
        self.reader = SignReader(Signs(), reporter, self.accused.append)


def wordless(number: int, *failures: Judgement, ended: bool = True) -> Answered:
    """Return an answer with tokens and no text."""
    request = answer().request
    first = Transcript(steps=20, finish_reason="length" if ended else None)
    first.take(Reading("", (), other_output=False, calls=()))
    origin = Origin(f"R{number}", prompt_fingerprint=f"p{number}")
    asked = ClientRequest(request.asked, origin, request.order)
    return Answered(asked, LIFE, first, failures, streamed=True, wants_shadow=False)


def test_a_sign_is_soft_evidence() -> None:
    """With the prompt that completed it."""
    bench = Bench()
    for number in range(3):
        bench.reader.answered(wordless(number))
    [verdict] = bench.published
    assert isinstance(verdict, Verdict)
    assert (verdict.reason, verdict.hard) == (Reason.TOKENS_WITHOUT_TEXT, False)
    assert (verdict.prompt_fingerprint, verdict.details["by"]) == ("p2", "signs")


def test_one_answer_does_not_count_twice() -> None:
    """What its own gate said is said; what was cut is no answer."""
    bench = Bench()
    for number in range(5):
        bench.reader.answered(wordless(number, SOFT))
        bench.reader.answered(wordless(number, ended=False))
    assert bench.published == []


def test_refusals_are_accused_and_not_reported() -> None:
    """Another instance is asked first."""
    bench = Bench()
    for number in range(5):
        request = wordless(number).request
        bench.reader.refused(request, LIFE, 400, NULL)
        bench.reader.refused(request, LIFE, 404, NULL)
    assert bench.published == []
    [accusation] = bench.accused
    assert accusation.only_if_instance
    assert accusation.verdict.reason is Reason.BURST_OF_REFUSALS


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (NULL, False),
        (b'{"error":{"param":"max_tokens"}}', True),
        (b'{"error":"Unauthorized"}', True),
        (b'{"detail":"Not Found"}', True),
        (b"no JSON", True),
        (b"[]", True),
    ],
)
def test_only_errors_without_a_parameter_are_odd(body: bytes, named: bool) -> None:  # noqa: FBT001
    """The others are the client's own."""
    assert names_parameter(body) == named
