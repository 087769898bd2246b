"""Turns a judgement about a sample into the verdict that travels. Pure."""

from datetime import datetime

from gatemesh_common.gates import Judgement
from gatemesh_common.messages import (
    Decoding,
    RoutedInstance,
    ShadowSample,
    Verdict,
    derived_id,
)
from gatemesh_shadow.references import MEASURE

TYPE = "shadow"


def verdict_of(
    sample: ShadowSample,
    judgement: Judgement,
    now: datetime,
    *,
    model_version: str | None,
    judge: str | None = None,
) -> Verdict:
    """The verdict on the instance that answered; the same sample gives the same message id."""
    measure = str(judgement.details.get("measure", ""))
    named = {"judge": judge} if judge else {}
    # Of references the prompt was ours: it is no client's, and no copy of another's.
    is_ours = measure == MEASURE
    return Verdict(
        message_id=derived_id(f"{sample.message_id}:{judgement.gate}:{measure}"),
        # Conditions count by the moment of the answer; how late it was judged must not matter.
        timestamp=min(sample.timestamp, now),
        traceparent=sample.traceparent,
        instance_id=sample.instance_id,
        request_id=sample.request_id,
        check_level=judgement.gate,
        type=TYPE,
        pool=sample.pool,
        incarnation=sample.incarnation,
        model_version=model_version,
        choice=sample.choice,
        outcome=judgement.outcome,
        reason=judgement.reason,
        hard=judgement.hard,
        score=judgement.score,
        threshold=judgement.threshold,
        gate_version=judgement.gate_version,
        prompt_fingerprint=None if is_ours else sample.prompt_fingerprint,
        tenant=None if is_ours else sample.tenant,
        decoding=Decoding.GREEDY if is_ours else sample.decoding,
        details={**judgement.details, **named, "cause": sample.cause},
    )


def verdict_on_judge(verdict: Verdict, judge: RoutedInstance) -> Verdict:
    """Evidence against the instance that judged: it stands alone, or left its references."""
    details = {**verdict.details, "as_judge": True, "judge": None}
    return verdict.model_copy(
        update={
            "message_id": derived_id(f"{verdict.message_id}:judge"),
            "instance_id": judge.instance_id,
            "incarnation": judge.incarnation,
            "model_version": judge.model_version,
            "tenant": None,
            "details": {name: value for name, value in details.items() if value is not None},
        }
    )
