"""What the agent tells the mesh: failures one by one, the rest as counts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client import Counter

from gatemesh_agent.errors import InstanceFailedError
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.metrics import JUDGED, REJECTED
from gatemesh_agent.telemetry import Telemetry, Window
from gatemesh_common.clock import Clock
from gatemesh_common.messages import (
    CheckLevel,
    Decoding,
    Message,
    Outcome,
    RequestRejected,
    RoutedInstance,
    Verdict,
    new_message_id,
)
from gatemesh_common.spans import NO_SPANS, Spans, told
from gatemesh_common.trace import derived


@dataclass(frozen=True, slots=True)
class Origin:
    """The client request that everything reported goes back to; no text of it."""

    request_id: str
    traceparent: str | None = None
    tenant: str | None = None
    prompt_fingerprint: str | None = None
    decoding: Decoding = Decoding.UNKNOWN

    @property
    def trace(self) -> str:
        """The trace context of what is told of it; made from its id where the client sent none."""
        return self.traceparent or derived(self.request_id)


@dataclass(frozen=True, slots=True)
class Life:
    """One life of one instance, as the routing table had it when it was chosen."""

    instance_id: str
    incarnation: int
    model_version: str | None
    numbered: bool
    """False when the instance comes from settings: no manager has numbered its life."""

    @classmethod
    def of(cls, instance: RoutedInstance, version: int) -> "Life":
        """Return the life of an instance under one version of the table."""
        model_version = None if instance.model_version == "unknown" else instance.model_version
        return cls(instance.instance_id, instance.incarnation, model_version, version > 0)


class Reporter:
    """Counts what gates conclude and hands verdicts and rejections to the spool."""

    def __init__(
        self,
        agent_id: str,
        pool: str,
        telemetry: Telemetry,
        put: Callable[[Message], None],
        clock: Clock,
        *,
        spans: Spans = NO_SPANS,
    ) -> None:
        self._agent_id = agent_id
        self._spans = spans
        self._pool = pool
        self._telemetry = telemetry
        self._put = put
        self._clock = clock
        self._judged: dict[tuple[CheckLevel, Outcome, str], Counter] = {}
        self.heeds: list[Callable[[Verdict], None]] = []
        """Those who want to see each verdict that is published."""

    def window(self, life: Life) -> Window:
        """Return the telemetry window of a life."""
        return self._telemetry.of(life.instance_id, life.incarnation)

    def skip(self, level: CheckLevel, why: str, life: Life) -> None:
        """Count what a gate could not judge for a reason of the agent's own."""
        self._count(level, Outcome.SKIPPED, why, life)

    def count(self, judgement: Judgement, life: Life) -> None:
        """Count what a gate concluded."""
        self._count(judgement.gate, judgement.outcome, judgement.reason, life)

    def publish(self, verdict: Verdict) -> None:
        """Have a verdict published."""
        self._put(told(self._spans, verdict))
        for heed in self.heeds:
            heed(verdict)

    def _count(self, level: CheckLevel, outcome: Outcome, reason: str, life: Life) -> None:
        self.window(life).count_gate(level, outcome, reason)
        key = (level, outcome, reason)
        counter = self._judged.get(key)
        if counter is None:
            # Finding a series by its labels takes longer than counting in it.
            counter = self._judged[key] = JUDGED.labels(gate=level, outcome=outcome, reason=reason)
        counter.inc()

    def verdict(
        self,
        judgement: Judgement,
        choice: int,
        origin: Origin,
        life: Life,
        details: Mapping[str, Any],
    ) -> Verdict:
        """Return a judgement as it travels."""
        return Verdict(
            message_id=new_message_id(),
            timestamp=self._clock(),
            traceparent=origin.trace,
            instance_id=life.instance_id,
            pool=self._pool,
            incarnation=life.incarnation if life.numbered else None,
            model_version=life.model_version,
            request_id=origin.request_id,
            check_level=judgement.gate,
            choice=choice,
            outcome=judgement.outcome,
            reason=judgement.reason,
            hard=judgement.hard,
            score=judgement.score,
            threshold=judgement.threshold,
            span=judgement.span,
            gate_version=judgement.gate_version,
            prompt_fingerprint=origin.prompt_fingerprint,
            tenant=origin.tenant,
            decoding=origin.decoding,
            details={"agent_id": self._agent_id, **details},
        )

    def reject(
        self, failure: InstanceFailedError, origin: Origin, life: Life, rerouted_to: str | None
    ) -> None:
        """Record that an instance refused a request, and who answered instead."""
        REJECTED.labels(cause=failure.cause, rerouted=rerouted_to is not None).inc()
        self._put(
            RequestRejected(
                timestamp=self._clock(),
                traceparent=origin.trace,
                pool=self._pool,
                instance_id=life.instance_id,
                agent_id=self._agent_id,
                request_id=origin.request_id,
                incarnation=life.incarnation if life.numbered else None,
                cause=failure.cause,
                rerouted_to=rerouted_to,
            )
        )

    def reject_all(self, origin: Origin) -> None:
        """Record that no instance of the pool was in rotation for a request."""
        REJECTED.labels(cause="no_instance", rerouted=False).inc()
        self._put(
            RequestRejected(
                timestamp=self._clock(),
                traceparent=origin.trace,
                pool=self._pool,
                instance_id=NOBODY,
                agent_id=self._agent_id,
                request_id=origin.request_id,
                cause="no_instance",
            )
        )


NOBODY = "-"
"""Stands for the instance where the whole pool refused."""
