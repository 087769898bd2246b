"""Where `./mesh test --kube` finds its API server."""

from pathlib import Path

import pytest
from rich.console import Console

from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.kube_lab import KUBECONFIG_VARIABLE, kube_facts

LAB = """case $1 in
up) echo "starting"; echo "{folder}/kubeconfig" ;;
down) touch "{folder}/down" ;;
esac
"""


def lab_beside(repository: Path, script: str) -> None:
    """Write a lab's script where it is looked for."""
    folder = repository.parent / "shared" / "kube"
    folder.mkdir(parents=True)
    (folder / "kube-lab.sh").write_text(script)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Give an empty repository with nothing beside it."""
    path = tmp_path / "repository"
    path.mkdir()
    return path


def test_a_named_cluster_wins(repository: Path) -> None:
    """Nothing is built where one is there already."""
    named = {KUBECONFIG_VARIABLE: "mine"}
    with kube_facts(repository, named, Console()) as facts:
        assert facts == named


def test_without_any_the_way_out_is_told(repository: Path) -> None:
    """A flag that tests nothing must not look like success."""
    with pytest.raises(MeshError, match=KUBECONFIG_VARIABLE), kube_facts(repository, {}, Console()):
        pass


def test_a_lab_is_started_and_ended(repository: Path, tmp_path: Path) -> None:
    """Nothing is left running, also where the tests fail."""
    lab_beside(repository, LAB.format(folder=tmp_path))
    seen: list[dict[str, str]] = []

    def fail() -> None:
        with kube_facts(repository, {}, Console()) as facts:
            seen.append(facts)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert seen == [{KUBECONFIG_VARIABLE: f"{tmp_path}/kubeconfig"}]
    assert (tmp_path / "down").exists()


def test_a_lab_that_fails_is_told(repository: Path) -> None:
    """With its own words."""
    lab_beside(repository, "echo no compiler >&2; exit 1")
    with pytest.raises(MeshError, match="no compiler"), kube_facts(repository, {}, Console()):
        pass
