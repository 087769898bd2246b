"""Rescue: answers that are cut short at their end, and whole ones whose tokens do not show."""

import json
from pathlib import Path

import pytest
from tests.integration.agent.parts import chat, completion, serving, settings_for
from tests.integration.agent.test_rescue import (
    BAD,
    CHAT,
    COMPLETIONS,
    GOOD,
    LONG,
    ask,
    read,
    rescuing,
    set_fault,
    uncut,
)

from gatemesh_common.messages import Reason

pytestmark = pytest.mark.integration


@pytest.fixture
def good_only(engines: dict[str, str]) -> dict[str, str]:
    """Return one clean engine alone."""
    return {GOOD: engines[GOOD]}


@pytest.mark.parametrize("logprobs", [20, 0], ids=["figures", "text"])
async def test_an_end_in_the_middle_of_a_sentence_is_gone_on_from(
    engines: dict[str, str], good_only: dict[str, str], tmp_path: Path, logprobs: int
) -> None:
    """Nothing is said twice, and nothing was held but the end itself."""
    body = chat("Tell me about the wind, length 900.", stream=True, max_tokens=300)
    whole = await uncut(tmp_path / "a", good_only, CHAT, body)
    set_fault(engines[BAD], fault="empty", after_tokens=150)
    async with rescuing(tmp_path, engines, top_logprobs=logprobs) as setup:
        seen = read((await ask(setup, CHAT, body)).body)
    assert seen.told is not None
    assert (seen.told["cause"], seen.told["reason"]) == ("gate", "truncated")
    assert (seen.text, seen.reasons, seen.done) == (whole.text, whole.reasons, 1)
    assert len(seen.ids) == 1


async def test_an_end_that_nobody_can_go_on_from_passes(
    engines: dict[str, str], tmp_path: Path
) -> None:
    """It is evidence, no proof: a client gets an end, not an error."""
    set_fault(engines[BAD], fault="empty", after_tokens=150)
    set_fault(engines[GOOD], fault="empty")
    body = chat("Tell me about the wind, length 900.", stream=True, max_tokens=300)
    async with rescuing(tmp_path, engines) as setup:
        everywhere = read((await ask(setup, CHAT, body)).body)
        penalties = read((await ask(setup, CHAT, {**body, "frequency_penalty": 1})).body)
    for seen in (everywhere, penalties):
        assert (seen.error, seen.reasons, seen.done) == (None, ["stop"], 1)


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("after", [0, 20])
async def test_a_stream_without_an_end_goes_on_elsewhere(
    engines: dict[str, str], good_only: dict[str, str], tmp_path: Path, path: str, after: int
) -> None:
    """An engine says how its answer ended; one that does not has not ended it."""
    body = (chat if path == CHAT else completion)(stream=True, max_tokens=LONG)
    whole = await uncut(tmp_path / "a", good_only, path, body)
    set_fault(engines[BAD], fault="unended", after_tokens=after)
    async with rescuing(tmp_path, engines) as setup:
        seen = read((await ask(setup, path, body)).body)
    assert (seen.text, seen.reasons, seen.done) == (whole.text, whole.reasons, 1)


async def test_a_stream_without_an_end_that_is_not_gone_on_with_says_so(
    engines: dict[str, str], tmp_path: Path
) -> None:
    """It does not look like an answer that had ended."""
    set_fault(engines[BAD], fault="unended", after_tokens=20)
    async with rescuing(tmp_path, engines) as setup:
        seen = read((await ask(setup, CHAT, chat(stream=True, presence_penalty=1))).body)
    assert seen.error is not None
    assert (seen.error["code"], seen.done) == ("rescue_penalties", 1)


@pytest.mark.parametrize("kind", ["nan", "flat"])
@pytest.mark.parametrize("after", [0, 5])
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_a_whole_answer_of_hidden_tokens_is_seen_without_log_probabilities(
    engines: dict[str, str], tmp_path: Path, kind: str, after: int, path: str
) -> None:
    """The engine counts what it never showed."""
    body = (chat if path == CHAT else completion)(max_tokens=LONG)
    async with serving(settings_for(tmp_path / "a", {GOOD: engines[GOOD]})) as setup:
        whole = json.loads((await setup.post(path, body)).body)
    set_fault(engines[BAD], fault=kind, after_tokens=after)
    async with rescuing(tmp_path, engines, top_logprobs=0) as setup:
        got = await setup.post(path, body)
        reasons = {each.reason for each in await setup.verdicts()}
    assert json.loads(got.body)["choices"] == whole["choices"]
    assert got.headers["X-Gatemesh-Instance"] == GOOD
    assert reasons == {Reason.TOKENS_WITHOUT_TEXT}


@pytest.mark.parametrize(("kind", "seen"), [("nan", True), ("flat", True), (None, False)])
async def test_tokens_that_are_hidden_late_are_counted(
    engines: dict[str, str], tmp_path: Path, kind: str | None, *, seen: bool
) -> None:
    """By the engine itself: it spells its text anew. A clean answer passes."""
    body = chat("Tell me about the wind, length 900.", max_tokens=400)
    async with serving(settings_for(tmp_path / "a", {GOOD: engines[GOOD]})) as setup:
        whole = json.loads((await setup.post(CHAT, body)).body)
    if kind is not None:
        set_fault(engines[BAD], fault=kind, after_tokens=200)
    async with rescuing(tmp_path, engines, top_logprobs=0) as setup:
        got = await setup.post(CHAT, body)
    assert json.loads(got.body)["choices"] == whole["choices"]
    assert got.headers["X-Gatemesh-Instance"] == (GOOD if seen else BAD)
