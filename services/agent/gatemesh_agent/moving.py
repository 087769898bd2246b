"""Requests that an engine fails by an error of its own: asked elsewhere, within the terms."""

import math
import time
from dataclasses import dataclass

from gatemesh_agent.cases import Case, EngineError, MoveCause
from gatemesh_agent.engine_errors import INTERNAL_ERROR, NO_ROOM, engine_died, may_pass
from gatemesh_agent.metrics import MOVED
from gatemesh_agent.rescue.budget import RescueBudget
from gatemesh_agent.routing import Router
from gatemesh_common.errors import GatemeshError


class EngineFailedError(GatemeshError):
    """The engine failed the request by an error of its own: another may answer."""

    retryable = True

    def __init__(self, error: EngineError) -> None:
        super().__init__(error.cause)
        self.error = error


def cause_of(status: int, body: bytes) -> MoveCause | None:
    """Return why a request that got this error may be answered elsewhere; None: nowhere.

    An engine that died under it is no mere error: what comes of that is counted apart.
    """
    if not may_pass(status) or engine_died(INTERNAL_ERROR, body):
        return None
    return "busy" if status in NO_ROOM else "error"


@dataclass(frozen=True, slots=True)
class MovingTerms:
    """How far such requests may go."""

    moves: int = 2
    """Of one request."""
    total_s: float = math.inf
    """Longest time for one answer, whoever gives it."""


class Moving:
    """Lets requests go to another instance while there is one, time, and room in the budget."""

    def __init__(self, router: Router, budget: RescueBudget, terms: MovingTerms) -> None:
        self._router = router
        self._budget = budget
        self._terms = terms

    def allows(self, case: Case, cause: MoveCause) -> bool:
        """Return True where somebody else may be asked, and count that against the budget."""
        allowed = self._may(case, cause)
        if not allowed and cause == "stalled":
            # It waits on, and asks again.
            return False
        MOVED.labels(cause=cause, outcome="moved" if allowed else "passed").inc()
        return allowed

    def _may(self, case: Case, cause: MoveCause) -> bool:
        now_s = time.monotonic()
        if len(case.tried) > self._terms.moves or now_s - case.begun_s >= self._terms.total_s:
            return False
        other = self._router.relief(now_s, case.tried)
        if other is None:
            return False
        if cause == "busy" and self._router.is_shunned(other.instance_id, now_s):
            # That one has just said the same: a pool without room is not asked round.
            return False
        return self._budget.take(case.request.origin.tenant, now_s) is None
