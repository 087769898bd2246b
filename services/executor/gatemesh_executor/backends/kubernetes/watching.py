"""Following the objects of one kind: a list, then every change, through cuts and expiries."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from gatemesh_common.errors import GatemeshError, SettingsError
from gatemesh_executor.backends.base import BackendUnavailableError
from gatemesh_executor.backends.kubernetes.api import ExpiredError, KubeApi, Object, Resource
from gatemesh_executor.metrics import BACKEND_FAULTS
from gatemesh_executor.pace import Pace

log = logging.getLogger(__name__)

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 10.0
LEAST_LASTING_S = 1.0
"""A watch that ends sooner is begun again only after a pause."""
LASTING_S = 20
"""A watch is renewed so often: a connection that died silently is noticed soon after."""
NOT_LISTED = "Kubernetes has not been listed yet"

OnChange = Callable[[Object], None]


@dataclass
class News:
    """Wakes whoever waits for something to become true of what is followed."""

    _told: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self) -> None:
        """Let everybody look again."""
        told, self._told = self._told, asyncio.Event()
        told.set()

    async def until(self, holds: Callable[[], bool], deadline_s: float) -> bool:
        """Return True once it holds; False when the deadline passes first."""
        try:
            async with asyncio.timeout(deadline_s):
                while not holds():
                    await self._told.wait()
        except TimeoutError:
            return holds()
        return True


@dataclass
class Watched:
    """All objects of one kind with these labels, by name, as of now or as of the last contact."""

    api: KubeApi
    resource: Resource
    selector: str
    news: News
    on_change: OnChange = lambda _: None
    """Told about each object that is new, changed or gone, as it was last."""
    pace: Pace = field(default_factory=Pace)
    objects: dict[str, Object] = field(default_factory=dict)
    fault: GatemeshError | None = field(default_factory=lambda: BackendUnavailableError(NOT_LISTED))
    """Why the objects cannot be believed; None while they can."""
    _version: str = ""
    """Of the last change seen; empty makes the next try begin with a list."""
    _delay_s: float = FIRST_DELAY_S

    async def run(self) -> None:
        """Follow until cancelled.

        Raises:
            SettingsError: the login is wrong or the role lacks a verb.
        """
        while True:
            begun = self.pace.now()
            try:
                await self._go_on()
                if self.pace.now() - begun >= LEAST_LASTING_S:
                    continue
            except ExpiredError:
                self._version = ""
            except SettingsError as error:
                self._lose(error)
                raise
            except GatemeshError as error:
                self._lose(error)
            await self.pace.sleep(self._delay_s)
            self._delay_s = min(self._delay_s * 2, LONGEST_DELAY_S)

    async def _go_on(self) -> None:
        """List where that is due, then follow one watch to its end."""
        if not self._version:
            await self._list()
        watch = self.api.following(self.resource, self.selector, self._version, LASTING_S)
        async with watch as events:
            self._believe()
            async for event in events:
                self._take_in(event["type"], event["object"])
                self._delay_s = FIRST_DELAY_S

    async def _list(self) -> None:
        listing = await self.api.find(self.resource, self.selector)
        found = {item["metadata"]["name"]: item for item in listing.items}
        changed = [item for name, item in found.items() if self.objects.get(name) != item]
        gone = [item for name, item in self.objects.items() if name not in found]
        self.objects = found
        self._version = listing.version
        for item in (*gone, *changed):
            self.on_change(item)
        self.news.tell()

    def _take_in(self, kind: str, item: Object) -> None:
        self._version = item["metadata"]["resourceVersion"]
        if kind == "BOOKMARK":
            return
        name = item["metadata"]["name"]
        if kind == "DELETED":
            self.objects.pop(name, None)
        else:
            self.objects[name] = item
        self.on_change(item)
        self.news.tell()

    def _believe(self) -> None:
        if self.fault is not None:
            log.info("watch_established", extra={"resource": self.resource.plural})
            self.fault = None
            self.news.tell()

    def _lose(self, error: GatemeshError) -> None:
        BACKEND_FAULTS.inc()
        log.warning(
            "watch_lost", extra={"resource": self.resource.plural, "error": str(error)[:300]}
        )
        self.fault = error
        self.news.tell()
