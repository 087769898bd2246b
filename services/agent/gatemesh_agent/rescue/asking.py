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
    named_model,
    tokenize_body,
    written,
)
from gatemesh_agent.rescue.kept import Kept
from gatemesh_agent.stripping import as_object, loads
from gatemesh_agent.upstream import Upstream

OK = 200
TOKENIZE = "/tokenize"
DETOKENIZE = "/detokenize"
CHANNEL = "<|channel|>"
"""How an answer in channels marks them."""
LARGEST_PAGE_BYTES = 64 * 2**20


class Asking:
    """Prepares the request for the rest of an answer at one instance."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def prepare(
        self, request: ClientRequest, kept: Kept, base_url: str, *, reasoned: bool = False
    ) -> Continuation:
        """Return what to ask the instance: by token ids where that is exact, else by text.

        Raises:
            ValueError: the prompt cannot be put together again.
        """
        asked, prompt = request.asked, prompt_ids(request)
        if prompt is not None and kept.ids is None:
            # A prompt of ids goes on by ids: the text is spelled as the engine would.
            kept = await self._counted(request, kept, base_url)
        if goes_by_ids(asked, kept):
            if reasoned and not await self._is_plain(request, kept, base_url):
                raise ValueError("its channels are not known")
            if prompt is None:
                prompt = await self._tokenize(request, tokenize_body(asked), base_url)
            if prompt is not None:
                return by_ids(asked, kept, prompt)
        said = kept.text.rstrip()
        if kept.ids is None or said != kept.text or (asked.body or {}).get("stop"):
            # What is told may be less than what was written.
            counted = await self._counted(request, replace(kept, text=said), base_url)
            kept = replace(kept, tokens=counted.tokens)
        return by_text(asked, kept)

    async def count(self, request: ClientRequest, text: str, base_url: str) -> int | None:
        """Return the tokens of a text as an engine spells it; None where it does not say."""
        spelled = await self._tokenize(request, count_body(request.asked, text), base_url)
        return None if spelled is None else len(spelled.ids)

    async def _counted(self, request: ClientRequest, kept: Kept, base_url: str) -> Kept:
        """Return it with its tokens, as the engine would spell its text."""
        body = count_body(request.asked, kept.text)
        spelled = await self._tokenize(request, body, base_url)
        return kept if spelled is None else replace(kept, ids=spelled.ids, tokens=len(spelled.ids))

    async def _is_plain(self, request: ClientRequest, kept: Kept, base_url: str) -> bool:
        """Return True where the answer's tokens end in its text and name no channel.

        An engine that writes in channels reads its prompt otherwise than `/tokenize` says.
        """
        body = written({**named_model(request.asked), "tokens": kept.ids})
        page = await self._post(request, DETOKENIZE, body, base_url)
        whole = text_in(page)
        return CHANNEL not in whole and whole.rstrip().endswith(kept.text.rstrip())

    async def _tokenize(
        self, request: ClientRequest, body: bytes, base_url: str
    ) -> Tokenized | None:
        """Return the engine's reading; None where it has none for us."""
        page = await self._post(request, TOKENIZE, body, base_url)
        return None if page is None else read_tokens(page)

    async def _post(
        self, request: ClientRequest, path: str, body: bytes, base_url: str
    ) -> bytes | None:
        """Return what the engine says; None for a refusal."""
        order = replace(request.order, method="POST", path=path, body=body)
        try:
            async with self._upstream.ask(base_url, order) as reply:
                page, complete = await reply.whole(await reply.first(), LARGEST_PAGE_BYTES)
                status = reply.status
        except (InstanceFailedError, InstanceSilentError, StreamBrokenError):
            return None
        return page if status == OK and complete else None


def text_in(page: bytes | None) -> str:
    """Return the text in an answer of `/detokenize`; none for anything else."""
    try:
        text = as_object(loads(page or b"")).get("prompt")
    except (ValueError, RecursionError):
        return CHANNEL
    return text if isinstance(text, str) else CHANNEL


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


def prompt_ids(request: ClientRequest) -> Tokenized | None:
    """Return the prompt of a completion that came as ids."""
    prompt = (request.asked.body or {}).get("prompt")
    if request.asked.route is not Route.COMPLETIONS:
        return None
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], list):
        prompt = prompt[0]
    if not isinstance(prompt, list) or not all(type(each) is int for each in prompt):
        return None
    return Tokenized(tuple(prompt), 0)
