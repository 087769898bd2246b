"""What of an answer stands: what its client has got, or is to get, however many engines wrote it.

Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gatemesh_agent.rescue.hold import NOWHERE, Mark
from gatemesh_agent.transcript import MOST_CHARS, MOST_TOKENS, Transcript


@dataclass(frozen=True, slots=True)
class Kept:
    """The part of an answer that stands."""

    text: str = ""
    ids: tuple[int, ...] | None = ()
    """Its token ids; None where not all are known."""
    tokens: int = 0
    leaked: int = 0
    """Bad tokens behind it that its client has got: they cannot be taken back."""

    def then(self, said: Transcript, mark: Mark, *, by_id: bool, again: int = 0) -> "Kept":
        """Return it with what an engine said up to a place, but for characters it said again."""
        ids = known_ids(said.token_ids, mark.steps) if by_id else None
        joined = None if self.ids is None or ids is None else (*self.ids, *ids)
        return replace(
            self,
            text=self.text + said.text[min(again, mark.chars) : mark.chars],
            ids=joined,
            tokens=self.tokens + mark.tokens,
        )


def known_ids(ids: Sequence[int | None], count: int) -> tuple[int, ...] | None:
    """Return the first ids; None unless all of them are known."""
    first = ids[:count]
    if len(first) < count:
        return None
    known = tuple(each for each in first if each is not None)
    return known if len(known) == count else None


def fits(said: Transcript) -> bool:
    """Return True while all of what was said is kept."""
    return said.chars <= MOST_CHARS and said.steps <= MOST_TOKENS


@dataclass(slots=True)
class Places:
    """Places behind which an answer may be cut: where a text ended and no token was half shown."""

    marks: list[Mark] = field(default_factory=lambda: [NOWHERE])
    last: Mark = NOWHERE
    """The place behind the newest event."""

    MOST = 512

    def add(self, mark: Mark, *, said: bool) -> None:
        """Take in the place behind an event, and whether that brought text."""
        self.last = mark
        if said:
            if len(self.marks) >= 2 * self.MOST:
                del self.marks[1 : self.MOST]
            self.marks.append(mark)

    @property
    def clean(self) -> Mark:
        """The newest of them."""
        return self.marks[-1]

    def before(self, *, step: int | None = None, char: int | None = None) -> Mark:
        """Return the newest one that is not behind a token, or a character."""
        for mark in reversed(self.marks):
            is_behind_step = step is not None and mark.steps > step
            if not is_behind_step and (char is None or mark.chars <= char):
                return mark
        return self.marks[0]
