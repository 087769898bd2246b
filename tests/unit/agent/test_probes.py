"""Probes: what is asked, and how answers are read."""

import json
from typing import Any

import pytest

from gatemesh_agent.probes import fault_of, model_name, request_body, text_of
from gatemesh_agent.suite import Prompt

NAN = b'{"error":{"message":"Out of range float values are not JSON compliant"}}'


def test_a_prompt_is_asked_greedily_with_log_probabilities() -> None:
    """JSON is asked for where the prompt wants it."""
    body = json.loads(request_body("m", Prompt(id="a", text="Hi", expect="x", max_tokens=9), 20))
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 9,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 20,
    }
    plain = json.loads(
        request_body("m", Prompt(id="a", text="Hi", expect="x", json_object=True), 0)
    )
    assert plain["response_format"] == {"type": "json_object"}
    assert "logprobs" not in plain


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
