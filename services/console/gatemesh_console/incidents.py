"""Incidents: the list, and one page for each with all that speaks for it."""

from starlette.requests import Request
from starlette.responses import Response

from gatemesh_console.desk import desk_of, is_part, page, session_of, wanted
from gatemesh_console.errors import NotFoundError
from gatemesh_console.evidence import show
from gatemesh_console.paging import read_key
from gatemesh_console.store import INCIDENT_KEY, VERDICT_KEY

STATUSES = ("open", "held", "resolved", "quarantined", "expired")
MOST_CAPTURES = 10


async def incidents_page(request: Request) -> Response:
    """Show a page of incidents, the newest first."""
    session_of(request)
    pool, status = wanted(request, "pool"), wanted(request, "status")
    instance_id = wanted(request, "instance")
    after = read_key(request.query_params.get("after", ""), INCIDENT_KEY)
    found = await desk_of(request).store.incidents(pool, status, instance_id, after)
    return page(
        request,
        "incident_rows.html" if is_part(request) else "incidents.html",
        incidents=found.rows,
        after=found.after,
        pool=pool,
        chosen=status,
        instance_id=instance_id,
        statuses=STATUSES,
    )


async def incident_page(request: Request) -> Response:
    """Show one incident: why, the evidence, every step and command."""
    session_of(request)
    store = desk_of(request).store
    incident = await store.incident(request.path_params["incident_id"])
    if incident is None:
        raise NotFoundError("incident")
    after = read_key(request.query_params.get("after", ""), VERDICT_KEY)
    found = await store.evidence(incident, after)
    figures, texts = await store.captures(incident, MOST_CAPTURES)
    return page(
        request,
        "incident.html",
        incident=incident,
        verdicts=found.rows,
        after=found.after,
        transitions=await store.transitions(incident["incident_id"]),
        commands=await store.commands(incident["incident_id"]),
        captures=show(figures, texts),
    )
