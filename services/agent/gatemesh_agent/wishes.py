"""What is added to requests for an engine, and what each life of it takes. Pure."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Protocol

from gatemesh_agent.engine_errors import highest_allowed, names_logprobs, names_token_ids
from gatemesh_agent.exact_lines import with_probe_id
from gatemesh_agent.requests import Asked, with_logprobs


@dataclass(frozen=True, slots=True)
class Wish:
    """What is added to one request."""

    count: int = 0
    """Log probabilities per token beside what the client asked; 0 when nothing is added."""
    by_id: bool = False
    """True when their tokens are to be told as ids."""
    probe_id: str = ""
    """Names the request for the engine's plugin; empty where none is asked for figures."""

    def body(self, asked: Asked) -> bytes:
        """Return the request as it goes to the engine."""
        raw = with_logprobs(asked, self.count, by_id=self.by_id) if self.count else asked.raw
        return with_probe_id(raw, asked.body or {}, self.probe_id) if self.probe_id else raw


NOTHING = Wish()


class Naming(Protocol):
    """Gives requests the ids by which the engine's plugin reports on them."""

    def named(self, wish: Wish, asked: Asked, life: Hashable) -> Wish:
        """Return the wish with an id of its own for this request, where the engine takes one."""

    def lessened(self, wish: Wish, life: Hashable, error: bytes) -> Wish | None:
        """Return the wish without an id where an engine refused that; None when it minds else."""


class Wishes:
    """Knows what to add; an engine that refuses a part of it is not asked for that again."""

    def __init__(self, top_logprobs: int, naming: Naming | None = None) -> None:
        self._naming = naming
        self._most = Wish(top_logprobs, by_id=True)
        self._taken: dict[Hashable, Wish] = {}

    def of(self, asked: Asked, life: Hashable) -> Wish:
        """Return what is added to a request for one life of an instance."""
        wish = self._taken.get(life, self._most) if asked.may_add else NOTHING
        return wish if self._naming is None else self._naming.named(wish, asked, life)

    def lessened(self, wish: Wish, life: Hashable, error: bytes) -> Wish | None:
        """Return what to ask for instead of what an engine refused; None when it minds else.

        Always less, so that asking again comes to an end.
        """
        if self._naming and (unnamed := self._naming.lessened(wish, life, error)) is not None:
            return unnamed
        if wish.by_id and names_token_ids(error):
            return self._remember(life, replace(wish, by_id=False))
        if not wish.count or not names_logprobs(error):
            return None
        allowed = highest_allowed(error, below=wish.count)
        if allowed is None:
            # It may be this request that it minds: the next one is asked for all again.
            return NOTHING
        return self._remember(life, replace(wish, count=allowed) if allowed else NOTHING)

    def _remember(self, life: Hashable, wish: Wish) -> Wish:
        self._taken[life] = replace(wish, probe_id="")
        return wish
