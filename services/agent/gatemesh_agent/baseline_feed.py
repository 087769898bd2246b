"""Follows the pool's baselines, which the manager repeats every few seconds."""

import logging

from pydantic import ValidationError

from gatemesh_agent.baselines import Baselines
from gatemesh_agent.broadcasts import follow_for_ever
from gatemesh_common.clock import utc_now
from gatemesh_common.invalid import places_in
from gatemesh_common.messages import Baseline, key_segment

log = logging.getLogger(__name__)

SILENCE_S = 120.0
"""The manager repeats a baseline every 10 s; after so long a silence the queue is made anew."""


class BaselineFeed:
    """Keeps the agent on the newest baselines of its pool."""

    def __init__(self, pool: str, baselines: Baselines) -> None:
        self._pool = pool
        self._baselines = baselines

    async def run(self, amqp_url: str) -> None:
        """Follow until cancelled; a broker that is away is waited for."""
        key = f"{Baseline.routing_key}.{key_segment(self._pool)}"
        await follow_for_ever(amqp_url, key, SILENCE_S, self.receive)

    async def receive(self, body: bytes) -> None:
        """Take in one message; a baseline that cannot be read changes nothing."""
        try:
            baseline = Baseline.model_validate_json(body)
        except ValidationError as error:
            log.error("baseline_refused", extra={"fields": places_in(error)})  # noqa: TRY400
            return
        # One from the future could never be replaced.
        stamped = min(baseline.timestamp, utc_now())
        self._baselines.take(baseline.model_copy(update={"timestamp": stamped}))
