"""Which rows of a batch a drill spoils: pure bookkeeping, no engine needed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from gatemesh_vllm_chaos.drill import Drill


@dataclass
class Victim:
    """One running request as the drills see it."""

    luck: float
    """Drawn once, in 0..1; the request is spoiled where it lies below the probability."""
    output_ids: Sequence[int] | None
    """Live list of the tokens so far; None where the engine shows none and calls are counted."""
    calls: int = 0

    def take_step(self, drill: Drill) -> bool:
        """True when this request's next token is to be spoiled; called once per engine step."""
        made = self.calls if self.output_ids is None else len(self.output_ids)
        self.calls += 1
        return self.luck < drill.probability and made >= drill.after_tokens


class Batch:
    """The requests of the running batch by row, following the engine's moves."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._rows: dict[int, Victim] = {}

    def add(self, row: int, output_ids: Sequence[int] | None) -> None:
        """A new request took this row, whoever had it before."""
        self._rows[row] = Victim(self._rng.random(), output_ids)

    def remove(self, row: int) -> None:
        """The request in this row has ended."""
        self._rows.pop(row, None)

    def move(self, source: int, target: int, *, swap: bool) -> None:
        """The request in `source` now has row `target`; with `swap`, the other way too."""
        moved, other = self._rows.pop(source, None), self._rows.pop(target, None)
        if moved:
            self._rows[target] = moved
        if swap and other:
            self._rows[source] = other

    def due_rows(self, drill: Drill, row_slots: Iterable[int]) -> list[int]:
        """Positions in `row_slots` whose request is to be spoiled in this step."""
        return [
            position
            for position, slot in enumerate(row_slots)
            if (victim := self._rows.get(slot)) and victim.take_step(drill)
        ]
