"""How long steps tell the person in front of the terminal that they go on."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from rich.console import Console


class Progress(Protocol):
    """Shows which step runs, and what was found on the way."""

    def step(self, title: str) -> AbstractContextManager[None]:
        """Show `title` while the block runs, and how long it took."""

    def note(self, text: str) -> None:
        """Tell one fact."""


class SilentProgress:
    """Shows nothing; for fixtures and tests."""

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Run the block."""
        yield

    def note(self, text: str) -> None:
        """Say nothing."""


class ConsoleProgress:
    """A spinner on a terminal; plain lines where the output is a file."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Spin while the block runs, then leave one line with the time it took."""
        started = time.monotonic()
        try:
            with self._console.status(f"{title} ..."):
                yield
        except BaseException:
            self._console.print(f"[red]failed[/]  {title}")
            raise
        self._console.print(f"[green]done[/]    {title} ({time.monotonic() - started:.1f} s)")

    def note(self, text: str) -> None:
        """Print one line as it is."""
        self._console.print(text, markup=False, highlight=False)
