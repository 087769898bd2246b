"""Fault drills for vLLM: `--logits-processors gatemesh_vllm_chaos:ChaosLogitsProcessor`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gatemesh_vllm_chaos.processor import ChaosLogitsProcessor

__all__ = ["ChaosLogitsProcessor"]


def __getattr__(name: str) -> Any:
    """Load the processor on first use, so that the drill files need no engine to be read."""
    if name != "ChaosLogitsProcessor":
        raise AttributeError(name)
    return import_module("gatemesh_vllm_chaos.processor").ChaosLogitsProcessor
