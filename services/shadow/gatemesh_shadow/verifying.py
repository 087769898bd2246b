"""The third measure: a small language model of our own reads the text (asynchronous L2)."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from gatemesh_common.gates import Judgement
from gatemesh_common.messages import ShadowSample
from gatemesh_shadow.batching import Batcher
from gatemesh_shadow.errors import ModelUnavailableError
from gatemesh_shadow.languages import language_of
from gatemesh_shadow.metrics import DROPPED, MODELS_READY
from gatemesh_shadow.plausibility import VerifierBaseline

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Verifying:
    """Scores as many texts as it may; the rest is left out and counted."""

    batcher: Batcher[str, tuple[float, int]]
    per_s: float
    clock: Callable[[], float]
    lost: bool = False
    """True when the model turned out not to load."""
    _next_s: float = field(default=0.0)

    async def judge(
        self, sample: ShadowSample, baseline: VerifierBaseline, *, learn: bool
    ) -> Judgement | None:
        """Judge one text; None when it is not this one's turn. Learns from known good ones."""
        if self.lost or not sample.text.strip() or not self._may():
            return None
        try:
            nll_nats, tokens = await self.batcher.submit(sample.text)
        except ModelUnavailableError as error:
            # It was installed when the service began: said once, then done without.
            log.error("verifier_lost", extra={"reason": str(error)})  # noqa: TRY400
            MODELS_READY.labels(model="verifier").set(0)
            self.lost = True
            return None
        language = language_of(sample.text)
        judgement = baseline.judge(sample.decoding, language, nll_nats, tokens)
        if learn and judgement.reason.value in LEARNT_FROM:
            baseline.learn(sample.decoding, language, nll_nats)
        return judgement

    def _may(self) -> bool:
        now = self.clock()
        if now < self._next_s:
            DROPPED.labels(why="verifier_rate").inc()
            return False
        self._next_s = now + 1 / self.per_s
        return True


LEARNT_FROM = ("clean", "warming")
