"""A/A: what two healthy instances differ by, measured with fixed prompts."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from gatemesh_common.clock import Clock
from gatemesh_common.messages import Decoding, RoutedInstance
from gatemesh_shadow.asking import Question, Replicas
from gatemesh_shadow.embed import Embedder
from gatemesh_shadow.errors import (
    ReplicaBrokenError,
    ReplicaRefusedError,
    ReplicaUnavailableError,
)
from gatemesh_shadow.languages import language_of
from gatemesh_shadow.limits import VersionLimits, is_sane
from gatemesh_shadow.limits_store import LimitsStore
from gatemesh_shadow.metrics import CALIBRATED
from gatemesh_shadow.references import Reference, choose, reference_of
from gatemesh_shadow.replay import CHAT
from gatemesh_shadow.scores import Figures, figures_of
from gatemesh_shadow.splits import Token

log = logging.getLogger(__name__)

PROMPTS = (
    "Explain in two sentences why the sky is blue.",
    "List five things to pack for a hike.",
    "Write a short story about a lighthouse keeper.",
    "What is the difference between weather and climate?",
    "Write a Python function that reverses a string.",
    "Translate into French: The train leaves at noon.",
    "Give three reasons to learn a second language.",
    "Describe how bread is made, step by step.",
    "What is 12 times 11? Show the steps.",
    "用两句话解释什么是光合作用。",
    "列出三种常见的水果，并说明它们的颜色。",
    "写一段关于秋天的短文。",
    "Return a JSON object with the keys name and age.",
    "Summarise what a rain gauge is for.",
)
MOST_TOKENS = 32
SEED = 11
LEAST_PAIRS_SHARE = 0.5
"""Share of pairs of instances that must agree with each other."""
INSTANCE_FAULTS = (ReplicaUnavailableError, ReplicaRefusedError, ReplicaBrokenError)


@dataclass(slots=True)
class Measured:
    """Figures of one pair of instances."""

    figures: dict[Decoding, list[Figures]] = field(
        default_factory=lambda: {Decoding.GREEDY: [], Decoding.SAMPLED: []}
    )
    cosines: dict[Decoding, list[float]] = field(
        default_factory=lambda: {Decoding.GREEDY: [], Decoding.SAMPLED: []}
    )

    references: list[tuple[Reference, Figures]] = field(default_factory=list)
    """Greedy answers that can be kept, and their figures."""

    @property
    def agrees(self) -> bool:
        """True when the pair's noise is no more than noise."""
        return all(is_sane(found, decoding) for decoding, found in self.figures.items())


@dataclass(slots=True)
class Calibration:
    """Measures every model version that has two healthy instances, and again after a while."""

    replicas: Replicas
    store: LimitsStore
    embedder: Embedder | None
    clock: Clock
    every_s: float
    look_s: float = 2.0
    retry_s: float = 60.0
    _not_before: dict[str, float] = field(default_factory=dict)

    async def run(self) -> None:
        """Measure whatever is due, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            for pool, version, instances in self._due(loop.time()):
                # Whatever comes of it, the instances are left alone for a while.
                self._not_before[f"{pool}/{version}"] = loop.time() + self.retry_s
                await self.measure(pool, version, instances)
            await asyncio.sleep(self.look_s)

    def _due(self, now_s: float) -> list[tuple[str, str, tuple[RoutedInstance, ...]]]:
        fleet = self.replicas.fleet
        found = [(pool, *pair) for pool in fleet.pools for pair in fleet.versions(pool).items()]
        return [
            (pool, version, instances)
            for pool, version, instances in found
            if len(instances) > 1
            and self._is_due(pool, version)
            and self._not_before.get(f"{pool}/{version}", 0.0) <= now_s
        ]

    def _is_due(self, pool: str, version: str) -> bool:
        limits = self.store.limits(pool, version)
        measured_at = limits.measured_at
        CALIBRATED.labels(pool=pool).set(measured_at is not None)
        # A file of an earlier release holds limits and no references.
        if measured_at is None or limits.references is None:
            return True
        oldest = self.clock() - timedelta(seconds=self.every_s)
        return measured_at < oldest.isoformat()

    async def measure(
        self, pool: str, version: str, instances: Sequence[RoutedInstance]
    ) -> VersionLimits | None:
        """Measure one model version and take over its limits; None when it cannot be trusted."""
        model = await self._model(instances[0])
        if model is None:
            return None
        pairs = list(zip(instances, [*instances[1:], instances[0]], strict=True))
        measured = [Measured() for _ in pairs]
        for place, prompt in enumerate(PROMPTS):
            at = place % len(pairs)
            await self._measure_prompt(model, prompt, *pairs[at], measured[at])
        trusted = [one for one in measured if one.agrees]
        if len(trusted) < len(pairs) * LEAST_PAIRS_SHARE or not any(
            one.figures[Decoding.GREEDY] for one in trusted
        ):
            log.error("calibration_refused", extra={"pool": pool, "model_version": version})
            return None
        limits = self._limits(model, trusted)
        self.store.replace(pool, version, limits)
        self.store.save()
        extra = {"pool": pool, "model_version": version, "pairs": len(trusted)}
        log.info("calibrated", extra=extra)
        return limits

    def _limits(self, model: str, trusted: Sequence[Measured]) -> VersionLimits:
        limits = VersionLimits(measured_at=self.clock().isoformat())
        for one in trusted:
            for decoding, figures in one.figures.items():
                for found in figures:
                    limits.learn(decoding, found)
                for cosine in one.cosines[decoding]:
                    limits.learn_cosine(decoding, cosine)
        candidates = [pair for one in trusted for pair in one.references]
        limits.references = choose(model, candidates, limits.scores(Decoding.GREEDY))
        return limits

    async def _model(self, instance: RoutedInstance) -> str | None:
        """The name of the model that an instance serves."""
        try:
            return await self.replicas.client.model(instance.base_url)
        except INSTANCE_FAULTS as error:
            log.warning("calibration_put_off", extra={"error": type(error).__name__})
            return None

    async def _measure_prompt(
        self,
        model: str,
        prompt: str,
        asked: RoutedInstance,
        judge: RoutedInstance,
        measured: Measured,
    ) -> None:
        for decoding, sampling in SAMPLINGS.items():
            body: dict[str, Any] = {
                "model": model,
                "messages": [{"role": "user", "content": prompt}],
                "max_tokens": MOST_TOKENS,
                **sampling,
            }
            try:
                await self._measure_one(Question(CHAT, body), decoding, asked, judge, measured)
            except INSTANCE_FAULTS as error:
                extra = {"error": type(error).__name__, "instance_id": asked.instance_id}
                log.warning("calibration_prompt_failed", extra=extra)

    async def _measure_one(
        self,
        question: Question,
        decoding: Decoding,
        asked: RoutedInstance,
        judge: RoutedInstance,
        measured: Measured,
    ) -> None:
        replicas = self.replicas
        async with replicas.budget.turn([asked]):
            first = await replicas.second(asked, question)
        answer = [token.token_id for token in first.tokens]
        if not answer:
            return
        async with replicas.budget.turn([judge]):
            prompt, room = await replicas.prompt(judge, question, len(answer))
            scores = await replicas.scores(judge, question, prompt, answer[:room])
        own = [_own(token) for token in first.tokens[:room]]
        is_greedy = decoding is Decoding.GREEDY
        figures = figures_of(scores.chosen, scores.favourite, own, greedy=is_greedy)
        measured.figures[decoding].append(figures)
        reference = reference_of(prompt, answer[:room], own) if is_greedy else None
        if reference is not None:
            measured.references.append((reference, figures))
        if self.embedder is not None:
            await self._measure_cosine(question, decoding, judge, first.text, measured)

    async def _measure_cosine(
        self,
        question: Question,
        decoding: Decoding,
        judge: RoutedInstance,
        text: str,
        measured: Measured,
    ) -> None:
        seed = {"seed": SEED + 1} if decoding is Decoding.SAMPLED else {}
        again = Question(question.path, {**question.request, **seed})
        async with self.replicas.budget.turn([judge]):
            second = await self.replicas.second(judge, again)
        language = language_of(second.text)
        if self.embedder is None or not self.embedder.knows(language):
            return
        cosine = await self.embedder.cosine(language, text, second.text)
        if cosine is not None:
            measured.cosines[decoding].append(cosine)


SAMPLINGS: dict[Decoding, dict[str, Any]] = {
    Decoding.GREEDY: {"temperature": 0},
    Decoding.SAMPLED: {"temperature": 1.0, "seed": SEED},
}


def _own(token: Token) -> float | None:
    return token.candidates.get(token.token_id)
