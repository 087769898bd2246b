"""The processor between the engine's batch and the drill file."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import gatemesh_vllm_chaos

MakeProcessor = Callable[..., Any]


class Logits:
    """Counts which rows were overwritten."""

    def __init__(self, rows: int) -> None:
        self.shape = (rows, 4)
        self.spoiled: list[int] = []

    def __setitem__(self, rows: list[int], _value: float) -> None:
        self.spoiled += rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A drill for this process's group."""
    path = tmp_path / "drill.json"
    path.write_text(json.dumps({"fault": "nan", "pgid": os.getpgrp()}))
    return path


@pytest.fixture
def make(engine_interfaces: object, monkeypatch: pytest.MonkeyPatch) -> MakeProcessor:
    """Build a processor as the engine does; `file` is what its environment names."""

    def make_processor(file: Path | None, *arguments: object) -> Any:
        monkeypatch.delenv("GATEMESH_CHAOS_FILE", raising=False)
        if file:
            monkeypatch.setenv("GATEMESH_CHAOS_FILE", str(file))
        return gatemesh_vllm_chaos.ChaosLogitsProcessor(*(arguments or (None, None, False)))

    return make_processor


def update(
    added: list[tuple[int, list[int]]], removed: tuple[int, ...] = (), moved: tuple[Any, ...] = ()
) -> Any:
    """A change of the batch as the first interface tells it."""
    rows = [(row, None, None, output) for row, output in added]
    return SimpleNamespace(added=rows, removed=removed, moved=moved)


def spoiled_rows(processor: Any, rows: int = 3, ctx: Any = None) -> list[int]:
    """The rows that one step spoils."""
    logits = Logits(rows)
    processor.apply(logits, ctx)
    return logits.spoiled


def test_nothing_happens_without_a_file(make: MakeProcessor) -> None:
    """Off unless someone names a file."""
    processor = make(None)
    processor.update_state(update([(0, [])]))
    assert spoiled_rows(processor) == []


def test_a_drill_spoils_the_running_requests(make: MakeProcessor, path: Path) -> None:
    """The first interface's batch is followed."""
    processor = make(path)
    processor.update_state(update([(0, []), (1, [])]))
    processor.update_state(None)
    assert spoiled_rows(processor) == [0, 1]
    processor.update_state(update([], removed=(0,)))
    assert spoiled_rows(processor) == [1]


def test_moves_are_followed(make: MakeProcessor, path: Path, engine_interfaces: Any) -> None:
    """One way and both ways."""
    processor = make(path)
    one_way, swap = engine_interfaces.UNIDIRECTIONAL, engine_interfaces.SWAP
    processor.update_state(update([(0, []), (1, [])], moved=((1, 2, one_way), (0, 1, swap))))
    assert spoiled_rows(processor) == [1, 2]


def test_the_second_interface_is_followed(make: MakeProcessor, path: Path) -> None:
    """Rows name slots there."""
    processor = make(path, None, None)
    assert processor.add_request(5, None)
    slots = SimpleNamespace(tolist=lambda: [4, 5])
    ctx = SimpleNamespace(expanded_idx_mapping=slots)
    assert spoiled_rows(processor, 2, ctx) == [1]


def test_it_is_run_in_greedy_batches(make: MakeProcessor) -> None:
    """An argmax-invariant processor would be skipped there."""
    assert make(None).is_argmax_invariant() is False


def test_the_receipt_is_written_once(make: MakeProcessor, path: Path) -> None:
    """At the first spoiled step and not at each."""
    processor = make(path)
    processor.update_state(update([(0, [])]))
    spoiled_rows(processor)
    receipt = path.with_name("drill.json.fired")
    assert json.loads(receipt.read_text())["fault"] == "nan"
    receipt.unlink()
    spoiled_rows(processor)
    assert not receipt.exists()


def test_the_package_has_no_other_lazy_names() -> None:
    """A mistyped flag is an error, as with any module."""
    with pytest.raises(AttributeError, match="Chaos"):
        _ = gatemesh_vllm_chaos.Chaos
