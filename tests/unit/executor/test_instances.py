"""The instances file."""

from pathlib import Path

import pytest

from gatemesh_common.errors import SettingsError
from gatemesh_executor.instances import load_instances, parse_instances

ONE = """
[[instances]]
instance_id = "engine-0"
pool = "chat"
base_url = "http://127.0.0.1:8000"
program = "vllm:engine_00"
model_version = "m1"
"""


def test_instances_are_found_by_id() -> None:
    """Every field arrives."""
    instance = parse_instances(ONE, "f.toml")["engine-0"]
    assert (instance.pool, instance.program) == ("chat", "vllm:engine_00")
    assert (instance.base_url, instance.model_version) == ("http://127.0.0.1:8000", "m1")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param(ONE.replace("base_url", "url"), "instances[0].base_url", id="missing"),
        pytest.param(ONE + 'color = "red"\n', "instances[0].color", id="unknown"),
        pytest.param(ONE.replace("http://", "ftp://"), "instances[0].base_url", id="scheme"),
        pytest.param(ONE.replace(":8000", ":8000/v1"), "instances[0].base_url", id="path"),
        pytest.param(ONE.replace('"engine-0"', '""'), "instances[0].instance_id", id="empty"),
        pytest.param("", "instances", id="none"),
        pytest.param("instances = []", "instances", id="empty-list"),
        pytest.param("[[instances", "not valid TOML", id="no-toml"),
        pytest.param(ONE + ONE, "instance_id: used twice: engine-0", id="twice"),
        pytest.param(
            ONE + ONE.replace("engine-0", "engine-1"), "program: used twice", id="shared-program"
        ),
    ],
)
def test_a_fault_names_file_and_field(text: str, named: str) -> None:
    """The operator finds the line."""
    with pytest.raises(SettingsError) as caught:
        parse_instances(text, "f.toml")
    assert str(caught.value).startswith("f.toml: ")
    assert named in str(caught.value)


def test_a_missing_file_names_the_setting(tmp_path: Path) -> None:
    """The operator knows which variable to change."""
    with pytest.raises(SettingsError, match="GATEMESH_EXECUTOR_INSTANCES_FILE"):
        load_instances(tmp_path / "none.toml")


def test_a_file_is_read(tmp_path: Path) -> None:
    """The path is all it needs."""
    path = tmp_path / "instances.toml"
    path.write_text(ONE)
    assert list(load_instances(path)) == ["engine-0"]
