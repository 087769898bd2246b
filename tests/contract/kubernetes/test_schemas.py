"""Every object of the manifests fits the schema of its kind."""

import json
import tomllib
from copy import deepcopy
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft202012Validator

from .conftest import Render
from .rendered import FOLDER, NAMES, PRODUCTION, REPOSITORY, Object, name_of, of_kind

VERSION = "1.33"
"""A schema of a Kubernetes that is still maintained."""
SCHEMAS = REPOSITORY / "tests" / "data" / "crd"
"""Of kinds that operators bring along; each file names its source."""
MOVED = ("executor-rbac.yaml", "pull-weights.yaml", "vllm-statefulset.yaml")
PATCHES = {FOLDER / "examples" / "sidecar" / "agent.yaml"}
FILES = sorted(
    path
    for path in FOLDER.rglob("*.yaml")
    if path.name != "kustomization.yaml" and path not in PATCHES and "secrets" not in path.parts
)


def faults(item: Object) -> list[str]:
    """Return what does not fit the schema of an object's kind."""
    schema = SCHEMAS / f"{item['kind']}.json"
    if schema.exists():
        found = Draft202012Validator(json.loads(schema.read_text())).iter_errors(item)
        return [f"{item['kind']}: {fault.message}" for fault in found]
    try:
        kubernetes_validate.validate(item, VERSION, strict=True)
    except kubernetes_validate.ValidationError as fault:
        return [f"{item['kind']} {name_of(item)}: {fault.message}"]
    return []


def test_what_is_rendered_fits(items: list[Object]) -> None:
    """A typing error is found before a cluster does."""
    assert [fault for item in items for fault in faults(item)] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_what_is_written_fits(path: Path) -> None:
    """Also where no kubectl is there to render it."""
    written = list(yaml.safe_load_all(path.read_text()))
    assert written
    assert [fault for item in written for fault in faults(item)] == []


@pytest.mark.parametrize(
    "kind", ["PrometheusRule", "ScaledObject", "ServiceMonitor", "TriggerAuthentication"]
)
def test_a_misspelt_field_of_an_operators_kind_is_found(kind: str, rendering: Render) -> None:
    """The schemas that are kept here are as strict as those of Kubernetes."""
    item = deepcopy(of_kind(rendering(PRODUCTION), kind)[0])
    assert faults(item) == []
    item["spec"]["maxReplicas"] = 3
    assert len(faults(item)) == 1


def test_every_kustomization_is_rendered() -> None:
    """What nobody renders, nobody checks."""
    folders = {
        path.parent.relative_to(FOLDER).as_posix()
        for path in FOLDER.glob("*/*/kustomization.yaml")
        if "kind: Kustomization" in path.read_text()
    }
    assert folders - {"examples/engine"} == set(NAMES)


@pytest.mark.parametrize("name", MOVED)
def test_a_path_of_before_still_works(name: str) -> None:
    """Whoever applies one of these files goes on doing so."""
    assert (FOLDER / name).is_symlink()
    assert list(yaml.safe_load_all((FOLDER / name).read_text()))


def test_the_example_of_production_runs_this_release() -> None:
    """An old tag would run old code against a new schema."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    overlay = yaml.safe_load((FOLDER / PRODUCTION / "kustomization.yaml").read_text())
    assert {image["newTag"] for image in overlay["images"]} == {project["project"]["version"]}
