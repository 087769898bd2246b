"""`gatemesh-ctl request`: asking for an action, and following it to its end."""

import getpass
import socket
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gatemesh_common.clock import utc_now
from gatemesh_ctl.actions import ACTIONS, POOL_ACTIONS
from gatemesh_ctl.application import (
    EXIT_FAILED,
    EXIT_UNDECIDED,
    JsonForm,
    addresses,
    console,
    open_store,
    show_json,
)
from gatemesh_ctl.completing import action_names, instance_names, pool_names
from gatemesh_ctl.output import printable

if TYPE_CHECKING:
    from gatemesh_common.messages import ActionRequest
    from gatemesh_ctl.following import Followed
    from gatemesh_ctl.store import Row, Store


def register(application: typer.Typer) -> None:
    """Add the command."""
    application.command()(request)


def request(
    action: Annotated[
        str, typer.Argument(help=f"One of {', '.join(ACTIONS)}.", autocompletion=action_names)
    ],
    instance: Annotated[
        str | None, typer.Argument(help="The instance it is about.", autocompletion=instance_names)
    ] = None,
    *,
    pool: Annotated[
        str | None,
        typer.Option(help="The pool; found when it is left out.", autocompletion=pool_names),
    ] = None,
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
    import asyncio  # noqa: PLC0415

    from gatemesh_ctl import asking  # noqa: PLC0415

    asking.check_action(action, instance)
    asking.check_backlog(action, backlog)
    asking.check_weight(action, weight)
    with open_store() as store:
        known_pool = pool_for(store, action, instance, pool)
        message = asking.build_request(
            *(action, known_pool, instance, utc_now()),
            by=by or me(),
            reason=reason,
            backlog=backlog,
            weight=weight,
            model_version=model_version,
            dry_run=dry_run,
        )
        asyncio.run(asking.send_request(addresses().broker(), message))
        if not wait and not dry_run:
            show_sent(message, json_form=json_form)
            return
        follow(store, message, wait_s, json_form=json_form)


def pool_for(store: "Store", action: str, instance_id: str | None, pool: str | None) -> str:
    """Return the pool that a request is about."""
    from gatemesh_ctl.asking import pool_of_instance, pool_to_hold  # noqa: PLC0415

    if action in POOL_ACTIONS or instance_id is None:
        return pool_to_hold([row["pool"] for row in store.instances()], pool)
    return pool_of_instance(store.instance(instance_id), pool)


def me() -> str:
    """Return who asks, for the history."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def show_sent(message: "ActionRequest", *, json_form: bool) -> None:
    """Print the id of a request that the broker has."""
    if json_form:
        show_json({"message_id": message.message_id})
        return
    sys.stdout.write(f"{message.message_id}\n")


def follow(store: "Store", message: "ActionRequest", wait_s: float, *, json_form: bool) -> None:
    """Print each event of a request until it ends; exit with a code that says how."""
    from gatemesh_ctl.following import Ending, Follower  # noqa: PLC0415

    events: list[Row] = []

    def tell(event: "Row") -> None:
        events.append(event)
        if not json_form:
            line = f"{event['at'].astimezone():%H:%M:%S}  {event['kind']:9} {event['what']}"
            line = printable(f"{line}  {event['detail'] or ''}")
            console().print(line, markup=False, highlight=False)

    if not json_form:
        show_sent(message, json_form=False)
    followed = Follower(store, message, tell).follow(wait_s)
    if json_form:
        show_json(followed_facts(message, followed, events))
    else:
        console().print(printable(f"{followed.ending}: {followed.why}"), markup=False)
    if followed.ending is not Ending.DONE:
        undecided = followed.ending is Ending.UNDECIDED
        raise typer.Exit(EXIT_UNDECIDED if undecided else EXIT_FAILED)


def followed_facts(
    message: "ActionRequest", followed: "Followed", events: "list[Row]"
) -> dict[str, Any]:
    """Return how a request ended, for programs."""
    return {
        "message_id": message.message_id,
        "ending": followed.ending,
        "why": followed.why,
        "incident_id": followed.incident_id,
        "timeline": events,
    }
