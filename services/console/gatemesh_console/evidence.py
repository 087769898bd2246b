"""Captures as the incident page shows them: tokens with colours, two answers side by side."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gatemesh_console.paging import Row

HEATS = 10
"""Colours: one for each nat of entropy, the last for all above."""
MOST_TOKENS = 512


@dataclass(frozen=True)
class Token:
    """One step of an answer."""

    n: int
    text: str | None
    """None where the text was not kept."""
    entropy: float | None
    """Nats, a lower bound."""
    probability: float | None
    """Of the chosen token."""
    is_fault: bool

    @property
    def heat(self) -> str:
        """The colour's number; `unknown` without an entropy."""
        if self.entropy is None:
            return "unknown"
        return str(min(HEATS - 1, max(0, int(self.entropy))))


@dataclass(frozen=True)
class Shown:
    """One capture: its row, its tokens and its texts."""

    row: Row
    tokens: tuple[Token, ...]
    texts: Row


def show(figures: Sequence[Row], texts: Sequence[Row]) -> list[Shown]:
    """Join figures with their texts; a capture whose text may not be read has none."""
    by_id = {row.get("capture_id"): row for row in texts}
    return [_shown(row, by_id.get(row.get("capture_id"), {})) for row in figures]


def _shown(row: Row, texts: Row) -> Shown:
    steps = _items(row.get("steps"))[:MOST_TOKENS]
    words = _items(texts.get("tokens"))
    tokens = [
        _token(place, step, words) for place, step in enumerate(steps) if isinstance(step, Mapping)
    ]
    return Shown(row, tuple(tokens), texts)


def _token(place: int, step: Mapping[str, Any], words: Sequence[Any]) -> Token:
    number = _figure(step.get("n"))
    logprob = _figure(step.get("logprob"))
    return Token(
        n=place if number is None else int(number),
        text=str(words[place]) if place < len(words) else None,
        entropy=_figure(step.get("entropy")),
        probability=None if logprob is None else math.exp(min(logprob, 0.0)),
        is_fault=step.get("fault") is True,
    )


def _items(found: object) -> Sequence[Any]:
    return found if isinstance(found, list) else []


def _figure(found: object) -> float | None:
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not math.isfinite(found):
        return None
    return float(found)
