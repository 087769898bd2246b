"""Turns the packaged GGUF model into a folder that vLLM loads; run by the engine's Python."""

import argparse
import importlib
import importlib.util
import shutil
from pathlib import Path
from typing import Any


def find_packaged_model(package: str) -> Path:
    """The GGUF file that a package ships, found without importing the package.

    Raises:
        FileNotFoundError: the package is not installed or ships no such file.
    """
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    found = sorted(path for folder in folders or () for path in Path(folder).glob("*.gguf"))
    if not found:
        raise FileNotFoundError(f"{package}: no *.gguf file in it")
    return found[0]


def convert(source: Path, target: Path) -> None:
    """Write weights (bf16), tokenizer and chat template to `target`, whole or not at all."""
    draft = target.with_name(f"{target.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    transformers: Any = importlib.import_module("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        source.parent,
        gguf_file=source.name,
        dtype="bfloat16",
        quantization_config=transformers.GgufConfig(dequantize=True),
    )
    model.save_pretrained(draft)
    tokenizer.save_pretrained(draft)
    shutil.rmtree(target, ignore_errors=True)
    draft.rename(target)


def main() -> None:
    """Convert the model of one package."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", required=True, help="import name of the package")
    parser.add_argument("--target", required=True, type=Path, help="folder to write")
    arguments = parser.parse_args()
    convert(find_packaged_model(arguments.package), arguments.target)


if __name__ == "__main__":
    main()
