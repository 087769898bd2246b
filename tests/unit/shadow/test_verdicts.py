"""What travels."""

from tests.unit.shadow.parts import NOW, instance, sample_of

from gatemesh_common.gates import Judgement
from gatemesh_common.messages import CheckLevel, Decoding, Outcome, Reason
from gatemesh_shadow.verdicts import verdict_of, verdict_on_judge

JUDGEMENT = Judgement(
    CheckLevel.L4,
    Outcome.FAILED,
    Reason.REPLICA_DISAGREES,
    score=0.4,
    threshold=0.1,
    details={"measure": "replica_score", "distance": 0.4},
)


def test_fields_are_copied_from_the_sample() -> None:
    """The manager needs each of them."""
    sample = sample_of(cause="header", choice=2)
    verdict = verdict_of(sample, JUDGEMENT, NOW, model_version="m1", judge="engine-0")
    assert (verdict.instance_id, verdict.incarnation, verdict.pool) == ("engine-1", 3, "default")
    assert (verdict.request_id, verdict.choice, verdict.type) == ("r1", 2, "shadow")
    assert (verdict.prompt_fingerprint, verdict.tenant) == ("fp", "t1")
    assert (verdict.decoding, verdict.model_version) == (Decoding.GREEDY, "m1")
    assert (verdict.score, verdict.threshold, verdict.hard) == (0.4, 0.1, False)
    assert verdict.details == {
        "measure": "replica_score",
        "distance": 0.4,
        "judge": "engine-0",
        "cause": "header",
    }
    assert sample.text not in verdict.model_dump_json()


def test_the_same_sample_gives_the_same_message() -> None:
    """A redelivered sample is one verdict to the manager, per measure."""
    one = verdict_of(sample_of(), JUDGEMENT, NOW, model_version=None)
    assert one.message_id == verdict_of(sample_of(), JUDGEMENT, NOW, model_version=None).message_id
    other = Judgement(
        CheckLevel.L4, Outcome.FAILED, Reason.ANSWERS_DIFFER, details={"measure": "x"}
    )
    assert one.message_id != verdict_of(sample_of(), other, NOW, model_version=None).message_id


def test_of_references_the_prompt_is_no_clients() -> None:
    """So two of them are never taken for copies of one prompt."""
    judgement = Judgement(
        CheckLevel.L4, Outcome.FAILED, Reason.REPLICA_DISAGREES, details={"measure": "references"}
    )
    sample = sample_of(decoding=Decoding.SAMPLED)
    verdict = verdict_of(sample, judgement, NOW, model_version="m1")
    assert (verdict.prompt_fingerprint, verdict.tenant) == (None, None)
    assert verdict.decoding is Decoding.GREEDY


def test_the_judge_can_be_accused() -> None:
    """Under its own life, with an id of its own."""
    verdict = verdict_of(sample_of(), JUDGEMENT, NOW, model_version="m1", judge="engine-0")
    turned = verdict_on_judge(verdict, instance("engine-2", incarnation=9))
    assert (turned.instance_id, turned.incarnation, turned.tenant) == ("engine-2", 9, None)
    assert turned.message_id != verdict.message_id
    assert turned.details["as_judge"] is True
    assert "judge" not in turned.details
