"""Who is told, by setting and by file; secrets stay secret."""

from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.unit.notifier.parts import told

from gatemesh_common.errors import SettingsError
from gatemesh_notifier.facts import Level
from gatemesh_notifier.targets import Target, kind_of, targets_of

NOBODY = SecretStr("")
FILE = """
[[targets]]
name = "oncall"
url = "pagerduty://s3cret-integration@s3cret-key"
levels = ["page", "quiet"]

[[targets]]
name = "chat-room"
url = "dingtalk://s3cret-token"
language = "zh"
pools = ["chat"]
"""


def file_of(folder: Path, text: str) -> Path:
    """Write a file of targets."""
    path = folder / "targets.toml"
    path.write_text(text)
    return path


def test_addresses_are_named_by_kind() -> None:
    """The name is what logs and metrics show."""
    urls = SecretStr("slack://a/b/c\n  json://user:pass@host/x ")
    assert [target.name for target in targets_of(urls, None, "zh")] == ["slack-1", "json-2"]
    assert kind_of("no address") == "unknown"


def test_a_file_chooses_per_target(tmp_path: Path) -> None:
    """Language, levels and pools."""
    oncall, room = targets_of(NOBODY, file_of(tmp_path, FILE), "en")
    assert (oncall.language, room.language) == ("en", "zh")
    assert oncall.wants(told(status="held"))
    assert not oncall.wants(told())
    assert room.wants(told())
    assert not room.wants(told(pool="code"))
    assert room.levels == frozenset(Level)


def test_an_address_is_never_shown(tmp_path: Path) -> None:
    """Not even by accident."""
    targets = targets_of(SecretStr("json://u:s3cret@h"), file_of(tmp_path, FILE), "en")
    assert "s3cret" not in repr(targets) + str(targets)


def test_somebody_must_be_told() -> None:
    """A notifier that tells nobody is a mistake, and the error says what to set."""
    with pytest.raises(SettingsError, match=r"GATEMESH_NOTIFIER_URLS.*TARGETS_FILE"):
        targets_of(NOBODY, None, "en")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "targets: Field required"),
        ("targets = []", "targets: "),
        (FILE.replace("oncall", "On Call"), r"targets\[0\]\.name"),
        (FILE.replace('"zh"', '"fr"'), r"targets\[1\]\.language"),
        (FILE.replace('"page"', '"loud"'), r"targets\[0\]\.levels"),
        (FILE.replace("pools", "pool"), r"targets\[1\]\.pool: Extra"),
        (FILE.replace("chat-room", "oncall"), "name 'oncall' stands twice"),
        ("[[targets", "no valid TOML"),
    ],
)
def test_a_fault_in_the_file_is_named(tmp_path: Path, text: str, fault: str) -> None:
    """And no address is repeated."""
    with pytest.raises(SettingsError, match=fault) as raised:
        targets_of(NOBODY, file_of(tmp_path, text), "en")
    assert "s3cret" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """With the setting that names it."""
    with pytest.raises(SettingsError, match="GATEMESH_NOTIFIER_TARGETS_FILE"):
        targets_of(NOBODY, tmp_path / "none.toml", "en")


def test_a_target_is_frozen() -> None:
    """Nobody changes who is told while it runs."""
    target = Target(name="x", url=SecretStr("json://h"))
    with pytest.raises(ValueError, match="frozen"):
        target.name = "y"  # type: ignore[misc]
