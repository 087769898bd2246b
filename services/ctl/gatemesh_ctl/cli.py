"""`gatemesh-ctl`: what operators see and ask for."""

import logging
import os
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gatemesh_ctl import cli_capture, cli_insight, cli_requests
from gatemesh_ctl.added import add_commands
from gatemesh_ctl.addresses import read_run
from gatemesh_ctl.application import (
    COMMAND_COLUMNS,
    EXIT_FAILED,
    EXIT_WRONG,
    HEALTH_COLUMNS,
    INCIDENT_COLUMNS,
    LETTER_COLUMNS,
    POOL_COLUMNS,
    QUEUE_COLUMNS,
    REFUSED_COLUMNS,
    REQUEST_COLUMNS,
    TIMELINE_COLUMNS,
    TRAFFIC_COLUMNS,
    UNWELL_COLUMNS,
    VERDICT_COLUMNS,
    JsonForm,
    Limit,
    OfInstance,
    OfPool,
    addresses,
    application,
    check_instance,
    console,
    open_store,
    print_error,
    show_json,
    show_rows,
)
from gatemesh_ctl.completing import incident_ids
from gatemesh_ctl.errors import CtlError, UnreachableError
from gatemesh_ctl.output import printable, table_of
from gatemesh_ctl.starting import STARTING, is_starting
from gatemesh_ctl.summary import needs, pool_rows, queue_row, unwell

if TYPE_CHECKING:
    from gatemesh_ctl.store import Row

keys = typer.Typer(help="Keys that sign and verify commands.", no_args_is_help=True)
application.add_typer(keys, name="keys")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a failure says what is wrong and the way out, without a traceback."""
    # Connection libraries would print a line of their own beside ours.
    for name in ("aio_pika", "aiormq"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    add_commands(application)
    try:
        application(args=arguments, prog_name="gatemesh-ctl")
    except CtlError as error:
        print_error(error)
        sys.exit(EXIT_FAILED if isinstance(error, UnreachableError) else EXIT_WRONG)


@application.command()
def status(*, json_form: JsonForm = False) -> None:
    """Show pools, queues and dead letters; the command fails when something does not answer."""
    parts: dict[str, list[Row]] = {}
    faults = []
    for read in (read_views, read_queues):
        try:
            parts |= read()
        except CtlError as error:
            faults.append(error)
    starting = is_starting(read_run(os.environ, Path.cwd()), addresses())
    told = needs(parts, starting=starting)
    if json_form:
        words = [fault.wrong for fault in faults]
        show_json({**parts, "needs": told, "faults": words, "starting": starting})
    else:
        show_status(parts, [STARTING] if starting else [], told)
    for fault in () if starting else faults:
        print_error(fault)
    if faults:
        raise typer.Exit(EXIT_FAILED)


def read_views() -> "dict[str, list[Row]]":
    """Return what the database knows of pools, traffic and incidents."""
    with open_store() as store:
        health = store.instances()
        return {
            "pools": pool_rows(health, store.pools()),
            "unwell": unwell(health),
            "traffic": store.traffic(),
            "incidents": store.newest("incidents_v1", 100, status="open")
            + store.newest("incidents_v1", 100, status="held"),
        }


def read_queues() -> "dict[str, list[Row]]":
    """Return how full the queues are, and who reads them."""
    import asyncio  # noqa: PLC0415

    from gatemesh_ctl.queues import queue_states  # noqa: PLC0415

    states = asyncio.run(queue_states(addresses().broker()))
    return {"queues": [queue_row(state) for state in states]}


def show_status(parts: "dict[str, list[Row]]", *remarks: "Sequence[str]") -> None:
    """Print what is known, and a line for each remark."""
    columns = (
        ("pools", POOL_COLUMNS),
        ("unwell", UNWELL_COLUMNS),
        ("traffic", TRAFFIC_COLUMNS),
        ("incidents", INCIDENT_COLUMNS),
        ("queues", QUEUE_COLUMNS),
    )
    screen = console()
    for name, shown in columns:
        if parts.get(name):
            screen.print(table_of(parts[name], shown))
            screen.print()
    for line in chain(*remarks):
        screen.print(printable(line), markup=False)


@application.command()
def instances(*, pool: OfPool = None, json_form: JsonForm = False) -> None:
    """Show every instance: its state, score, life and what is under way."""
    with open_store() as store:
        rows = store.instances(pool=pool)
    show_rows(rows, HEALTH_COLUMNS, json_form=json_form)


@application.command()
def incidents(
    incident_id: Annotated[
        str | None, typer.Argument(help="Show this one, in full.", autocompletion=incident_ids)
    ] = None,
    *,
    instance: OfInstance = None,
    limit: Limit = 20,
    json_form: JsonForm = False,
) -> None:
    """Show the newest incidents, or one of them with its timeline."""
    with open_store() as store:
        if incident_id is None:
            check_instance(store, instance)
            rows = store.newest("incidents_v1", limit, instance_id=instance)
            show_rows(rows, INCIDENT_COLUMNS, json_form=json_form)
            return
        incident = store.incident(incident_id)
        events = store.incident_timeline(incident)
    if json_form:
        show_json({**incident, "timeline": events})
        return
    show_rows([incident], INCIDENT_COLUMNS, json_form=False)
    show_rows(events, TIMELINE_COLUMNS, json_form=False)


@application.command()
def verdicts(
    *,
    instance: OfInstance = None,
    level: Annotated[str | None, typer.Option(help="Only of this gate, L1 to L5 or LX.")] = None,
    outcome: Annotated[str | None, typer.Option(help="passed, failed or skipped.")] = None,
    limit: Limit = 50,
    json_form: JsonForm = False,
) -> None:
    """Show the newest verdicts."""
    with open_store() as store:
        check_instance(store, instance)
        rows = store.newest(
            "verdicts_v1",
            limit,
            instance_id=instance,
            check_level=level.upper() if level else None,
            outcome=outcome,
        )
    show_rows(rows, VERDICT_COLUMNS, json_form=json_form)


@application.command()
def timeline(
    *,
    incident: Annotated[str | None, typer.Option(help="Of this incident.")] = None,
    instance: OfInstance = None,
    limit: Limit = 100,
    json_form: JsonForm = False,
) -> None:
    """Show what happened in its order: verdicts, states, commands, steps, reports."""
    with open_store() as store:
        if incident is not None:
            rows = store.incident_timeline(store.incident(incident))
        else:
            check_instance(store, instance)
            rows = store.newest("timeline_v1", limit, instance_id=instance)
    show_rows(rows, TIMELINE_COLUMNS, json_form=json_form)


@application.command()
def commands(
    *, instance: OfInstance = None, limit: Limit = 20, json_form: JsonForm = False
) -> None:
    """Show the newest commands to the executor and how they ended."""
    with open_store() as store:
        check_instance(store, instance)
        rows = store.newest("commands_v1", limit, instance_id=instance)
    show_rows(rows, COMMAND_COLUMNS, json_form=json_form)


@application.command()
def refused(*, instance: OfInstance = None, limit: Limit = 20, json_form: JsonForm = False) -> None:
    """Show the newest commands that the executor refused: forged, repeated, stale, expired."""
    with open_store() as store:
        rows = store.newest("refused_commands_v1", limit, instance_id=instance)
    show_rows(rows, REFUSED_COLUMNS, json_form=json_form)


@application.command()
def requests(
    *,
    instance: OfInstance = None,
    pool: OfPool = None,
    limit: Limit = 20,
    json_form: JsonForm = False,
) -> None:
    """Show the newest requests of operators: who asked, and whether it was followed."""
    with open_store() as store:
        rows = store.newest("requests_v1", limit, instance_id=instance, pool=pool)
    show_rows(rows, REQUEST_COLUMNS, json_form=json_form)


@keys.command(name="new")
def new_keys(
    folder: Annotated[Path, typer.Argument(help="Where the two files go.")],
    *,
    json_form: JsonForm = False,
) -> None:
    """Make a pair: a private key for the managers, a public one for the executors."""
    # Only here is anything computed with keys.
    from gatemesh_ctl.keys import PRIVATE_NAME, PUBLIC_NAME, make_pair  # noqa: PLC0415

    key = make_pair(folder)
    facts = {
        "key_id": key.key_id,
        "private": str(folder / PRIVATE_NAME),
        "public": str(folder / PUBLIC_NAME),
    }
    if json_form:
        show_json(facts)
        return
    sys.stdout.write("".join(f"{name:8} {text}\n" for name, text in facts.items()))


@application.command(name="dead-letters")
def dead_letters(
    *,
    limit: Limit = 20,
    body: Annotated[bool, typer.Option("--body", help="Show the bodies too.")] = False,
    json_form: JsonForm = False,
) -> None:
    """Show the oldest messages that no service could take; they stay where they are."""
    import asyncio  # noqa: PLC0415

    from gatemesh_ctl.queues import peek_letters  # noqa: PLC0415

    letters = asyncio.run(peek_letters(addresses().broker(), limit))
    columns = (*LETTER_COLUMNS, "body") if body else LETTER_COLUMNS
    show_rows(letters, columns, json_form=json_form)


cli_capture.register(application)
cli_insight.register(application)
cli_requests.register(application)
