"""Manifests of weight files."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_executor.weights.manifest import WeightsRefusedError, parse_manifest

A, B = "a" * 64, "B" * 64


def test_the_output_of_sha256sum_is_read() -> None:
    """Text and binary marks, blanks in names, comments."""
    text = f"# made today\n{A}  model.safetensors\n\n{B} *sub/a b.json\n"
    assert parse_manifest(text) == {"model.safetensors": A, "sub/a b.json": B.lower()}


@pytest.mark.parametrize(
    "listed",
    [
        {"m.bin": A},
        {"files": {"m.bin": A}},
        {"files": {"m.bin": {"sha256": A, "size": 3}}},
        {"m.bin": f"sha256:{A}"},
    ],
)
def test_json_is_read(listed: object) -> None:
    """Plain, under `files`, with sizes, with the algorithm's name."""
    assert parse_manifest(json.dumps(listed)) == {"m.bin": A}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param("", "lists no file", id="empty"),
        pytest.param("{}", "lists no file", id="empty-json"),
        pytest.param("{", "no JSON", id="torn-json"),
        pytest.param('{"files": []}', "files", id="no-map"),
        pytest.param(f"{A[:-1]}  m", "line 1", id="short-digest"),
        pytest.param('{"m": "abc"}', "m: no SHA-256", id="short-digest-json"),
        pytest.param(f"{A}  /etc/passwd", "/etc/passwd", id="absolute"),
        pytest.param(f"{A}  ../m", "../m", id="outside"),
        pytest.param(f"{A}  m\n{B}  m", "m is listed twice", id="twice"),
        pytest.param(f'{{"m": "{A}", "m": "{B}"}}', "twice", id="twice-json"),
        pytest.param(f"{A}  m\n{B}  ./m", "m is listed twice", id="twice-in-other-words"),
    ],
)
def test_a_wrong_manifest_is_refused(text: str, named: str) -> None:
    """With what is wrong in it."""
    with pytest.raises(WeightsRefusedError) as caught:
        parse_manifest(text)
    assert named in str(caught.value)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No other error comes out."""
    with contextlib.suppress(WeightsRefusedError):
        assert parse_manifest(text)
