"""Marks of tokeniser and template are faults unless they are the subject."""

from collections.abc import Callable

import pytest

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_common.messages import Outcome, Reason

Asking = Callable[..., RequestContext]
Judge = Callable[..., Judgement]

TOOLS = [{"type": "function", "function": {"name": "search"}}]


@pytest.mark.parametrize(
    "mark",
    [
        "<|im_end|>",
        "<|reserved_special_token_42|>",
        "<｜end▁of▁sentence｜>",
        "<pad>",
        "<unk>",
        "<end_of_turn>",
        "<extra_id_7>",
        "[INST]",
        "<<SYS>>",
        "[PAD]",
        "</s>",
    ],
)
def test_a_leaked_mark(mark: str, asking: Asking, judge: Judge) -> None:
    """Each one fails wherever blocks cut it, and its place is known."""
    for size in range(20, 37):
        lead = "A vole is a small rodent of the field"[:size]
        judgement = judge(lead + mark, asking())
        assert judgement.reason is Reason.SPECIAL_TOKENS
        assert judgement.span is not None
        assert judgement.span.char_start == size


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("What does <|im_end|> do?", "The mark <|im_end|> closes a turn."),
        ("Tell me about voles", "Write `<|im_end|>` at the end."),
        ("Prices in HTML", "<p><s>40</s> 32</p> <s>25</s> 19"),
        ("Tell me about voles", "a < b and c | d, [INSTALL] it"),
    ],
)
def test_marks_in_their_place(prompt: str, text: str, asking: Asking, judge: Judge) -> None:
    """Quoted marks, HTML and the subject of the prompt pass."""
    assert judge(text, asking(prompt)).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("ĠTurnĠyourĠback.ĊĊItĠworks", Outcome.FAILED),
        ("▁Start▁slow▁and▁keep", Outcome.FAILED),
        ("Good <0xF0><0x9F> day", Outcome.FAILED),
        ("Good <0x0A> day", Outcome.PASSED),
        ("play ##ing and sing ##ing and danc ##ing on", Outcome.FAILED),
        ("▁▃▂▅█▇▄ low on the left", Outcome.PASSED),
        ("Ġermanja hija pajjiż fl-Ewropa", Outcome.PASSED),
    ],
)
def test_undecoded_tokens(text: str, outcome: Outcome, asking: Asking, judge: Judge) -> None:
    """Three marks of the tokeniser, or two bytes, are too many."""
    assert judge(text, asking()).outcome is outcome


def test_undecoded_tokens_count_once_across_blocks(asking: Asking, judge: Judge) -> None:
    """Two marks stay two, wherever they lie."""
    for size in range(40):
        text = "x" * size + "aĠb and then a long way on bĠc to the very end of it"
        assert judge(text, asking("one word without spaces")).outcome is Outcome.PASSED


def test_a_call_shown_as_text(asking: Asking, judge: Judge) -> None:
    """With tools on offer the mark of a call is a fault; without, it is text."""
    text = '<tool_call>\n{"name": "search"}\n</tool_call>'
    assert judge(text, asking(tools=TOOLS)).reason is Reason.BROKEN_TOOL_CALL
    assert judge(text, asking()).outcome is Outcome.PASSED


def test_channels_without_their_marks(asking: Asking, judge: Judge) -> None:
    """Reasoning and answer glued together by the names of their channels."""
    text = "analysisThe user asks for the capital. Simple.assistantfinalThe capital is Paris."
    assert judge(text, asking("What is the capital of France?")).reason is Reason.SPECIAL_TOKENS
