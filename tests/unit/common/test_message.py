"""What all messages share."""

from datetime import UTC, datetime

from gatemesh_common.message import HandmadeMessage, InstanceMessage, Message

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


class Told(InstanceMessage):
    """A message of this test."""

    exchange = "x"
    routing_key = "told.v1"


class Written(HandmadeMessage):
    """One that people write."""

    exchange = "x"
    routing_key = "written.v1"


def test_a_key_is_made_of_words() -> None:
    """Dots in names would make words of their own."""
    told = Told(timestamp=NOON, instance_id="a.b", pool="p#1")
    assert told.key() == "told.v1.p_1.a_b"


def test_ids_are_fresh_unless_a_person_writes() -> None:
    """The same text by hand counts once."""
    one, other = Told(timestamp=NOON, instance_id="a"), Told(timestamp=NOON, instance_id="a")
    assert one.message_id != other.message_id
    by_hand = {"timestamp": "2026-05-01T12:00:00Z"}
    assert Written.model_validate(by_hand).message_id == Written.model_validate(by_hand).message_id


def test_a_message_has_an_obliged_reader_unless_it_says_otherwise() -> None:
    """The broker tells a publisher whom nobody hears."""
    assert Message.mandatory
