"""Invented turns of a conversation."""

from collections.abc import Callable

import pytest

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_common.messages import Outcome, Reason

Asking = Callable[..., RequestContext]
Judge = Callable[..., Judgement]

INVENTED = "Wellington.\n\nUser: And of Australia?\nAssistant: Canberra.\n\nUser: And"


@pytest.mark.parametrize(
    "text",
    [
        INVENTED,
        "Der Brocken ist 1141 Meter hoch.\n\nFrage: Und die Zugspitze?\nAntwort: 2962 Meter.",
        "富士山です。\n\nユーザー: では二番目は？\nアシスタント: 北岳です。",
        "百摄氏度。\n\n问：那酒精呢？\n答：七十八度。",
        "In 1937.\n\n### Human: When was he born?\n### Assistant: In 1881.",
        "**Paris**\n\n**Question 2:** And Spain?\n**Answer:** Madrid",
    ],
)
def test_invented_turns(text: str, asking: Asking, judge: Judge) -> None:
    """A question and its answer after the answer are a missing stop."""
    assert judge(text, asking("What is the capital?"), "length").reason is Reason.SELF_DIALOGUE


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("Write a chat between two people", INVENTED),
        ("Which city?", "Wellington.\n\nQuestion: which one did you mean?"),
        ("Which city?", "Question: which city?\nAnswer: Wellington."),
        ("Which city?", "Answer: Wellington.\n\nA: one\nB: two"),
        ("Which city?", "Users: many\nAssistants: few, as the list says."),
    ],
)
def test_labels_in_their_place(prompt: str, text: str, asking: Asking, judge: Judge) -> None:
    """A dialogue on request, one label, and an answer that is labelled itself pass."""
    assert judge(text, asking(prompt), "length").outcome is Outcome.PASSED


def test_fields_of_a_program_are_no_turns(asking: Asking, judge: Judge) -> None:
    """Keys that are called like turns end with a comma or open a bracket."""
    text = "const line = open({\n  input: device.left,\n  output: device.right,\n  input: [\n"
    assert judge(text, asking("How do I open it?"), "length").outcome is Outcome.PASSED


def test_roles_alone_on_a_line(asking: Asking, judge: Judge) -> None:
    """The marks of a template were lost and its roles are left."""
    text = "Picasso painted it.\nuser\nWhere is it?\nassistant\nIn Madrid.\nuser\nHow big?"
    assert judge(text, asking(), "length").reason is Reason.SELF_DIALOGUE
    one = "The fields are:\nuser\nThat is all there is to say about it."
    assert judge(one, asking()).outcome is Outcome.PASSED
