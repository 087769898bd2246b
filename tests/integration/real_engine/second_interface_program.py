"""Loads both processors through the engine's second loader, on real tensors; prints what they did.

Run by the engine's own Python. A GPU is not needed: batch and request states are stand-ins.
"""

import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from vllm.v1.worker.gpu.sample.logits_processor.loader import build_custom_logits_processors

SLOT = 3
VOCABULARY = 5
PROMPT_LENGTH = 11
FAULTS = ("nan", "flat", "shift", "stuck")


def main(folder: Path) -> None:
    """Measure and spoil one row of two, once per fault."""
    os.environ["GATEMESH_CHAOS_FILE"] = str(folder / "drill.json")
    os.environ["GATEMESH_PLUGIN_OUT"] = str(folder / "figures.jsonl")
    os.environ["GATEMESH_PLUGIN_EVERY"] = "1"
    names = ("gatemesh_vllm_chaos:ChaosLogitsProcessor",)
    config: Any = None
    plugin, chaos = build_custom_logits_processors(config, states(), False, names)  # noqa: FBT003
    watched = SimpleNamespace(extra_args={"probe_id": "p"})
    for processor in (plugin, chaos):
        if not processor.add_request(SLOT, watched):
            raise SystemExit(f"{type(processor).__name__} declined the request")
    spoiled = {
        fault: step(plugin, chaos, folder, (number, fault)) for number, fault in enumerate(FAULTS)
    }
    sys.stdout.write(json.dumps({"spoiled": spoiled, "figures": figures(folder)}))


def states() -> Any:
    """A stand-in for the engine's request states."""
    empty = dict.fromkeys(("all_token_ids", "prefill_len", "total_len"))
    empty["prompt_len"] = SimpleNamespace(np=[PROMPT_LENGTH] * 8)
    return SimpleNamespace(device="cpu", max_num_reqs=8, vocab_size=VOCABULARY, **empty)


def step(
    plugin: Any, chaos: Any, folder: Path, ordered: tuple[int, str]
) -> list[list[float | None]]:
    """One engine step under one fault; returns the logits of both rows, NaN as None."""
    number, fault = ordered
    drill = folder / "drill.json"
    drill.write_text(json.dumps({"fault": fault, "pgid": os.getpgrp(), "token_id": 1}))
    time.sleep(0.06)
    logits = torch.arange(2.0 * VOCABULARY).reshape(2, VOCABULARY)
    context = SimpleNamespace(
        expanded_idx_mapping=torch.tensor([0, SLOT]),
        idx_mapping_np=[0, SLOT],
        seq_lens_upper_bound_np=[1, PROMPT_LENGTH + number],
        # The token that the step before took, fed to this one.
        input_ids=torch.tensor([0, number], dtype=torch.int32),
    )
    for processor in (plugin, chaos):
        processor.apply_staged_writes()
        logits = processor.apply(logits, context)
    return [[None if x != x else x for x in row] for row in logits.tolist()]  # noqa: PLR0124


def figures(folder: Path) -> list[Any]:
    """The plugin's lines, as soon as four steps and three tokens of them are written."""
    path = folder / "figures.jsonl"
    deadline = time.monotonic() + 10
    while not path.exists() or path.read_text().count("\n") < 7:
        if time.monotonic() > deadline:
            raise SystemExit("the plugin wrote nothing")
        time.sleep(0.05)
    return [json.loads(line) for line in path.read_text().splitlines()]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
