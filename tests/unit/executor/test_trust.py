"""Whose commands are obeyed, and how that changes while the executor runs."""

import logging
from pathlib import Path

import pytest

from gatemesh_common.errors import SettingsError
from gatemesh_common.signing import SigningKey
from gatemesh_executor.settings import ExecutorSettings
from gatemesh_executor.trust import SHOWN_SIGNS, VARIABLE, Trust, TrustFromFile, load_trust

OLD, NEW = SigningKey.from_seed(bytes(32)), SigningKey.from_seed(b"n" * 32)
BODY = b"{}"


def settings(**fields: object) -> ExecutorSettings:
    """Return settings with an instances file."""
    return ExecutorSettings.model_validate({"instances_file": Path("instances.toml"), **fields})


def change(file: Path, text: str) -> None:
    """Put a new file in the place of the old one, as operators should."""
    draft = file.with_suffix(".new")
    draft.write_text(text)
    draft.replace(file)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give a file with the old key."""
    path = tmp_path / "trusted.pem"
    path.write_text(OLD.public_pem())
    return path


def test_keys_change_without_a_restart(file: Path) -> None:
    """Both are valid meanwhile; then only the new one is."""
    trust = TrustFromFile(file)
    assert trust.distrust(BODY, NEW.sign(BODY)) == f"unknown_key: {NEW.key_id!r}"
    change(file, OLD.public_pem() + NEW.public_pem())
    assert trust.distrust(BODY, NEW.sign(BODY)) is None
    assert trust.distrust(BODY, OLD.sign(BODY)) is None
    change(file, NEW.public_pem())
    assert trust.distrust(BODY, OLD.sign(BODY)) == f"unknown_key: {OLD.key_id!r}"
    assert trust.distrust(BODY, NEW.sign(BODY)) is None


def test_a_file_without_keys_trusts_nobody(file: Path) -> None:
    """Whoever takes the last key out means it."""
    trust = TrustFromFile(file)
    change(file, "")
    assert str(trust.distrust(BODY, OLD.sign(BODY))).startswith("unknown_key")


@pytest.mark.parametrize("text", ["-----BEGIN PUBLIC KEY-----\nhalf", OLD.private_pem()])
def test_a_file_that_cannot_be_read_changes_nothing(
    file: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says so, once, and without the text."""
    trust = TrustFromFile(file)
    change(file, text)
    for _ in range(2):
        assert trust.distrust(BODY, OLD.sign(BODY)) is None
    assert [record.msg for record in caplog.records] == ["trusted_keys_not_read"]
    assert text.splitlines()[1] not in str(vars(caplog.records[0]))


def test_a_file_that_is_gone_changes_nothing_until_it_is_back(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A volume may be away for a moment."""
    trust = TrustFromFile(file)
    file.unlink()
    assert trust.distrust(BODY, OLD.sign(BODY)) is None
    assert "FileNotFoundError" in str(vars(caplog.records[0]))
    file.write_text(NEW.public_pem())
    assert trust.distrust(BODY, NEW.sign(BODY)) is None


def test_a_strangers_key_id_is_cut_short() -> None:
    """What strangers write does not fill reports."""
    trust = load_trust(settings(trusted_keys=OLD.public_pem()))
    headers: dict[str, object] = {"x-signature": "s", "x-key-id": "\n" * 1000}
    assert len(str(trust.distrust(BODY, headers))) <= len("unknown_key: ''") + 2 * SHOWN_SIGNS


def test_keys_come_from_a_file_or_as_text(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Either way the log names whom the executor obeys."""
    with caplog.at_level(logging.INFO):
        for trust in (
            load_trust(settings(trusted_keys_file=file)),
            load_trust(settings(trusted_keys=OLD.public_pem())),
        ):
            assert trust.distrust(BODY, OLD.sign(BODY)) is None
            assert trust.distrust(BODY, {}) == "unsigned"
    assert [(it.msg, vars(it)["key_ids"]) for it in caplog.records] == [
        ("commands_verified", (OLD.key_id,))
    ] * 2


def test_without_keys_nothing_is_verified(caplog: pytest.LogCaptureFixture) -> None:
    """The log says so at the start."""
    assert load_trust(settings()).distrust(BODY, {}) is None
    assert Trust().distrust(BODY, {}) is None
    assert [record.msg for record in caplog.records] == ["commands_not_verified"]


def test_keys_that_cannot_be_used_end_the_start(tmp_path: Path) -> None:
    """Going on without them would obey everybody."""
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    for fields, match in (
        ({"trusted_keys_file": tmp_path / "none"}, "FILE: .*none: cannot be read: FileNotFound"),
        ({"trusted_keys_file": empty}, "FILE: .*empty.pem: no PUBLIC KEY"),
        ({"trusted_keys": "words"}, f"{VARIABLE}: no PUBLIC KEY"),
        ({"trusted_keys": OLD.private_pem()}, f"{VARIABLE}: a private key is there"),
        ({"trusted_keys": "x", "trusted_keys_file": empty}, "not both"),
    ):
        with pytest.raises(SettingsError, match=match):
            load_trust(settings(**fields))
