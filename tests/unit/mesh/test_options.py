"""Existing servers come from the environment."""

from pathlib import Path

import pytest

from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.options import DemoOptions, StackOptions


def test_existing_servers_are_taken() -> None:
    """Both settings win over the private servers."""
    environment = {"GATEMESH_AMQP_URL": "amqp://x/", "GATEMESH_DATABASE_URL": "postgresql://y/z"}
    options = StackOptions.from_environment(environment, 2, 8000)
    assert options == StackOptions(2, 8000, "amqp://x/", "postgresql://y/z")


def test_an_empty_setting_is_none() -> None:
    """`GATEMESH_AMQP_URL=` means the private broker."""
    assert StackOptions.from_environment({"GATEMESH_AMQP_URL": ""}).amqp_url is None


def test_a_notifier_runs_where_somebody_is_to_be_told() -> None:
    """Addresses stay out of files; paths hold in whatever folder it runs."""
    assert StackOptions.from_environment({"GATEMESH_NOTIFIER_LANGUAGE": "zh"}).notifier is None
    told = StackOptions.from_environment({"GATEMESH_NOTIFIER_URLS": "slack://s3cret"}).notifier
    assert told == {}
    by_file = {"GATEMESH_NOTIFIER_TARGETS_FILE": "targets.toml"}
    assert StackOptions.from_environment(by_file).notifier == {
        "GATEMESH_NOTIFIER_TARGETS_FILE": str(Path.cwd() / "targets.toml")
    }


def test_the_demo_is_real_unless_told_otherwise() -> None:
    """`./mesh demo` shows the real engine."""
    assert not DemoOptions().sim


def test_a_file_of_authorities_goes_with_its_address(tmp_path: Path) -> None:
    """An error of it is the person's to correct."""
    ca_file = tmp_path / "ca.pem"
    ca_file.write_text("")
    named = {"GATEMESH_AMQP_CA_FILE": str(ca_file), "GATEMESH_AMQP_URL": "amqps://x/"}
    assert "cafile=" in str(StackOptions.from_environment(named).amqp_url)
    with pytest.raises(MeshError, match="GATEMESH_AMQP_CA_FILE"):
        StackOptions.from_environment(named | {"GATEMESH_AMQP_URL": "amqp://x/"})
