"""From steps to what is sent: length limit, stop strings, finish reasons. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gatemesh_engine_sim.steps import Step, Steps


@dataclass(frozen=True, slots=True)
class Emission:
    """What one step sends to the client."""

    step: Step
    text: str
    finish_reason: str | None = None
    stop_reason: str | None = None


def emissions(steps: Steps, max_tokens: int, stops: Sequence[str]) -> list[Emission]:
    """One emission per step; the last one carries the finish reason."""
    limited = steps[:max_tokens]
    if stops:
        return list(_until_stop(limited, stops))
    sent = [Emission(step, step.text) for step in limited[:-1]]
    last = limited[-1]
    return [*sent, Emission(last, last.text, _finish(last))]


def _finish(last: Step) -> str:
    return "stop" if last.ends else "length"


def _until_stop(steps: Steps, stops: Sequence[str]) -> Iterator[Emission]:
    # As vLLM does, so much text is held back as could still become part of a stop string.
    held_length = max(map(len, stops)) - 1
    text, sent = "", 0
    for step in steps[:-1]:
        text += step.text
        found = first_stop(text, stops)
        if found:
            yield Emission(step, text[sent : found[0]], "stop", found[1])
            return
        free = max(sent, len(text) - held_length)
        yield Emission(step, text[sent:free])
        sent = free
    yield _last_of(steps[-1], text + steps[-1].text, sent, stops)


def _last_of(step: Step, text: str, sent: int, stops: Sequence[str]) -> Emission:
    found = first_stop(text, stops)
    if found:
        return Emission(step, text[sent : found[0]], "stop", found[1])
    return Emission(step, text[sent:], _finish(step))


def first_stop(text: str, stops: Sequence[str]) -> tuple[int, str] | None:
    """Where the earliest stop string begins, and which it is."""
    places = [(text.find(stop), stop) for stop in stops if stop and stop in text]
    return min(places, default=None)
