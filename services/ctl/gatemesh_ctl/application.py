"""The command line's frame: its options, where it prints, how it fails.

A command loads what it needs when it is run: libraries for broker, database and tables take longer
to load than most commands take.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gatemesh_ctl.addresses import Addresses, find_addresses
from gatemesh_ctl.completing import instance_names, pool_names
from gatemesh_ctl.errors import CtlError
from gatemesh_ctl.output import as_json, print_rows

if TYPE_CHECKING:
    from rich.console import Console

    from gatemesh_ctl.store import Row, Store

EXIT_FAILED = 1
EXIT_WRONG = 2
EXIT_UNDECIDED = 3

application = typer.Typer(
    help="See and steer a gatemesh: instances, incidents, verdicts, commands and requests.\n\n"
    "Addresses come from GATEMESH_AMQP_URL and GATEMESH_DATABASE_URL, else from the local stack.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

JsonForm = Annotated[bool, typer.Option("--json", help="Print JSON with every field.")]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="Newest rows to show.")]
OfInstance = Annotated[
    str | None,
    typer.Option("--instance", help="Only of this instance.", autocompletion=instance_names),
]
OfPool = Annotated[
    str | None, typer.Option("--pool", help="Only of this pool.", autocompletion=pool_names)
]

HEALTH_COLUMNS = (
    *("instance_id", "pool", "state", "in_rotation", "score", "incarnation", "running"),
    *("condition", "incident_status", "would", "command_in_flight", "recent_restarts", "weight"),
    *("weight_ceiling", "state_since", "mode"),
)
INCIDENT_COLUMNS = (
    *("incident_id", "instance_id", "incarnation", "condition", "status", "playbook"),
    *("opened_at", "duration_s", "reason", "would"),
)
VERDICT_COLUMNS = (
    *("timestamp", "instance_id", "incarnation", "check_level", "outcome", "reason", "hard"),
    *("score", "threshold", "attribution", "request_id"),
)
COMMAND_COLUMNS = (
    *("command_id", "instance_id", "incarnation", "action", "fence", "status", "issued_at"),
    *("duration_s", "killed", "reason"),
)
REFUSED_COLUMNS = (
    *("at", "instance_id", "pool", "action", "fence", "reason", "detail", "ends_command"),
    *("command_id",),
)
REQUEST_COLUMNS = (
    *("requested_at", "action", "pool", "instance_id", "requested_by", "user_id", "outcome"),
    *("dry_run", "why"),
)
TIMELINE_COLUMNS = ("at", "instance_id", "incarnation", "kind", "what", "detail")
LETTER_COLUMNS = ("message_id", "type", "queue", "reason", "timestamp")
POOL_COLUMNS = ("pool", "instances", "in_rotation", "mode", "paused", "braked", "states")
TRAFFIC_COLUMNS = ("pool", "requests", "tokens", "unguarded")
UNWELL_COLUMNS = (
    *("instance_id", "pool", "state", "state_since", "in_rotation", "score", "condition"),
    *("incident_status", "command_in_flight", "incident_id"),
)
QUEUE_COLUMNS = ("queue", "messages", "consumers")


def addresses() -> Addresses:
    """Return where broker and database are."""
    return find_addresses(os.environ, Path.cwd())


def open_store() -> "Store":
    """Return the database's views.

    Raises:
        CtlError: its address is unknown, or cannot be read.
    """
    from gatemesh_ctl.store import Store  # noqa: PLC0415

    return Store(addresses().database())


def console(*, stderr: bool = False) -> "Console":
    """Return what to print on."""
    from rich.console import Console  # noqa: PLC0415

    wide = sys.stdout.isatty() and not stderr
    return Console(stderr=stderr, soft_wrap=not wide, width=None if wide else 200)


def print_error(error: CtlError) -> None:
    """Print what is wrong and the way out."""
    console(stderr=True).print(f"error: {error}", markup=False, style="red")


def show_json(value: object) -> None:
    """Print for programs."""
    sys.stdout.write(f"{as_json(value)}\n")


def show_rows(rows: "Sequence[Row]", columns: Sequence[str], *, json_form: bool) -> None:
    """Print all columns as JSON, or these as a table."""
    if json_form:
        show_json(list(rows))
    else:
        print_rows(console(), rows, columns)


def check_instance(store: "Store", instance_id: str | None) -> None:
    """Raise CtlError when an instance was named that nobody knows."""
    if instance_id is not None:
        store.instance(instance_id)
