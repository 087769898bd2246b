"""What Postgres cannot hold is replaced, and nothing else."""

import pytest

from gatemesh_health_manager.storable import storable


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("plain", "plain"),
        ("a\x00b", "a\ufffdb"),
        ("\ud800", "\ufffd"),
        ({"\x00": ["\x00", 1, None, True]}, {"\ufffd": ["\ufffd", 1, None, True]}),
        (float("nan"), "nan"),
        (1.5, 1.5),
    ],
)
def test_what_postgres_cannot_hold_is_replaced(value: object, stored: object) -> None:
    """Everything else stays as it is."""
    assert storable(value) == stored
