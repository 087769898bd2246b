"""The processor between the engine and the figures: idle, measuring, or switched off."""

import json
import logging
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from .tensors import Column, Table, use_torch_of_lists

MakeProcessor = Callable[..., Any]


VOCABULARY = 4


def logits(rows: int) -> Any:
    """Rows that prefer token 0."""
    return Table([[3.0, 0.0, 0.0, 0.0]] * rows)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where figures go."""
    return tmp_path / "figures.jsonl"


@pytest.fixture
def make(engine_interfaces: object, monkeypatch: pytest.MonkeyPatch) -> MakeProcessor:
    """Build a processor as the engine does, with this environment."""
    use_torch_of_lists(monkeypatch)

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
    step = logits(1)
    assert processor.apply(step) is step


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
        processor.apply(logits(2))
        output.append(token)
    told = lines(processor, out)
    figures = [(line["probe_id"], line["step"]) for line in told if "vocab" in line]
    choices = [(line["step"], line["rank"]) for line in told if "rank" in line]
    assert (figures, choices) == ([("p", 0), ("p", 2)], [(0, 0)])
    assert not processor.is_argmax_invariant()


def test_removed_and_moved_rows_are_followed(
    make: MakeProcessor, out: Path, engine_interfaces: Any
) -> None:
    """Figures go to the request that has the row now."""
    processor = make(OUT=str(out), EVERY="1")
    processor.update_state(added((0, params("a"), []), (1, params("b"), [])))
    moved = ((1, 0, engine_interfaces.UNIDIRECTIONAL),)
    processor.update_state(SimpleNamespace(added=[], removed=(0,), moved=moved))
    processor.apply(logits(2))
    assert [line["probe_id"] for line in lines(processor, out)] == ["b"]


def second(slots: list[int], lengths: list[int], fed: list[int]) -> Any:
    """What the second interface tells of one step."""
    return SimpleNamespace(
        idx_mapping_np=slots,
        seq_lens_upper_bound_np=lengths,
        input_ids=Column([float(token) for token in fed]),
        expanded_idx_mapping=Column([float(slot) for slot in slots]),
    )


def test_the_second_interface_knows_steps_and_tokens(make: MakeProcessor, out: Path) -> None:
    """Rows name slots; lengths say the step, and the next step is fed the token."""
    states = SimpleNamespace(prompt_len=SimpleNamespace(np={3: 5, 7: 10}))
    processor = make(None, states, OUT=str(out), EVERY="2")
    assert processor.add_request(7, params())
    assert not processor.add_request(3, params(None))
    for step in range(3):
        processor.apply(logits(2), second([3, 7], [5 + step, 10 + step], [0, step]))
    told = [(line["step"], line.get("rank")) for line in lines(processor, out)]
    assert told == [(0, None), (0, 1), (2, None)]


def test_without_lengths_the_second_interface_counts_calls(make: MakeProcessor, out: Path) -> None:
    """An engine that shows no prompt lengths."""
    processor = make(None, None, OUT=str(out), EVERY="2")
    processor.add_request(7, params())
    for _ in range(3):
        processor.apply(logits(1), second([7], [0], [0]))
    told = [line["step"] for line in lines(processor, out) if "vocab" in line]
    assert told == [0, 2]


def test_drafted_rows_are_measured_and_choose_nothing(make: MakeProcessor, out: Path) -> None:
    """Under speculative decoding a request has several rows; its first counts."""
    processor = make(None, None, OUT=str(out), EVERY="1")
    processor.add_request(7, params())
    ctx = second([7], [0], [0])
    ctx.expanded_idx_mapping = Column([7, 7, 7])
    processor.apply(logits(3), ctx)
    processor.apply(logits(3), ctx)
    assert [line.get("rank") for line in lines(processor, out)] == [None, None]


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
