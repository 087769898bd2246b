"""The refusal that shows NaN."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.gates.refusal import is_nan_refusal

REFUSAL = (
    b'{"error":{"message":"Out of range float values are not JSON compliant",'
    b'"type":"BadRequestError","param":null,"code":400}}'
)


def test_the_refusal_of_the_engine() -> None:
    """vLLM answers so when asked for log probabilities that are NaN."""
    assert is_nan_refusal(400, REFUSAL)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, REFUSAL),
        (500, REFUSAL),
        (400, b'{"error":{"message":"max_tokens must be positive","code":400}}'),
        (400, b"Out of range float values are not JSON compliant"),
        (400, b'["Out of range float values are not JSON compliant"]'),
        (400, b'{"error":"Out of range float values are not JSON compliant"}'),
        (
            400,
            json.dumps(
                {"error": {"message": "you said: Out of range float values are not JSON compliant"}}
            ).encode(),
        ),
        (400, b""),
    ],
)
def test_other_answers(status: int, body: bytes) -> None:
    """A client's own fault never counts against an engine."""
    assert not is_nan_refusal(status, body)


@given(st.integers(), st.binary())
def test_any_body_is_read(status: int, body: bytes) -> None:
    """Nothing raises."""
    assert not is_nan_refusal(status, body)
