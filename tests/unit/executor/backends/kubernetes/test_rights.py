"""The executor's rights: asked for, named, and no more of them than the manifest gives."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from gatemesh_executor.backends.kubernetes.rights import NEEDED, Right, missing_rights

from .conftest import FakeAnswer, Script

MANIFEST = Path(__file__).parents[5] / "deploy" / "kubernetes" / "executor-rbac.yaml"


@pytest.fixture
def items() -> dict[str, Any]:
    """Give the objects of the manifest by kind."""
    return {item["kind"]: item for item in yaml.safe_load_all(MANIFEST.read_text())}


def test_the_manifest_gives_what_is_needed_and_nothing_else(items: dict[str, Any]) -> None:
    """Least privilege, in both directions."""
    given = {
        Right(group, resource, verb)
        for rule in items["Role"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert given == set(NEEDED)
    assert len(NEEDED) == len(set(NEEDED))


def test_the_account_is_bound_to_the_role(items: dict[str, Any]) -> None:
    """Names that differ would give no right at all."""
    [subject] = items["RoleBinding"]["subjects"]
    assert subject["name"] == items["ServiceAccount"]["metadata"]["name"]
    assert items["RoleBinding"]["roleRef"]["name"] == items["Role"]["metadata"]["name"]


async def test_missing_rights_are_found() -> None:
    """By asking the cluster about each."""
    answers = [FakeAnswer(201, {"status": {"allowed": True}}) for _ in NEEDED]
    answers[4] = FakeAnswer(201, {"status": {"allowed": False}})
    script = Script(list(answers))
    [missing] = await missing_rights(script.api)
    assert missing == NEEDED[4]
    assert script.calls[5].body["spec"]["resourceAttributes"] == {
        "namespace": "mesh",
        "verb": "create",
        "group": "",
        "resource": "pods",
        "subresource": "eviction",
    }


@pytest.mark.parametrize(
    ("right", "words"),
    [
        (Right("", "pods", "get"), "get pods"),
        (Right("apps", "deployments/scale", "patch"), "patch deployments/scale (apps)"),
    ],
)
def test_a_right_is_worded(right: Right, words: str) -> None:
    """As an operator writes it into a role."""
    assert right.worded() == words
