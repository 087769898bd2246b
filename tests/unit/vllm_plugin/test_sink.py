"""Lines on their way out: complete, bounded, and never in the engine's way."""

import json
import math
import socket
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_vllm_plugin.figures import Figures
from gatemesh_vllm_plugin.sink import BUFFERED_LINES, Sink, append_to, line_of, packets, send_to
from gatemesh_vllm_plugin.watched import DueRow

DUE = DueRow(3, "p", 8)


def test_a_line_names_its_step_and_figures() -> None:
    """What a reader joins on, and what it learns."""
    line = line_of(DUE, Figures(1.5, 0.25, 0, 1, 2), 12.0)
    assert line.endswith(b"\n")
    assert json.loads(line) == {
        "probe_id": "p",
        "step": 8,
        "entropy_nats": 1.5,
        "top1_p": 0.25,
        "nan": 0,
        "pos_inf": 1,
        "neg_inf": 2,
        "at": 12.0,
    }


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_null(value: float) -> None:
    """JSON knows no NaN."""
    body = json.loads(line_of(DUE, Figures(value, value, 7, 0, 0), 12.0))
    assert (body["entropy_nats"], body["top1_p"], body["nan"]) == (None, None, 7)


def test_lines_are_written_from_a_thread_of_their_own() -> None:
    """The engine's step only appends to a list."""
    done, writers = threading.Event(), []

    def write(lines: Sequence[bytes]) -> None:
        writers.append((threading.current_thread(), list(lines)))
        done.set()

    sink = Sink(write, interval_s=0.0)
    sink.put(b"a\n")
    assert done.wait(5)
    assert writers[0][0] is not threading.current_thread()
    assert writers[0][1] == [b"a\n"]


def test_a_jam_drops_the_oldest() -> None:
    """Memory is bounded when nobody takes the lines away."""
    taken: list[bytes] = []
    sink = Sink(taken.extend, interval_s=3600.0)
    for number in range(BUFFERED_LINES + 2):
        sink.put(b"%d" % number)
    sink.flush()
    assert (len(taken), taken[0]) == (BUFFERED_LINES, b"2")


def test_a_refusing_target_is_logged_once_and_heals(caplog: pytest.LogCaptureFixture) -> None:
    """Lines are lost, the engine is not told, and a later success is a new beginning."""
    is_full = True

    def write(_lines: Sequence[bytes]) -> None:
        if is_full:
            raise OSError("disk full")

    sink = Sink(write, interval_s=3600.0)
    for _ in range(2):
        sink.put(b"a\n")
        sink.flush()
    assert [record.message for record in caplog.records] == ["figures_not_written"]
    assert sink.failure
    is_full = False
    sink.put(b"a\n")
    sink.flush()
    assert sink.failure is None


def test_a_file_is_appended_to(tmp_path: Path) -> None:
    """Also when someone has moved the old one away; only its owner may read it."""
    path = tmp_path / "out"
    write = append_to(path)
    write([b"a\n", b"b\n"])
    write([b"c\n"])
    assert path.read_bytes() == b"a\nb\nc\n"
    assert path.stat().st_mode & 0o777 == 0o600
    path.rename(tmp_path / "old")
    write([b"d\n"])
    assert path.read_bytes() == b"d\n"


def test_a_socket_gets_whole_lines(tmp_path: Path) -> None:
    """As datagrams."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reader:
        reader.bind(str(path))
        reader.settimeout(5)
        send_to(path)([b"a\n", b"b\n"])
        assert reader.recv(100) == b"a\nb\n"


def test_a_socket_without_a_reader_is_a_refusal(tmp_path: Path) -> None:
    """Which the sink survives."""
    with pytest.raises(OSError, match=r"No such file"):
        send_to(tmp_path / "nobody")([b"a\n"])


@given(st.lists(st.binary(min_size=1, max_size=8)), st.integers(1, 20))
def test_packets_hold_whole_lines_in_order(lines: list[bytes], limit_bytes: int) -> None:
    """Nothing is lost, split or reordered; only a single long line may pass the limit."""
    joined = packets(lines, limit_bytes)
    assert b"".join(joined) == b"".join(lines)
    longest = max(map(len, lines), default=0)
    assert all(len(packet) <= max(limit_bytes, longest) for packet in joined)
