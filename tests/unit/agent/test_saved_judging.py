"""A saved answer is judged as it would have been under way."""

import json

import pytest

from gatemesh_agent.gates.refusal import NAN_TEXT
from gatemesh_agent.saved import SavedAnswer, read_saved
from gatemesh_agent.saved_judging import Gates, JudgedAnswer, judge_answer
from gatemesh_common.messages import CheckLevel, Outcome, Reason

REQUEST = {"messages": [{"role": "user", "content": "Tell me of rivers."}]}


def judged(text: str, reason: str | None = "stop") -> JudgedAnswer:
    """Judge a whole chat answer."""
    choice = {"index": 0, "message": {"content": text}, "finish_reason": reason}
    [answer] = read_saved(json.dumps({"choices": [choice]}).encode(), "x", REQUEST)
    return judge_answer(answer, Gates())


def test_a_clean_answer_is_clean() -> None:
    """What could not be judged is skipped."""
    found = judged("The Loire rises in the Massif Central.")
    assert not found.failed
    outcomes = {each.gate: each.outcome for each in found.choices[0].judgements}
    assert outcomes[CheckLevel.L1] is Outcome.PASSED
    assert outcomes[CheckLevel.L3] is Outcome.SKIPPED


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", Reason.EMPTY), ("The Loire\x00 and\x00 Rh\x00one.\x00", Reason.CONTROL_CHARS)],
)
def test_a_broken_answer_fails(text: str, reason: Reason) -> None:
    """With the reason that the agent would give."""
    found = judged(text)
    assert found.failed
    assert [each.reason for each in found.choices[0].failures] == [reason]


def test_a_refusal_over_nan_is_proof_and_any_other_is_none() -> None:
    """The engine refused only because log probabilities were asked."""
    body = json.dumps({"error": {"message": NAN_TEXT}}).encode()
    nan = judge_answer(SavedAnswer("x", {}, status=400, body=body), Gates())
    assert nan.failed
    assert nan.choices[0].failures[0].reason is Reason.NAN_LOGITS
    other = judge_answer(SavedAnswer("x", {}, status=400, body=b"no"), Gates())
    assert (other.failed, other.choices) == (False, ())


def test_calls_that_the_limit_cut_are_not_judged() -> None:
    """They are torn without being damaged; the same at a stop is a fault."""
    call = {"index": 0, "function": {"name": "f", "arguments": '{"a":'}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    for reason, failed in (("length", False), ("tool_calls", True)):
        choice = {"index": 0, "message": {"tool_calls": [call]}, "finish_reason": reason}
        data = json.dumps({"choices": [choice]}).encode()
        [answer] = read_saved(data, "x", {**REQUEST, "tools": tools})
        assert judge_answer(answer, Gates()).failed is failed
