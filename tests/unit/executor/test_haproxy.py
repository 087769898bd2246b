"""What HAProxy says, read."""

import pytest

from gatemesh_executor.balancers.base import Standing
from gatemesh_executor.balancers.haproxy import differs, parse_table, standing_of

STATES = """\
1
# be_id be_name srv_id srv_name srv_op_state srv_admin_state srv_uweight srv_iweight
4 chat 1 engine-0 2 0 30 100
4 chat 2 engine-1 2 8 100 100

"""
STATS = """\
# pxname,svname,qcur,qmax,scur,smax,
chat,engine-0,1,0,4,9,

"""


def test_tables_are_read_by_their_columns() -> None:
    """Versions of HAProxy add columns."""
    states = parse_table(STATES, " ")
    assert [row["srv_name"] for row in states] == ["engine-0", "engine-1"]
    (stat,) = parse_table(STATS, ",")
    assert (stat["scur"], stat["qcur"]) == ("4", "1")


@pytest.mark.parametrize("text", ["", "\n", "Can't find backend.\n", "# a b\n"])
def test_an_answer_without_rows_is_empty(text: str) -> None:
    """The caller says what is missing."""
    assert parse_table(text, " ") == []


def test_waiting_requests_count_as_running() -> None:
    """They would reach the server after the drain."""
    state, (stat,) = parse_table(STATES, " ")[0], parse_table(STATS, ",")
    assert standing_of(state, stat) == Standing(
        out=False, weight=30, full_weight=100, sessions=5, by_hand=False
    )


@pytest.mark.parametrize(
    ("admin", "out", "by_hand"),
    [
        (0x00, False, False),
        (0x01, True, True),
        (0x02, True, False),
        (0x04, True, False),
        (0x05, True, True),
        (0x08, True, False),
        (0x10, True, False),
        (0x20, True, False),
        (0x40, False, False),
    ],
)
def test_each_bit_of_the_state(admin: int, out: bool, by_hand: bool) -> None:  # noqa: FBT001
    """Maintenance and drain, forced or inherited; the last one only says where a name is from."""
    state = {"srv_admin_state": str(admin), "srv_uweight": "1", "srv_iweight": "1"}
    found = standing_of(state, {"scur": "0", "qcur": "0"})
    assert (found.out, found.by_hand) == (out, by_hand)


def test_only_what_differs_is_looked_at_closely() -> None:
    """One answer about a backend does for all servers that are as they should be."""
    first, second = parse_table(STATES, " ")
    assert not differs(first, 0.3)
    assert differs(first, 1.0)
    assert not differs(second, 0.0)
    assert differs(second, 1.0)
    assert differs(None, 1.0)
    assert differs({}, 1.0)
