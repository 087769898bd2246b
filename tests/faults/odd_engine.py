"""An engine whose figures are odd: what stands before a simulated one and changes its logprobs."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

KINDS = ("missing", "lowest", "fewer", "alone")
"""No logprobs at all; -9999 for the unlikeliest; fewer candidates than asked; no candidates."""
LOWEST = -9999.0
FEW = 3
HOP_HEADERS = ("transfer-encoding", "content-length", "connection")


def made_odd(answer: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return an answer, or a chunk of one, with odd logprobs."""
    for choice in answer.get("choices", ()):
        figures = choice.get("logprobs")
        if not figures:
            continue
        if kind == "missing":
            choice["logprobs"] = None
            continue
        for step in figures.get("content") or ():
            step["top_logprobs"] = odd_candidates(step["top_logprobs"], kind)
    return answer


def odd_candidates(candidates: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the candidates of one step as an odd engine would tell them."""
    if kind == "lowest":
        *others, last = candidates
        return [*others, {**last, "logprob": LOWEST}]
    return candidates[:FEW] if kind == "fewer" else []


class OddEngine:
    """Forwards everything to an engine, and makes every answer odd in turn."""

    def __init__(self, base_url: str, session: aiohttp.ClientSession) -> None:
        self._base_url = base_url
        self._session = session
        self.answers = 0
        """Answers changed so far."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Forward one request."""
        body = await request.read()
        kind = KINDS[self.answers % len(KINDS)]
        async with self._session.request(
            request.method, self._base_url + request.path_qs, data=body, headers=plain(request)
        ) as found:
            response = web.StreamResponse(status=found.status, headers=plain(found))
            await response.prepare(request)
            async for line in found.content:
                await response.write(self._odd_line(line, kind))
            await response.write_eof()
        self.answers += request.path.endswith("/chat/completions")
        return response

    def _odd_line(self, line: bytes, kind: str) -> bytes:
        lead = b"data: " if line.startswith(b"data: ") else b""
        text = line.removeprefix(lead)
        if not text.startswith(b'{"') or b'"logprobs"' not in text:
            return line
        changed = json.dumps(made_odd(json.loads(text), kind), ensure_ascii=False).encode()
        return lead + changed + (b"\n" if line.endswith(b"\n") else b"")


def plain(message: web.Request | aiohttp.ClientResponse) -> CIMultiDict[str]:
    """Return the headers that are not about the connection itself."""
    kept = [(k, v) for k, v in message.headers.items() if k.lower() not in HOP_HEADERS]
    return CIMultiDict(kept)


@asynccontextmanager
async def before(base_url: str) -> AsyncIterator[tuple[OddEngine, str]]:
    """Stand before an engine; yields the odd one and its address."""
    async with aiohttp.ClientSession(read_bufsize=2**20, auto_decompress=False) as session:
        engine = OddEngine(base_url, session)
        application = web.Application(client_max_size=2**24)
        application.router.add_route("*", "/{path:.*}", engine.handle)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield engine, f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()
