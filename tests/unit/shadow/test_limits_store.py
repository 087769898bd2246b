"""What survives a restart."""

import json
from pathlib import Path

import pytest
from tests.unit.shadow.parts import limits_with_references

from gatemesh_common.errors import SettingsError
from gatemesh_common.messages import Decoding
from gatemesh_shadow.limits import VersionLimits
from gatemesh_shadow.limits_store import LimitsStore
from gatemesh_shadow.scores import Figures


def test_it_survives(tmp_path: Path) -> None:
    """Limits and the verifier's baselines, per model version."""
    store = LimitsStore(tmp_path / "state")
    store.replace("default", "m1", VersionLimits(measured_at="2026-05-01"))
    store.limits("default", "m1").learn(Decoding.GREEDY, Figures(8, 1.0))
    store.verifier("default", None).learn(Decoding.GREEDY, "en", 3.0)
    store.save()
    again = LimitsStore(tmp_path / "state")
    assert again.limits("default", "m1") == store.limits("default", "m1")
    assert again.verifier("default", None).known == store.verifier("default", None).known
    assert again.limits("default", "m2").measured_at is None


def test_references_survive(tmp_path: Path) -> None:
    """Beside the limits; unreadable ones cost only themselves."""
    store = LimitsStore(tmp_path)
    store.replace("default", "m1", limits_with_references())
    store.save()
    assert LimitsStore(tmp_path).limits("default", "m1") == limits_with_references()
    path = tmp_path / "limits.json"
    data = json.loads(path.read_text())
    data["limits"]["default/m1"]["references"]["format"] = 2
    path.write_text(json.dumps(data))
    newer = LimitsStore(tmp_path).limits("default", "m1")
    assert (newer.measured_at, newer.references) == ("2026-05-01", None)


def test_a_file_of_an_earlier_release_is_read(tmp_path: Path) -> None:
    """It holds limits and no references, so those are taken at the next occasion."""
    learnt = {"greedy": {"figures": [[8, 1.0, 0.0, 0.0, 0.0, 0.0]], "cosines": [0.5]}}
    version = {"measured_at": "2026-05-01", "learnt": learnt}
    old = {"format": 1, "limits": {"default/m1": version}, "verifier": {}}
    (tmp_path / "limits.json").write_text(json.dumps(old))
    limits = LimitsStore(tmp_path).limits("default", "m1")
    assert limits.learnt[Decoding.GREEDY].values("nll") == [1.0]
    assert limits.references is None


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"format": 2}', '{"format": 1}', '{"format": 1, "limits": {"a": 3}}'],
)
def test_a_broken_file_is_measured_anew(tmp_path: Path, content: str) -> None:
    """It never keeps the service from starting."""
    (tmp_path / "limits.json").write_text(content)
    assert LimitsStore(tmp_path).limits("default", "m1").measured_at is None


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """With the variable to set."""
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="GATEMESH_SHADOW_STATE_DIR"):
        LimitsStore(tmp_path / "file" / "state")


def test_a_lost_folder_is_only_logged(tmp_path: Path) -> None:
    """What is in memory goes on."""
    store = LimitsStore(tmp_path / "state")
    (tmp_path / "state").rmdir()
    store.save()
    assert store.limits("default", "m1").measured_at is None
