"""A capture as a person reads it: tokens by how sure the engine was, the fault marked."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from gatemesh_ctl.cli_capture import CAPTURE_COLUMNS
from gatemesh_ctl.output import printable, table_of
from gatemesh_ctl.store import Row

STYLES = ((0.5, "green"), (2.0, "yellow"), (4.0, "dark_orange"))
"""By the entropy up to which each is used, nats."""
WIDE, UNKNOWN = "red", "bright_black"
FAULT = "bold reverse"
OPEN, CLOSE = "\u27e6", "\u27e7"
"""Around the span at fault, for those who see no colours."""
BARS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
NATS_PER_BAR = 1.0
NO_FIGURE = "\u00b7"
AROUND = 8
"""Steps before and after the fault whose figures are shown."""
MOST_ROWS = 40

LEGEND = "entropy, nats: "
STEP_COLUMNS = ("n", "token", "logprob", "entropy", "top", "fault")
TEXTS = ("prompt", "answer", "second_answer")


def shown(capture: Row, texts: Row | None, note: str = "") -> RenderableType:
    """Return a whole capture; without its texts the figures speak."""
    parts: list[RenderableType] = [table_of([capture], CAPTURE_COLUMNS), facts_of(capture)]
    if capture["steps"]:
        parts += [legend(), window_of(capture["steps"], texts)]
        parts.append(table_of(step_rows(capture, texts), STEP_COLUMNS))
    parts += [Text(f"{name}: {printable(texts[name])}") for name in TEXTS if texts and texts[name]]
    if note or capture["text_withheld"]:
        parts.append(Text(note or f"text withheld: {capture['text_withheld']}", style="yellow"))
    return Group(*parts)


def facts_of(capture: Row) -> Text:
    """Return in a few lines what else is known."""
    known = {
        "engine": " ".join(filter(None, (capture["model"], capture["engine_version"]))),
        "labels": pairs(capture["labels"]),
        "sampling": pairs(capture["sampling"]),
        "gates": "; ".join(f"{gate} {pairs(one)}" for gate, one in capture["gates"].items()),
        "text": f"{capture['text_policy']}, redacted: {pairs(capture['redactions']) or 'nothing'}",
        "second": capture["second_instance_id"] or "",
    }
    lines = (f"{name}: {value}" for name, value in known.items() if value)
    return Text(printable("\n".join(lines)))


def pairs(values: Row) -> str:
    """Return names and values in one line."""
    return " ".join(f"{name}={short(value)}" for name, value in values.items())


def short(value: Any) -> str:
    """Return a figure with few digits."""
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)


def legend() -> Text:
    """Return what the colours mean."""
    line = Text(LEGEND)
    for limit, style in STYLES:
        line.append(f" below {limit:g} ", style=style)
    return line.append(" more ", style=WIDE).append(" unknown ", style=UNKNOWN)


def window_of(steps: Sequence[Row], texts: Row | None) -> Text:
    """Return the steps in their order, by text or by bars, the fault marked."""
    line = Text()
    shown_steps = zip(steps, tokens_of(steps, texts), strict=True)
    for fault, group in groupby(shown_steps, key=lambda pair: bool(pair[0]["fault"])):
        parts = [(token, style_of(step)) for step, token in group]
        if fault and not any(token for token, _ in parts):
            # What is at fault must be seen, also where it has no text.
            parts = [(NO_FIGURE, FAULT)]
        line.append(OPEN if fault else "")
        for token, style in parts:
            line.append(token, style=style)
        line.append(CLOSE if fault else "")
    return line


def tokens_of(steps: Sequence[Row], texts: Row | None) -> Iterator[str]:
    """Yield what stands for each step: its text, or a bar as high as its entropy."""
    if texts is not None and has_tokens(steps, texts):
        yield from map(printable, texts["tokens"])
    else:
        yield from (bar(step["entropy"]) for step in steps)


def has_tokens(steps: Sequence[Row], texts: Row | None) -> bool:
    """Return True where the text of each step is known."""
    return texts is not None and len(texts["tokens"] or ()) == len(steps)


def bar(entropy: float | None) -> str:
    """Return a bar as high as an entropy."""
    if entropy is None:
        return NO_FIGURE
    return BARS[max(0, min(int(entropy / NATS_PER_BAR), len(BARS) - 1))]


def style_of(step: Row) -> str:
    """Return the colour of a step, by how wide its distribution was."""
    entropy = step["entropy"]
    colour = UNKNOWN
    if entropy is not None:
        colour = next((style for limit, style in STYLES if entropy < limit), WIDE)
    return f"{FAULT} {colour}" if step["fault"] else colour


def step_rows(capture: Row, texts: Row | None) -> list[Row]:
    """Return the figures of the steps around the fault."""
    steps = capture["steps"]
    first = steps[-1]["n"] if capture["fault_from"] is None else capture["fault_from"]
    until = first + 1 if capture["fault_until"] is None else capture["fault_until"]
    has_text = has_tokens(steps, texts)
    rows = [
        {
            **step,
            "token": repr(token) if has_text else token,
            "top": " ".join(f"{one:.2f}" for one in step["top"]),
        }
        for step, token in zip(steps, tokens_of(steps, texts), strict=True)
        if first - AROUND <= step["n"] < until + AROUND
    ]
    return rows[:MOST_ROWS]
