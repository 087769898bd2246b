"""How probes are asked, and how answers are read."""

import json
from typing import Any

import pytest

from gatemesh_agent.probe_asking import (
    MOST_TIMES,
    ProbeWish,
    fault_of,
    fewer_wishes,
    model_name,
    more_time,
    request_body,
    text_of,
)
from gatemesh_agent.suite import Asking, Prompt, Turn, Way

NAN = b'{"error":{"message":"Out of range float values are not JSON compliant"}}'
TURNS = (Turn(question="Well?", answer="Yes."),)
PROMPT = Prompt(id="a", text="Hi", expect="x", max_tokens=9)


def asked(asking: Asking, wishes: ProbeWish) -> dict[str, Any]:
    """Return the body of a request."""
    body: dict[str, Any] = json.loads(request_body("m", asking, wishes, TURNS))
    return body


def test_a_prompt_is_asked_greedily_with_log_probabilities() -> None:
    """Behind the clients, where the engine knows priorities."""
    assert asked(Asking(PROMPT), ProbeWish(20)) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 9,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 20,
        "priority": 1,
    }


def test_json_is_asked_for_where_the_prompt_wants_it() -> None:
    """And nothing that the engine does not know."""
    prompt = Prompt(id="a", text="Hi", expect="x", json_object=True)
    plain = asked(Asking(prompt), ProbeWish(0, extras=False))
    assert plain["response_format"] == {"type": "json_object"}
    assert not {"logprobs", "priority", "cache_salt"} & plain.keys()


def test_a_fresh_asking_has_a_salt_of_its_own() -> None:
    """Nothing of it can be cached; the cached one is the same without."""
    one, other = (asked(Asking(PROMPT, Way.FRESH), ProbeWish(0)) for _ in range(2))
    cached = asked(Asking(PROMPT, Way.CACHED), ProbeWish(0))
    assert one.pop("cache_salt") != other.pop("cache_salt")
    assert one == other == cached
    assert [one["content"] for one in cached["messages"]] == ["Well?", "Yes.", "Hi"]
    assert [one["role"] for one in cached["messages"]] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("wishes", "way", "status", "body", "fewer"),
    [
        pytest.param(ProbeWish(20), Way.PLAIN, 200, b"", None, id="answered"),
        pytest.param(ProbeWish(20), Way.PLAIN, 400, NAN, None, id="nan"),
        pytest.param(
            ProbeWish(20), Way.PLAIN, 400, b"too many logprobs", ProbeWish(0), id="no-logprobs"
        ),
        pytest.param(
            ProbeWish(20), Way.PLAIN, 400, b"priority?", ProbeWish(20, extras=False), id="no-extras"
        ),
        pytest.param(ProbeWish(0), Way.FRESH, 422, b"cache_salt?", None, id="no-salt"),
        pytest.param(ProbeWish(0, extras=False), Way.PLAIN, 400, b"?", None, id="nothing-left"),
        pytest.param(ProbeWish(0), Way.PLAIN, 500, b"", None, id="broken"),
        pytest.param(ProbeWish(0), Way.PLAIN, 401, b"", None, id="no-key"),
    ],
)
def test_what_an_engine_does_not_know_is_taken_back(
    wishes: ProbeWish, way: Way, status: int, body: bytes, fewer: ProbeWish | None
) -> None:
    """One wish at a time, and never the salt of a fresh asking."""
    assert fewer_wishes(wishes, way, status, body) == fewer


@pytest.mark.parametrize(("in_flight", "times"), [(0, 1.0), (8, 2.0), (24, 4.0), (1000, 4.0)])
def test_a_busy_instance_gets_more_time(in_flight: int, times: float) -> None:
    """Up to a limit: one that hangs is busy, too."""
    assert more_time(in_flight) == times <= MOST_TIMES


@pytest.mark.parametrize(
    ("status", "body", "fault"),
    [
        pytest.param(400, NAN, "nan_logits", id="nan"),
        pytest.param(400, b"{}", None, id="cannot"),
        pytest.param(404, b"{}", None, id="no-such-thing"),
        pytest.param(500, b"{}", "status 500", id="broken"),
        pytest.param(0, b"", "no answer", id="gone"),
    ],
)
def test_faults(status: int, body: bytes, fault: str | None) -> None:
    """What an engine cannot do is no damage."""
    assert fault_of(status, body) == fault


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"data":[{"id":"m"},{"id":"lora"}]}', "m"),
        (b'{"data":[]}', ""),
        (b"[]", ""),
        (b"no", ""),
        (b'{"data":[5]}', ""),
    ],
)
def test_the_first_listed_model_is_probed(body: bytes, name: str) -> None:
    """A list that cannot be read names none."""
    assert model_name(body) == name


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"choices": [{"message": {"content": "Hi"}}]}, "Hi"),
        ({"choices": [{"message": {"content": None}}]}, ""),
        ({"choices": []}, ""),
        ({"choices": [{"message": 5}]}, ""),
    ],
)
def test_the_text_of_an_answer(fields: dict[str, Any], text: str) -> None:
    """Absent counts as empty."""
    assert text_of(fields) == text
