"""A headless Chromium that notes every error of a page, and what axe says of it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright
from tests.integration.console.site import TOKENS

from gatemesh_console.tokens import Role

CHROMIUM_VARIABLE = "GATEMESH_CHROMIUM"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
AXE = Path(__file__).parents[2] / "data" / "axe" / "axe.min.js"
SERIOUS = ("serious", "critical")
# `script` with a source of its own would be stopped by the pages' policy, and rightly so.
RUN_AXE = "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)"


def find_chromium() -> str | None:
    """Return the browser's program; None where there is none."""
    given = os.environ.get(CHROMIUM_VARIABLE)
    return given or next(filter(None, map(shutil.which, PROGRAMS)), None)


@contextmanager
def chromium(program: str) -> Iterator[Browser]:
    """Run a browser while the block runs."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        yield browser
        browser.close()


@dataclass
class Visit:
    """One person's window, and what went wrong in it."""

    page: Page
    url: str
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.text} ({message.location})")

    def go(self, path: str) -> None:
        """Open a page."""
        self.page.goto(f"{self.url}{path}", wait_until="load")

    def sign_in(self, role: Role) -> None:
        """Sign in by keyboard: the field has the focus."""
        self.go("/sign-in")
        self.page.keyboard.type(TOKENS[role])
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(f"{self.url}/")

    def serious_faults(self) -> list[str]:
        """Return what axe finds that keeps people out."""
        # Evaluated by the debugger, which the content policy does not bind.
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found: list[dict[str, Any]] = self.page.evaluate(RUN_AXE)
        return [
            f"{one['id']}: {[node['html'] for node in one['nodes']][:3]}"
            for one in found
            if one["impact"] in SERIOUS
        ]
