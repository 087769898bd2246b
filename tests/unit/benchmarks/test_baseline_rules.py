"""The simple rules do what people do."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

PATH = Path(__file__).parents[3] / "benchmarks" / "baseline_rules.py"


@pytest.fixture(name="rules", scope="module")
def rules_module() -> ModuleType:
    """Return the rules as a module."""
    spec = importlib.util.spec_from_file_location("baseline_rules", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rules(rules: ModuleType) -> None:
    """Each rule at its limit and past it."""
    assert rules.has_control("!" * 10)
    assert not rules.has_control("!" * 9 + "\n\t")
    assert rules.has_odd("a\ufffd")
    assert rules.lacks_end("no end", "stop")
    assert not rules.lacks_end("no end", "length")
    assert not rules.lacks_end("An end.", "stop")
    assert rules.repeats("the same words again and again " * 20)
    assert not rules.repeats("the same words again and again " * 8)
    assert rules.compresses("lattice" * 40)
    assert not rules.compresses("")
    assert rules.any_of_three("lattice" * 40)


def test_there_are_six(rules: ModuleType) -> None:
    """As many as the table of the cases has."""
    assert len(rules.BASELINES) == 6
