"""Dead letters, as they are shown and given back."""

from typing import Any, cast

import pytest
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from gatemesh_ctl.queues import RENEW_AT, deliveries, describe, give_back, readable


class Letter:
    """A dead letter in the hand."""

    def __init__(self, **headers: object) -> None:
        self.headers = headers
        self.body = b'{"a": 1}'
        self.message_id, self.type, self.app_id = "m-1", "Verdict", "agent"
        self.routing_key, self.content_type, self.timestamp = "q", "application/json", None
        self.done: list[str] = []

    async def nack(self, *, requeue: bool) -> None:
        """Go back to where it was."""
        self.done.append(f"nack {requeue}")

    async def ack(self) -> None:
        """Be gone."""
        self.done.append("ack")


class Channel:
    """A channel that keeps what is published, or fails."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.published: list[Any] = []
        self._fault = fault

    async def get_exchange(self, name: str, *, ensure: bool) -> "Channel":
        """Return the exchange of dead letters: an operator may publish to no queue."""
        assert (name, ensure) == ("gatemesh.dead", False)
        return self

    async def publish(self, message: object, key: str, *, mandatory: bool) -> None:
        """Keep it."""
        assert mandatory
        if self._fault:
            raise self._fault
        self.published.append((message, key))


async def hand_back(channel: Channel, letter: Letter) -> None:
    """Call with the fakes in place of the broker's own classes."""
    await give_back(cast(AbstractChannel, channel), cast(AbstractIncomingMessage, letter))


async def test_a_letter_goes_back_to_its_place() -> None:
    """Looking changes nothing."""
    letter, channel = Letter(**{"x-delivery-count": RENEW_AT - 1}), Channel()
    await hand_back(channel, letter)
    assert letter.done == ["nack True"]
    assert channel.published == []


@pytest.mark.parametrize("name", ["x-delivery-count", "x-acquired-count"])
async def test_a_letter_looked_at_often_is_replaced_by_a_copy(name: str) -> None:
    """Newer brokers drop a message at its twentieth delivery."""
    letter, channel = Letter(**{name: RENEW_AT, "x-gatemesh-reason": "why"}), Channel()
    await hand_back(channel, letter)
    [(copy, key)] = channel.published
    assert key == letter.routing_key
    assert (copy.body, copy.message_id, copy.headers) == (
        letter.body,
        "m-1",
        {"x-gatemesh-reason": "why"},
    )
    assert letter.done == ["ack"]


async def test_the_original_goes_only_after_its_copy_is_there() -> None:
    """A broker that dies in between loses nothing."""
    letter = Letter(**{"x-delivery-count": RENEW_AT})
    with pytest.raises(OSError, match="gone"):
        await hand_back(Channel(OSError("gone")), letter)
    assert letter.done == []


def test_our_reason_goes_before_the_brokers() -> None:
    """Ours names the field; the broker knows only that it was rejected."""
    both = {
        "x-gatemesh-reason": "action: wrong",
        "x-gatemesh-queue": "executor.commands",
        "x-first-death-reason": "rejected",
        "x-first-death-queue": "other",
    }
    shown = describe(cast(AbstractIncomingMessage, Letter(**both)))
    assert (shown["reason"], shown["queue"]) == ("action: wrong", "executor.commands")
    shown = describe(cast(AbstractIncomingMessage, Letter(**{"x-first-death-reason": "rejected"})))
    assert (shown["reason"], shown["queue"]) == ("rejected", None)
    assert shown["body"] == {"a": 1}


@pytest.mark.parametrize(
    ("body", "shown"),
    [(b'{"a":1}', {"a": 1}), (b"no json", "no json"), (b"\xff{", "\ufffd{"), (b"", "")],
)
def test_any_body_can_be_read(body: bytes, shown: object) -> None:
    """Poison is rarely well formed."""
    assert readable(body) == shown


def test_a_body_nested_too_deeply_is_shown_as_text() -> None:
    """One such letter must not hide all others."""
    body = b"[" * 100_000
    assert readable(body) == body.decode()


def test_a_letter_without_a_count_is_new() -> None:
    """Its first delivery has no header."""
    assert deliveries(cast(AbstractIncomingMessage, Letter())) == 0
    odd = Letter(**{"x-delivery-count": "many"})
    assert deliveries(cast(AbstractIncomingMessage, odd)) == 0


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        pytest.param("Capture", {"reason": "flat", "texts": None}, id="capture"),
        pytest.param("Verdict", {"reason": "flat", "texts": {"answer": "hush"}}, id="other"),
    ],
)
def test_words_of_people_are_not_shown(kind: str, shown: object) -> None:
    """Whoever may read dead letters need not be one who may read captures' texts."""
    letter = Letter()
    letter.type, letter.body = kind, b'{"reason": "flat", "texts": {"answer": "hush"}}'
    assert describe(cast(AbstractIncomingMessage, letter))["body"] == shown
