"""Two answers that must be the same bytes, though an engine may split either one otherwise.

An engine whose server falls behind puts two tokens into one event, whoever asks. That is rare, and
another pair shows whether it was that: what truly differs differs each time.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

TRIES = 3


def alike(ask: Callable[[], tuple[T, T]]) -> tuple[T, T]:
    """Return the first pair that is equal, else the last one."""
    for _ in range(TRIES):
        one, other = ask()
        if one == other:
            break
    return one, other


async def alike_later(ask: Callable[[], Awaitable[tuple[T, T]]]) -> tuple[T, T]:
    """Return the first pair that is equal, else the last one."""
    for _ in range(TRIES):
        one, other = await ask()
        if one == other:
            break
    return one, other
