"""The parts that guard traffic, put together from the settings."""

from dataclasses import dataclass

from gatemesh_agent.after import After
from gatemesh_agent.guarded import Bounds, Guard
from gatemesh_agent.judging import Judging
from gatemesh_agent.reporting import Reporter
from gatemesh_agent.routing import Router
from gatemesh_agent.second_opinion import SecondOpinions, Terms
from gatemesh_agent.settings import AgentSettings
from gatemesh_agent.shield import Shield
from gatemesh_agent.upstream import Upstream
from gatemesh_agent.wishes import Wishes


@dataclass(frozen=True, slots=True)
class Guarding:
    """What guards traffic, and what runs beside it."""

    guard: Guard
    opinions: SecondOpinions

    async def stop(self) -> None:
        """Let go what is withheld, and drop what is under way."""
        await self.opinions.stop()


def build_guarding(
    settings: AgentSettings,
    router: Router,
    upstream: Upstream,
    judging: Judging,
    reporter: Reporter,
) -> Guarding:
    """Return the parts that guard traffic; failures go through second opinions from here on."""
    wishes = Wishes(settings.top_logprobs)
    opinions = SecondOpinions(
        router=router,
        upstream=upstream,
        judging=judging,
        wishes=wishes,
        publish=reporter.publish,
        terms=attribution_terms(settings),
    )
    judging.accuse = opinions.accuse
    guard = Guard(
        router=router,
        upstream=upstream,
        judging=judging,
        reporter=reporter,
        wishes=wishes,
        after=After(opinions.hear),
        bounds=guard_bounds(settings),
    )
    return Guarding(guard, opinions)


def attribution_terms(settings: AgentSettings) -> Terms:
    """Return how long second opinions may take and what they may cost."""
    return Terms(
        wait_s=settings.attribution_wait_s,
        soft_wait_s=settings.attribution_soft_wait_s,
        at_once=settings.attribution_parallel,
        per_minute=settings.attribution_per_minute,
    )


def guard_bounds(settings: AgentSettings) -> Bounds:
    """Return how far guarded requests may go."""
    return Bounds(
        pool=settings.pool,
        reroutes=settings.reroutes,
        max_answer_bytes=settings.max_answer_bytes,
        max_event_bytes=settings.max_event_bytes,
        shield=Shield(settings.guard, settings.shield_on),
    )
