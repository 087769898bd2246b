"""Token progress of each instance: who waits for it, and since when nothing came. Pure."""

from dataclasses import dataclass, field

from gatemesh_agent.attribution import ClientRequest
from gatemesh_agent.reporting import Life

FORGET_S = 600.0
"""Time for which the waiting of those who gave up is remembered."""


@dataclass(eq=False, slots=True)
class Waiting:
    """One request that waits for an instance; times in monotonic seconds."""

    request: ClientRequest
    life: Life
    base_url: str
    since_s: float
    """When something came for it the last time; at first when it was sent."""
    has_token: bool = False
    held: bool = False
    """True while its client does not read: then nobody waits for the instance."""
    seen: int = 0
    """Progress of its answer that was noted."""

    def note(self, progress: int, now_s: float) -> bool:
        """Take in how far its answer is; True when that is further than before."""
        moved = progress != self.seen
        if moved:
            self.seen = progress
            self.has_token = True
            self.since_s = now_s
        return moved

    def hold(self) -> None:
        """The client is to take what there is first."""
        self.held = True

    def resume(self, now_s: float) -> None:
        """The client took it: from here on the instance is waited for."""
        self.held = False
        self.since_s = max(self.since_s, now_s)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long nothing may come, in seconds."""

    stall_s: float = 20.0
    stall_first_s: float = 60.0
    """Before the first token: queue and prefill take their time."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """An instance from which nothing came although requests wait for it."""

    longest: Waiting
    """The request that waits for the longest time."""
    quiet_s: float
    waiting: int
    overdue: bool
    """True when waiting for a first token alone does not explain it."""

    @property
    def life(self) -> Life:
        """The life that is quiet."""
        return self.longest.life


@dataclass(slots=True)
class Watched:
    """The requests at one life of an instance."""

    waits: set[Waiting] = field(default_factory=set)
    moved_s: float = 0.0
    """When anything came from it the last time."""
    waited_s: float = 0.0
    """Time since then in which somebody waited for it; those that gave up waited, too."""
    looked_s: float = 0.0
    left_s: float = 0.0
    """When the last request left."""

    def is_forgotten(self, now_s: float) -> bool:
        """Return True when nobody waits, and nothing is held against it or that is long ago."""
        return not self.waits and (not self.waited_s or now_s - self.left_s > FORGET_S)

    def unheld(self) -> list[Waiting]:
        """Return the requests that wait for the instance and not for their client."""
        return [each for each in self.waits if not each.held]

    def add_up(self, now_s: float) -> None:
        """Add the time since the last look in which somebody waited for nothing."""
        if self.moved_s >= self.looked_s:
            self.waited_s = 0.0
        waits = self.unheld()
        if waits:
            began_s = min(each.since_s for each in waits)
            self.waited_s += max(0.0, now_s - max(self.looked_s, self.moved_s, began_s))
        self.looked_s = now_s


class Watch:
    """Knows of every guarded request what came for it, and when."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._lives: dict[Life, Watched] = {}

    def begin(self, request: ClientRequest, life: Life, base_url: str, now_s: float) -> Waiting:
        """Take in a request that is sent to an instance."""
        wait = Waiting(request, life, base_url, now_s)
        watched = self._lives.get(life)
        if watched is None:
            watched = self._lives[life] = Watched(looked_s=now_s)
        watched.waits.add(wait)
        return wait

    def note(self, wait: Waiting, progress: int, now_s: float) -> None:
        """Take in how far an answer is."""
        if wait.note(progress, now_s):
            watched = self._lives.get(wait.life)
            if watched is not None:
                watched.moved_s = now_s

    def end(self, wait: Waiting, now_s: float) -> None:
        """Take in that nobody waits for this answer any more."""
        watched = self._lives.get(wait.life)
        if watched is not None:
            watched.waits.discard(wait)
            watched.left_s = now_s

    def moved_since(self, life: Life, then_s: float) -> bool:
        """Return True when something came from a life after a moment."""
        watched = self._lives.get(life)
        return watched is not None and watched.moved_s > then_s

    def quiet(self, now_s: float) -> list[Quiet]:
        """Return the lives from which nothing came for too long; to be asked every second."""
        for watched in self._lives.values():
            watched.add_up(now_s)
        self._lives = {
            life: watched
            for life, watched in self._lives.items()
            if not watched.is_forgotten(now_s)
        }
        found = (self._judge(watched, now_s) for watched in self._lives.values())
        return [each for each in found if each is not None]

    def _judge(self, watched: Watched, now_s: float) -> Quiet | None:
        patience, waits = self._patience, watched.unheld()
        if not waits or watched.waited_s < patience.stall_s:
            return None
        return Quiet(
            longest=min(waits, key=lambda each: each.since_s),
            quiet_s=watched.waited_s,
            waiting=len(waits),
            overdue=watched.waited_s >= patience.stall_first_s
            or any(each.has_token and now_s - each.since_s >= patience.stall_s for each in waits),
        )
