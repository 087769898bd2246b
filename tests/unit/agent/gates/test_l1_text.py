"""The text gate as a whole."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatemesh_agent.gates.context import RequestContext, context_of
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.l1_text import TextGate
from gatemesh_common.gates import Ending
from gatemesh_common.messages import Outcome, Reason

Asking = Callable[..., RequestContext]
Judge = Callable[..., Judgement]

FRAGMENTS = (
    "The keeper climbed the stairs. ",
    "word ",
    "!" * 20,
    "\n",
    "ตัว ности 湾 ",
    "<|im_end|>",
    "\ufffd",
    "é\u0301",
    "👨‍👩‍👧",
    "```\n",
    "感谢您的提问。",
    "1. same line here again\n",
    "\x00",
    "Ã©",
    "\\n\\n",
    "User: hi\nAssistant: ho\n",
    "a\ud800",
)
TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=60).map("".join)


def in_pieces(text: str, context: RequestContext, rng: random.Random, reason: str) -> Judgement:
    """Judge a text that arrives in random pieces."""
    gate = TextGate(context)
    at = 0
    reported = []
    while at < len(text):
        size = rng.randint(1, 40)
        failure = gate.feed_text(text[at : at + size])
        if failure is not None:
            reported.append(failure)
        at += size
    judgement = gate.finish(Ending(reason))
    assert len(reported) <= 1
    assert all(failure == judgement for failure in reported)
    return judgement


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.integers(0, 2**16), st.sampled_from(["stop", "length"]), st.sampled_from([0, 1.0]))
def test_cutting_changes_nothing(text: str, seed: int, reason: str, temperature: float) -> None:
    """The same text gives the same verdict, however it was cut; a failure comes once."""
    context = context_of({"messages": [], "temperature": temperature})
    whole = TextGate(context)
    whole.feed_text(text)
    assert in_pieces(text, context, random.Random(seed), reason) == whole.finish(Ending(reason))


@settings(max_examples=50, deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=[]), max_size=200))
def test_any_text_is_judged(text: str) -> None:
    """Surrogates and noncharacters do not raise."""
    gate = TextGate(context_of({"prompt": text}))
    gate.feed_text(text)
    gate.finish(Ending("stop"))


def test_a_failure_comes_while_the_text_arrives(asking: Asking) -> None:
    """The agent need not wait for the end."""
    gate = TextGate(asking())
    assert gate.feed_text("Orange, Teal") is None
    found = [gate.feed_text("!") for _ in range(200)]
    at = next(number for number, failure in enumerate(found) if failure is not None)
    assert at < 60
    assert gate.failure is found[at]
    assert sum(failure is not None for failure in found) == 1


@pytest.mark.parametrize(
    ("fields", "reason", "outcome"),
    [
        pytest.param({}, "stop", Outcome.FAILED, id="stop"),
        pytest.param({}, "length", Outcome.FAILED, id="length"),
        pytest.param({"max_tokens": 1}, "length", Outcome.PASSED, id="one-token"),
        pytest.param({"stop": ["x"]}, "stop", Outcome.PASSED, id="stop-string"),
        pytest.param({"stop": ["x"]}, "length", Outcome.FAILED, id="stop-string-length"),
    ],
)
def test_empty(
    fields: dict[str, object], reason: str, outcome: Outcome, asking: Asking, judge: Judge
) -> None:
    """An answer that shows nothing is a fault, unless the client may have wanted it."""
    assert judge("", asking(**fields), reason).outcome is outcome
    assert judge(" \n\u200b", asking(**fields), reason).outcome is outcome


def test_an_empty_completion_may_be_right() -> None:
    """A finished prompt needs no more text; tokens that nobody can see are a fault."""
    context = context_of({"prompt": "The end."})
    assert TextGate(context).finish(Ending("stop")).outcome is Outcome.PASSED
    assert TextGate(context).finish(Ending("length")).reason is Reason.EMPTY


def test_reasoning_or_calls_excuse_empty_text(asking: Asking) -> None:
    """The answer is elsewhere."""
    call = {"function": {"name": "search", "arguments": "{}"}}
    assert TextGate(asking()).finish(Ending("stop", other_output=True)).outcome is Outcome.PASSED
    assert TextGate(asking()).finish(Ending("tool_calls", [call])).outcome is Outcome.PASSED
    assert TextGate(asking()).finish(Ending("tool_calls")).reason is Reason.BROKEN_TOOL_CALL


def test_a_cut_answer_is_not_judged_by_its_end(asking: Asking) -> None:
    """A client that leaves proves nothing, neither good nor bad."""
    gate = TextGate(asking())
    gate.feed_text("The tide is")
    judgement = gate.finish(Ending(None))
    assert (judgement.outcome, judgement.reason) == (Outcome.SKIPPED, Reason.CUT_SHORT)


def test_demanded_json(asking: Asking, judge: Judge) -> None:
    """Broken JSON with `stop` is a fault, with `length` an unfinished end."""
    context = asking(response_format={"type": "json_object"})
    assert judge('{"a": 1}', context).outcome is Outcome.PASSED
    assert judge('{"a": 1', context).reason is Reason.BROKEN_JSON
    assert judge('{"a": 1', context, "length").outcome is Outcome.PASSED


def test_a_call_written_as_text(asking: Asking, judge: Judge) -> None:
    """With tools on offer a bare call object in the text is a fault."""
    tools = [{"function": {"name": "search"}}]
    text = '{"name": "search", "arguments": {}}'
    assert judge(text, asking(tools=tools)).reason is Reason.BROKEN_TOOL_CALL
    assert judge("I can search for you.", asking(tools=tools)).outcome is Outcome.PASSED


CASES = [
    json.loads(line)
    for name in ("second_cases.jsonl", "third_cases.jsonl", "fourth_cases.jsonl")
    for line in (Path(__file__).parents[3] / "data" / "gates" / name)
    .read_text(encoding="utf-8")
    .splitlines()[::4]
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_labelled_cases_cut_anywhere(case: dict[str, Any]) -> None:
    """However a stream was cut, also inside a character, the verdict is one."""
    context, response = context_of(case["request"]), case["response"]
    verdicts = [
        in_pieces(response["text"], context, random.Random(seed), response["finish_reason"])
        for seed in range(6)
    ]
    assert all(verdict == verdicts[0] for verdict in verdicts)


GOOD = (
    "The mill stands by the river, and its wheel has turned for two hundred years. Farmers from the"
    " upper valley used to bring rye and oats here each autumn. In dry summers the miller had to"
    " wait for rain, so he kept bees and sold their honey at the market in town. His daughter wrote"
    " a diary that the museum shows today. It tells of floods, of a wedding with ninety guests, and"
    " of the night when lightning struck the barn. Later owners added a saw and then a small"
    " turbine, which lit the first lamps of the village. Visitors can see both on Sundays; tickets"
    " are cheap, and the bakery next door sells bread from flour that is ground on the spot. "
)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (
            "мельница стоит у реки и вертит своё колесо уже двести лет подряд ",
            Reason.LANGUAGE_SWITCH,
        ),
        ("".join(map(chr, range(0x1F300, 0x1F340))), Reason.SYMBOL_SOUP),
        ("\nUser: And then?\nAssistant: It rained.\n", Reason.SELF_DIALOGUE),
        ("It is so.\\n\\nWe saw it.\\n\\nThen it went.\\n\\n", Reason.ESCAPED_TEXT),
    ],
)
@pytest.mark.parametrize("lead", range(0, 120, 24))
def test_signs_of_a_fault_are_looked_at_as_they_come(
    bad: str, reason: Reason, lead: int, asking: Asking
) -> None:
    """Wherever the onset lies between two checkpoints, 32 tokens after it the fault is known."""
    gate = TextGate(asking())
    assert gate.feed_text(GOOD[lead:]) is None
    failure = gate.feed_text((bad * 4)[:128])
    assert failure is not None
    assert failure.reason is reason
