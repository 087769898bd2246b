"""The inbox' statement; what it does is tested on a real database."""

from gatemesh_common.inbox import INBOX, SEE


def test_an_id_is_kept_per_queue() -> None:
    """Two readers of one message are two entries."""
    assert [column.name for column in INBOX.primary_key.columns] == ["queue", "message_id"]


def test_a_known_id_is_no_error() -> None:
    """It is what the answer names."""
    assert "ON CONFLICT DO NOTHING RETURNING message_id" in str(SEE)
    assert "id NOT IN (SELECT message_id FROM fresh)" in str(SEE)
