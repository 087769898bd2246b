"""What a replay found, for people and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from gatemesh_health_manager.comparing import Comparison
from gatemesh_health_manager.replaying import Step
from gatemesh_health_manager.usual import Episode, Ledger, median_isolated_s
from gatemesh_health_manager.what_if import Outcomes

SAME_WITHIN = timedelta(minutes=10)
"""Incidents of one instance that open so near to each other are the same trouble."""


class Pair(NamedTuple):
    """One trouble as it went, and as it would have gone; None where there was no incident."""

    stored: Episode | None
    other: Episode | None


def pairs(stored: Sequence[Episode], other: Sequence[Episode]) -> list[Pair]:
    """Return incidents side by side, those of one instance by the nearest time, in order."""
    left = list(other)
    found = []
    for one in stored:
        near = [each for each in left if is_same(one, each)]
        best = min(near, key=lambda each: abs(each.opened_at - one.opened_at), default=None)
        if best is not None:
            left.remove(best)
        found.append(Pair(one, best))
    found.extend(Pair(None, each) for each in left)
    return sorted(found, key=_opened_at)


def is_same(one: Episode, other: Episode) -> bool:
    """True for incidents of one instance that opened near to each other."""
    near = abs(one.opened_at - other.opened_at) <= SAME_WITHIN
    return one.instance_id == other.instance_id and near


def _opened_at(pair: Pair) -> datetime:
    return min(one.opened_at for one in pair if one is not None)


def played_fields(outcomes: Outcomes, since: datetime, until: datetime) -> dict[str, Any]:
    """Return what other rules change, as JSON has it."""
    stored, other = outcomes.stored.episodes(since), outcomes.other.episodes(since)
    return {
        "from": since.isoformat(),
        "to": until.isoformat(),
        "incidents": [
            {
                "stored": None if pair.stored is None else _fields(pair.stored),
                "other": None if pair.other is None else _fields(pair.other),
            }
            for pair in pairs(stored, other)
        ],
        "stored": _sums(outcomes.stored, stored, until),
        "other": _sums(outcomes.other, other, until),
    }


def _fields(one: Episode) -> dict[str, Any]:
    return {**asdict(one), "opened_at": one.opened_at.isoformat()}


def _sums(ledger: Ledger, episodes: Sequence[Episode], until: datetime) -> dict[str, Any]:
    return {
        "incidents": len(episodes),
        "out_of_rotation_s": round(ledger.out_s(until), 3),
        "median_isolated_s": median_isolated_s(episodes),
    }


def show_played(console: Console, outcomes: Outcomes, since: datetime, until: datetime) -> None:
    """Print what other rules change."""
    stored, other = outcomes.stored.episodes(since), outcomes.other.episodes(since)
    found = pairs(stored, other)
    table = Table("instance", "opened (UTC)", "as it went", "with other rules", box=None)
    for pair in found:
        one = pair.stored or pair.other
        if one is not None:
            opened = one.opened_at.isoformat(sep=" ", timespec="seconds")
            table.add_row(one.instance_id, opened, _word(pair.stored), _word(pair.other))
    if found:
        console.print(table)
    sums = Table("", "as it went", "with other rules", box=None)
    left, right = (
        _sums(ledger, episodes, until)
        for ledger, episodes in ((outcomes.stored, stored), (outcomes.other, other))
    )
    for name, title in (
        ("incidents", "incidents of conditions A to D"),
        ("out_of_rotation_s", "instance seconds out of rotation"),
        ("median_isolated_s", "median seconds from the first sign to out"),
    ):
        sums.add_row(title, _number(left[name]), _number(right[name]))
    console.print(sums)


def _word(one: Episode | None) -> str:
    if one is None:
        return "no incident"
    isolated = "" if one.isolated_s is None else f", out after {one.isolated_s:.1f} s"
    return f"{one.condition} {one.status}{isolated}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def compared_fields(comparison: Comparison) -> dict[str, Any]:
    """Return whether all was decided alike, as JSON has it."""
    return {
        "verdicts": comparison.verdicts,
        "inputs": comparison.inputs,
        "transitions": comparison.transitions,
        "identical": not comparison.differences,
        "differences": [
            {
                "instance_id": each.instance_id,
                "stored": _step(each.stored),
                "replayed": _step(each.replayed),
            }
            for each in comparison.differences
        ],
        "changed_outside": [each.instance_id for each in comparison.changed_outside],
        "changed_fields": {
            each.instance_id: {"at": each.at.isoformat(), "fields": list(each.fields)}
            for each in comparison.changed_outside
        },
    }


def _step(step: Step | None) -> dict[str, Any] | None:
    return None if step is None else {**asdict(step), "at": step.at.isoformat()}


def show_compared(console: Console, comparison: Comparison) -> None:
    """Print whether all was decided alike, and where not."""
    console.print(
        f"replayed {comparison.verdicts} verdicts in {comparison.inputs} inputs; "
        f"{comparison.transitions} transitions are stored"
    )
    for changed in comparison.changed_outside:
        console.print(
            f"note: {changed.instance_id} was changed by something else than a decision "
            f"(a planned start, SQL); seen at {_moment(changed.at)}: {', '.join(changed.fields)}"
        )
    if not comparison.transitions:
        console.print("nothing was decided in that time; try an earlier --from", style="yellow")
    elif not comparison.differences:
        console.print("every decision is the stored one", style="green")
    for each in comparison.differences:
        console.print(f"{each.instance_id}: the first decision that differs", style="red")
        console.print(f"  stored:   {_said(each.stored)}", markup=False)
        console.print(f"  replayed: {_said(each.replayed)}", markup=False)


def _said(step: Step | None) -> str:
    if step is None:
        return "nothing"
    return (
        f"{_moment(step.at)} {step.before} -> {step.after} ({step.trigger}), score {step.score:g}"
    )


def _moment(at: datetime) -> str:
    return at.isoformat(sep=" ", timespec="milliseconds")
