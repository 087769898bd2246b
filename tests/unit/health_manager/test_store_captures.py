"""What is stored of a capture, and what never is."""

from typing import Any

from gatemesh_common.captures import Capture
from gatemesh_health_manager.store_captures import capture_row
from gatemesh_health_manager.store_tables import CAPTURES

from .samples import NOW

STEPS = [{"n": n, "logprob": -0.5, "fault": n in (3, 4)} for n in range(2, 7)]


def capture(**more: Any) -> Capture:
    """Return a capture as an agent sends it."""
    fields = {
        "timestamp": NOW,
        "message_id": "c-1",
        "instance_id": "engine-0",
        "agent_id": "a",
        "request_id": "r",
        "verdict_id": "v",
        "check_level": "L3",
        "reason": "nan_logits",
        "steps": STEPS,
    }
    return Capture.model_validate(fields | more)


def test_every_column_is_written() -> None:
    """The row and the table name the same columns."""
    assert set(capture_row(capture())) == {column.name for column in CAPTURES.columns}


def test_the_fault_is_known_by_its_steps() -> None:
    """Half-open, by their numbers in the answer; none where the span lies elsewhere."""
    row = capture_row(capture())
    assert (row["fault_from"], row["fault_until"]) == (3, 5)
    row = capture_row(capture(steps=[{"n": 0}]))
    assert (row["fault_from"], row["fault_until"]) == (None, None)
    assert row["steps"] == [{"n": 0, "logprob": None, "entropy": None, "top": (), "fault": False}]


def test_text_is_stored_apart_from_the_figures() -> None:
    """In one column; U+0000 is none that a database can hold."""
    texts = {"tokens": ["a\x00b"], "answer": "secret"}
    row = capture_row(capture(text_policy="full", texts=texts))
    assert row["texts"]["tokens"] == ["a\ufffdb"]
    assert "secret" not in str({name: row[name] for name in row if name != "texts"})


def test_where_no_text_may_be_none_is_stored() -> None:
    """Whatever a sender says."""
    assert capture_row(capture(texts={"answer": "secret"}))["texts"] is None
