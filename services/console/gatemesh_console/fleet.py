"""The fleet: pools, instances, their scores, and what the gates say."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gatemesh_common.words import InstanceState
from gatemesh_console.desk import desk_of, is_part, page, session_of, wanted
from gatemesh_console.errors import NotFoundError
from gatemesh_console.paging import Row, read_key
from gatemesh_console.store import INSTANCE_KEY

RECENT = 10


async def fleet_page(request: Request) -> Response:
    """Show pools, gates and a page of instances; to a script the parts that change."""
    session_of(request)
    desk = desk_of(request)
    pool, state = wanted(request, "pool"), wanted(request, "state")
    after = read_key(request.query_params.get("after", ""), INSTANCE_KEY)
    found = await desk.store.instances(pool, state, after)
    return page(
        request,
        "fleet_parts.html" if is_part(request) else "fleet.html",
        pools=await desk.store.pools(),
        counts=by_pool(await desk.store.states()),
        gates=await desk.gates.rows(),
        instances=found.rows,
        after=found.after,
        scores=desk.scores,
        pool=pool,
        state=state,
        states=list(InstanceState),
    )


async def gates_data(request: Request) -> Response:
    """Answer with the failures of the last hour, as columns for the chart."""
    session_of(request)
    rows = await desk_of(request).failures.rows()
    return JSONResponse(columns(rows))


async def instance_page(request: Request) -> Response:
    """Show all of one instance."""
    session_of(request)
    desk, name = desk_of(request), request.path_params["instance_id"]
    found = await desk.store.instance(name)
    if found is None:
        raise NotFoundError("instance")
    incidents = await desk.store.incidents(None, None, name, None, RECENT)
    scores = desk.scores.of(name)
    return page(request, "instance.html", instance=found, incidents=incidents.rows, scores=scores)


def by_pool(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """Return the number of instances by pool and state."""
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        counts.setdefault(row["pool"], {})[row["state"]] = row["instances"]
    return counts


def columns(rows: Iterable[Row]) -> Mapping[str, object]:
    """Return moments and one line of counts per gate, as the chart takes them."""
    counts: dict[tuple[datetime, str], int] = {
        (row["at"], row["check_level"]): row["failed"] for row in rows
    }
    moments = sorted({at for at, _ in counts})
    gates = sorted({gate for _, gate in counts})
    lines = [[counts.get((at, gate), 0) for at in moments] for gate in gates]
    return {"gates": gates, "data": [[at.timestamp() for at in moments], *lines]}
