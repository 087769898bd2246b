"""The parts that guard traffic, put together from the settings."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from gatemesh_agent.after import After
from gatemesh_agent.capture_taking import Captures
from gatemesh_agent.capturing import Place
from gatemesh_agent.cases import Bounds
from gatemesh_agent.engine_versions import EngineVersions, version_asker
from gatemesh_agent.guarded import Guard
from gatemesh_agent.judging import Judging
from gatemesh_agent.labels import labels_of
from gatemesh_agent.lossy_sending import LossySender
from gatemesh_agent.metrics import CAPTURES_DROPPED, SAMPLES_DROPPED
from gatemesh_agent.moving import Moving, MovingTerms
from gatemesh_agent.reporting import Reporter
from gatemesh_agent.rescue.budget import RescueBudget
from gatemesh_agent.rescue.carrying import Rescuer
from gatemesh_agent.rescue.hold import HoldBounds
from gatemesh_agent.rescue.leaving import Leaving
from gatemesh_agent.rescue.running import Runner
from gatemesh_agent.rescue.terms import RescueTerms
from gatemesh_agent.routing import Router
from gatemesh_agent.sample_taking import SampleTaker
from gatemesh_agent.sampling import SampleTerms, Sampling
from gatemesh_agent.second_opinion import SecondOpinions, Terms
from gatemesh_agent.settings import AgentSettings
from gatemesh_agent.shield import Shield
from gatemesh_agent.sign_reading import SignReader
from gatemesh_agent.signs import Signs
from gatemesh_agent.stall_check import StallCheck
from gatemesh_agent.stall_watch import StallWatch, nobody
from gatemesh_agent.thrift import Busyness, ClientWishes, Thrift, ThriftTerms
from gatemesh_agent.upstream import Upstream
from gatemesh_agent.watchdog import Patience, Watch
from gatemesh_agent.wishes import Naming, Wishes
from gatemesh_common.clock import utc_now
from gatemesh_common.messages import InstanceState
from gatemesh_common.publisher import Publisher

APP_ID = "agent"


@dataclass(frozen=True, slots=True)
class Guarding:
    """What guards traffic, and what runs beside it."""

    guard: Guard
    opinions: SecondOpinions
    sampling: Sampling
    samples: LossySender
    captures: Captures
    captured: LossySender
    stalls: StallWatch
    reporter: Reporter

    async def stop(self) -> None:
        """Let go what is withheld, and drop what is under way."""
        await self.opinions.stop()


def build_guarding(
    settings: AgentSettings,
    *,
    router: Router,
    upstream: Upstream,
    judging: Judging,
    reporter: Reporter,
    publisher: Publisher,
    naming: Naming | None = None,
) -> Guarding:
    """Return the parts that guard traffic; failures go through second opinions from here on."""
    wishes = Wishes(settings.top_logprobs, naming)
    opinions = SecondOpinions(
        router=router,
        upstream=upstream,
        judging=judging,
        wishes=wishes,
        publish=reporter.publish,
        terms=attribution_terms(settings),
    )
    judging.accuse = opinions.accuse
    sampling = build_sampling(settings, router)
    reporter.heeds.append(lambda verdict: sampling.heed(verdict, time.monotonic()))
    thrift = build_thrift(settings, router)
    reporter.heeds.append(thrift.heed)
    samples = LossySender(publisher, APP_ID, SAMPLES_DROPPED)
    signs = SignReader(Signs(), reporter, opinions.accuse)
    after = After(
        opinions.hear,
        readers=[sample_taker(settings, sampling, samples), signs.answered],
        refusals=[signs.refused],
    )
    watch = Watch(Patience(settings.stall_s, settings.stall_first_s))
    captured = LossySender(publisher, APP_ID, CAPTURES_DROPPED)
    captures = build_captures(settings, router, upstream, captured)
    judging.captures = captures.open
    parts = Parts(router, upstream, judging, reporter, wishes, after, watch)
    budget = RescueBudget(settings.rescue_per_minute, settings.rescue_tenant_share)
    rescuer = build_rescuer(settings, parts, opinions.ask, budget)
    guard = Guard(
        moving=build_moving(settings, router, budget),
        rescuer=rescuer,
        router=router,
        upstream=upstream,
        judging=judging,
        reporter=reporter,
        wishes=ClientWishes(wishes, thrift),
        after=after,
        watch=watch,
        bounds=guard_bounds(settings),
    )
    stalls = StallWatch(
        watch=watch,
        check=StallCheck(upstream, settings.stall_probe_s, settings.probe_api_key),
        reporter=reporter,
        is_out=router.is_out,
        threshold_s=settings.stall_s,
        heed=nobody if rescuer is None else rescuer.leaving.note_proof,
    )
    return Guarding(*(guard, opinions, sampling, samples), captures, captured, stalls, reporter)


class Parts(NamedTuple):
    """What guarding and rescue share."""

    router: Router
    upstream: Upstream
    judging: Judging
    reporter: Reporter
    wishes: Wishes
    after: After
    watch: Watch


def build_moving(settings: AgentSettings, router: Router, budget: RescueBudget) -> Moving | None:
    """Return what has errors of engines answered elsewhere; None where clients are to see them."""
    if settings.guard == "observe":
        return None
    moves = min(settings.reroutes, settings.rescue_continuations)
    return Moving(router, budget, MovingTerms(moves, settings.total_s))


def build_rescuer(
    settings: AgentSettings,
    parts: Parts,
    unheard: Callable[[str], None],
    budget: RescueBudget,
) -> Rescuer | None:
    """Return what carries streams on; None where that is not wanted."""
    if settings.guard != "rescue":
        return None
    terms, watch = rescue_terms(settings), parts.watch
    leaving = Leaving(parts.router, watch, first_s=terms.first_s, stall_s=terms.stall_s)
    runner = Runner(
        router=parts.router,
        judging=parts.judging,
        reporter=parts.reporter,
        after=parts.after,
        watch=watch,
        leaving=leaving,
        terms=terms,
        max_event_bytes=settings.max_event_bytes,
    )
    return Rescuer(
        router=parts.router,
        upstream=parts.upstream,
        wishes=parts.wishes,
        reporter=parts.reporter,
        watch=watch,
        runner=runner,
        leaving=leaving,
        terms=terms,
        reroutes=settings.reroutes,
        unheard=unheard,
        budget=budget,
    )


def rescue_terms(settings: AgentSettings) -> RescueTerms:
    """Return how far rescue may go."""
    return RescueTerms(
        severity=settings.shield_on,
        hold=HoldBounds(settings.rescue_hold_tokens, settings.rescue_hold_ms / 1000),
        continuations=settings.rescue_continuations,
        per_minute=settings.rescue_per_minute,
        tenant_share=settings.rescue_tenant_share,
        stall_s=settings.rescue_stall_s,
        first_s=settings.stall_first_s,
        idle_s=settings.idle_s,
        total_s=settings.total_s,
        takes_media=settings.rescue_media,
    )


def attribution_terms(settings: AgentSettings) -> Terms:
    """Return how long second opinions may take and what they may cost."""
    return Terms(
        wait_s=settings.attribution_wait_s,
        soft_wait_s=settings.attribution_soft_wait_s,
        at_once=settings.attribution_parallel,
        per_minute=settings.attribution_per_minute,
    )


def suspects(router: Router) -> Callable[[str], bool]:
    """Return what knows which instances the manager suspects."""

    def is_suspect(instance_id: str) -> bool:
        found = router.view.find(instance_id)
        return found is not None and found.state is InstanceState.SUSPECT

    return is_suspect


def build_thrift(settings: AgentSettings, router: Router) -> Thrift:
    """Return what decides how many log probabilities are asked for clients' requests."""
    terms = ThriftTerms(
        settings.logprobs_share, settings.top_logprobs_busy, settings.busy_core_share
    )
    return Thrift(
        terms,
        rng=random.Random(),  # noqa: S311
        is_busy=Busyness(terms.busy_share, time.monotonic, time.process_time),
        is_suspect=suspects(router),
        clock_s=time.monotonic,
    )


def build_sampling(settings: AgentSettings, router: Router) -> Sampling:
    """Return what chooses answers for the shadow."""
    terms = SampleTerms(
        share=settings.shadow_share,
        share_suspect=settings.shadow_share_suspect,
        per_s=settings.shadow_per_s,
        max_bytes=settings.shadow_max_bytes,
    )
    return Sampling(terms, random.Random(), suspects(router))  # noqa: S311


def build_captures(
    settings: AgentSettings, router: Router, upstream: Upstream, sender: LossySender
) -> Captures:
    """Return what takes captures; until the manager has told its terms they are figures only."""

    def address_of(instance_id: str) -> str | None:
        found = router.view.find(instance_id)
        return None if found is None else found.base_url

    ask = version_asker(upstream, settings.probe_api_key)
    return Captures(
        place=Place(settings.id, settings.pool),
        labels=labels_of(settings.labels),
        put=sender.put,
        version_of=EngineVersions(ask, address_of).version,
        rng=random.Random(),  # noqa: S311
    )


def sample_taker(settings: AgentSettings, sampling: Sampling, samples: LossySender) -> SampleTaker:
    """Return what reads answers for the shadow."""
    return SampleTaker(
        sampling=sampling,
        put=samples.put,
        agent_id=settings.id,
        pool=settings.pool,
        clock=utc_now,
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
