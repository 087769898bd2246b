"""Waiting as an argument: what polls something outside is handed its clock and its sleep."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """A clock that only runs forward, in seconds, and a way to let time pass."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
