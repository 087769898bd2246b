"""What clients read of a rescue."""

import json

import pytest

from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.requests import Route
from gatemesh_agent.rescue.kept import Kept
from gatemesh_agent.rescue.refusals import Refusal
from gatemesh_agent.rescue.story import Cause, Fault
from gatemesh_agent.rescue.wording import ending, marker, refused
from gatemesh_agent.sse import DONE
from gatemesh_common.messages import CheckLevel, Outcome, Reason

FAILURE = Judgement(CheckLevel.L3, Outcome.FAILED, Reason.NAN_LOGITS, hard=True)
FAULT = Fault(Cause.GATE, "engine-0", FAILURE)


def test_an_error_says_what_happened_and_what_to_do() -> None:
    """With a code that programs can tell."""
    error = json.loads(refused(FAULT, Refusal.STRUCTURED))["error"]
    assert error["code"] == "rescue_structured_output"
    assert error["type"] == "RescueRefused"
    for part in ("'engine-0'", "damaged", "nan_logits", "grammar", "send it again"):
        assert part in error["message"]


@pytest.mark.parametrize("refusal", [Refusal.EVERYWHERE, Refusal.DEATHS])
def test_where_another_try_cannot_help_nobody_is_told_to_make_one(refusal: Refusal) -> None:
    """What is known of the request is said."""
    message = json.loads(refused(FAULT, refusal))["error"]["message"]
    assert not message.endswith("send it again")
    assert "not" in message.rpartition(";")[0] + message.rpartition("send it again")[0]


@pytest.mark.parametrize("refusal", list(Refusal))
@pytest.mark.parametrize("cause", list(Cause))
def test_all_of_them_are_sentences(cause: Cause, refusal: Refusal) -> None:
    """Whatever comes together."""
    assert json.loads(refused(Fault(cause, "a"), refusal))["error"]["message"].count(": ") >= 1


def test_a_stream_ends_in_its_routes_way() -> None:
    """Chats with the mark of the end, the others with a named event."""
    body = refused(FAULT, Refusal.BUDGET)
    assert ending(Route.CHAT, body) == b"data: " + body + b"\n\n" + DONE
    assert ending(Route.RESPONSES, body) == b"event: error\ndata: " + body + b"\n\n"
    shaped = ending(Route.MESSAGES, body)
    assert json.loads(shaped.partition(b"data: ")[2])["error"]["type"] == "api_error"


def test_a_marker_is_a_comment() -> None:
    """Clients that did not ask would skip it anyway."""
    told = marker(FAULT, "engine-1", Kept("abc", (1, 2), 2, leaked=1), "ids")
    assert told.startswith(b": gatemesh-rescue {")
    assert told.endswith(b"}\n\n")
    assert json.loads(told[18:]) == {
        "from": "engine-0",
        "to": "engine-1",
        "cause": "gate",
        "reason": "nan_logits",
        "kept_tokens": 2,
        "leaked_tokens": 1,
        "by": "ids",
    }
