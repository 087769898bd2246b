"""A policy file that changes while the manager runs."""

import logging
from pathlib import Path

import pytest

from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.policy_file import PolicyFile

from .test_telling import value

STRICT = "[defaults.condition_a]\nmore_than = 1\n"
WRONG = "[defaults.condition_a]\n\nmore_then = 1\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the place of a policy file with the defaults."""
    place = tmp_path / "policy.toml"
    place.write_text("")
    return place


def test_a_change_counts_once_it_was_found_twice(path: Path) -> None:
    """A file that is being written is empty or half there for a moment."""
    file = PolicyFile(path)
    assert file.look() is None
    assert file.look() == Policy()
    path.write_text(STRICT[:30])
    assert file.look() is None
    path.write_text(STRICT)
    assert file.look() is None
    rules = file.look()
    assert rules is not None
    assert rules.defaults.condition_a.more_than == 1
    assert file.look() is rules


def test_a_fault_is_told_once_with_its_place(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Key and line in the log, a metric to alert on, until the file is right again."""
    file = PolicyFile(path)
    path.write_text(WRONG)
    assert [file.look() for _ in range(4)] == [None] * 4
    [told] = [record for record in caplog.records if record.msg == "policy_invalid"]
    assert told.levelno == logging.ERROR
    assert "policy.toml line 3: defaults.condition_a.more_then" in vars(told)["error"]
    assert value("gatemesh_policy_invalid") == 1
    path.write_text("")
    assert [file.look() for _ in range(2)] == [None, Policy()]
    assert value("gatemesh_policy_invalid") == 0


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"[defaults"])
def test_what_is_no_policy_is_a_fault(path: Path, content: bytes | None) -> None:
    """A file that is gone, is no text, or no TOML."""
    file = PolicyFile(path)
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert [file.look() for _ in range(2)] == [None, None]
    assert value("gatemesh_policy_invalid") == 1
