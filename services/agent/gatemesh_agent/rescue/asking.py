"""Asks an engine how it reads a prompt, so that an answer can go on by token ids."""

from dataclasses import replace

from gatemesh_agent.attribution import ClientRequest
from gatemesh_agent.errors import InstanceFailedError, InstanceSilentError, StreamBrokenError
from gatemesh_agent.requests import Route
from gatemesh_agent.rescue.continuing import (
    Continuation,
    Tokenized,
    by_ids,
    by_text,
    count_body,
    goes_by_ids,
    tokenize_body,
)
from gatemesh_agent.rescue.kept import Kept
from gatemesh_agent.stripping import as_object, loads
from gatemesh_agent.upstream import Upstream

OK = 200
TOKENIZE = "/tokenize"
LARGEST_PAGE_BYTES = 64 * 2**20


class Asking:
    """Prepares the request for the rest of an answer at one instance."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def prepare(self, request: ClientRequest, kept: Kept, base_url: str) -> Continuation:
        """Return what to ask the instance: by token ids where that is exact, else by text.

        Raises:
            ValueError: the prompt cannot be put together again.
        """
        asked = request.asked
        if goes_by_ids(asked, kept):
            prompt = known_prompt(request)
            if prompt is None:
                prompt = await self._tokenize(request, tokenize_body(asked), base_url)
            if prompt is not None:
                return by_ids(asked, kept, prompt)
        if kept.ids is None or (asked.body or {}).get("stop"):
            # What was said may be less than what was written.
            kept = await self._counted(request, kept, base_url)
        return by_text(asked, kept)

    async def _counted(self, request: ClientRequest, kept: Kept, base_url: str) -> Kept:
        """Return it with its length in tokens, as the engine counts them."""
        body = count_body(request.asked, kept.text)
        counted = await self._tokenize(request, body, base_url)
        return kept if counted is None else replace(kept, tokens=len(counted.ids))

    async def _tokenize(
        self, request: ClientRequest, body: bytes, base_url: str
    ) -> Tokenized | None:
        """Return the engine's reading; None where it has none for us."""
        order = replace(request.order, method="POST", path=TOKENIZE, body=body)
        try:
            async with self._upstream.ask(base_url, order) as reply:
                page, complete = await reply.whole(await reply.first(), LARGEST_PAGE_BYTES)
                status = reply.status
        except (InstanceFailedError, InstanceSilentError, StreamBrokenError):
            return None
        return read_tokens(page) if status == OK and complete else None


def read_tokens(page: bytes) -> Tokenized | None:
    """Return the ids in an answer of `/tokenize`; None for anything else."""
    try:
        fields = as_object(loads(page))
    except (ValueError, RecursionError):
        return None
    ids, room = fields.get("tokens"), fields.get("max_model_len")
    if not isinstance(ids, list) or not all(type(each) is int for each in ids):
        return None
    return Tokenized(tuple(ids), room if isinstance(room, int) else 0)


def known_prompt(request: ClientRequest) -> Tokenized | None:
    """Return the prompt of a completion that came as ids and names its limit."""
    body = request.asked.body or {}
    prompt = body.get("prompt")
    if request.asked.route is not Route.COMPLETIONS or body.get("max_tokens") is None:
        return None
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], list):
        prompt = prompt[0]
    if not isinstance(prompt, list) or not all(type(each) is int for each in prompt):
        return None
    return Tokenized(tuple(prompt), 0)
