"""Failures in a row: a bounded summary of verdicts that is the same in any order of arrival."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from gatemesh_health_manager.policy_section import LONGEST_STREAK


@dataclass(frozen=True)
class Streak:
    """The failures after the latest pass, by the verdicts' own moments.

    Of each prompt the latest few are kept, and of prompts those that failed last: as many as any
    rule may ask for, so that the counts are exact up to there.
    """

    passed_at: datetime | None = None
    failures: tuple[tuple[datetime, str], ...] = ()

    @property
    def length(self) -> int:
        """Return how many failures there are, exact up to the longest streak of a rule."""
        return len(self.failures)

    @property
    def prompts(self) -> int:
        """Return of how many prompts they are."""
        return len({prompt for _, prompt in self.failures})

    def is_open_at(self, at: datetime) -> bool:
        """True when a failure at that moment belongs to the streak: no later pass is known."""
        return self.passed_at is None or at > self.passed_at

    def failed(self, at: datetime, prompt: str) -> "Streak":
        """Return the streak with one more failure; one before a known pass changes nothing."""
        if not self.is_open_at(at):
            return self
        return replace(self, failures=_bounded((*self.failures, (at, prompt))))

    def passed(self, at: datetime) -> "Streak":
        """Return the streak after a pass: failures up to that moment are no part of it."""
        if not self.is_open_at(at):
            return self
        return Streak(at, tuple(each for each in self.failures if each[0] > at))


EMPTY = Streak()


@dataclass(frozen=True)
class Streaks:
    """The streaks of one life."""

    c: Streak = EMPTY
    d: Streak = EMPTY
    own: tuple[tuple[str, Streak], ...] = ()
    """Of own conditions, by name; one that is not there is empty."""

    def of(self, name: str) -> Streak:
        """Return the streak of an own condition."""
        return dict(self.own).get(name, EMPTY)


NO_STREAKS = Streaks()


def _bounded(failures: Iterable[tuple[datetime, str]]) -> tuple[tuple[datetime, str], ...]:
    moments: dict[str, list[datetime]] = defaultdict(list)
    for at, prompt in sorted(failures, reverse=True):
        if prompt in moments or len(moments) < LONGEST_STREAK:
            moments[prompt].append(at)
    kept = ((at, prompt) for prompt, found in moments.items() for at in found[:LONGEST_STREAK])
    return tuple(sorted(kept))
