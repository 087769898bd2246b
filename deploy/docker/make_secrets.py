"""Makes the passwords of a compose stack once, and gives each service those it needs and no others.

`make_secrets.py` writes files below /secrets, one folder per reader; what is there already stays.
`make_secrets.py show` tells a person how to log in.
"""

import hashlib
import json
import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gatemesh_common.broker_definitions import Site, definitions
from gatemesh_common.broker_users import SERVICES
from gatemesh_common.signing import SigningKey

ROOT = Path("/secrets")
OWN = "own/secrets.json"
DEFINITIONS = "/etc/rabbitmq/conf.d/definitions.json"
"""Where the broker sees its folder of secrets."""
BROKER = {service: f"broker_{service}" for service in SERVICES}
"""By service: the name of its password at the broker."""
NAMES = (
    "broker",
    *BROKER.values(),
    "database_superuser",
    "database_owner",
    "database_reader",
    "supervisor",
    "fingerprint_key",
    "signing_seed",
    "console_token",
    "grafana",
)
CONSOLE_PERSON = "admin"
"""In whose name the one token of a new console asks."""
READABLE = 0o444
"""Each folder is mounted into its reader alone, whose user has another number than ours."""
ONLY_OURS = 0o600


def complete(known: Mapping[str, str], make: Callable[[], str]) -> dict[str, str]:
    """Return a secret for every name; those that are known stay."""
    return {name: known.get(name) or make() for name in NAMES}


def files(made: Mapping[str, str]) -> dict[str, str]:
    """Return what each reader gets, by path; a file named for a setting holds that setting."""
    # The other secrets are texts, and so is this one: its hash has the length of a key.
    signing = SigningKey.from_seed(hashlib.sha256(made["signing_seed"].encode()).digest())
    database_url = f"postgresql://gatemesh:{made['database_owner']}@postgres:5432/gatemesh"
    reader_url = f"postgresql://reader:{made['database_reader']}@postgres:5432/gatemesh"
    console_digest = hashlib.sha256(made["console_token"].encode()).hexdigest()
    return {
        "broker/20-user.conf": f"load_definitions = {DEFINITIONS}\n",
        "broker/definitions.json": broker_definitions(made),
        "database/superuser": made["database_superuser"],
        "database/owner": made["database_owner"],
        "database/reader": made["database_reader"],
        "health_manager/GATEMESH_AMQP_URL": amqp_url(made, "health_manager"),
        "health_manager/GATEMESH_DATABASE_URL": database_url,
        "health_manager/signing.pem": signing.private_pem(),
        "executor/GATEMESH_AMQP_URL": amqp_url(made, "executor"),
        "executor/trusted.pem": signing.public_pem(),
        "executor/GATEMESH_EXECUTOR_SUPERVISOR_PASSWORD": made["supervisor"],
        "agent/GATEMESH_AMQP_URL": amqp_url(made, "agent"),
        "agent/GATEMESH_AGENT_FINGERPRINT_KEY": made["fingerprint_key"],
        "shadow/GATEMESH_AMQP_URL": amqp_url(made, "shadow"),
        "console/GATEMESH_AMQP_URL": amqp_url(made, "console"),
        "console/GATEMESH_DATABASE_URL": reader_url,
        "console/GATEMESH_CONSOLE_TOKENS": f"{CONSOLE_PERSON} operator {console_digest}",
        "notifier/GATEMESH_AMQP_URL": amqp_url(made, "notifier"),
        "engines/login.conf": supervisor_login(made["supervisor"]),
        "grafana/admin_password": made["grafana"],
    }


def amqp_url(made: Mapping[str, str], service: str) -> str:
    """Return the broker's address with a service's own login."""
    return f"amqp://{Site().user(service)}:{made[BROKER[service]]}@rabbitmq:5672/"


def broker_definitions(made: Mapping[str, str]) -> str:
    """Return what the broker imports at each start: hashes, rights and the topology."""
    passwords = {service: made[name] for service, name in BROKER.items()}
    return json.dumps(definitions(passwords, Site(), ("gatemesh", made["broker"])))


def supervisor_login(password: str) -> str:
    """Return the part of supervisord's configuration that asks for a login; it holds a hash."""
    # supervisord knows no other hash; the password is long and random.
    digest = hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest()
    lines = ("[inet_http_server]", "port=*:9001", "username=executor", f"password={{SHA}}{digest}")
    return "\n".join((*lines, ""))


def write(path: Path, text: str, mode: int) -> None:
    """Put a file in place at once, so that no reader sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text)
    draft.chmod(mode)
    draft.replace(path)


def read_known(root: Path) -> dict[str, str]:
    """Return the secrets that were made before."""
    path = root / OWN
    return dict(json.loads(path.read_text())) if path.exists() else {}


def make(root: Path) -> None:
    """Make what is missing, and write every file."""
    made = complete(read_known(root), lambda: secrets.token_urlsafe(32))
    write(root / OWN, json.dumps(made), ONLY_OURS)
    for path, text in files(made).items():
        write(root / path, text, READABLE)


def logins(made: Mapping[str, str]) -> str:
    """Return the logins that people use."""
    return (
        f"console            token {made['console_token']}\n"
        f"broker's pages     user gatemesh, password {made['broker']}\n"
        f"gatemesh-ctl       user {Site().user('operator')}, password {made[BROKER['operator']]}\n"
        f"database, reading  user reader, password {made['database_reader']}, database gatemesh\n"
        f"Grafana            user admin, password {made['grafana']}\n"
    )


def main(arguments: Sequence[str], root: Path) -> int:
    """Do what the arguments say; return the exit code."""
    if list(arguments) not in ([], ["show"]):
        sys.stderr.write("usage: make_secrets.py [show]\n")
        return 2
    if not arguments:
        make(root)
        return 0
    known = read_known(root)
    if not known:
        sys.stderr.write("no secrets were made yet; run: docker compose up -d\n")
        return 1
    sys.stdout.write(logins(known))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(os.environ.get("GATEMESH_SECRETS_DIR", ROOT))))
