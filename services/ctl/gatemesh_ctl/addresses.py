"""Where broker and database are: from the environment, else from the local stack's state file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gatemesh_common.secured import secured_broker, secured_database
from gatemesh_ctl.errors import CtlError

BROKER_VARIABLE = "GATEMESH_AMQP_URL"
DATABASE_VARIABLE = "GATEMESH_DATABASE_URL"
BROKER_CA_VARIABLE = "GATEMESH_AMQP_CA_FILE"
DATABASE_CA_VARIABLE = "GATEMESH_DATABASE_CA_FILE"
STATE_VARIABLE = "GATEMESH_STATE"
RUN_FILE = "run.json"


@dataclass(frozen=True)
class Addresses:
    """The two addresses; either may be unknown until it is needed."""

    amqp_url: str | None
    database_url: str | None

    def broker(self) -> str:
        """Return the broker's address.

        Raises:
            CtlError: it is unknown; says how to give it.
        """
        return needed(self.amqp_url, "broker", BROKER_VARIABLE)

    def database(self) -> str:
        """Return the database's address; raises as `broker` does."""
        return needed(self.database_url, "database", DATABASE_VARIABLE)


def needed(address: str | None, what: str, variable: str) -> str:
    """Return the address, or raise CtlError that names the variable."""
    if address is None:
        raise CtlError(
            f"the address of the {what} is unknown",
            f"set {variable}, or start a local stack with ./mesh up and call from its folder",
        )
    return address


def find_addresses(environment: Mapping[str, str], folder: Path) -> Addresses:
    """Return the addresses for a call from that folder.

    Raises:
        CtlError: a file of authorities is named and cannot be used.
    """
    facts = read_run(environment, folder)
    broker, database = environment.get(BROKER_VARIABLE), environment.get(DATABASE_VARIABLE)
    try:
        # The local stack's own servers are on this machine, and not encrypted.
        return Addresses(
            secured_broker(broker, file_in(environment, BROKER_CA_VARIABLE))
            if broker
            else facts.get("amqp_url"),
            secured_database(database, file_in(environment, DATABASE_CA_VARIABLE))
            if database
            else facts.get("database_url"),
        )
    except ValueError as error:
        raise CtlError(
            str(error), f"correct {BROKER_CA_VARIABLE} or {DATABASE_CA_VARIABLE}, or unset them"
        ) from None


def file_in(environment: Mapping[str, str], variable: str) -> Path | None:
    """Return the file that a variable names."""
    named = environment.get(variable)
    return Path(named) if named else None


def read_run(environment: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """Return what the local stack recorded of itself; empty without one."""
    for state in state_folders(environment, folder):
        try:
            found = json.loads((state / RUN_FILE).read_text())
        except (OSError, ValueError):
            continue
        if isinstance(found, dict):
            return found
    return {}


def state_folders(environment: Mapping[str, str], folder: Path) -> list[Path]:
    """Return where the stack's state may be, nearest first."""
    if environment.get(STATE_VARIABLE):
        return [Path(environment[STATE_VARIABLE])]
    return [parent / ".gatemesh" for parent in (folder, *folder.parents)]


def shown(address: str) -> str:
    """Return host and port alone: an address may hold a password."""
    parts = urlsplit(address)
    try:
        port = parts.port
    except ValueError:
        port = None
    return f"{parts.hostname or '?'}:{port}" if port else str(parts.hostname or "?")
