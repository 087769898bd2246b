"""Which rows of a batch are watched, and at which step each of them is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

PROBE_KEY = "probe_id"
LONGEST_PROBE_ID = 200


class StepName(NamedTuple):
    """One step of one answer."""

    probe_id: str
    step: int


@dataclass(eq=False)
class WatchedRequest:
    """One running request that carries a probe id."""

    probe_id: str
    output_ids: Sequence[int] | None
    """Live list of the tokens so far; None where the engine shows none and calls are counted."""
    calls: int = 0

    def take_step(self) -> int:
        """Return the index of the token that is sampled next; called once per engine step."""
        step = self.calls if self.output_ids is None else len(self.output_ids)
        self.calls += 1
        return step

    def token_at(self, step: int) -> int | None:
        """Return the token that a past step took; None where it is not known (yet)."""
        ids = self.output_ids
        # An engine that schedules ahead writes -1 where a token is still on its way.
        return ids[step] if ids is not None and step < len(ids) and ids[step] >= 0 else None


class DueRow(NamedTuple):
    """One row whose figures are to be taken now."""

    row: int
    slot: int
    """What the engine knows its request by; the row itself in the first interface."""
    name: StepName
    request: WatchedRequest


class WatchedBatch:
    """The watched requests by row (or slot), following the engine's moves."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._requests: dict[int, WatchedRequest] = {}

    def add(self, row: int, probe_id: str | None, output_ids: Sequence[int] | None) -> bool:
        """A new request took this row, whoever had it before; True when it is watched."""
        self._requests.pop(row, None)
        if probe_id is None:
            return False
        self._requests[row] = WatchedRequest(probe_id, output_ids)
        return True

    def remove(self, row: int) -> None:
        """The request in this row has ended."""
        self._requests.pop(row, None)

    def move(self, source: int, target: int, *, swap: bool) -> None:
        """The request in `source` now has row `target`; with `swap`, the other way too."""
        moved, other = self._requests.pop(source, None), self._requests.pop(target, None)
        if moved:
            self._requests[target] = moved
        if swap and other:
            self._requests[source] = other

    def holds(self, slot: int, request: WatchedRequest) -> bool:
        """Return True while this very request has that row or slot."""
        return self._requests.get(slot) is request

    def due_rows(self, slots: Iterable[int], steps: Sequence[int] | None = None) -> list[DueRow]:
        """Return the rows of this step that are to be measured; `slots` names each row's holder.

        Where the engine does not tell the `steps`, they are counted.
        """
        if not self._requests:
            return []
        found = []
        for row, slot in enumerate(slots):
            request = self._requests.get(slot)
            if request is None:
                continue
            step = request.take_step() if steps is None else steps[row]
            if step >= 0 and step % self._every == 0:
                found.append(DueRow(row, slot, StepName(request.probe_id, step), request))
        return found


def probe_id_of(extra_arguments: object) -> str | None:
    """Return the probe id among a request's `vllm_xargs`; None without a usable one."""
    if not isinstance(extra_arguments, dict):
        return None
    probe_id = extra_arguments.get(PROBE_KEY)
    if not isinstance(probe_id, str) or not 0 < len(probe_id) <= LONGEST_PROBE_ID:
        return None
    return probe_id
