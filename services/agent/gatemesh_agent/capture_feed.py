"""Follows the terms of captures, which the manager repeats every few seconds."""

import logging
from collections.abc import Callable

from pydantic import ValidationError

from gatemesh_agent.broadcasts import follow_for_ever
from gatemesh_common.captures import CaptureTerms
from gatemesh_common.invalid import places_in
from gatemesh_common.messages import key_segment

log = logging.getLogger(__name__)

SILENCE_S = 120.0
"""The manager repeats the terms every 10 s; after so long a silence the queue is made anew."""


class CaptureFeed:
    """Keeps the agent on the terms that its pool's policy sets."""

    def __init__(self, pool: str, use: Callable[[CaptureTerms], None]) -> None:
        self._pool = pool
        self._use = use

    async def run(self, amqp_url: str) -> None:
        """Follow until cancelled."""
        key = f"{CaptureTerms.routing_key}.{key_segment(self._pool)}"
        await follow_for_ever(amqp_url, key, SILENCE_S, self.receive)

    async def receive(self, body: bytes) -> None:
        """Take in one message; terms that cannot be read, or of another pool, change nothing."""
        try:
            terms = CaptureTerms.model_validate_json(body)
        except ValidationError as error:
            log.error("capture_terms_refused", extra={"fields": places_in(error)})  # noqa: TRY400
            return
        if terms.pool == self._pool:
            self._use(terms)
