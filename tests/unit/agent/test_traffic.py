"""What is concluded about a client's answer goes to those it concerns."""

from datetime import UTC, datetime

from multidict import CIMultiDict

from gatemesh_agent.attribution import Accusation, ClientRequest
from gatemesh_agent.gates.judgement import Judgement, passed
from gatemesh_agent.reporting import Life, Origin, Reporter
from gatemesh_agent.requests import Route, understand
from gatemesh_agent.telemetry import Telemetry
from gatemesh_agent.traffic import Exchange, TrafficReport
from gatemesh_agent.upstream import Order
from gatemesh_common.messages import Attribution, CheckLevel, Message, Outcome, Reason, Verdict

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LIFE = Life("engine-0", 1, None, numbered=True)


def report(
    accused: list[Accusation], published: list[Message], *, continued: bool = False
) -> TrafficReport:
    """Return the report about one answer."""
    asked = understand(Route.CHAT, b'{"messages":[]}')
    request = ClientRequest(asked, Origin("R"), Order("POST", Route.CHAT, CIMultiDict(), asked.raw))
    telemetry = Telemetry("agent-0", "p", NOON)
    reporter = Reporter("agent-0", "p", telemetry, published.append, lambda: NOON)
    exchange = Exchange(request, LIFE, streamed=True, continued=continued)
    return TrafficReport(reporter, accused.append, exchange)


def test_a_failure_is_an_accusation() -> None:
    """It knows whether the client's answer goes on elsewhere; passes are counted only."""
    accused: list[Accusation] = []
    about = report(accused, [], continued=True)
    about.conclude(0, passed(CheckLevel.L1), {})
    about.conclude(0, Judgement(CheckLevel.L3, Outcome.FAILED, Reason.NAN_LOGITS), {"tokens": 4})
    [accusation] = accused
    assert (accusation.tokens, accusation.continued, accusation.retried) == (4, True, False)
    assert about.judged == {CheckLevel.L1, CheckLevel.L3}


def test_what_was_said_accuses_nobody() -> None:
    """A plugged-in gate's verdict goes out as it is."""
    accused: list[Accusation] = []
    published: list[Message] = []
    about = report(accused, published)
    about.conclude(0, Judgement(CheckLevel.PLUGIN, Outcome.FAILED, Reason.FLAGGED, name="x"), {})
    [verdict] = published
    assert isinstance(verdict, Verdict)
    assert (verdict.attribution, accused, len(about.flagged)) == (Attribution.REQUEST, [], 1)
