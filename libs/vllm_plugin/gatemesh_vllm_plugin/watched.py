"""Which rows of a batch are watched, and at which step each of them is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PROBE_KEY = "probe_id"
LONGEST_PROBE_ID = 200


@dataclass
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


@dataclass(frozen=True)
class DueRow:
    """One row whose figures are to be taken now."""

    row: int
    probe_id: str
    step: int


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

    def due_rows(self, slots: Iterable[int]) -> list[DueRow]:
        """Return the rows of this step that are to be measured; `slots` names each row's holder."""
        if not self._requests:
            return []
        return [
            DueRow(row, request.probe_id, step)
            for row, slot in enumerate(slots)
            if (request := self._requests.get(slot))
            and (step := request.take_step()) % self._every == 0
        ]


def probe_id_of(extra_arguments: object) -> str | None:
    """Return the probe id among a request's `vllm_xargs`; None without a usable one."""
    if not isinstance(extra_arguments, dict):
        return None
    probe_id = extra_arguments.get(PROBE_KEY)
    if not isinstance(probe_id, str) or not 0 < len(probe_id) <= LONGEST_PROBE_ID:
        return None
    return probe_id
