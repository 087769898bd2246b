"""Cosines of the pairs of answers in a file of cases, measured by a Python that has the models."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.gate_inputs import InputError, read_lines

from gatemesh_shadow.compare import needs_cosine

REPOSITORY = Path(__file__).resolve().parents[1]
USUAL_PYTHON = REPOSITORY / ".gatemesh" / "models-venv" / "bin" / "python"
TIMEOUT_S = 300.0
PROGRAM = """
import json, sys
from gatemesh_shadow.embed import SentenceModel
pairs = [tuple(pair) for pair in json.load(sys.stdin)]
print(json.dumps(SentenceModel("", 32, 2).cosines(pairs)))
"""


def cosines_of(path: Path, python: Path | None) -> Mapping[str, float]:
    """Return the cosine of each case whose verdict needs one, by case id.

    Without a Python that has the models there are none: the meaning of prose is not compared.
    """
    chosen = python or USUAL_PYTHON
    if not chosen.is_file():
        if python is not None:
            raise InputError(f"--models: {python} is not there; give the path of a Python")
        return {}
    pairs = {str(fields["id"]): pair_of(fields) for fields in read_lines(path) if is_open(fields)}
    if not pairs:
        return {}
    found = measured(chosen, list(pairs.values()))
    return dict(zip(pairs, found, strict=True))


def is_open(fields: Mapping[str, Any]) -> bool:
    """Return True for a case that is decided by meaning."""
    shadow = fields.get("shadow_text")
    response = fields.get("response")
    if shadow is None or not isinstance(response, dict) or "id" not in fields:
        return False
    return needs_cosine(fields.get("request") or {}, response.get("text") or "", shadow)


def pair_of(fields: Mapping[str, Any]) -> tuple[str, str]:
    """Return both answers of a case."""
    return fields["response"].get("text") or "", fields["shadow_text"]


def measured(python: Path, pairs: list[tuple[str, str]]) -> list[float]:
    """Return the cosine of each pair."""
    folders = [str(REPOSITORY / "libs" / "common"), str(REPOSITORY / "services" / "shadow")]
    result = subprocess.run(
        [str(python), "-c", PROGRAM],
        input=json.dumps(pairs),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if result.returncode:
        raise InputError(f"--models: {python} cannot embed texts:\n{result.stderr[-800:]}")
    found: list[float] = json.loads(result.stdout.splitlines()[-1])
    return found
