"""What the agent learns of engines beside their answers: exact figures, and vocabularies."""

import asyncio
from dataclasses import dataclass
from uuid import uuid4

from gatemesh_agent.exact import ExactFigures, ExactTerms
from gatemesh_agent.figures_feed import FiguresFeed
from gatemesh_agent.routing import Router
from gatemesh_agent.settings import AgentSettings
from gatemesh_agent.upstream import Upstream
from gatemesh_agent.vocabulary import Vocabulary, asker
from gatemesh_common.clock import utc_now


@dataclass(frozen=True, slots=True)
class Insight:
    """The parts that learn of engines."""

    vocabulary: Vocabulary
    exact: ExactFigures
    feed: FiguresFeed | None
    """None where no plugin is listened to."""

    def open(self) -> None:
        """Begin to listen to the engines' plugins.

        Raises:
            SettingsError: the address cannot be had.
        """
        if self.feed is not None:
            self.feed.open()

    async def stop(self) -> None:
        """Conclude what waits for figures, and listen no more."""
        self.exact.settle_all()
        if self.feed is not None:
            self.feed.close()
        await self.vocabulary.stop()


def build_insight(settings: AgentSettings, router: Router, upstream: Upstream) -> Insight:
    """Return the parts that learn of engines; nothing is opened yet."""

    def address_of(instance_id: str) -> str | None:
        found = router.view.find(instance_id) if settings.learn_vocab_sizes else None
        return None if found is None else found.base_url

    address = settings.figures_address
    vocabulary = Vocabulary(
        asker(upstream, settings.probe_api_key), address_of, settings.vocab_size
    )
    terms = ExactTerms(
        is_on=address is not None,
        new_id=lambda: uuid4().hex,
        later=lambda seconds, call: asyncio.get_running_loop().call_later(seconds, call),
        clock=utc_now,
        grace_s=settings.plugin_grace_s,
    )
    exact = ExactFigures(terms, vocabulary)
    return Insight(vocabulary, exact, FiguresFeed(address, exact.take) if address else None)
