"""`gatemesh-ctl`: what operators see and ask for."""

import asyncio
import getpass
import logging
import os
import socket
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gatemesh_common.broker import DEAD_LETTERS
from gatemesh_common.clock import utc_now
from gatemesh_common.messages import ActionRequest
from gatemesh_ctl import store as views
from gatemesh_ctl.added import add_commands
from gatemesh_ctl.addresses import Addresses, find_addresses
from gatemesh_ctl.asking import (
    ACTIONS,
    POOL_ACTIONS,
    build_request,
    check_action,
    check_backlog,
    check_weight,
    pool_of_instance,
    pool_to_hold,
    send_request,
)
from gatemesh_ctl.errors import CtlError, UnreachableError
from gatemesh_ctl.following import Ending, Followed, Follower
from gatemesh_ctl.keys import PRIVATE_NAME, PUBLIC_NAME, make_pair
from gatemesh_ctl.output import as_json, print_rows, table_of
from gatemesh_ctl.queues import QueueState, peek_letters, queue_states
from gatemesh_ctl.store import Row, Store

EXIT_FAILED = 1
EXIT_WRONG = 2
EXIT_UNDECIDED = 3

application = typer.Typer(
    help="See and steer a gatemesh: instances, incidents, verdicts, commands and requests.\n\n"
    "Addresses come from GATEMESH_AMQP_URL and GATEMESH_DATABASE_URL, else from the local stack.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

keys = typer.Typer(help="Keys that sign and verify commands.", no_args_is_help=True)
application.add_typer(keys, name="keys")

JsonForm = Annotated[bool, typer.Option("--json", help="Print JSON with every field.")]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="Newest rows to show.")]
OfInstance = Annotated[str | None, typer.Option("--instance", help="Only of this instance.")]
OfPool = Annotated[str | None, typer.Option("--pool", help="Only of this pool.")]

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
QUEUE_COLUMNS = ("queue", "messages", "consumers")


def main() -> None:
    """Run the command line; a failure says what is wrong and the way out, without a traceback."""
    # Connection libraries would print a line of their own beside ours.
    for name in ("aio_pika", "aiormq"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    add_commands(application)
    try:
        application(prog_name="gatemesh-ctl")
    except CtlError as error:
        print_error(error)
        sys.exit(EXIT_FAILED if isinstance(error, UnreachableError) else EXIT_WRONG)


def print_error(error: CtlError) -> None:
    """Print what is wrong and the way out."""
    Console(stderr=True, soft_wrap=True).print(f"error: {error}", markup=False, style="red")


def addresses() -> Addresses:
    """Return where broker and database are."""
    return find_addresses(os.environ, Path.cwd())


def console() -> Console:
    """Return what to print on."""
    return Console(soft_wrap=not sys.stdout.isatty(), width=None if sys.stdout.isatty() else 200)


@application.command()
def status(*, json_form: JsonForm = False) -> None:
    """Show pools, queues and dead letters; the command fails when something does not answer."""
    found = addresses()
    parts, faults = {}, []
    try:
        with Store(found.database()) as store:
            parts["pools"] = pool_rows(store.instances(), store.pools())
            parts["traffic"] = store.traffic()
            parts["incidents"] = store.newest(views.INCIDENTS, 100, status="open")
            parts["incidents"] += store.newest(views.INCIDENTS, 100, status="held")
    except CtlError as error:
        faults.append(error)
    try:
        states = asyncio.run(queue_states(found.broker()))
        parts["queues"] = [queue_row(state) for state in states]
    except CtlError as error:
        faults.append(error)
    show_status(parts, [fault.wrong for fault in faults], json_form=json_form)
    for fault in faults:
        print_error(fault)
    if faults:
        raise typer.Exit(EXIT_FAILED)


@application.command()
def instances(*, pool: OfPool = None, json_form: JsonForm = False) -> None:
    """Show every instance: its state, score, life and what is under way."""
    with Store(addresses().database()) as store:
        rows = store.instances(pool=pool)
    print_rows(console(), rows, HEALTH_COLUMNS, json_form=json_form)


@application.command()
def incidents(
    incident_id: Annotated[str | None, typer.Argument(help="Show this one, in full.")] = None,
    *,
    instance: OfInstance = None,
    limit: Limit = 20,
    json_form: JsonForm = False,
) -> None:
    """Show the newest incidents, or one of them with its timeline."""
    with Store(addresses().database()) as store:
        if incident_id is None:
            check_instance(store, instance)
            rows = store.newest(views.INCIDENTS, limit, instance_id=instance)
            print_rows(console(), rows, INCIDENT_COLUMNS, json_form=json_form)
            return
        incident = store.incident(incident_id)
        events = store.incident_timeline(incident)
    if json_form:
        sys.stdout.write(f"{as_json({**incident, 'timeline': events})}\n")
        return
    print_rows(console(), [incident], INCIDENT_COLUMNS, json_form=False)
    print_rows(console(), events, TIMELINE_COLUMNS, json_form=False)


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
    with Store(addresses().database()) as store:
        check_instance(store, instance)
        rows = store.newest(
            views.VERDICTS,
            limit,
            instance_id=instance,
            check_level=level.upper() if level else None,
            outcome=outcome,
        )
    print_rows(console(), rows, VERDICT_COLUMNS, json_form=json_form)


@application.command()
def timeline(
    *,
    incident: Annotated[str | None, typer.Option(help="Of this incident.")] = None,
    instance: OfInstance = None,
    limit: Limit = 100,
    json_form: JsonForm = False,
) -> None:
    """Show what happened in its order: verdicts, states, commands, steps, reports."""
    with Store(addresses().database()) as store:
        if incident is not None:
            rows = store.incident_timeline(store.incident(incident))
        else:
            check_instance(store, instance)
            rows = store.newest(views.TIMELINE, limit, instance_id=instance)
    print_rows(console(), rows, TIMELINE_COLUMNS, json_form=json_form)


@application.command()
def commands(
    *, instance: OfInstance = None, limit: Limit = 20, json_form: JsonForm = False
) -> None:
    """Show the newest commands to the executor and how they ended."""
    with Store(addresses().database()) as store:
        check_instance(store, instance)
        rows = store.newest(views.COMMANDS, limit, instance_id=instance)
    print_rows(console(), rows, COMMAND_COLUMNS, json_form=json_form)


@application.command()
def refused(*, instance: OfInstance = None, limit: Limit = 20, json_form: JsonForm = False) -> None:
    """Show the newest commands that the executor refused: forged, repeated, stale, expired."""
    with Store(addresses().database()) as store:
        rows = store.newest(views.REFUSED, limit, instance_id=instance)
    print_rows(console(), rows, REFUSED_COLUMNS, json_form=json_form)


@application.command()
def requests(
    *,
    instance: OfInstance = None,
    pool: OfPool = None,
    limit: Limit = 20,
    json_form: JsonForm = False,
) -> None:
    """Show the newest requests of operators: who asked, and whether it was followed."""
    with Store(addresses().database()) as store:
        rows = store.newest(views.REQUESTS, limit, instance_id=instance, pool=pool)
    print_rows(console(), rows, REQUEST_COLUMNS, json_form=json_form)


@keys.command(name="new")
def new_keys(
    folder: Annotated[Path, typer.Argument(help="Where the two files go.")],
    *,
    json_form: JsonForm = False,
) -> None:
    """Make a pair: a private key for the managers, a public one for the executors."""
    key = make_pair(folder)
    facts = {
        "key_id": key.key_id,
        "private": str(folder / PRIVATE_NAME),
        "public": str(folder / PUBLIC_NAME),
    }
    sys.stdout.write(
        f"{as_json(facts)}\n"
        if json_form
        else "".join(f"{name:8} {text}\n" for name, text in facts.items())
    )


@application.command()
def request(
    action: Annotated[str, typer.Argument(help=f"One of {', '.join(ACTIONS)}.")],
    instance: Annotated[str | None, typer.Argument(help="The instance it is about.")] = None,
    *,
    pool: Annotated[str | None, typer.Option(help="The pool; found when it is left out.")] = None,
    backlog: Annotated[
        str | None, typer.Option(help="With reset_brake: skip or replay what it held.")
    ] = None,
    weight: Annotated[
        float | None, typer.Option(help="With set_weight: the most it gets, 0 to 1; 1 lifts it.")
    ] = None,
    model_version: Annotated[
        str | None, typer.Option(help="With roll_back of a pool: the version to leave.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why; kept in the history.")] = "",
    by: Annotated[str | None, typer.Option(help="Who asks; the login name without it.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Follow it to its end.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would do, and do nothing.")
    ] = False,
    wait_s: Annotated[float, typer.Option(min=1, help="Longest wait, in seconds.")] = 600.0,
    json_form: JsonForm = False,
) -> None:
    """Ask the manager for an action, and print the id of the request."""
    check_action(action, instance)
    check_backlog(action, backlog)
    check_weight(action, weight)
    found = addresses()
    with Store(found.database()) as store:
        known_pool = pool_for(store, action, instance, pool)
        message = build_request(
            *(action, known_pool, instance, utc_now()),
            by=by or me(),
            reason=reason,
            backlog=backlog,
            weight=weight,
            model_version=model_version,
            dry_run=dry_run,
        )
        asyncio.run(send_request(found.broker(), message))
        if not wait and not dry_run:
            show_sent(message, json_form=json_form)
            return
        follow(store, message, wait_s, json_form=json_form)


@application.command(name="dead-letters")
def dead_letters(
    *,
    limit: Limit = 20,
    body: Annotated[bool, typer.Option("--body", help="Show the bodies too.")] = False,
    json_form: JsonForm = False,
) -> None:
    """Show the oldest messages that no service could take; they stay where they are."""
    letters = asyncio.run(peek_letters(addresses().broker(), limit))
    columns = (*LETTER_COLUMNS, "body") if body else LETTER_COLUMNS
    print_rows(console(), letters, columns, json_form=json_form)


def check_instance(store: Store, instance_id: str | None) -> None:
    """Raise CtlError when an instance was named that nobody knows."""
    if instance_id is not None:
        store.instance(instance_id)


def pool_for(store: Store, action: str, instance_id: str | None, pool: str | None) -> str:
    """Return the pool that a request is about."""
    if action in POOL_ACTIONS or instance_id is None:
        return pool_to_hold([row["pool"] for row in store.instances()], pool)
    return pool_of_instance(store.instance(instance_id), pool)


def me() -> str:
    """Return who asks, for the history."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def pool_rows(health: list[Row], known: list[Row]) -> list[Row]:
    """Return one row per pool that has instances."""
    brakes = {row["pool"]: row for row in known}
    pools: dict[str, list[Row]] = {}
    for row in health:
        pools.setdefault(row["pool"], []).append(row)
    return [
        {
            "pool": pool,
            "instances": len(rows),
            "in_rotation": sum(row["in_rotation"] for row in rows),
            "mode": rows[0].get("mode", "act"),
            "paused": any(row["paused"] for row in rows),
            "braked": brakes[pool]["braked"],
            "brake_reason": brakes[pool]["brake_reason"],
            "held_incidents": brakes[pool]["held_incidents"],
            "states": ", ".join(
                f"{count} {state}"
                for state, count in sorted(Counter(row["state"] for row in rows).items())
            ),
        }
        for pool, rows in pools.items()
    ]


def queue_row(state: QueueState) -> Row:
    """Return a queue as a row."""
    return {"queue": state.name, "messages": state.messages, "consumers": state.consumers}


def show_status(parts: dict[str, list[Row]], faults: list[str], *, json_form: bool) -> None:
    """Print what is known, and one line on what needs a person."""
    if json_form:
        sys.stdout.write(f"{as_json({**parts, 'faults': faults})}\n")
        return
    columns = (
        ("pools", POOL_COLUMNS),
        ("traffic", TRAFFIC_COLUMNS),
        ("incidents", INCIDENT_COLUMNS),
        ("queues", QUEUE_COLUMNS),
    )
    for name, shown in columns:
        if parts.get(name):
            console().print(table_of(parts[name], shown))
            console().print()
    for line in brakes_on(parts.get("pools", [])):
        console().print(line, markup=False)
    for line in (*remarks(parts.get("queues", [])), *unguarded_in(parts.get("traffic", []))):
        console().print(line, markup=False)


def remarks(queues: list[Row]) -> list[str]:
    """Return what a person should know of the queues."""
    lines = []
    for row in queues:
        if row["queue"] == DEAD_LETTERS:
            if row["messages"]:
                lines.append(f"{row['messages']} dead letters: gatemesh-ctl dead-letters")
        elif not row["consumers"]:
            service = row["queue"].partition(".")[0]
            lines.append(f"nobody reads {row['queue']}: is the {service} running?")
    return lines


def brakes_on(pools: list[Row]) -> list[str]:
    """Return a line for each pool that waits for a person since the fleet brake fell."""
    return [
        f"pool {row['pool']}: the fleet brake is on ({row['brake_reason']}), "
        f"{row['held_incidents']} incidents are held: "
        f"gatemesh-ctl request reset_brake --pool {row['pool']} --backlog skip|replay"
        for row in pools
        if row["braked"]
    ]


def unguarded_in(traffic: list[Row]) -> list[str]:
    """Return a line for each pool some of whose answers no gate looked at."""
    return [
        f"pool {row['pool']}: {row['unguarded']} of {row['requests']} answers within an hour "
        "passed unguarded (docs/agent.md: what is guarded)"
        for row in traffic
        if row["unguarded"]
    ]


def show_sent(message: ActionRequest, *, json_form: bool) -> None:
    """Print the id of a request that the broker has."""
    if json_form:
        sys.stdout.write(f"{as_json({'message_id': message.message_id})}\n")
        return
    sys.stdout.write(f"{message.message_id}\n")


def follow(store: Store, message: ActionRequest, wait_s: float, *, json_form: bool) -> None:
    """Print each event of a request until it ends; exit with a code that says how."""
    events: list[Row] = []

    def tell(event: Row) -> None:
        events.append(event)
        if not json_form:
            line = f"{event['at'].astimezone():%H:%M:%S}  {event['kind']:9} {event['what']}"
            console().print(f"{line}  {event['detail'] or ''}", markup=False, highlight=False)

    if not json_form:
        show_sent(message, json_form=False)
    followed = Follower(store, message, tell).follow(wait_s)
    if json_form:
        sys.stdout.write(f"{as_json(followed_facts(message, followed, events))}\n")
    else:
        console().print(f"{followed.ending}: {followed.why}", markup=False)
    if followed.ending is not Ending.DONE:
        undecided = followed.ending is Ending.UNDECIDED
        raise typer.Exit(EXIT_UNDECIDED if undecided else EXIT_FAILED)


def followed_facts(message: ActionRequest, followed: Followed, events: list[Row]) -> dict[str, Any]:
    """Return how a request ended, for programs."""
    return {
        "message_id": message.message_id,
        "ending": followed.ending,
        "why": followed.why,
        "incident_id": followed.incident_id,
        "timeline": events,
    }
