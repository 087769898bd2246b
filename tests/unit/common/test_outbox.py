"""What is left in the outbox is what would have been published."""

from datetime import UTC, datetime, timedelta

from gatemesh_common.messages import Message, Verdict
from gatemesh_common.outbox import REFUSED_DELAY, Lag, outbox_row
from gatemesh_common.publisher import envelope

NOW = datetime(2026, 5, 1, tzinfo=UTC)
VERDICT = Verdict(timestamp=NOW, instance_id="e", request_id="r", check_level="L1", pool="p")


def test_a_row_holds_the_whole_envelope() -> None:
    """The relay knows nothing of classes."""
    later = NOW + timedelta(seconds=5)
    row = outbox_row(VERDICT, later, "health_manager", NOW)
    ready = envelope(VERDICT, "health_manager")
    assert row["body"].encode() == ready.body
    assert row["headers"] == ready.headers
    assert (row["exchange"], row["routing_key"]) == ("vllm_health_alert", "verdict.v1.l1.p.e")
    assert (row["created_at"], row["available_at"], row["mandatory"]) == (NOW, later, True)


def test_a_signature_goes_beside_the_very_bytes_that_are_sent() -> None:
    """The reader proves what arrives, before it reads it."""
    signed: list[bytes] = []

    def sign(message: Message, body: bytes) -> dict[str, str]:
        assert message is VERDICT
        signed.append(body)
        return {"x-signature": "s"}

    row = outbox_row(VERDICT, NOW, "health_manager", NOW, sign)
    assert signed == [row["body"].encode()]
    assert row["headers"] == {**envelope(VERDICT, "health_manager").headers, "x-signature": "s"}


def test_the_lag_is_that_of_the_oldest_message() -> None:
    """Nothing waits where nothing is due."""
    lag = Lag()
    assert lag.after_round(NOW - timedelta(seconds=3), NOW, refused=False) == 3
    assert lag.after_round(NOW, NOW, refused=False) == 0


def test_the_lag_grows_while_the_broker_refuses() -> None:
    """A message that is put off is due later, and has waited all the same."""
    lag, since = Lag(), NOW - timedelta(seconds=1)
    assert lag.after_round(since, NOW, refused=True) == 1
    later = NOW + REFUSED_DELAY
    assert lag.after_round(later, later, refused=False) == 3
    assert lag.after_round(later, later, refused=True) == 3
    much_later = later + 3 * REFUSED_DELAY
    assert lag.after_round(much_later, much_later, refused=False) == 0
