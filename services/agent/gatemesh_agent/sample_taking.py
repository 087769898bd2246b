"""Which judged answers go to the shadow as samples."""

import time
from collections.abc import Callable
from datetime import datetime

from gatemesh_agent.after import Answered
from gatemesh_agent.metrics import SAMPLED, SAMPLES_DROPPED
from gatemesh_agent.sampling import Sampling, sample_of
from gatemesh_common.messages import ShadowSample


class SampleTaker:
    """Reads judged answers and hands those to the sender that are chosen."""

    def __init__(
        self,
        *,
        sampling: Sampling,
        put: Callable[[ShadowSample], None],
        agent_id: str,
        pool: str,
        clock: Callable[[], datetime],
    ) -> None:
        self._sampling = sampling
        self._put = put
        self._agent_id = agent_id
        self._pool = pool
        self._clock = clock

    def __call__(self, answer: Answered) -> None:
        """Take an answer; returns at once."""
        now_s = time.monotonic()
        cause = self._sampling.cause_of(answer, now_s)
        if cause is None:
            return
        if not self._sampling.has_room(now_s):
            SAMPLES_DROPPED.labels(why="rate").inc()
            return
        try:
            self._put(sample_of(answer, cause, self._agent_id, self._pool, self._clock()))
        except ValueError:
            # A lone surrogate, say: the engine takes it, our messages do not.
            SAMPLES_DROPPED.labels(why="unreadable").inc()
            return
        SAMPLED.labels(cause=cause).inc()
