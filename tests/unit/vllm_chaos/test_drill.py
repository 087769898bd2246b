"""What a drill file may say, for the engine that reads it while others write it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_vllm_chaos.drill import Drill, Fault, parse_drill

WHOLE: dict[str, Any] = {
    "fault": "nan",
    "pgid": 4242,
    "probability": 0.5,
    "after_tokens": 3,
    "shift_by": -2,
    "token_id": 7,
}


def written(**changes: Any) -> bytes:
    """A drill file with some fields replaced."""
    return json.dumps({**WHOLE, **changes}).encode()


def test_every_field_is_read() -> None:
    """What the writer ordered is what the engine does."""
    assert parse_drill(written()) == Drill(Fault.NAN, 4242, 0.5, 3, -2, 7)


def test_only_fault_and_group_are_needed() -> None:
    """The rest has defaults: every request, from its first token on."""
    assert parse_drill(b'{"fault": "flat", "pgid": 9}') == Drill(Fault.FLAT, 9, 1.0, 0)


def test_pid_is_another_name_of_the_group() -> None:
    """The server's pid is its group where it was started as a group of its own."""
    assert parse_drill(b'{"fault": "flat", "pid": 9}') == Drill(Fault.FLAT, 9)


@pytest.mark.parametrize("fault", Fault)
def test_every_fault_has_a_name(fault: Fault) -> None:
    """The whole table is reachable from a file."""
    drill = parse_drill(written(fault=str(fault)))
    assert drill is not None
    assert drill.fault is fault


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(written()[:-5], id="half-written"),
        pytest.param(b"\xff\xfe", id="not-text"),
        pytest.param(b"[1]", id="not-an-object"),
        pytest.param(written(fault="fire"), id="unknown-fault"),
        pytest.param(written(fault=["nan"]), id="fault-no-text"),
        pytest.param(b'{"fault": "nan"}', id="no-group"),
        pytest.param(written(pgid="4242"), id="group-as-text"),
        pytest.param(written(pgid=1), id="group-of-init"),
        pytest.param(written(pgid=True), id="group-as-bool"),
        pytest.param(written(probability=1.01), id="probability-above-one"),
        pytest.param(written(probability=-0.01), id="probability-below-zero"),
        pytest.param(written(after_tokens=-1), id="before-the-start"),
        pytest.param(written(after_tokens=1.5), id="half-a-token"),
        pytest.param(written(token_id=-1), id="token-below-zero"),
    ],
)
def test_what_is_no_drill_is_ignored(content: bytes) -> None:
    """An engine never fails over its drill file."""
    assert parse_drill(content) is None


@pytest.mark.parametrize("probability", [0, 0.0, 1, 1.0])
def test_probability_reaches_both_ends(probability: float) -> None:
    """None and all of the requests are both orders."""
    assert parse_drill(written(probability=probability)) is not None


@given(st.binary(max_size=200))
def test_no_content_raises(content: bytes) -> None:
    """Whatever lies in the file, the engine goes on."""
    parse_drill(content)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_no_value_raises(value: Any) -> None:
    """Neither does any value of a known field."""
    for field in WHOLE:
        parse_drill(written(**{field: value}))


def test_a_drill_concerns_one_life_only() -> None:
    """A restarted engine has another process group."""
    drill = Drill(Fault.NAN, 4242)
    assert drill.concerns(4242)
    assert not drill.concerns(4243)
