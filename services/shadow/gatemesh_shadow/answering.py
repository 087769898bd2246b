"""The second measure: a healthy instance answers the same request, and the texts are compared."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gatemesh_common.gates import Judgement
from gatemesh_common.messages import (
    CheckLevel,
    Decoding,
    Outcome,
    Reason,
    RoutedInstance,
    ShadowSample,
)
from gatemesh_shadow.asking import Question, Replicas
from gatemesh_shadow.compare import judge_pair, needs_cosine
from gatemesh_shadow.embed import Embedder
from gatemesh_shadow.errors import ModelUnavailableError
from gatemesh_shadow.languages import language_of
from gatemesh_shadow.limits import VersionLimits
from gatemesh_shadow.metrics import MODELS_READY
from gatemesh_shadow.pair import PairLimits
from gatemesh_shadow.replay import SecondAnswer
from gatemesh_shadow.splits import Split, first_split

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Compared:
    """A judgement by a second answer, and who gave it."""

    judgement: Judgement
    judge: RoutedInstance | None = None
    cosine: float | None = None
    second: SecondAnswer | None = None


@dataclass(slots=True)
class SecondAnswers:
    """Compares samples with second answers; without a sentence model by text and facts alone."""

    replicas: Replicas
    embedder: Embedder | None
    limits: PairLimits

    async def judge(
        self, sample: ShadowSample, question: Question, limits: VersionLimits
    ) -> Compared:
        """Judge one sample; raises as `ReplicaScore.judge` does."""

        async def work(judge: RoutedInstance) -> SecondAnswer:
            return await self.replicas.second(judge, question)

        done = await self.replicas.with_judge(sample, work)
        if done is None:
            return Compared(_skipped(Reason.NO_REPLICA, ""))
        judge, second = done
        compared = await self.compare(sample, question, second, limits)
        return replace(compared, judge=judge, second=second)

    async def compare(
        self,
        sample: ShadowSample,
        question: Question,
        second: SecondAnswer,
        limits: VersionLimits,
    ) -> Compared:
        """Compare the sample with an answer that is here."""
        first, other = comparable(sample.text, second)
        is_greedy = sample.decoding is Decoding.GREEDY
        split = None
        if is_greedy and sample.token_ids and second.tokens:
            split = first_split(sample.token_ids, second.tokens)
            if split is None:
                return Compared(_exact())
        language = language_of(other)
        wanted = needs_cosine(question.request, first, other)
        cosine = await self._cosine(language, first, other) if wanted else None
        judgement = judge_pair(
            question.request,
            first,
            other,
            cosine=cosine,
            primary_calls=sample.tool_calls,
            shadow_calls=second.tool_calls,
            split_gap_nats=split.gap_nats if split else None,
            limits=self._limits(sample, limits),
        )
        details = _details(judgement, split, second, sample)
        if cosine is None and judgement.details.get("why") == "no_cosine":
            return Compared(
                _without_cosine(judgement, details, language, no_model=self.embedder is None)
            )
        return Compared(replace(judgement, details=details), None, cosine)

    async def _cosine(self, language: str, first: str, second: str) -> float | None:
        if self.embedder is None:
            return None
        try:
            return await self.embedder.cosine(language, first, second)
        except ModelUnavailableError as error:
            # It was installed when the service began: said once, then done without.
            log.error("sentence_model_lost", extra={"reason": str(error)})  # noqa: TRY400
            MODELS_READY.labels(model="embedding").set(0)
            self.embedder = None
            return None

    def _limits(self, sample: ShadowSample, limits: VersionLimits) -> PairLimits:
        if sample.decoding is Decoding.GREEDY:
            least, _ = limits.cosine(Decoding.GREEDY, self.limits.cosine_greedy)
            return replace(self.limits, cosine_greedy=least)
        least, _ = limits.cosine(Decoding.SAMPLED, self.limits.cosine_sampled)
        return replace(self.limits, cosine_sampled=least)


def comparable(text: str, second: SecondAnswer) -> tuple[str, str]:
    """Both texts; the first one cut where the second one had to end."""
    if second.cut and len(text) > len(second.text):
        return text[: len(second.text)], second.text
    return text, second.text


def _details(
    judgement: Judgement, split: Split | None, second: SecondAnswer, sample: ShadowSample
) -> Mapping[str, Any]:
    found = {"split_token": split.step} if split else {}
    figures = {"chars": len(sample.text), "second_chars": len(second.text)}
    return {**judgement.details, **found, **figures, "second_answer": True}


def _exact() -> Judgement:
    details = {"measure": "tokens", "second_answer": True}
    return Judgement(CheckLevel.L4, Outcome.PASSED, Reason.CLEAN, score=1.0, details=details)


def _without_cosine(
    judgement: Judgement, details: Mapping[str, Any], language: str, *, no_model: bool
) -> Judgement:
    if no_model:
        return replace(judgement, details={**details, "why": "no_sentence_model"})
    named = {**details, "why": "language", "language": language}
    return replace(judgement, reason=Reason.OTHER_LANGUAGE, details=named)


def _skipped(reason: Reason, why: str) -> Judgement:
    details = {"measure": "second_answer", **({"why": why} if why else {})}
    return Judgement(CheckLevel.L4, Outcome.SKIPPED, reason, details=details)
