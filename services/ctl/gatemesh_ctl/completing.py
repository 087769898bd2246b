"""What the shell offers when a word is begun: names from the database, where it answers at once."""

import os
from contextlib import suppress
from pathlib import Path

from gatemesh_ctl.actions import ACTIONS
from gatemesh_ctl.addresses import find_addresses
from gatemesh_ctl.errors import CtlError

PATIENCE_S = 2
"""Somebody waits at the keyboard."""
NEWEST = 50


def action_names(incomplete: str) -> list[str]:
    """Return the actions that begin so."""
    return beginning(ACTIONS, incomplete)


def instance_names(incomplete: str) -> list[str]:
    """Return the instances that begin so."""
    return beginning(column("instance_health_v1", "instance_id"), incomplete)


def pool_names(incomplete: str) -> list[str]:
    """Return the pools that begin so."""
    return beginning(column("pools_v1", "pool"), incomplete)


def incident_ids(incomplete: str) -> list[str]:
    """Return the newest incidents that begin so."""
    return beginning(column("incidents_v1", "incident_id"), incomplete)


def beginning(words: "tuple[str, ...] | list[str]", incomplete: str) -> list[str]:
    """Return the words that begin so."""
    return [word for word in words if word.startswith(incomplete)]


def column(view: str, name: str) -> list[str]:
    """Return a column of the newest rows of a view; nothing where the database does not answer."""
    # Loaded here: the shell asks for actions and options, too, and those need no database.
    from gatemesh_ctl.store import Store  # noqa: PLC0415

    with suppress(CtlError):
        url = find_addresses(os.environ, Path.cwd()).database()
        with Store(url, connect_timeout_s=PATIENCE_S) as store:
            return [row[name] for row in store.newest(view, NEWEST)]
    return []
