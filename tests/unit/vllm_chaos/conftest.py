"""As much of vLLM's interfaces as the processor meets; the real ones are met by the real engine."""

import sys
from enum import Enum, auto
from types import ModuleType
from typing import Any

import pytest


class MoveDirectionality(Enum):
    """As in the engine."""

    UNIDIRECTIONAL = auto()
    SWAP = auto()


class FirstInterface:
    """As in the engine, without its abstract methods."""


class SecondInterface:
    """As in the engine, without its abstract methods."""


@pytest.fixture
def engine_interfaces(monkeypatch: pytest.MonkeyPatch) -> type[MoveDirectionality]:
    """Make the engine's two interface modules importable for one test."""
    first: Any = ModuleType("vllm.v1.sample.logits_processor.interface")
    first.LogitsProcessor, first.MoveDirectionality = FirstInterface, MoveDirectionality
    second: Any = ModuleType("vllm.v1.worker.gpu.sample.logits_processor.interface")
    second.LogitsProcessor = SecondInterface
    for module in (first, second):
        parts = module.__name__.split(".")
        for length in range(1, len(parts)):
            name = ".".join(parts[:length])
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, "gatemesh_vllm_chaos.processor", raising=False)
    return MoveDirectionality
