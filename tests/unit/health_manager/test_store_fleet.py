"""The statements by which pools are locked; what they do is tested on a real database."""

from sqlalchemy.dialects import postgresql

from gatemesh_health_manager.store_fleet import locking


def test_pools_are_locked_in_one_order() -> None:
    """Two transactions never wait in a circle."""
    words = str(locking(["b", "a"]).compile(dialect=postgresql.dialect()))  # type: ignore[no-untyped-call]
    assert "ORDER BY pools.pool FOR UPDATE" in words
