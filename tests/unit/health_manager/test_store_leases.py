"""The numbers of the locks; leases are tested on a real database."""

from gatemesh_common.broker import MOST_SHARDS
from gatemesh_health_manager.store_leases import PRESENT, SPACE


def test_no_shard_has_the_lock_that_all_share() -> None:
    """Both numbers fit what the database takes."""
    assert PRESENT not in range(MOST_SHARDS)
    assert -(2**31) <= PRESENT < SPACE < 2**31
