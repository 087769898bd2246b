"""Lines of the plugin are read as they are written, and nothing else is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.exact_lines import (
    ExactLine,
    lines_of,
    may_name,
    names_xargs,
    with_probe_id,
)
from gatemesh_agent.gates.l3_exact import ExactChoice, ExactStep

FIGURES = {
    "probe_id": "p",
    "step": 8,
    "entropy_nats": 1.5,
    "top1_p": 0.25,
    "variance": 0.5,
    "nan": 0,
    "pos_inf": 0,
    "vocab": 49_152,
    "at": 12.0,
}
CHOICE = {"probe_id": "p", "step": 8, "chosen_logprob": -2.5, "rank": 3}


def packet(*lines: object) -> bytes:
    """A datagram of lines."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_both_kinds_of_lines_are_read() -> None:
    """In their order."""
    assert list(lines_of(packet(FIGURES, CHOICE))) == [
        ExactLine("p", ExactStep(8, 1.5, 0.25, 0.5, 0, 0, 49_152)),
        ExactLine("p", ExactChoice(8, -2.5, 3)),
    ]


def test_figures_that_are_none_are_read_as_none() -> None:
    """The counts say why."""
    nan = {**FIGURES, "entropy_nats": None, "top1_p": None, "variance": None, "nan": 7}
    [line] = lines_of(packet(nan))
    assert line.figures == ExactStep(8, None, None, None, 7, 0, 49_152)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param({**FIGURES, "probe_id": 7}, id="no-id"),
        pytest.param({**FIGURES, "step": -1}, id="no-step"),
        pytest.param({**FIGURES, "step": True}, id="step-is-true"),
        pytest.param({**FIGURES, "nan": "0"}, id="no-count"),
        pytest.param({**CHOICE, "chosen_logprob": None}, id="no-logprob"),
        pytest.param({**CHOICE, "rank": 1.5}, id="no-rank"),
        pytest.param([1], id="a-list"),
    ],
)
def test_what_is_no_line_is_left(line: object) -> None:
    """And the next one is read."""
    assert [each.figures for each in lines_of(packet(line, CHOICE))] == [ExactChoice(8, -2.5, 3)]


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(data: bytes) -> None:
    """Anybody on the host may send to the socket."""
    list(lines_of(data))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"model":"m"}', {"model": "m", "vllm_xargs": {"probe_id": "p"}}),
        (b"{}", {"vllm_xargs": {"probe_id": "p"}}),
        (b'{"vllm_xargs":{"a":1}} ', {"vllm_xargs": {"a": 1, "probe_id": "p"}}),
        (b'{"vllm_xargs":null}', {"vllm_xargs": {"probe_id": "p"}}),
    ],
)
def test_an_id_is_added_at_the_end(raw: bytes, expected: Any) -> None:
    """The client's bytes stay as they are before it."""
    body = json.loads(raw)
    named = with_probe_id(raw, body, "p")
    assert json.loads(named) == expected
    assert named.startswith(raw.rstrip()[:-1])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, True),
        ({"vllm_xargs": {"a": 1}}, True),
        ({"vllm_xargs": {"probe_id": "own"}}, False),
        ({"vllm_xargs": "odd"}, False),
    ],
)
def test_a_clients_own_id_is_respected(body: dict[str, Any], expected: bool) -> None:  # noqa: FBT001
    """And what the engine would refuse stays refused."""
    assert may_name(body) is expected


def test_a_refusal_names_the_field() -> None:
    """Any wording that does."""
    assert names_xargs(b'{"error":{"message":"Unrecognized argument: vllm_xargs"}}')
    assert not names_xargs(b'{"error":{"message":"no such model"}}')
