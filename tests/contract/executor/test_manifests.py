"""The manifests that we give away: valid, accepted by the executor, their script at work."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from gatemesh_executor.backends.kubernetes import owners
from gatemesh_executor.backends.kubernetes.api import STATEFUL_SETS
from gatemesh_executor.backends.kubernetes.repull import PULLER, REPULL

FOLDER = Path(__file__).parents[3] / "deploy" / "kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))
ITEMS = [
    pytest.param(item, id=f"{path.name}-{item['kind']}-{item['metadata']['name']}")
    for path in FILES
    for item in yaml.safe_load_all(path.read_text())
]
VERSION = "1.33"
"""A schema of a Kubernetes that is still maintained."""


def one(name: str, kind: str) -> dict[str, Any]:
    """Return the only object of a kind in a file."""
    [found] = [
        item for item in yaml.safe_load_all((FOLDER / name).read_text()) if item["kind"] == kind
    ]
    return dict(found)


@pytest.mark.parametrize("item", ITEMS)
def test_every_object_fits_the_schema(item: dict[str, Any]) -> None:
    """A typing error is found before a cluster does."""
    kubernetes_validate.validate(item, VERSION, strict=True)


def test_the_example_keeps_all_promises() -> None:
    """Who copies it is not sent back by the executor's start."""
    item = one("vllm-statefulset.yaml", "StatefulSet")
    item["metadata"]["namespace"] = "mesh"
    assert owners.owner_faults(item, STATEFUL_SETS) == []
    [first, _] = owners.slots(item, STATEFUL_SETS)
    assert first.instance.base_url == "http://vllm-0.vllm-pods.mesh.svc:8000"
    assert first.instance.model_version == "qwen2.5-7b-instruct@1"
    assert first.service == "vllm"
    assert item["spec"]["template"]["spec"]["initContainers"][0]["name"] == PULLER


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Give a function that runs the init container's script and returns its code and message."""
    text = one("pull-weights.yaml", "ConfigMap")["data"]["pull-weights.sh"]
    (tmp_path / "script.sh").write_text(text)
    (tmp_path / "weights").mkdir()
    names = {"WEIGHTS": "weights", "ORDER_FILE": "order", "TERMINATION_LOG": "log"}
    places = {name: str(tmp_path / file) for name, file in names.items()}

    def run(order: str = "", pull: str = "echo good > model.bin", **more: str) -> tuple[int, str]:
        line = f'{REPULL}="{order}"\n' if order else ""
        (tmp_path / "order").write_text(f'other="x"\n{line}')
        environment = {**os.environ, **places, "PATIENCE_S": "0", "PULL": pull, **more}
        code = subprocess.run(
            ["sh", str(tmp_path / "script.sh")], env=environment, check=False, timeout=30
        ).returncode
        return code, (tmp_path / "log").read_text()

    return run


Run = Callable[..., tuple[int, str]]


def served(folder: Path) -> str:
    """Return what the engine would load."""
    return (folder / "weights" / "model" / "model.bin").read_text()


def test_the_first_start_pulls(script: Run, tmp_path: Path) -> None:
    """There is nothing else to serve."""
    assert script() == (0, "")
    assert served(tmp_path) == "good\n"


def test_a_restart_pulls_nothing(script: Run, tmp_path: Path) -> None:
    """It takes seconds, not half an hour."""
    script()
    assert script(pull="exit 1") == (0, "")
    assert served(tmp_path) == "good\n"


def test_an_order_pulls_once(script: Run, tmp_path: Path) -> None:
    """The message tells the executor which order was obeyed."""
    script(pull="echo broken > model.bin")
    assert script("order-1") == (0, "order-1")
    assert served(tmp_path) == "good\n"
    assert script("order-1", pull="exit 1") == (0, "order-1")
    assert script("order-2", pull="echo newer > model.bin") == (0, "order-2")
    assert served(tmp_path) == "newer\n"


def test_a_failed_pull_is_told_and_changes_nothing(script: Run, tmp_path: Path) -> None:
    """The kubelet tries again; the message is the executor's reason."""
    script()
    assert script("order-1", pull="echo no space >&2; exit 3") == (1, "pull failed: no space")
    assert served(tmp_path) == "good\n"


def test_unverified_weights_are_never_served(script: Run, tmp_path: Path) -> None:
    """A download that is whole may still be wrong."""
    script()
    manifest = tmp_path / "manifest"
    manifest.write_text(f"{'0' * 64}  model.bin\n")
    assert script("order-1", MANIFEST=str(manifest)) == (1, "checksums differ")
    assert served(tmp_path) == "good\n"
