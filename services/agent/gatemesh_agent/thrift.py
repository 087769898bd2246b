"""How many log probabilities are asked for clients' requests: all, or fewer by choice. Pure."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from random import Random

from gatemesh_agent.reporting import Life
from gatemesh_agent.requests import Asked
from gatemesh_agent.wishes import Wish, Wishes
from gatemesh_common.messages import Attribution, Verdict

MOST_FLAGGED = 10_000


@dataclass(frozen=True, slots=True)
class ThriftTerms:
    """What may be left out."""

    share: float = 1.0
    """Of the requests for which log probabilities are asked."""
    busy_count: int | None = None
    """How many are asked per token while the agent is busy; None: as many as ever."""
    busy_share: float = 0.8
    """Share of a core beyond which the agent is busy."""
    flagged_s: float = 60.0
    """Time after a failure for which all requests at its instance are asked for them."""


class Busyness:
    """Whether this process has little left of its core, looked at once a second."""

    LOOK_EVERY_S = 1.0
    CALM = 0.75
    """Share of the limit below which it is calm again."""

    def __init__(
        self, limit: float, clock_s: Callable[[], float], spent_s: Callable[[], float]
    ) -> None:
        self._limit = limit
        self._clock_s = clock_s
        self._spent_s = spent_s
        self._looked_s = clock_s()
        self._spent_then_s = spent_s()
        self._busy = False

    def __call__(self) -> bool:
        """Return True while it is busy."""
        now_s = self._clock_s()
        passed_s = now_s - self._looked_s
        if passed_s >= self.LOOK_EVERY_S:
            spent_s = self._spent_s()
            share = (spent_s - self._spent_then_s) / passed_s
            self._busy = share > self._limit * (self.CALM if self._busy else 1.0)
            self._looked_s, self._spent_then_s = now_s, spent_s
        return self._busy


class Thrift:
    """Decides for each request; an instance under suspicion is never spared."""

    def __init__(
        self,
        terms: ThriftTerms,
        *,
        rng: Random,
        is_busy: Callable[[], bool],
        is_suspect: Callable[[str], bool],
        clock_s: Callable[[], float],
    ) -> None:
        self._terms = terms
        self._rng = rng
        self._is_busy = is_busy
        self._is_suspect = is_suspect
        self._clock_s = clock_s
        self._flagged: dict[str, float] = {}

    def heed(self, verdict: Verdict) -> None:
        """Ask all requests at an instance that a gate holds something against."""
        if verdict.attribution is Attribution.REQUEST:
            return
        if len(self._flagged) >= MOST_FLAGGED:
            self._flagged.clear()
        self._flagged[verdict.instance_id] = self._clock_s()

    def lessened(self, wish: Wish, life: Life) -> Wish:
        """Return what is left of a wish for one request; an id for the plugin always is."""
        terms = self._terms
        if not wish.count or self._is_doubted(life.instance_id):
            return wish
        if terms.share < 1.0 and self._rng.random() >= terms.share:
            return replace(wish, count=0, by_id=False)
        if terms.busy_count is not None and terms.busy_count < wish.count and self._is_busy():
            return replace(wish, count=terms.busy_count)
        return wish

    def _is_doubted(self, instance_id: str) -> bool:
        flagged_s = self._flagged.get(instance_id)
        lately = flagged_s is not None and self._clock_s() - flagged_s <= self._terms.flagged_s
        return lately or self._is_suspect(instance_id)


class ClientWishes(Wishes):
    """What is added to clients' requests: what engines take, and no more than thrift allows."""

    def __init__(self, wishes: Wishes, thrift: Thrift) -> None:
        self._wishes = wishes
        self._thrift = thrift

    def of(self, asked: Asked, life: Hashable) -> Wish:
        """Return what is added to a request for one life of an instance."""
        wish = self._wishes.of(asked, life)
        return self._thrift.lessened(wish, life) if isinstance(life, Life) else wish

    def lessened(self, wish: Wish, life: Hashable, error: bytes) -> Wish | None:
        """Return what to ask for instead of what an engine refused; None when it minds else."""
        return self._wishes.lessened(wish, life, error)
