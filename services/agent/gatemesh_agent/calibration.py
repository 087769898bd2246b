"""Which prompts a model can answer when it is healthy, shown by its own instances. Pure.

Right answers only ever add: a damaged instance cannot talk a prompt into being dropped that a
healthy one answers, and what one instance alone could not answer comes back once another can.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from gatemesh_agent.suite import Answer, Suite, Way

RUNS_ALONE = 3
RUNS_TOGETHER = 1
LEAST_VOTERS = 2
MOST_VOTERS = 32
"""Later instances are judged and no longer asked what others could not answer."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the instances of one model version have shown."""

    voters: tuple[str, ...] = ()
    """Lives that took part, `instance/incarnation`."""
    runs: int = 0
    right: frozenset[str] = frozenset()
    """Prompts that one of them answered rightly."""

    def dropped(self, suite: Suite) -> list[str]:
        """Return the prompts that nobody answered."""
        return sorted(prompt.id for prompt in suite.prompts if prompt.id not in self.right)

    @property
    def is_shown(self) -> bool:
        """True when several lives took part, or one did so repeatedly."""
        return len(self.voters) >= LEAST_VOTERS or self.runs >= RUNS_ALONE

    def is_enough(self, suite: Suite) -> bool:
        """Return True when so many prompts are left that a suite says something."""
        return len(self.right) >= min(suite.least_prompts, len(suite.prompts))

    def needs(self, voter: str) -> bool:
        """Return True while a life has not taken part yet."""
        return voter not in self.voters and len(self.voters) < MOST_VOTERS


def add_run(book: Calibration, voter: str, answers: Collection[Answer]) -> Calibration:
    """Take in one run; one with a fault, or that the engine had no room for, shows nothing."""
    plain = [answer for answer in answers if answer.way is Way.PLAIN]
    if not plain or any(answer.fault or answer.busy for answer in answers):
        return book
    right = {answer.prompt_id for answer in plain if answer.matched}
    voters = book.voters if voter in book.voters else (*book.voters, voter)
    return replace(book, voters=voters, runs=book.runs + 1, right=book.right | right)
