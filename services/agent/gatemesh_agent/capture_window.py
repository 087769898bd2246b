"""Which steps of an answer a capture shows, their figures, and which are at fault. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from gatemesh_agent.gates.entropy import measure
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.reading import Reading
from gatemesh_agent.recent import BEFORE, Window
from gatemesh_common.captures import MOST_CANDIDATES, MOST_STEPS, CaptureStep
from gatemesh_common.messages import Span

LEAST_NATS = -10_000.0
"""Below it stands no figure, but a clamp or minus infinity."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One step, or where the engine told none a piece of text, and its part of the answer."""

    n: int
    start: int
    end: int
    step: TokenStep | None


def shown_pieces(window: Window) -> list[Piece]:
    """Return the pieces that a capture shows: not more than may travel, the fault among them."""
    pieces = list(pieces_of(window))
    if len(pieces) <= MOST_STEPS:
        return pieces
    at_fault = (place for place, one in enumerate(pieces) if is_at_fault(one, window.verdict.span))
    onset = next(at_fault, len(pieces) - 1)
    begin = min(max(0, onset - BEFORE), len(pieces) - MOST_STEPS)
    return pieces[begin : begin + MOST_STEPS]


def pieces_of(window: Window) -> Iterator[Piece]:
    """Yield the steps of a window; of an answer without steps its pieces of text."""
    first, readings = window.first(), window.readings()
    n, place, start = first.steps, first.readings, first.chars
    has_steps = any(reading.steps for reading in readings)
    for reading in readings:
        end = start + len(reading.text)
        if has_steps:
            bounds = bounds_of(reading, start)
            for step, begin, until in zip(reading.steps, bounds, bounds[1:], strict=False):
                yield Piece(n, begin, until, step)
                n += 1
        elif reading.text:
            yield Piece(place, start, end, None)
            place += 1
        start = end


def bounds_of(reading: Reading, start: int) -> Sequence[int]:
    """Return where the text of each step begins, and the end of the last one.

    Steps have their own lengths where these make up the text, else equal parts of it.
    """
    count, size = len(reading.steps), len(reading.text)
    lengths = [len(step.text) for step in reading.steps]
    if sum(lengths) == size:
        return list(accumulate(lengths, initial=start))
    return [start + size * place // count for place in range(count + 1)] if count else [start]


def is_at_fault(piece: Piece, span: Span | None) -> bool:
    """Return True for a piece within the span at fault; tokens tell it better than characters."""
    if span is None:
        return False
    if span.token_start is not None:
        end = span.token_start + 1 if span.token_end is None else span.token_end
        return span.token_start <= piece.n < end
    if span.char_start is None:
        return False
    end = span.char_start + 1 if span.char_end is None else max(span.char_end, span.char_start + 1)
    return piece.start < end and piece.end > span.char_start


def step_of(piece: Piece, span: Span | None) -> CaptureStep:
    """Return the figures of a piece."""
    fault = is_at_fault(piece, span)
    if piece.step is None:
        return CaptureStep(n=piece.n, fault=fault)
    chosen, top = piece.step.chosen_logprob, sorted(figures_of(piece.step), reverse=True)
    return CaptureStep(
        n=piece.n,
        logprob=rounded(chosen) if is_figure(chosen) else None,
        entropy=entropy_of(piece.step),
        top=tuple(map(rounded, top[:MOST_CANDIDATES])),
        fault=fault,
    )


def figures_of(step: TokenStep) -> list[float]:
    """Return the candidates' log probabilities that are numbers."""
    return [value for value in step.top_logprobs if value is not None and is_figure(value)]


def entropy_of(step: TokenStep) -> float | None:
    """Return a lower bound of the entropy; None where the figures are no log probabilities."""
    if not is_figure(step.chosen_logprob) or not all(map(is_figure, step.top_logprobs)):
        return None
    found = measure(step, drawn=False).lower
    return rounded(found) if math.isfinite(found) else None


def is_figure(value: float | None) -> bool:
    """Return True for a number that a log probability can be."""
    return value is not None and LEAST_NATS < value <= 1.0


def rounded(value: float | None) -> float:
    """Return a figure as it travels."""
    return round(value or 0.0, 4)
