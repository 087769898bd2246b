"""Whether a replay decided as the manager did."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from gatemesh_health_manager.history import History
from gatemesh_health_manager.replaying import Changed, Replay, Step, steps_of

SCORE_DIGITS = 6


@dataclass(frozen=True)
class Difference:
    """The first transition of an instance that is not as it is stored."""

    instance_id: str
    stored: Step | None
    replayed: Step | None


@dataclass(frozen=True)
class Comparison:
    """How a replay went that used the rules of then."""

    verdicts: int
    inputs: int
    transitions: int
    """Stored ones."""
    differences: Sequence[Difference]
    changed_outside: Sequence[Changed]
    """Instances that something else than a decision has changed: a planned start, or SQL."""


def repeat(history: History, since: datetime) -> Comparison:
    """Decide once more, with the rules of then, and compare what was decided from `since` on."""
    replay = Replay(history.policies)
    replay.begin(history.begin, history.earlier)
    steps: list[Step] = []
    verdicts = inputs = 0
    for given in history.inputs:
        decisions = replay.take(given.input, given.verdicts)
        verdicts += len(given.verdicts)
        inputs += 1
        steps.extend(steps_of(decisions, given.input.at))
    stored = [step for step in history.steps if step.at >= since]
    made = [step for step in steps if step.at >= since]
    outside = [replay.changed_outside[name] for name in sorted(replay.changed_outside)]
    return Comparison(verdicts, inputs, len(stored), differences(stored, made), outside)


def differences(stored: Iterable[Step], replayed: Iterable[Step]) -> list[Difference]:
    """Return the first difference of each instance that has one."""
    left, right = by_instance(stored), by_instance(replayed)
    found = []
    for name in sorted(left.keys() | right.keys()):
        first = first_difference(left.get(name, ()), right.get(name, ()))
        if first is not None:
            found.append(Difference(name, *first))
    return found


def by_instance(steps: Iterable[Step]) -> Mapping[str, list[Step]]:
    """Return the steps of each instance, scores rounded to what a database keeps for sure."""
    found: dict[str, list[Step]] = defaultdict(list)
    for step in steps:
        found[step.instance_id].append(replace(step, score=round(step.score, SCORE_DIGITS)))
    return found


def first_difference(
    stored: Sequence[Step], replayed: Sequence[Step]
) -> tuple[Step | None, Step | None] | None:
    """Return the first pair that is not alike; None when all are."""
    for at in range(max(len(stored), len(replayed))):
        left = stored[at] if at < len(stored) else None
        right = replayed[at] if at < len(replayed) else None
        if left != right:
            return left, right
    return None
