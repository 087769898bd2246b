"""The processor between the engine and the figures: idle, measuring, or switched off."""

import json
import logging
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

MakeProcessor = Callable[..., Any]


class OneColumn(list[float]):
    """A column of figures."""

    tolist = list.copy


class Logits:
    """A tensor whose every figure is 1; rows of it can be chosen."""

    def __init__(self, rows: int) -> None:
        self.shape = (rows, 4)

    def __getitem__(self, rows: list[int]) -> "Logits":
        return Logits(len(rows))

    def __neg__(self) -> "Logits":
        return self

    def __mul__(self, _other: object) -> "Logits":
        return self

    def _same(self, *_arguments: float) -> "Logits":
        return self

    softmax = clamp_min = log = isnan = isposinf = isneginf = sum = amax = _same

    def tolist(self) -> list[float]:
        """One figure per row."""
        return [1.0] * self.shape[0]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where figures go."""
    return tmp_path / "figures.jsonl"


@pytest.fixture
def make(engine_interfaces: object, monkeypatch: pytest.MonkeyPatch) -> MakeProcessor:
    """Build a processor as the engine does, with this environment."""

    def make_processor(*arguments: object, **environment: str) -> Any:
        for name in ("GATEMESH_PLUGIN_OUT", "GATEMESH_PLUGIN_EVERY"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(f"GATEMESH_PLUGIN_{name}", value)
        processor = import_module("gatemesh_vllm_plugin.processor").FiguresLogitsProcessor
        return processor(*(arguments or (None, None, False)))

    return make_processor


def params(probe_id: str | None = "p") -> Any:
    """Sampling parameters with a probe id among the extra arguments."""
    return SimpleNamespace(extra_args={"probe_id": probe_id} if probe_id else None)


def added(*rows: tuple[int, Any, list[int]]) -> Any:
    """A change of the batch as the first interface tells it."""
    changes = [(row, parameters, None, output) for row, parameters, output in rows]
    return SimpleNamespace(added=changes, removed=(), moved=())


def lines(processor: Any, out: Path) -> list[dict[str, Any]]:
    """What was written so far."""
    processor._sink.flush()
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def test_it_is_idle_without_a_target(make: MakeProcessor) -> None:
    """Installed is not switched on: it asks for nothing and may be skipped."""
    processor = make()
    assert processor.is_argmax_invariant()
    assert not processor.add_request(0, params())
    processor.update_state(added((0, params(), [])))
    logits = Logits(1)
    assert processor.apply(logits) is logits


def test_a_wrong_setting_switches_it_off(
    make: MakeProcessor, caplog: pytest.LogCaptureFixture
) -> None:
    """The engine starts; the log names the variable."""
    processor = make(OUT="/f", EVERY="0")
    assert processor.is_argmax_invariant()
    assert "GATEMESH_PLUGIN_EVERY" in caplog.text


def test_watched_rows_are_written(make: MakeProcessor, out: Path) -> None:
    """One line per due step of a watched request."""
    processor = make(OUT=str(out), EVERY="2")
    output: list[int] = []
    processor.update_state(added((0, params(), output), (1, params(None), [])))
    for token in range(3):
        processor.apply(Logits(2))
        output.append(token)
    found = [(line["probe_id"], line["step"]) for line in lines(processor, out)]
    assert found == [("p", 0), ("p", 2)]
    assert not processor.is_argmax_invariant()


def test_removed_and_moved_rows_are_followed(
    make: MakeProcessor, out: Path, engine_interfaces: Any
) -> None:
    """Figures go to the request that has the row now."""
    processor = make(OUT=str(out), EVERY="1")
    processor.update_state(added((0, params("a"), []), (1, params("b"), [])))
    moved = ((1, 0, engine_interfaces.UNIDIRECTIONAL),)
    processor.update_state(SimpleNamespace(added=[], removed=(0,), moved=moved))
    processor.apply(Logits(2))
    assert [line["probe_id"] for line in lines(processor, out)] == ["b"]


def test_the_second_interface_counts_calls(make: MakeProcessor, out: Path) -> None:
    """Rows name slots there, and no list of tokens is shown."""
    processor = make(None, None, OUT=str(out), EVERY="2")
    assert processor.add_request(7, params())
    assert not processor.add_request(3, params(None))
    ctx = SimpleNamespace(expanded_idx_mapping=OneColumn([3, 7]))
    for _ in range(3):
        processor.apply(Logits(2), ctx)
    assert [line["step"] for line in lines(processor, out)] == [0, 2]


def test_a_fault_of_ours_switches_it_off_once(
    make: MakeProcessor, out: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The engine's logits come back unchanged, and the log says it once."""
    processor = make(OUT=str(out))
    processor.update_state(added((0, params(), [])))
    broken = SimpleNamespace(shape=(1, 4))
    with caplog.at_level(logging.ERROR):
        assert processor.apply(broken) is broken
        assert processor.apply(broken) is broken
    assert [record.message for record in caplog.records] == ["figures_switched_off"]
    assert not processor.add_request(0, params())
