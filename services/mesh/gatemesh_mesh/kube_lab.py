"""The Kubernetes API server of the tests: the one that is named, or a lab beside us."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from gatemesh_mesh.errors import MeshError

KUBECONFIG_VARIABLE = "GATEMESH_KUBECONFIG"
LAB_SCRIPT = Path("..", "shared", "kube", "kube-lab.sh")
"""Builds and starts a control plane; seen from the repository."""


@contextmanager
def kube_facts(
    repository: Path, environment: Mapping[str, str], console: Console
) -> Iterator[dict[str, str]]:
    """Give the variables that name an API server; a lab that had to be started is ended.

    Raises:
        MeshError: none is named and there is no lab.
    """
    if environment.get(KUBECONFIG_VARIABLE):
        yield {KUBECONFIG_VARIABLE: environment[KUBECONFIG_VARIABLE]}
        return
    script = (repository / LAB_SCRIPT).resolve()
    if not script.is_file():
        raise MeshError(
            "--kube: no Kubernetes API server is known",
            f"set {KUBECONFIG_VARIABLE} to a kubeconfig whose user may do everything in a "
            "cluster that is only for tests",
        )
    console.print("Kubernetes lab: building it takes minutes the first time ...")
    _told(script, "build")
    try:
        yield {KUBECONFIG_VARIABLE: _told(script, "up", "1").splitlines()[-1]}
    finally:
        _told(script, "down")


def _told(script: Path, *words: str) -> str:
    """Run the lab's script and return what it prints."""
    result = subprocess.run(
        ("bash", str(script), *words), capture_output=True, text=True, check=False, env=os.environ
    )
    if result.returncode != 0:
        raise MeshError(
            f"--kube: the lab failed at {words[0]!r}: {result.stderr.strip()[-500:]}",
            f"mend what it names, or set {KUBECONFIG_VARIABLE}",
        )
    return result.stdout.strip()
