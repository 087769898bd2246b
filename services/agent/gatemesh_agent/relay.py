"""Everything that is not guarded: passed on as it is, to an instance and back."""

import time
from dataclasses import dataclass, field

from aiohttp import hdrs

from gatemesh_agent.answers import no_instance, upstream_failed, upstream_silent
from gatemesh_agent.client import Client
from gatemesh_agent.errors import InstanceFailedError, InstanceSilentError, StreamBrokenError
from gatemesh_agent.metrics import STREAMS_BROKEN, UNGUARDED
from gatemesh_agent.reporting import Life, Origin, Reporter
from gatemesh_agent.routing import Router
from gatemesh_agent.under_way import under_way
from gatemesh_agent.upstream import Order, Reply, Upstream

REPEATABLE = ("GET", "HEAD", "OPTIONS")
INTERNAL_ERROR = 500


@dataclass(slots=True)
class Passage:
    """One request that passes unguarded."""

    origin: Origin
    order: Order
    client: Client
    unguarded: str | None
    """Why the text that it makes the engine write passes the gates; None when it makes none."""
    tried: list[str] = field(default_factory=list)


class Relay:
    """Passes requests on; asks elsewhere only where nothing can have happened twice."""

    def __init__(
        self, router: Router, upstream: Upstream, reporter: Reporter, pool: str, reroutes: int
    ) -> None:
        self._router = router
        self._upstream = upstream
        self._reporter = reporter
        self._pool = pool
        self._reroutes = reroutes

    async def serve(self, passage: Passage) -> None:
        """Answer a request by an instance in rotation, or say why none could.

        Raises:
            ClientGoneError: the client left before its answer ended.
        """
        failed: list[tuple[InstanceFailedError, Life]] = []
        while True:
            instance = self._router.pick(time.monotonic(), passage.tried)
            if instance is None:
                break
            life = Life.of(instance, self._router.view.version)
            passage.tried.append(instance.instance_id)
            try:
                with under_way(self._router, instance.instance_id):
                    await self._pass(passage, instance.base_url, life)
            except InstanceFailedError as failure:
                failed.append((failure, life))
                if not self._may_repeat(passage, failure):
                    break
            else:
                self._reject(passage, failed, life.instance_id)
                return
        self._reject(passage, failed, None)
        await self._refuse(passage, failed)

    def _may_repeat(self, passage: Passage, failure: InstanceFailedError) -> bool:
        if passage.client.begun or len(passage.tried) > self._reroutes:
            return False
        if failure.cause == "unreachable":
            self._router.shun(passage.tried[-1], time.monotonic())
            return True
        # A body that streams through cannot be sent twice.
        return passage.order.method in REPEATABLE and passage.order.body is None

    def _reject(
        self,
        passage: Passage,
        failed: list[tuple[InstanceFailedError, Life]],
        rerouted_to: str | None,
    ) -> None:
        for failure, life in failed:
            self._reporter.window(life).count_status(INTERNAL_ERROR)
            self._reporter.reject(failure, passage.origin, life, rerouted_to)

    async def _refuse(
        self, passage: Passage, failed: list[tuple[InstanceFailedError, Life]]
    ) -> None:
        if failed:
            failure, life = failed[-1]
            body = upstream_failed(life.instance_id, failure.what)
            await passage.client.fail(502, body, life.instance_id)
            return
        self._reporter.reject_all(passage.origin)
        await passage.client.fail(503, no_instance(self._pool), Retry_After="1")

    async def _pass(self, passage: Passage, base_url: str, life: Life) -> None:
        window = self._reporter.window(life)
        if passage.unguarded is not None:
            window.unguarded += 1
            UNGUARDED.labels(why=passage.unguarded).inc()
        try:
            async with self._upstream.ask(base_url, passage.order) as reply:
                window.count_status(reply.status)
                await self._begin(passage, reply, life)
                await self._copy(passage, reply)
        except InstanceSilentError as silence:
            window.count_status(INTERNAL_ERROR)
            body = upstream_silent(life.instance_id, silence.waited_s)
            await passage.client.fail(504, body, life.instance_id)

    async def _begin(self, passage: Passage, reply: Reply, life: Life) -> None:
        length = reply.response.headers.get(hdrs.CONTENT_LENGTH)
        await passage.client.begin(
            reply.status,
            reply.response.reason,
            reply.response.headers,
            life.instance_id,
            int(length) if length else None,
        )

    async def _copy(self, passage: Passage, reply: Reply) -> None:
        client = passage.client
        try:
            while data := await reply.more():
                await client.write(data)
        except StreamBrokenError:
            # Its status is sent: a torn answer must look torn.
            STREAMS_BROKEN.inc()
            client.abort()
            return
        await client.end()
