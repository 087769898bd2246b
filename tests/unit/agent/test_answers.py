"""The agent's own errors look like the engine's."""

import json

import pytest

from gatemesh_agent.answers import (
    answers_unfit,
    error_event,
    no_instance,
    shape_of,
    stream_broken,
    too_large,
    upstream_failed,
    upstream_silent,
)
from gatemesh_agent.requests import Route


@pytest.mark.parametrize(
    ("body", "code", "names"),
    [
        (no_instance("pool-x"), 503, "pool-x"),
        (upstream_failed("engine-7", "accepts no connection"), 502, "engine-7"),
        (upstream_silent("engine-7", 300.0), 504, "300 s"),
        (too_large(1024), 413, "GATEMESH_AGENT_MAX_BODY_BYTES"),
    ],
)
def test_errors_have_the_engines_shape_and_name_the_way_out(
    body: bytes, code: int, names: str
) -> None:
    """A client library reads them as any other."""
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code
    assert names in error["message"]


@pytest.mark.parametrize(
    "events", [stream_broken(Route.CHAT, "e", "broke off"), error_event(502, "T", "m")]
)
def test_a_broken_stream_ends_in_order(events: bytes) -> None:
    """An error, then the end that clients wait for."""
    first, done, rest = events.split(b"\n\n")
    assert json.loads(first.removeprefix(b"data: "))["error"]["code"] == 502
    assert (done, rest) == (b"data: [DONE]", b"")


def test_a_broken_response_ends_with_a_named_event() -> None:
    """Its clients wait for no `[DONE]`."""
    name, data, *rest = stream_broken(Route.RESPONSES, "e", "broke off").split(b"\n")
    assert name == b"event: error"
    assert json.loads(data.removeprefix(b"data: "))["error"]["code"] == 502
    assert rest == [b"", b""]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (no_instance("p"), "overloaded_error"),
        (too_large(1), "request_too_large"),
        (upstream_failed("e", "died"), "api_error"),
        (upstream_silent("e", 1.0), "timeout_error"),
    ],
)
def test_messages_have_errors_of_their_own_shape(body: bytes, kind: str) -> None:
    """Anthropic's clients read `type` and `error.type`."""
    shaped = json.loads(shape_of(Route.MESSAGES)(body))
    assert shaped["type"] == "error"
    assert shaped["error"]["type"] == kind
    assert shaped["error"]["message"] == json.loads(body)["error"]["message"]
    assert shape_of(None)(body) == shape_of(Route.CHAT)(body) == body


@pytest.mark.parametrize(
    ("tried", "code", "helps"),
    [(1, "answers_unfit", True), (2, "answers_unfit_everywhere", False)],
)
def test_another_try_is_advised_only_where_it_can_help(
    tried: int,
    code: str,
    helps: bool,  # noqa: FBT001
) -> None:
    """Bad at two instances is the prompt's or the model version's doing."""
    error = json.loads(answers_unfit("nan_logits", tried))["error"]
    assert (error["type"], error["code"]) == ("AnswersUnfit", code)
    assert error["message"].endswith("send it again") is helps
    assert ("will not help" in error["message"]) is not helps
