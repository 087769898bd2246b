"""Puts pages that the site's navigation names nowhere where a reader finds them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

DECISIONS, MORE = "Decisions", "More"
ADR = "adr"


def on_config(config: Any) -> Any:
    """Complete the navigation; MkDocs calls it once, before anything is built."""
    config["nav"] = completed(config["nav"], Path(config["docs_dir"]))
    return config


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
