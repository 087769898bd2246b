"""What the recent verdicts say: the densest window of failures, counted by distinct prompts."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple

from gatemesh_common.messages import Verdict


class Failure(NamedTuple):
    """One soft failure on the present life, as far as counting needs it; sorts by its moment."""

    at: datetime
    prompt: str
    fresh: bool = False
    """True when it arrived with the batch at hand."""
    tenant: str = ""
    """Empty where it does not matter whose prompt it was."""


@dataclass(frozen=True)
class Facts:
    """The densest window of failures that contains a fresh one."""

    failures: int = 0
    """Counted failures: each prompt at most as often as the policy says."""
    prompts: int = 0
    tenants: int = 1
    own: tuple[tuple[str, "Facts"], ...] = ()
    """The same for each own condition that the verdict at hand may break, by name."""
    copied_at: datetime | None = None
    """When the prompt of the verdict at hand last failed at the same gate before, if it did."""

    def copied(self, at: datetime | None) -> "Facts":
        """Return the same with another moment of the copy."""
        return Facts(self.failures, self.prompts, self.tenants, self.own, at)


NO_FACTS = Facts()


def prompt_key(verdict: Verdict) -> str:
    """Return what makes two failures the same prompt: the fingerprint, else the request."""
    return verdict.prompt_fingerprint or f"request:{verdict.request_id}"


def evidence_time(verdict: Verdict, now: datetime) -> datetime:
    """Return when the failure happened; a clock that runs ahead cannot push it into the future."""
    return min(verdict.timestamp, now)


CopyKey = tuple[str, str, str, bool]
"""Instance, prompt, gate, and whether it was proof: failures that are copies of each other."""


def copy_key(verdict: Verdict) -> CopyKey:
    """Return what makes two failures copies of each other."""
    return (verdict.instance_id, prompt_key(verdict), verdict.check_level, verdict.hard)


class Copies:
    """When each prompt last failed on the present life, while a batch is gone through."""

    def __init__(self, latest: Mapping[CopyKey, datetime] = MappingProxyType({})) -> None:
        self._latest = dict(latest)

    def note(self, verdict: Verdict, now: datetime) -> datetime | None:
        """Take in a failure; return when its prompt last failed before."""
        key, at = copy_key(verdict), evidence_time(verdict, now)
        before = self._latest.get(key)
        self._latest[key] = at if before is None else max(at, before)
        return before


class _Window:
    """A sliding window that knows how many failures count and how many prompts they are of."""

    def __init__(self, max_per_prompt: int) -> None:
        self._max_per_prompt = max_per_prompt
        self._copies: Counter[tuple[str, str]] = Counter()
        self._prompts: Counter[str] = Counter()
        self._tenants: Counter[str] = Counter()
        self.counted = 0
        self.fresh = 0

    def enter(self, failure: Failure) -> None:
        """Let a failure in at the right."""
        copies = (failure.prompt, failure.tenant)
        self._copies[copies] += 1
        self._prompts[failure.prompt] += 1
        self._tenants[failure.tenant] += 1
        self.counted += self._copies[copies] <= self._max_per_prompt
        self.fresh += failure.fresh

    def leave(self, failure: Failure) -> None:
        """Let a failure out at the left."""
        copies = (failure.prompt, failure.tenant)
        self.counted -= self._copies[copies] <= self._max_per_prompt
        _take_one(self._copies, copies)
        _take_one(self._prompts, failure.prompt)
        _take_one(self._tenants, failure.tenant)
        self.fresh -= failure.fresh

    def facts(self) -> Facts:
        """Return the counts."""
        return Facts(self.counted, len(self._prompts), len(self._tenants))


def _take_one(counter: Counter[Any], key: object) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]


def densest_window(
    failures: Iterable[Failure],
    window_s: float,
    max_per_prompt: int,
    min_prompts: int,
    min_tenants: int = 1,
) -> Facts:
    """Return the densest span of `window_s` seconds, ends included, that holds a fresh failure.

    A span with too few prompts or tenants stands behind every span with enough of them.
    """
    ordered = sorted(failures)
    span = timedelta(seconds=window_s)
    window = _Window(max_per_prompt)

    def by_weight(facts: Facts) -> tuple[bool, int]:
        return facts.prompts >= min_prompts and facts.tenants >= min_tenants, facts.failures

    best, first = NO_FACTS, 0
    for failure in ordered:
        window.enter(failure)
        while failure.at - ordered[first].at > span:
            window.leave(ordered[first])
            first += 1
        if window.fresh:
            best = max(best, window.facts(), key=by_weight)
    return best
