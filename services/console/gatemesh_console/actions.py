"""Asking for actions: a form, a look at what would be done, a confirmation, and the answer."""

import logging

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gatemesh_common.messages import ActionRequest, TrialRequest
from gatemesh_console.asking import (
    ACTIONS,
    FIELDS,
    GRAVE,
    WHOLE_POOL,
    build_request,
    check_action,
    check_id,
)
from gatemesh_console.desk import (
    desk_of,
    is_part,
    page,
    require_operator,
    require_own_form,
    session_of,
)
from gatemesh_console.errors import BadInputError, NotFoundError
from gatemesh_console.forms import read_form
from gatemesh_console.metrics import ASKED
from gatemesh_console.paging import read_key
from gatemesh_console.store import REQUEST_KEY

log = logging.getLogger(__name__)
EMPTY = ("pool", "instance_id", "reason", "backlog", "weight", "model_version")


async def requests_page(request: Request) -> Response:
    """Show what was asked for, the newest first, and where to ask."""
    session_of(request)
    after = read_key(request.query_params.get("after", ""), REQUEST_KEY)
    found = await desk_of(request).store.requests(after)
    template = "request_rows.html" if is_part(request) else "requests.html"
    return page(request, template, requests=found.rows, after=found.after, actions=ACTIONS)


async def action_form(request: Request) -> Response:
    """Show the form of one action."""
    require_operator(request)
    given = request.query_params
    action = check_action(given.get("action", ""))
    form = {name: given.get(name, "") for name in EMPTY}
    return await _form_page(request, action, form, None)


async def ask(request: Request) -> Response:
    """Try a request, show it for confirmation, or publish it, as the button says."""
    session = require_operator(request)
    form = await read_form(request)
    require_own_form(session, form)
    action = check_action(form.get("action", ""))
    step = form.get("step", "")
    if step not in ("try", "confirm", "send"):
        raise BadInputError("step", "must be try, confirm or send")
    try:
        asked = build_request(
            form, session.person.name, desk_of(request).clock(), dry_run=step == "try"
        )
    except BadInputError as fault:
        return await _form_page(request, action, dict.fromkeys(EMPTY, "") | form, fault)
    if step == "confirm":
        return page(request, "confirm.html", asked=asked, grave=action in GRAVE)
    await _publish(request, asked)
    return RedirectResponse(f"/requests/{asked.message_id}?{_facts(asked)}", 303)


async def request_page(request: Request) -> Response:
    """Show how a request was decided; until then, that it is not."""
    session_of(request)
    message_id = check_id(request.path_params["message_id"])
    row = await desk_of(request).store.request(message_id)
    if row is None and "action" not in request.query_params:
        raise NotFoundError("request")
    template = "request_part.html" if is_part(request) else "request.html"
    return page(request, template, row=row)


async def _publish(request: Request, asked: ActionRequest) -> None:
    dry_run = isinstance(asked, TrialRequest)
    await desk_of(request).publish(asked)
    ASKED.labels(action=asked.action, how="try" if dry_run else "ask").inc()
    log.info(
        "action_asked",
        extra={
            "action": asked.action,
            "pool": asked.pool,
            "instance_id": asked.instance_id,
            "person": asked.requested_by,
            "dry_run": dry_run,
            "request_message_id": asked.message_id,
        },
    )


def _facts(asked: ActionRequest) -> str:
    return f"action={asked.action}&dry_run={str(isinstance(asked, TrialRequest)).lower()}"


async def _form_page(
    request: Request, action: str, form: dict[str, str], fault: BadInputError | None
) -> Response:
    store = desk_of(request).store
    if form["instance_id"] and not form["pool"]:
        instance = await store.instance(form["instance_id"])
        form["pool"] = instance["pool"] if instance else ""
    pools = [row["pool"] for row in await store.pools()]
    if not form["pool"] and len(pools) == 1:
        form["pool"] = pools[0]
    return page(
        request,
        "action.html",
        422 if fault else 200,
        action=action,
        form=form,
        fields=FIELDS.get(action, ()),
        whole_pool=action in WHOLE_POOL,
        pools=pools,
        fault=fault,
    )
