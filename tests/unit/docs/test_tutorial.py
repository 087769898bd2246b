"""The files that the tutorial has its reader write are taken by those who read them."""

import configparser
import re
from pathlib import Path

import pytest

from gatemesh_executor.instances import load_fleet
from gatemesh_health_manager.policy import parse_policy

from .pages import REPOSITORY

PAGE = (REPOSITORY / "docs" / "tutorial.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_instances_are_the_programs_of_supervisord(tmp_path: Path) -> None:
    """Both files name the same engines at the same ports."""
    (tmp_path / "instances.toml").write_text(blocks("toml")[0])
    fleet = load_fleet(tmp_path / "instances.toml")
    supervisord = configparser.RawConfigParser(inline_comment_prefixes=(";",))
    supervisord.read_string(blocks("ini")[0])
    program = supervisord["program:vllm"]
    numbers = range(int(program["numprocs"]))
    assert {one.program for one in fleet.instances.values()} == {
        f"vllm:{program['process_name'] % {'process_num': number}}" for number in numbers
    }
    assert {one.base_url for one in fleet.instances.values()} == {
        f"http://127.0.0.1:800{number}" for number in numbers
    }
    assert "--port 800%(process_num)d" in program["command"]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("stopsignal", "TERM"),
        ("stopwaitsecs", "60"),
        ("stopasgroup", "false"),
        ("killasgroup", "true"),
        ("autorestart", "false"),
        ("startretries", "0"),
    ],
)
def test_the_programs_keep_the_executors_promises(name: str, wanted: str) -> None:
    """Else its start would send the reader back."""
    assert f"{name}={wanted}" in blocks("ini")[0].splitlines()


def test_the_policy_observes() -> None:
    """A first week without any effect."""
    policy = parse_policy(blocks("toml")[1], "policy.toml")
    assert policy.for_pool("default").mode == "observe"
