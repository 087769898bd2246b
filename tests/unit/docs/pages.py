"""Pages, their links and the commands that they show."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
PAGES = sorted(
    [
        *REPOSITORY.glob("*.md"),
        *(REPOSITORY / "docs").rglob("*.md"),
        *(REPOSITORY / "examples").rglob("*.md"),
    ]
)
"""What people read."""

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
SHELLS = {"", "bash", "sh", "console"}
WORDS_BEFORE = {"nice", "sudo", "exec"}


def without_code(text: str) -> str:
    """Return a page without what it shows as code."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))


def links(text: str) -> list[str]:
    """Return where a page's links lead."""
    # A link's text may be code: only the fenced blocks are left out.
    return LINK.findall(FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as code hosts and the site make them."""
    headings = re.findall(r"^#{1,6} (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {slug(heading) for heading in headings}


def slug(heading: str) -> str:
    """Return the anchor of one heading."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown).strip().lower().replace(" ", "-")


@dataclass(frozen=True)
class Shown:
    """A command that a page shows."""

    page: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as a test names it."""
        return f"{self.page}: {' '.join(self.words)}"


def commands(path: Path) -> Iterator[Shown]:
    """Yield every command line of a page's shell blocks, and of its inline code."""
    text = path.read_text()
    page = path.relative_to(REPOSITORY).as_posix()
    blocks = [body for language, body in FENCE.findall(text) if language in SHELLS]
    inline = re.findall(r"`([^`\n]+)`", FENCE.sub("", text))
    for line in (
        line for body in (*blocks, *inline) for line in body.replace("\\\n", " ").splitlines()
    ):
        for part in re.split(r"&&|\|\||[;|]|\$\(", line):
            words = words_of(part)
            if words:
                yield Shown(page, tuple(words))


def words_of(line: str) -> list[str]:
    """Return a command's words; variables and prompts before it, and comments, are left out."""
    try:
        words = shlex.split(line.strip().removeprefix("$ "), comments=True)
    except ValueError:
        # An apostrophe of a sentence, or a quotation that goes on in the next line.
        words = line.split()
    while words and ("=" in words[0] or words[0] in WORDS_BEFORE):
        words = words[1:]
    return words
