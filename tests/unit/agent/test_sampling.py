"""Which answers go to the shadow."""

import random
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from multidict import CIMultiDict

from gatemesh_agent.after import Answered
from gatemesh_agent.attribution import ClientRequest
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.reading import CallParts, Reading
from gatemesh_agent.reporting import Life, Origin
from gatemesh_agent.requests import Route, understand
from gatemesh_agent.sampling import SampleTerms, Sampling, has_other_media, sample_of
from gatemesh_agent.transcript import Transcript
from gatemesh_agent.upstream import Order
from gatemesh_common.messages import (
    Attribution,
    CheckLevel,
    Decoding,
    Outcome,
    Reason,
    Verdict,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LIFE = Life("e", 3, "m-1", numbered=True)
SOFT = Judgement(CheckLevel.L1, Outcome.FAILED, Reason.EMPTY)
HARD = Judgement(CheckLevel.L3, Outcome.FAILED, Reason.NAN_LOGITS, hard=True)
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "Say hi"}]}


def answer(
    *failures: Judgement, body: dict[str, Any] = BODY, ended: str | None = "stop", **more: Any
) -> Answered:
    """Return an answer that came to its end."""
    asked = understand(Route.CHAT, orjson.dumps(body))
    order = Order("POST", "/v1/chat/completions", CIMultiDict(), asked.raw)
    first = Transcript(suspicion=more.get("suspicion", 0.0))
    step = TokenStep("Hi.", -0.5, token_id=7)
    first.take(Reading("Hi.", (step,), other_output=False, calls=()))
    if ended:
        first.end(ended, CallParts())
    origin = Origin("R1", None, "tenant", "print", Decoding.GREEDY)
    wants = bool(more.get("wants_shadow"))
    request = ClientRequest(asked, origin, order)
    return Answered(request, LIFE, first, failures, streamed=True, wants_shadow=wants)


def sampling(suspects: tuple[str, ...] = (), **terms: Any) -> Sampling:
    """Return a chooser; by itself it takes nothing."""
    given = {"share": 0.0, "share_suspect": 1.0, **terms}
    return Sampling(SampleTerms(**given), random.Random(1), suspects.__contains__)


def verdict(attribution: Attribution) -> Verdict:
    """Return a failure of the instance."""
    return Verdict(
        instance_id="e",
        request_id="r",
        timestamp=NOON,
        check_level=CheckLevel.L1,
        attribution=attribution,
    )


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        (answer(), None),
        (answer(SOFT), "suspicion"),
        (answer(HARD), None),
        (answer(wants_shadow=True), "header"),
        (answer(HARD, wants_shadow=True), "header"),
        (answer(suspicion=0.7), "suspicion"),
        (answer(SOFT, ended=None), None),
    ],
    ids=["plain", "soft", "hard", "header", "hard-header", "looping", "cut"],
)
def test_causes(given: Answered, cause: str | None) -> None:
    """Suspicion and wishes come before chance."""
    assert sampling().cause_of(given, 0.0) == cause


def test_the_share_is_kept() -> None:
    """The larger of the setting's and the baseline's counts."""
    chooser = sampling(share=0.1)
    taken = sum(chooser.cause_of(answer(), 0.0) == "random" for _ in range(5000))
    assert 400 < taken < 600
    chooser.least_share = {"m-1": 0.5}.__getitem__  # type: ignore[assignment]
    taken = sum(chooser.cause_of(answer(), 0.0) == "random" for _ in range(5000))
    assert 2300 < taken < 2700


def test_a_suspect_is_looked_at_more_closely() -> None:
    """So is one that failed a gate within the last minute, unless the request was at fault."""
    assert sampling(("e",)).cause_of(answer(), 0.0) == "suspicion"
    chooser = sampling()
    chooser.heed(verdict(Attribution.REQUEST), 0.0)
    assert chooser.cause_of(answer(), 1.0) is None
    chooser.heed(verdict(Attribution.UNKNOWN), 0.0)
    assert chooser.cause_of(answer(), 60.0) == "suspicion"
    assert chooser.cause_of(answer(), 61.0) is None


def test_zero_per_second_turns_everything_off() -> None:
    """Even for those who ask; text leaves the agent in no other way."""
    assert sampling(per_s=0).cause_of(answer(wants_shadow=True), 0.0) is None


def test_the_rate_is_bounded() -> None:
    """A second's worth may come at once."""
    found = sampling(per_s=2.0)
    assert [found.has_room(10.0) for _ in range(3)] == [True, True, False]
    assert [found.has_room(10.5), found.has_room(10.5)] == [True, False]
    assert not sampling(per_s=0).has_room(1e9)


def test_large_ones_and_pictures_stay() -> None:
    """The shadow compares words."""
    assert sampling(max_bytes=10).cause_of(answer(wants_shadow=True), 0.0) is None
    picture = {"type": "image_url", "image_url": {"url": "data:"}}
    text = {"type": "text", "text": "x"}
    body = {"messages": [{"role": "user", "content": [text, picture]}]}
    assert sampling().cause_of(answer(body=body, wants_shadow=True), 0.0) is None
    assert not has_other_media({"messages": [{"content": [text, {"type": "tool_use"}]}]})
    assert not has_other_media({"prompt": "x"})
    assert not has_other_media({"messages": "odd"})


def test_a_sample_says_all_that_a_comparison_needs() -> None:
    """And whose answer it was."""
    sample = sample_of(answer(SOFT), "suspicion", "agent-0", "p", NOON)
    assert sample.key() == "sample.v1.p"
    assert (sample.instance_id, sample.incarnation, sample.model_version) == ("e", 3, "m-1")
    assert (sample.request, sample.text, sample.path) == (BODY, "Hi.", "/v1/chat/completions")
    assert (sample.token_ids, sample.logprobs) == ((7,), (-0.5,))
    assert (sample.finish_reason, sample.cause) == ("stop", "suspicion")
    assert (sample.tenant, sample.prompt_fingerprint) == ("tenant", "print")
