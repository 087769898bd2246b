"""What of a trace context travels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_common.trace import derived, trace_id_of, usable

GOOD = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    ("sent", "carried"),
    [
        pytest.param(GOOD, GOOD, id="as-it-is"),
        pytest.param(f"cc{GOOD[2:]}-later", f"cc{GOOD[2:]}", id="a-later-version"),
        pytest.param(f"{GOOD}-more", None, id="version-0-has-no-more"),
        pytest.param(f"cc{GOOD[2:]}later", None, id="no-dash"),
        pytest.param(f"ff{GOOD[2:]}", None, id="no-version"),
        pytest.param(GOOD.upper(), None, id="upper-case"),
        pytest.param(f"00-{'0' * 32}-00f067aa0ba902b7-01", None, id="no-trace"),
        pytest.param(f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01", None, id="no-span"),
        pytest.param(f"cc{GOOD[2:]}-{'x' * 200}", None, id="too-long"),
        pytest.param("", None, id="empty"),
        pytest.param(None, None, id="none"),
    ],
)
def test_only_what_is_one_is_carried(sent: str | None, carried: str | None) -> None:
    """It ends in the database, in headers and in other people's tools."""
    assert usable(sent) == carried


@given(st.text(), st.text())
def test_one_is_made_of_any_name(first: str, second: str) -> None:
    """The same for the same names; a client's id may be any text."""
    made = derived(first, second)
    assert usable(made) == made
    assert made == derived(first, second)
    assert made != derived(second + "x", first)


def test_logs_are_joined_by_the_trace() -> None:
    """A context that is none has no trace."""
    assert trace_id_of(GOOD) == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert trace_id_of("nonsense") is None
