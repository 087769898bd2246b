"""`gatemesh-ctl broker-users`: the users of a broker that is not ours, as a file it imports."""

import argparse
import json
import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gatemesh_common.broker_definitions import PREFIX, Site, definitions
from gatemesh_common.broker_users import SERVICES
from gatemesh_ctl.errors import CtlError

DEFINITIONS_NAME = "definitions.json"
PASSWORDS_NAME = "passwords.json"
EXIT_OK, EXIT_WRONG = 0, 2
PASSWORD_BYTES = 24
DESCRIPTION = f"""\
Write {DEFINITIONS_NAME}, which a RabbitMQ imports: a user per service with its rights, passwords
as hashes, and the exchanges, queues and bindings. The passwords lie beside it in {PASSWORDS_NAME},
which only you can read; those that are there already are kept, so that the command may be repeated
after an upgrade."""


def main(argv: Sequence[str], prog: str = "gatemesh-ctl broker-users") -> int:
    """Write the files that the command line names; return the exit code."""
    options = arguments(argv, prog)
    site = Site(options.vhost, options.prefix)
    try:
        made = write_files(options.folder, site, lambda: secrets.token_urlsafe(PASSWORD_BYTES))
    except CtlError as error:
        sys.stderr.write(f"error: {error}\n")
        return EXIT_WRONG
    sys.stdout.write(told(options.folder, site, made))
    return EXIT_OK


def arguments(argv: Sequence[str], prog: str) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog=prog, description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the two files go")
    parser.add_argument("--vhost", default="/", help="virtual host; default /")
    parser.add_argument("--prefix", default=PREFIX, help="how user names begin; default gatemesh")
    return parser.parse_args(argv)


def write_files(folder: Path, site: Site, make: Callable[[], str]) -> dict[str, str]:
    """Write both files and return the passwords by service.

    Raises:
        CtlError: the folder cannot be written, or its passwords cannot be read.
    """
    known = read_passwords(folder / PASSWORDS_NAME)
    made = {service: known.get(site.user(service)) or make() for service in SERVICES}
    named = {site.user(service): password for service, password in made.items()}
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # First the passwords: hashes of what nobody knows are of no use.
        replace_private(folder / PASSWORDS_NAME, known | named)
        replace_private(folder / DEFINITIONS_NAME, definitions(made, site))
    except OSError as error:
        raise CtlError(
            f"{folder} cannot be written: {error.strerror}", "name a folder of your own"
        ) from None
    return made


def read_passwords(path: Path) -> dict[str, str]:
    """Return the passwords that were made before, by user; empty without the file.

    Raises:
        CtlError: it cannot be read, and would be lost.
    """
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise CtlError(f"{path} cannot be read", "mend it, or move it away")
    return {str(user): str(password) for user, password in found.items()}


def replace_private(path: Path, facts: Mapping[str, object]) -> None:
    """Replace a file at once; only its owner can read it."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(facts, file, indent=1)
    draft.replace(path)


def told(folder: Path, site: Site, made: Mapping[str, str]) -> str:
    """Return what a person does with the files; no password is shown."""
    users = ", ".join(site.user(service) for service in made)
    return (
        f"users: {users}\n"
        f"import:   rabbitmqctl import_definitions {folder / DEFINITIONS_NAME}\n"
        f"services: GATEMESH_AMQP_URL=amqp://USER:PASSWORD@HOST:5672/, "
        f"passwords in {folder / PASSWORDS_NAME}\n"
    )
