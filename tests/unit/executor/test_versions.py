"""The model version in the instances file, read again."""

from pathlib import Path

from gatemesh_executor.instances import load_instances
from gatemesh_executor.versions import OwnVersions, VersionsFromFile

FILE = """
[[instances]]
instance_id = "engine-0"
program = "engine-0"
base_url = "http://127.0.0.1:1"
model_version = "v2"
"""


def test_the_version_alone_is_taken_over(tmp_path: Path) -> None:
    """Whoever holds the mapping sees it; the address waits for the next start."""
    file = tmp_path / "instances.toml"
    file.write_text(FILE)
    instances = load_instances(file)
    versions = VersionsFromFile(file, instances)
    assert "still names model version 'v2'" in versions.read_again(instances["engine-0"])
    file.write_text(FILE.replace('"v2"', '"v1"').replace(":1", ":2"))
    assert versions.read_again(instances["engine-0"]) == "model version 'v1' now"
    assert instances["engine-0"].model_version == "v1"
    assert instances["engine-0"].base_url == "http://127.0.0.1:1"


def test_a_file_at_fault_is_told_and_changes_nothing(tmp_path: Path) -> None:
    """The roll-back itself has succeeded."""
    file = tmp_path / "instances.toml"
    file.write_text(FILE)
    instances = load_instances(file)
    file.write_text("[[instances]]")
    told = VersionsFromFile(file, instances).read_again(instances["engine-0"])
    assert told.startswith("the model version was not read again: instances.toml: ")
    assert instances["engine-0"].model_version == "v2"
    file.write_text(FILE.replace("engine-0", "engine-1"))
    assert "still names" in VersionsFromFile(file, instances).read_again(instances["engine-0"])


def test_a_backend_that_sees_versions_needs_no_file(tmp_path: Path) -> None:
    """Nothing is to be told."""
    file = tmp_path / "instances.toml"
    file.write_text(FILE)
    assert OwnVersions().read_again(load_instances(file)["engine-0"]) == ""
