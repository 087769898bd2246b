"""How many answers may be continued in a minute, in all and for one tenant. Pure."""

from collections import Counter, deque

from gatemesh_agent.rescue.refusals import Refusal

MINUTE_S = 60.0


class RescueBudget:
    """A brake on storms: a pool that fails as a whole is not asked everything twice."""

    def __init__(self, per_minute: int, tenant_share: float) -> None:
        self._per_minute = per_minute
        self._for_one = max(1, int(per_minute * tenant_share))
        self._taken: deque[tuple[float, str | None]] = deque()
        self._by_tenant: Counter[str | None] = Counter()

    def take(self, tenant: str | None, now_s: float) -> Refusal | None:
        """Count one; return why there is no room for it.

        Those without a name share what is there: nobody could tell one of them from another.
        """
        self._forget(now_s)
        if len(self._taken) >= self._per_minute:
            return Refusal.BUDGET
        if tenant is not None and self._by_tenant[tenant] >= self._for_one:
            return Refusal.TENANT_BUDGET
        self._taken.append((now_s, tenant))
        self._by_tenant[tenant] += 1
        return None

    def _forget(self, now_s: float) -> None:
        while self._taken and now_s - self._taken[0][0] >= MINUTE_S:
            _, tenant = self._taken.popleft()
            self._by_tenant[tenant] -= 1
            if not self._by_tenant[tenant]:
                del self._by_tenant[tenant]
