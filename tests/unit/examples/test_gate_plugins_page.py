"""The gate on the page about plug-ins keeps the protocol."""

import re
from pathlib import Path
from typing import Any

from gatemesh_agent.gates.plugged import Plug, Plugs
from gatemesh_agent.plugins import LoggingWatcher
from gatemesh_common.gates import Ending
from gatemesh_common.messages import Outcome, Span

PAGE = Path(__file__).resolve().parents[3] / "docs" / "gate-plugins.md"


def judged(text: str) -> tuple[Outcome, Span | None]:
    """Return what the page's gate says of an answer that comes character by character."""
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102
    [gate] = (
        Plugs([Plug("no_prices", names["open_gate"])], "p", LoggingWatcher()).open({}, "").values()
    )
    for character in text:
        gate.feed_text(character)
    found = gate.finish(Ending("stop"))
    return found.outcome, found.span


def test_the_gate_on_the_page_works() -> None:
    """Readers copy it."""
    assert judged("It is cheap.") == (Outcome.PASSED, None)
    assert judged("It is 5 € only.") == (Outcome.FAILED, Span(char_start=8, char_end=9))
