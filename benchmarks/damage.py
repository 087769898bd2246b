"""Write a damaged copy of a model; run by the engine's Python, which has torch.

    .gatemesh/vllm-venv/bin/python benchmarks/damage.py --model DIR --kind KIND --target DIR

The kinds are those of the recorded answers that the gates are measured on.
"""

import argparse
import importlib
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

WEIGHTS = "model.safetensors"
EMBEDDING = "model.embed_tokens.weight"
FINAL_NORM = "model.norm.weight"
SEED = 20
Tensors = dict[str, Any]


def layer(number: int) -> str:
    """Return how the names of one layer's tensors begin."""
    return f"model.layers.{number}."


def matrix(number: int = 10) -> str:
    """Return the name of one matrix in the middle."""
    return f"{layer(number)}mlp.down_proj.weight"


def set_element(torch: Any, tensors: Tensors, name: str, value: float) -> None:
    """Overwrite the first element of a tensor."""
    del torch
    tensors[name].view(-1)[0] = value


def fill(torch: Any, tensors: Tensors, name: str, value: float) -> None:
    """Overwrite a whole tensor."""
    del torch
    tensors[name].fill_(value)


def scale(torch: Any, tensors: Tensors, name: str, factor: float) -> None:
    """Multiply a tensor."""
    del torch
    tensors[name].mul_(factor)


def add_noise(torch: Any, tensors: Tensors, begin: str, share: float) -> None:
    """Add noise to all matrices whose names begin so, as a share of their own spread."""
    generator = torch.Generator().manual_seed(SEED)
    for name, tensor in sorted(tensors.items()):
        if name.startswith(begin) and tensor.dim() > 1:
            wide = tensor.float()
            noise = torch.randn(tensor.shape, generator=generator) * wide.std() * share
            tensor.copy_((wide + noise).to(tensor.dtype))


def replace_by_noise(torch: Any, tensors: Tensors, begin: str) -> None:
    """Put noise of the same spread in place of matrices."""
    generator = torch.Generator().manual_seed(SEED)
    for name, tensor in sorted(tensors.items()):
        if name.startswith(begin) and tensor.dim() > 1:
            noise = torch.randn(tensor.shape, generator=generator) * tensor.float().std()
            tensor.copy_(noise.to(tensor.dtype))


def flip_bits(torch: Any, tensors: Tensors, bit: int, count: int) -> None:
    """Flip one bit of some weights (bfloat16: bit 14 is the top bit of the exponent)."""
    generator = torch.Generator().manual_seed(SEED)
    names = sorted(name for name, tensor in tensors.items() if tensor.dim() > 1)
    for number in range(count):
        words = tensors[names[(number * 37 + 5) % len(names)]].view(torch.int16).view(-1)
        at = int(torch.randint(words.numel(), (1,), generator=generator))
        words[at] = words[at] ^ (1 << bit)


def swap_layers(torch: Any, tensors: Tensors, one: int, other: int) -> None:
    """Exchange two layers."""
    del torch
    for name in [name for name in tensors if name.startswith(layer(one))]:
        twin = layer(other) + name.removeprefix(layer(one))
        tensors[name], tensors[twin] = tensors[twin], tensors[name]


def roll_embedding(torch: Any, tensors: Tensors) -> None:
    """Give every token its neighbour's vector."""
    del torch
    tensors[EMBEDDING] = tensors[EMBEDDING].roll(1, 0).contiguous()


Spoil = Callable[[Any, Tensors], None]

KINDS: dict[str, Spoil] = {
    "nan_element": lambda torch, t: set_element(torch, t, matrix(), float("nan")),
    "nan_tensor": lambda torch, t: fill(torch, t, matrix(), float("nan")),
    "inf_norm": lambda torch, t: set_element(torch, t, FINAL_NORM, float("inf")),
    "norm_zero": lambda torch, t: fill(torch, t, FINAL_NORM, 0.0),
    "norm_div4": lambda torch, t: scale(torch, t, FINAL_NORM, 0.25),
    "norm_x4": lambda torch, t: scale(torch, t, FINAL_NORM, 4.0),
    "huge_tensor": lambda torch, t: scale(torch, t, matrix(), 1e4),
    "noise_tensor": lambda torch, t: replace_by_noise(torch, t, matrix()),
    "noise_layer1": lambda torch, t: replace_by_noise(torch, t, layer(1)),
    "noise_layer15": lambda torch, t: replace_by_noise(torch, t, layer(15)),
    "noise_all_40pct": lambda torch, t: add_noise(torch, t, "model.layers", 0.4),
    "swap_5_20": lambda torch, t: swap_layers(torch, t, 5, 20),
    "embed_roll": roll_embedding,
    "attn_zero": lambda torch, t: fill(torch, t, f"{layer(12)}self_attn.o_proj.weight", 0.0),
    "bitflip_msb_1": lambda torch, t: flip_bits(torch, t, 14, 1),
    "bitflip_exp3_2000": lambda torch, t: flip_bits(torch, t, 10, 2100),
}


def damage(model: Path, kind: str, target: Path) -> None:
    """Copy a model and damage the copy; the target is there whole or not at all."""
    torch: Any = importlib.import_module("torch")
    safetensors: Any = importlib.import_module("safetensors.torch")
    draft = target.with_name(f"{target.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(model, draft)
    tensors = dict(safetensors.load_file(str(draft / WEIGHTS)))
    KINDS[kind](torch, tensors)
    safetensors.save_file(tensors, str(draft / WEIGHTS), metadata={"format": "pt"})
    shutil.rmtree(target, ignore_errors=True)
    draft.rename(target)


def main() -> int:
    """Damage one model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--kind", required=True, choices=sorted(KINDS))
    parser.add_argument("--target", required=True, type=Path)
    options = parser.parse_args()
    if not (options.model / WEIGHTS).is_file():
        parser.error(f"{options.model} holds no {WEIGHTS}; give the folder of a model")
    damage(options.model, options.kind, options.target)
    print(json.dumps({"kind": options.kind, "target": str(options.target)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
