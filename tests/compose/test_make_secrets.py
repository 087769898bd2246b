"""Passwords are made once, and each service sees its own alone."""

import hashlib
import json
import re
from pathlib import Path

import pytest
from deploy.docker.make_secrets import BROKER, NAMES, complete, files, main

from gatemesh_common.signing import SigningKey, TrustedKeys

URL_SAFE = re.compile(r"[\w-]{43}")


def known_secrets(root: Path) -> dict[str, str]:
    """Return what was made."""
    return dict(json.loads((root / "own/secrets.json").read_text()))


def test_every_secret_is_long_and_its_own(tmp_path: Path) -> None:
    """Passwords travel in addresses and configuration files: no character needs an escape."""
    assert main([], tmp_path) == 0
    made = known_secrets(tmp_path)
    assert set(made) == set(NAMES)
    assert len(set(made.values())) == len(NAMES)
    assert all(URL_SAFE.fullmatch(secret) for secret in made.values())


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    """The broker and the database took their passwords at the first start."""
    main([], tmp_path)
    first = {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    main([], tmp_path)
    assert {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()} == first


def test_a_new_name_is_added_to_what_is_known() -> None:
    """A later release may need one more secret; the old ones stay."""
    made = complete({"broker": "old"}, lambda: "new")
    assert made == {name: "old" if name == "broker" else "new" for name in NAMES}


def test_only_the_maker_reads_all_of_them(tmp_path: Path) -> None:
    """The readers run as other users, and see one folder each."""
    main([], tmp_path)
    modes = {path: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_file()}
    assert modes.pop(tmp_path / "own/secrets.json") == 0o600
    assert set(modes.values()) == {0o444}


@pytest.mark.parametrize(
    ("reader", "expected"),
    [
        ("broker", set()),
        ("database", {"database_superuser", "database_owner", "database_reader"}),
        ("health_manager", {"broker_health_manager", "database_owner"}),
        ("executor", {"broker_executor", "supervisor"}),
        ("agent", {"broker_agent", "fingerprint_key"}),
        ("shadow", {"broker_shadow"}),
        ("console", {"broker_console", "database_reader"}),
        ("notifier", {"broker_notifier"}),
        ("engines", set()),
        ("grafana", {"grafana"}),
    ],
)
def test_a_reader_gets_what_it_needs(reader: str, expected: set[str]) -> None:
    """The agent, which clients reach, knows no way into the database."""
    made = {name: f"secret-of-{name}." for name in NAMES}
    texts = [text for path, text in files(made).items() if path.startswith(f"{reader}/")]
    assert texts
    assert {name for name in NAMES if any(made[name] in text for text in texts)} == expected


def test_only_the_manager_can_sign_what_the_executor_obeys(tmp_path: Path) -> None:
    """The pair is the same after every start."""
    main([], tmp_path)
    signing = SigningKey.from_pem((tmp_path / "health_manager/signing.pem").read_text())
    trusted = TrustedKeys.from_pem((tmp_path / "executor/trusted.pem").read_text())
    assert trusted.distrust(b"{}", signing.sign(b"{}")) is None
    private = [path for path in tmp_path.rglob("*.pem") if "PRIVATE" in path.read_text()]
    assert private == [tmp_path / "health_manager/signing.pem"]


def test_no_two_stacks_share_a_key() -> None:
    """It is made of a secret of this stack."""
    made = dict.fromkeys(NAMES, "x")
    other = made | {"signing_seed": "y"}
    assert files(made)["executor/trusted.pem"] != files(other)["executor/trusted.pem"]


def test_the_broker_gets_hashes_and_rights() -> None:
    """Whoever reads its folder can log in as nobody."""
    made = {name: f"secret-of-{name}." for name in NAMES}
    found = json.loads(files(made)["broker/definitions.json"])
    assert {user["name"] for user in found["users"]} == {
        "gatemesh",
        *(f"gatemesh_{service}" for service in BROKER),
    }
    assert all(user["password_hash"] for user in found["users"])


def test_supervisord_gets_a_hash() -> None:
    """Whoever breaks into an engine cannot read the login of the executor."""
    made = dict.fromkeys(NAMES, "x") | {"supervisor": "open sesame"}
    digest = hashlib.sha1(b"open sesame", usedforsecurity=False).hexdigest()
    assert f"password={{SHA}}{digest}\n" in files(made)["engines/login.conf"]


def test_show_tells_the_logins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A person needs three of them, and not the superuser's."""
    main([], tmp_path)
    assert main(["show"], tmp_path) == 0
    shown, made = capsys.readouterr().out, known_secrets(tmp_path)
    told = {name for name in NAMES if made[name] in shown}
    assert told == {"broker", "broker_operator", "console_token", "database_reader", "grafana"}


def test_show_before_the_first_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message says what to do."""
    assert main(["show"], tmp_path) == 1
    assert "docker compose up" in capsys.readouterr().err


def test_anything_else_is_refused(tmp_path: Path) -> None:
    """A typing error makes no secrets."""
    assert main(["shwo"], tmp_path) == 2
    assert not list(tmp_path.iterdir())
