"""Two answers that differ are kept side by side, by the same policy as all other text."""

from random import Random
from typing import Any

import pytest
from tests.unit.shadow.parts import NOW, sample_of

from gatemesh_common.captures import Capture, CaptureTerms
from gatemesh_common.errors import BrokerUnavailableError
from gatemesh_common.messages import Message, ShadowSample, Verdict
from gatemesh_shadow.captures import AROUND_CHARS, PairCaptures, pair_capture

SECRET = "alice.b@example.org"
FIRST = "x" * 900 + f" Paris, ask {SECRET} for more."
SECOND = "x" * 900 + f" Berlin, ask {SECRET} for more"


def terms(**more: Any) -> CaptureTerms:
    """Return the terms of the samples' pool."""
    return CaptureTerms.model_validate({"timestamp": NOW, "pool": sample().pool} | more)


def sample(text: str = FIRST) -> ShadowSample:
    """Return a sample that ended by itself."""
    return sample_of(text=text, finish_reason="stop")


def verdict() -> Verdict:
    """Return what was found."""
    return Verdict(timestamp=NOW, instance_id="engine-1", request_id="r", check_level="L4")


class Outbox:
    """Keeps captures, or refuses them."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.refuses = refuses
        self.sent: list[Capture] = []
        self.captures = PairCaptures(self.publish, "shadow", Random(1))

    async def publish(self, message: Message) -> None:
        """Take one."""
        if self.refuses:
            raise BrokerUnavailableError("full")
        assert isinstance(message, Capture)
        self.sent.append(message)

    async def take(self) -> None:
        """Have a pair captured."""
        await self.captures.take(sample(), verdict(), SECOND, "engine-2")


def test_the_window_is_what_stands_around_the_first_difference() -> None:
    """Of both, redacted; no prompt."""
    found = pair_capture(sample(), verdict(), SECOND, "engine-2", terms(text="window"), "shadow")
    assert found.texts is not None
    assert found.texts.answer == "x" * (AROUND_CHARS - 1) + " Paris, ask [email] for more."
    assert found.texts.second_answer is not None
    assert "Berlin, ask [email] for [edge]" in found.texts.second_answer
    assert (found.texts.prompt, found.second_instance_id) == (None, "engine-2")
    assert (found.source, found.verdict_id) == ("shadow", found.verdict_id)
    assert found.redactions["email"] == 2


def test_both_answers_are_whole_where_the_policy_says_so() -> None:
    """And no larger than it allows."""
    found = pair_capture(sample(), verdict(), SECOND, "engine-2", terms(text="full"), "shadow")
    assert found.texts is not None
    assert found.texts.answer == "x" * 900 + " Paris, ask [email] for more."
    assert found.texts.prompt
    assert not found.texts.is_cut
    small = terms(text="full", max_bytes=1024)
    texts = pair_capture(sample(), verdict(), SECOND, "engine-2", small, "shadow").texts
    assert texts is not None
    assert texts.is_cut
    assert max(len(one or "") for one in (texts.prompt, texts.answer, texts.second_answer)) <= 341


async def test_nothing_goes_before_the_terms_are_heard() -> None:
    """Nor where no text may."""
    outbox = Outbox()
    await outbox.take()
    outbox.captures.hear(terms(text="none"))
    outbox.captures.hear(terms(pool="other", text="full"))
    await outbox.take()
    assert outbox.sent == []


async def test_a_rate_holds_although_the_terms_are_repeated() -> None:
    """Every few seconds."""
    outbox = Outbox()
    for _ in range(4):
        outbox.captures.hear(terms(text="window", per_reason_per_min=2.0))
        await outbox.take()
    assert len(outbox.sent) == 2


@pytest.mark.parametrize(
    ("refuses", "rule"), [(True, "a"), (False, "(")], ids=["no-broker", "no-rule"]
)
async def test_what_cannot_go_is_dropped(refuses: bool, rule: str) -> None:  # noqa: FBT001
    """The verdict went before, and no sample waits for this."""
    outbox = Outbox(refuses=refuses)
    outbox.captures.hear(terms(text="window", rules=[{"name": "own", "pattern": rule}]))
    await outbox.take()
    assert outbox.sent == []
