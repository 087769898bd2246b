"""What a Service knows of pods."""

from typing import Any

import pytest

from gatemesh_executor.balancers.kubernetes import addressed_uids, label_patch


def address(uid: str) -> dict[str, Any]:
    """Return one address of a pod."""
    return {"ip": "10.0.0.1", "targetRef": {"kind": "Pod", "uid": uid}}


@pytest.mark.parametrize(
    ("endpoints", "uids"),
    [
        ({}, set()),
        ({"subsets": None}, set()),
        ({"subsets": [{"addresses": [address("a")]}]}, {"a"}),
        ({"subsets": [{"notReadyAddresses": [address("b")]}]}, {"b"}),
        ({"subsets": [{"addresses": [address("a")]}, {"addresses": [address("c")]}]}, {"a", "c"}),
        ({"subsets": [{"addresses": [{"ip": "10.0.0.1"}]}]}, set()),
    ],
)
def test_addressed_uids(endpoints: dict[str, Any], uids: set[str]) -> None:
    """A pod that is not ready may become so at any moment: it counts."""
    assert addressed_uids(endpoints) == uids


def test_the_patch_is_about_one_pod() -> None:
    """The next one of that name has no label to take away."""
    pod = {"metadata": {"name": "vllm-0", "uid": "u1"}}
    assert label_patch(pod, None) == {
        "metadata": {"uid": "u1", "labels": {"gatemesh.io/serving": None}}
    }
