"""Steps and their JSON."""

import orjson

from gatemesh_engine_sim.steps import END_TOKEN, NAN, Candidate, Step, text_of

STEP = Step("é", "é", 7, -0.5, (Candidate("é", -0.5), Candidate("e", -1.0)))


def test_entry_has_vllms_order_of_keys() -> None:
    """Byte for byte what a client of vLLM sees."""
    assert (
        STEP.chat_logprob(1)
        == (
            '{"token":"é","logprob":-0.5,"bytes":[195,169],'
            '"top_logprobs":[{"token":"é","logprob":-0.5,"bytes":[195,169]}]}'
        ).encode()
    )


def test_no_more_candidates_than_asked() -> None:
    """`top_logprobs` 0 keeps the list, empty."""
    assert [
        len(orjson.loads(STEP.chat_logprob(count))["top_logprobs"]) for count in (0, 1, 2, 20)
    ] == [0, 1, 2, 2]


def test_tokens_can_be_named_by_id() -> None:
    """As vLLM does: only the chosen one keeps the bytes of its text."""
    entry = orjson.loads(STEP.chat_logprob(2, {"e": 9}.__getitem__))
    assert (entry["token"], entry["bytes"]) == ("token_id:7", [195, 169])
    assert [one["token"] for one in entry["top_logprobs"]] == ["token_id:7", "token_id:9"]
    assert bytes(entry["top_logprobs"][1]["bytes"]) == b"token_id:9"
    assert orjson.loads(STEP.chat_logprob(2))["token"] == "é"


def test_nan_is_null() -> None:
    """As vLLM writes it into streams."""
    step = Step("", "x", 1, NAN, ())
    assert not step.is_finite
    assert orjson.loads(step.chat_logprob(0))["logprob"] is None


def test_only_the_hidden_end_token_ends() -> None:
    """The same token leaked into the text does not."""
    assert Step("", END_TOKEN, 2, -0.1, ()).ends
    assert not Step(END_TOKEN, END_TOKEN, 2, -0.1, ()).ends


def test_text_of_joins_what_is_visible() -> None:
    """Hidden steps add nothing."""
    assert text_of((STEP, Step("", END_TOKEN, 2, -0.1, ()))) == "é"
