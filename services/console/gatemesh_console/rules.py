"""The rules in force, and the brakes."""

from starlette.requests import Request
from starlette.responses import Response

from gatemesh_console.desk import desk_of, page, session_of, wanted
from gatemesh_console.errors import NotFoundError


async def policy_page(request: Request) -> Response:
    """Show each pool's brakes and one version of the rules, the newest unless one is named."""
    session_of(request)
    store = desk_of(request).store
    versions = await store.policies()
    version = wanted(request, "version") or (versions[0]["version"] if versions else None)
    policy = await store.policy(version) if version else None
    if version and policy is None:
        raise NotFoundError("policy")
    return page(request, "policy.html", pools=await store.pools(), versions=versions, policy=policy)
