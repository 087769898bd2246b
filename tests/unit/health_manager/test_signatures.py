"""Commands are signed, with the key that the settings name, and nothing else is."""

import logging
from pathlib import Path

import pytest

from gatemesh_common.errors import SettingsError
from gatemesh_common.messages import EjectInstance
from gatemesh_common.outbox import unsigned
from gatemesh_common.signing import SigningKey, TrustedKeys
from gatemesh_health_manager.settings import HealthManagerSettings
from gatemesh_health_manager.signatures import VARIABLE, command_signer, load_signing_key

from .samples import at, verdict

KEY = SigningKey.from_seed(bytes(32))
BODY = b"{}"
COMMAND = EjectInstance(
    timestamp=at(0), instance_id="engine-0", incarnation=1, fence=1, expires_at=at(60)
)


def settings(**fields: object) -> HealthManagerSettings:
    """Return settings with a database."""
    known = {"database_url": "postgresql://u@h/d", **fields}
    return HealthManagerSettings.model_validate(known)


def test_only_commands_are_signed() -> None:
    """Everything else tells, and orders nobody."""
    sign = command_signer(KEY)
    trusted = TrustedKeys.from_pem(KEY.public_pem())
    assert trusted.distrust(BODY, sign(COMMAND, BODY)) is None
    assert sign(verdict(), BODY) == {}


def test_without_a_key_nothing_is_signed(caplog: pytest.LogCaptureFixture) -> None:
    """As before there were signatures; the log says so."""
    assert command_signer(None) is unsigned
    assert unsigned(COMMAND, BODY) == {}
    assert [record.msg for record in caplog.records] == ["commands_not_signed"]


def test_the_log_names_the_key_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    """By its id people find the public key that executors need."""
    with caplog.at_level(logging.INFO):
        command_signer(KEY)
    [record] = caplog.records
    assert vars(record)["key_id"] == KEY.key_id
    assert KEY.private_pem().splitlines()[1] not in str(vars(record))


@pytest.mark.parametrize("from_file", [True, False], ids=["file", "text"])
def test_a_key_comes_from_a_file_or_as_text(tmp_path: Path, *, from_file: bool) -> None:
    """Whatever the platform hands secrets on by."""
    path = tmp_path / "signing.pem"
    path.write_text(KEY.private_pem())
    named = {"signing_key_file": path} if from_file else {"signing_key": KEY.private_pem()}
    found = load_signing_key(settings(**named))
    assert found is not None
    assert found.key_id == KEY.key_id


def test_no_key_is_no_fault() -> None:
    """Signing is for those who set it up."""
    assert load_signing_key(settings()) is None


def test_a_key_that_cannot_be_used_is_named_and_not_shown(tmp_path: Path) -> None:
    """Starting without it would leave every command refused."""
    words = tmp_path / "words.pem"
    words.write_text("open sesame")
    public = tmp_path / "public.pem"
    public.write_text(KEY.public_pem())
    for fields, match in (
        ({"signing_key_file": tmp_path / "none"}, "FILE: .*none cannot be read: FileNotFound"),
        ({"signing_key_file": words}, "FILE: .*words.pem: no private key"),
        ({"signing_key_file": public}, "FILE: .*public.pem: no private key"),
        ({"signing_key": "open sesame"}, f"{VARIABLE}: no private key"),
        ({"signing_key": "x", "signing_key_file": words}, "not both"),
    ):
        with pytest.raises(SettingsError, match=match) as caught:
            load_signing_key(settings(**fields))
        assert "sesame" not in str(caught.value)


def test_settings_do_not_show_the_key() -> None:
    """They come to stand in tracebacks."""
    secret = KEY.private_pem().splitlines()[1]
    assert secret not in repr(settings(signing_key=KEY.private_pem()))
