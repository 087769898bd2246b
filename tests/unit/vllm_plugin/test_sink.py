"""Lines on their way out: complete, bounded, and never in the engine's way."""

import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_vllm_plugin.settings import Target, TargetKind
from gatemesh_vllm_plugin.sink import BUFFERED_JOBS, Sink, append_to, packets, send_to, writer_to


def job(*lines: bytes) -> Callable[[], list[bytes]]:
    """A job that makes these lines."""
    return lambda: list(lines)


def test_lines_are_written_from_a_thread_of_their_own() -> None:
    """The engine's step only appends to a list."""
    done, writers = threading.Event(), []

    def write(lines: Sequence[bytes]) -> None:
        writers.append((threading.current_thread(), list(lines)))
        done.set()

    sink = Sink(write, interval_s=0.0)
    sink.put(job(b"a\n"))
    assert done.wait(5)
    assert writers[0][0] is not threading.current_thread()
    assert writers[0][1] == [b"a\n"]


def test_a_jam_drops_the_oldest() -> None:
    """Memory is bounded when nobody takes the lines away."""
    taken: list[bytes] = []
    sink = Sink(taken.extend, interval_s=3600.0)
    for number in range(BUFFERED_JOBS + 2):
        sink.put(job(b"%d" % number))
    sink.flush()
    assert (len(taken), taken[0]) == (BUFFERED_JOBS, b"2")


def test_a_refusing_target_is_logged_once_and_heals(caplog: pytest.LogCaptureFixture) -> None:
    """Lines are lost, the engine is not told, and a later success is a new beginning."""
    is_full = True

    def write(_lines: Sequence[bytes]) -> None:
        if is_full:
            raise OSError("disk full")

    sink = Sink(write, interval_s=3600.0)
    for _ in range(2):
        sink.put(job(b"a\n"))
        sink.flush()
    assert [record.message for record in caplog.records] == ["figures_not_written"]
    assert sink.failure
    is_full = False
    sink.put(job(b"a\n"))
    sink.flush()
    assert sink.failure is None


def test_a_file_is_appended_to(tmp_path: Path) -> None:
    """Also when someone has moved the old one away; only its owner may read it."""
    path = tmp_path / "out"
    write = append_to(Target(TargetKind.FILE, str(path)))
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
        send_to(Target(TargetKind.UNIX, str(path)))([b"a\n", b"b\n"])
        assert reader.recv(100) == b"a\nb\n"


def test_a_socket_without_a_reader_is_a_refusal(tmp_path: Path) -> None:
    """Which the sink survives."""
    with pytest.raises(OSError, match=r"No such file"):
        send_to(Target(TargetKind.UNIX, str(tmp_path / "nobody")))([b"a\n"])


def test_a_port_gets_whole_lines() -> None:
    """Where engine and agent share a network but no folder."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reader:
        reader.bind(("127.0.0.1", 0))
        reader.settimeout(5)
        send_to(Target(TargetKind.UDP, "127.0.0.1", reader.getsockname()[1]))([b"a\n"])
        assert reader.recv(100) == b"a\n"


def test_a_target_that_refuses_keeps_nothing_from_the_others(tmp_path: Path) -> None:
    """Two agents in front of one engine; the failure is still told."""
    nobody = Target(TargetKind.UNIX, str(tmp_path / "nobody"))
    path = tmp_path / "out"
    write = writer_to([nobody, Target(TargetKind.FILE, str(path))])
    with pytest.raises(OSError, match=r"No such file"):
        write([b"a\n"])
    assert path.read_bytes() == b"a\n"


def test_a_job_that_fails_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    """What it would have told is lost; the next lines come."""
    done = threading.Event()
    sink = Sink(lambda _lines: done.set(), interval_s=0.0)

    def broken() -> list[bytes]:
        raise RuntimeError("the device is gone")

    sink.put(broken)
    while "figures_lost" not in caplog.text:
        assert sink.failure is None
    sink.put(job(b"a\n"))
    assert done.wait(5)


@given(st.lists(st.binary(min_size=1, max_size=8)), st.integers(1, 20))
def test_packets_hold_whole_lines_in_order(lines: list[bytes], limit_bytes: int) -> None:
    """Nothing is lost, split or reordered; only a single long line may pass the limit."""
    joined = packets(lines, limit_bytes)
    assert b"".join(joined) == b"".join(lines)
    longest = max(map(len, lines), default=0)
    assert all(len(packet) <= max(limit_bytes, longest) for packet in joined)
