"""Makes the site show what code hosts show, and every page somewhere in its navigation."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DECISIONS, MORE = "Decisions", "More"
ADR = "adr"
FENCE = "```"
BEGINS = {"table": re.compile(r"\|"), "list": re.compile(r"(?:- |\d+\. )")}
"""What code hosts take for a block of its own, also right below a text."""
BELONGS = {"table": re.compile(r"\||#|$"), "list": re.compile(r"[- ]|\d+\. |#|$")}
"""A line above which needs no blank line to part it from such a block."""


def on_config(config: Any) -> Any:
    """Complete the navigation; MkDocs calls it once, before anything is built."""
    config["nav"] = completed(config["nav"], Path(config["docs_dir"]))
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page's text as the site's reader of Markdown needs it."""
    return parted(markdown)


def parted(text: str) -> str:
    """Return a text with a blank line before each list and table that follows a text directly."""
    lines: list[str] = []
    above, in_code = "", False
    for line in text.splitlines():
        if not in_code and any(
            begins.match(line) and not BELONGS[kind].match(above) for kind, begins in BEGINS.items()
        ):
            lines.append("")
        in_code ^= line.startswith(FENCE)
        lines.append(line)
        above = line
    return "\n".join([*lines, ""])


def completed(nav: list[Any], folder: Path) -> list[Any]:
    """Return the navigation with sections for decisions and for pages that it does not name."""
    named = set(pages_of(nav))
    pages = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))
    left = [page for page in pages if page not in named]
    sections = {
        MORE: [page for page in left if not page.startswith(f"{ADR}/")],
        DECISIONS: [page for page in left if page.startswith(f"{ADR}/")],
    }
    return [*nav, *({title: found} for title, found in sections.items() if found)]


def pages_of(nav: Any) -> Iterator[str]:
    """Yield every page that a navigation names."""
    if isinstance(nav, str):
        yield nav
        return
    for part in nav.values() if isinstance(nav, dict) else nav:
        yield from pages_of(part)
