"""Small tables between host and device, on stand-ins; no GPU was asked."""

from typing import Any, cast

import pytest

from gatemesh_vllm_plugin.device import HostBuffers, fetch, index_of

from .tensors import Column, Event, Table, use_torch_of_lists


@pytest.fixture(autouse=True)
def torch_of_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test here imports torch."""
    use_torch_of_lists(monkeypatch)


def columns(*, is_cuda: bool) -> Any:
    """Two columns of two rows."""
    return [Column([1.0, 2.0], is_cuda=is_cuda), Column([3.0, 4.0], is_cuda=is_cuda)]


def test_on_the_host_the_table_is_there_at_once() -> None:
    """And nobody waits."""
    assert fetch(columns(is_cuda=False))() == [[1.0, 3.0], [2.0, 4.0]]
    assert Event.waited == 0


def test_a_device_is_waited_for_by_the_taker_only() -> None:
    """Beginning the copy waits for nothing."""
    fetched = fetch(columns(is_cuda=True))
    assert Event.waited == 0
    assert fetched() == [[1.0, 3.0], [2.0, 4.0]]
    assert Event.waited == 1


def test_an_index_reaches_the_device_without_waiting() -> None:
    """Pinned, and moved in the background."""
    like: Any = Table([[0.0]], is_cuda=True)
    like.device = "cuda:0"
    moved: Any = index_of([2, 0], like)
    assert moved.moved == {"device": "cuda:0", "non_blocking": True}
    assert moved.values == [2, 0]


def test_an_index_on_the_host_stays_there() -> None:
    """There is nowhere to move it."""
    assert cast("Any", index_of([1], cast("Any", Table([[0.0]])))).moved == {}


def test_memory_on_the_host_is_used_again() -> None:
    """A table is free once it is given back; one that is held keeps its figures."""
    buffers = HostBuffers()
    first, second = cast("Any", Table([[1.0, 2.0]])), cast("Any", Table([[5.0, 1.0]]))
    held, _ = buffers.softmax(first)
    kept = list(held.tolist()[0])
    other, shares = buffers.softmax(second)
    assert held.tolist()[0] == kept
    assert sum(shares.tolist()[0]) == pytest.approx(1.0)
    buffers.give_back(other)
    again, _ = buffers.softmax(first)
    assert again is other
    wider: Any = Table([[1.0, 2.0, 3.0]])
    assert buffers.softmax(wider)[0].shape == (1, 3)
    buffers.give_back(held)
    assert buffers.softmax(wider)[0].shape == (1, 3)
