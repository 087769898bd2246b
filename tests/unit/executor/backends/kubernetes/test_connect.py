"""Where the cluster is and who we are there."""

import sys
from pathlib import Path

import pytest

from gatemesh_common.errors import SettingsError
from gatemesh_executor.backends.kubernetes.connect import connected, own_namespace


def test_a_namespace_that_is_named_wins(tmp_path: Path) -> None:
    """The engines may be elsewhere than the executor."""
    assert own_namespace("engines", tmp_path / "absent") == "engines"


def test_in_a_pod_it_is_the_pods_own(tmp_path: Path) -> None:
    """Nothing has to be set."""
    file = tmp_path / "namespace"
    file.write_text("mesh\n")
    assert own_namespace("", file) == "mesh"


def test_elsewhere_it_must_be_named(tmp_path: Path) -> None:
    """Guessing `default` would act on strangers' pods."""
    with pytest.raises(SettingsError, match="GATEMESH_EXECUTOR_NAMESPACE"):
        own_namespace("", tmp_path / "absent")


@pytest.mark.parametrize("text", [None, "clusters: []\n"])
async def test_a_kubeconfig_that_leads_nowhere_is_told(tmp_path: Path, text: str | None) -> None:
    """With the variable that names it."""
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsError, match="GATEMESH_EXECUTOR_KUBECONFIG"):
        async with connected(path):
            pass


async def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra; the text says which."""
    monkeypatch.setitem(sys.modules, "kubernetes_asyncio", None)
    with pytest.raises(SettingsError, match=r"gatemesh\[kubernetes\]"):
        async with connected(None):
            pass


async def test_outside_of_a_cluster_a_kubeconfig_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There is no service account."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(SettingsError, match="GATEMESH_EXECUTOR_KUBECONFIG"):
        async with connected(None):
            pass
