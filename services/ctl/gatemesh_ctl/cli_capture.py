"""`gatemesh-ctl capture`: the window around a fault, for people and for programs."""

from typing import Annotated

import typer

from gatemesh_ctl.application import (
    JsonForm,
    OfInstance,
    check_instance,
    console,
    open_store,
    show_json,
    show_rows,
)
from gatemesh_ctl.completing import incident_ids

CAPTURE_COLUMNS = (
    *("capture_id", "at", "instance_id", "incarnation", "check_level", "reason", "hard", "score"),
    *("threshold", "attribution", "incident_id", "request_id"),
)


def register(application: typer.Typer) -> None:
    """Add the command."""
    application.command()(capture)


def capture(
    capture_id: Annotated[
        str | None, typer.Argument(help="Show this one; the beginning of its id is enough.")
    ] = None,
    *,
    incident: Annotated[
        str | None, typer.Option(help="Show those of this incident.", autocompletion=incident_ids)
    ] = None,
    instance: OfInstance = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Newest captures to show.")] = 10,
    json_form: JsonForm = False,
) -> None:
    """Show the window around a fault: tokens by entropy, the span at fault marked.

    Without an id or incident the newest captures are listed.
    """
    from gatemesh_ctl.capture_view import shown  # noqa: PLC0415
    from gatemesh_ctl.captures import found, texts_of  # noqa: PLC0415

    whole = capture_id is not None or incident is not None
    with open_store() as store:
        check_instance(store, instance)
        rows = found(store, capture_id, incident, instance, limit=limit)
        known = [(row, *texts_of(store, row)) for row in rows if whole]
    if json_form:
        value = [{**row, "texts": texts} for row, texts, _ in known] if whole else rows
        show_json(value[0] if capture_id is not None else value)
        return
    if not known:
        show_rows(rows, CAPTURE_COLUMNS, json_form=False)
    for row, texts, note in known:
        console().print(shown(row, texts, note))
