"""What programs leave in an answer."""

from collections.abc import Callable

import pytest

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.leftovers import are_ids, leftover
from gatemesh_common.messages import Outcome, Reason

Asking = Callable[..., RequestContext]
Judge = Callable[..., Judgement]

EVENT = 'data: {"id":"cmpl-7","object":"chat.completion.chunk","choices":[{"index":0}]}\n\n'
TRACE = 'Traceback (most recent call last):\n  File "/opt/w.py", line 4, in step\nRuntimeError: nan'
IDS = "40 1541 345 257 1257 1109 25 48422 1010 1745 2832 618"
WHOLE = [
    ("null", Reason.EMPTY),
    ("nan nan nan", Reason.EMPTY),
    ("[object Object][object Object]", Reason.EMPTY),
    ('{"object":"error","message":"CUDA error","code":500}', Reason.SPECIAL_TOKENS),
    ('{"role":"assistant","content":"Two wheels, one smile."}', Reason.SPECIAL_TOKENS),
    ("<html>\n<head><title>502 Bad Gateway</title></head>\n</html>", Reason.SPECIAL_TOKENS),
    ("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nMittens", Reason.SPECIAL_TOKENS),
    (": ping - 10:00:01\n\n: ping - 10:00:16\n\n", Reason.SPECIAL_TOKENS),
    (r"b'\xea\xb0\x90\xec\x82\xac'", Reason.UNDECODED_TOKENS),
    (IDS, Reason.UNDECODED_TOKENS),
    (f"[{IDS.replace(' ', ', ')}]", Reason.UNDECODED_TOKENS),
]


@pytest.mark.parametrize(("text", "reason"), WHOLE)
def test_nothing_but_a_leftover(text: str, reason: Reason, asking: Asking, judge: Judge) -> None:
    """A client that asked for a name gets what a program printed."""
    assert judge(text, asking("Suggest a cat name.")).reason is reason
    assert judge(text, asking("What does this Python function print?")).outcome is Outcome.PASSED


@pytest.mark.parametrize("piece", [EVENT, TRACE])
def test_traces_inside_an_answer(piece: str, asking: Asking, judge: Judge) -> None:
    """An event or a traceback in prose is the server's, unless the prompt speaks of programs."""
    text = f"The mill stands by the river and its wheel still turns.\n{piece}\nIt is old."
    assert judge(text, asking("Tell me about mills.")).reason is Reason.SPECIAL_TOKENS
    assert judge(text, asking("Show me how a stream or an error looks.")).outcome is Outcome.PASSED
    fenced = text.replace(piece, f"```\n{piece}\n```")
    assert judge(fenced, asking("Tell me about mills.")).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("text", "prompt", "expected"),
    [
        pytest.param(IDS, "Tell me a joke.", True, id="twelve"),
        pytest.param(IDS.rpartition(" ")[0], "Tell me a joke.", False, id="eleven"),
        pytest.param(IDS, "Tell me some numbers.", False, id="asked-for"),
        pytest.param(IDS, "Tell me 12 jokes.", False, id="digits-in-prompt"),
        pytest.param(" ".join(map(str, range(1990, 2010))), "Years?", False, id="sorted"),
        pytest.param(
            "312 318 305 299 287 290 276 264 251 249 240 233", "Levels?", False, id="even"
        ),
    ],
)
def test_token_ids(text: str, prompt: str, expected: bool) -> None:  # noqa: FBT001 (a table)
    """Twelve unsorted numbers of three lengths that nobody asked for."""
    assert are_ids(text, prompt) is expected


def test_a_value_that_the_prompt_names(asking: Asking) -> None:
    """Who asks for `null` may get it, and who asks for the answer of a sum."""
    assert leftover("null", asking("Suggest a name, or null if nothing is known")) is None
    assert leftover("None", asking("Which of these is a prime?")) is None
    assert leftover("undefined", asking("What is 1 divided by 0?")) is None
    assert leftover("undefined", asking("Suggest a name.")) is Reason.EMPTY
