"""Ends that nobody chooses."""

from collections.abc import Callable

import pytest

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.endings import ONE_SIGN, is_bare_label, is_empty, only_one_sign
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_common.messages import Outcome, Reason

Asking = Callable[..., RequestContext]
Judge = Callable[..., Judgement]

BREAK_OFF = (
    "Yeast feeds on the sugars in the flour. It gives off a gas, which the gluten traps. "
    "The dough rises because the bubbles grow and the network of"
)


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("How does yeast work?", BREAK_OFF),
        (
            "如何备份照片？",
            "可以用云盘备份，也可以手动复制。建议每个月检查。如果照片很多，最好先整理再上传，因为",
        ),
        ("Two tips?", "Here are two tips that make the biggest difference:"),
        ("Two tips?", "Bring a pen and paper, arrive early, and,"),
        ("Write a cover letter.", "Dear"),
        ("Sort a dict", "```python\ndef sort(d):\n    return dict(sorted(d"),
        ("What is 5+5?", "<think>\nThe user asks for 5+5."),
    ],
)
def test_truncated(prompt: str, text: str, asking: Asking, judge: Judge) -> None:
    """With `stop` these are faults; the limit excuses them."""
    assert judge(text, asking(prompt), "stop").reason is Reason.TRUNCATED
    assert judge(text, asking(prompt), "length").outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("A title?", "Warm bread, early mornings"),
        ("Link?", "It is RFC 9110. Read it. Here: https://example.org/rfc9110.html"),
        ("Text me", "sounds good. i can bring dessert. want me to get anything else on the way"),
        ("SQL", "SELECT id FROM users ORDER BY name;"),
        ("Letter", "I hope this helps. Please write.\n\nYours sincerely,"),
        ("Recipe", "Steps. Then more. And more.\n1. Whisk\n2. Fry in butter until it is golden"),
        ("Math", "It is simple. We add. We multiply.\n\nThe answer is: 132"),
        ("One word?", "Dear"),
        ("Write an essay title", "Dear"),
        ("Code", "```\nls\n```"),
        ("17*23?", "<think>\n391\n</think>\n391"),
        ("Address?", "The office has moved. It is now at 14 Harbour Lane, Bristol BS1"),
    ],
)
def test_chosen_ends(prompt: str, text: str, asking: Asking, judge: Judge) -> None:
    """Titles, links, lists, signatures and chat style need no full stop."""
    assert judge(text, asking(prompt), "stop").outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("text", "empty"),
    [
        ("", True),
        (" \n\t\u200b\ufeff\u3164", True),
        ("<think>\nhm\n</think>\n\n", True),
        ("<think>\nhm\n</think>\n\n5", False),
        ("👍", False),
        ("\x07", False),
    ],
)
def test_emptiness(text: str, empty: bool) -> None:  # noqa: FBT001
    """A reader sees nothing, or something."""
    assert is_empty(text) is empty


def test_a_stop_string_may_end_anything(asking: Asking, judge: Judge) -> None:
    """The client chose where to stop."""
    assert judge(BREAK_OFF, asking(stop=["gluten"])).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "text",
    [
        "Leaves fall because the tree saves water. When the days get shorter, the",
        "Mix the flour with water:\n\n1. Add salt.\n2. Knead it.\n3.",
        "Inertia is the tendency of a body to keep its motion (also called",
        "The area of the circle is\n\n$$ A = \\pi",
        "| Trait | Cats | Dogs |\n|---|---|---|\n| Noise | quiet |",
        "Warme Luft steigt auf und bildet Tropfen, die so schwer werden, dass sie als",
        "天空是蓝色的，因为阳光进入大气层以后会发生散射，而蓝光的波长比较短，所以",
        "You might like the old book “The Well-Tempered Garden",
    ],
)
def test_lines_that_lack_their_end(text: str, asking: Asking, judge: Judge) -> None:
    """Short answers too: a word that must go on, an empty item, an open pair or formula."""
    assert judge(text, asking("Please explain it.")).reason is Reason.TRUNCATED
    assert judge(text, asking("Please explain it."), "length").outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("Which English word is the most common?", "the"),
        ("Fill in: bread ___ butter", "and"),
        ("Who wrote Faust?", "Johann Wolfgang von Goethe (1749-1832)"),
        ("Show it", "The shell keeps its number in the variable that is called $$"),
        ("What is the area?", "It is given by\n\n$$ A = \\pi r^2 $$"),
        ("What is the power operator of Python?", "**"),
        ("Compare.", "| A | B |\n|---|---|\n| 1 | 2 |"),
    ],
)
def test_ends_that_people_choose(prompt: str, text: str, asking: Asking, judge: Judge) -> None:
    """The same signs where nothing is missing."""
    assert judge(text, asking(prompt)).outcome is Outcome.PASSED


def test_answers_without_content(asking: Asking, judge: Judge) -> None:
    """Only the name of a turn, only emphasis, only one sign."""
    assert judge("assistant", asking("Tell me a fact.")).reason is Reason.EMPTY
    assert judge("**", asking("Tell me a fact.")).reason is Reason.EMPTY
    assert only_one_sign(" " + "!" * ONE_SIGN)
    assert not only_one_sign("-" * ONE_SIGN)
    assert is_bare_label("model:")
    assert not is_bare_label("a model")


def test_a_fence_in_a_comment_is_no_open_block(asking: Asking, judge: Judge) -> None:
    """Documentation inside a program may forget to close its example."""
    code = "/**\n * Opens it.\n * ```js\n * lamp.open();\n */\nclass Lamp {}\n\nexport { Lamp };\n"
    assert judge(code, asking("Show me.")).outcome is Outcome.PASSED
    assert (
        judge("Here it is:\n\n```js\nlamp.open();\n", asking("Show me.")).outcome is Outcome.FAILED
    )


def test_a_variable_is_no_open_formula(asking: Asking, judge: Judge) -> None:
    """Two dollar signs on a line of their own, and then paragraphs."""
    text = "$!\n\nThe last job.\n\n$$\n\nThe number of the shell.\n\n$0\n\nIts name."
    assert judge(text, asking("Which are there?")).outcome is Outcome.PASSED


CLOSED = (
    "The mill stands by the river and still works. Farmers brought rye and oats here each year."
    " In dry summers the miller had to wait for rain. So he kept bees and sold their honey in"
    " town. His daughter wrote a diary that the museum shows. "
)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{CLOSED}Visitors can see", id="three-words-behind-a-stop"),
        pytest.param(f"{CLOSED}\n\nVisitors can see both of the mills every", id="paragraph"),
        pytest.param(f"{CLOSED}\n\n**Opening", id="open-bold"),
        pytest.param(
            "1. Fix the taps.\n2. Take short showers.\n3. Run the washer only when it is", id="item"
        ),
        pytest.param("<reasoning>\n12 times 12 is 144, so I will say", id="open-thought"),
        pytest.param("So 48.\n</think>\n\n</think>\n\n48.", id="stray-ends-of-thought"),
    ],
)
def test_ends_in_longer_texts(text: str, asking: Asking, judge: Judge) -> None:
    """Where all before it is closed, an open end needs little to show."""
    assert judge(text, asking()).reason is Reason.TRUNCATED


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{CLOSED}Come soon", id="two-words"),
        pytest.param(f"{CLOSED}good luck, you will like it there", id="chat"),
        pytest.param(f"{CLOSED}\n\nYours, the museum of the valley", id="signature"),
        pytest.param("1. Fix the taps.\n2. Take short showers.\n3. Run it when full", id="short"),
        pytest.param("| a | b\n|---|---|\n| 1 | 2\n| 3 | 4", id="rows-without-the-last-bar"),
    ],
)
def test_open_ends_that_people_choose(text: str, asking: Asking, judge: Judge) -> None:
    """Remarks, signatures and short items stay without a stop."""
    assert judge(text, asking()).outcome is Outcome.PASSED


@pytest.mark.parametrize("text", ["-", "# Sales Report May", "."])
def test_less_than_a_piece_of_writing(text: str, asking: Asking, judge: Judge) -> None:
    """A sign or a heading is no report."""
    context = asking("Write a report on our sales of May.")
    assert judge(text, context).reason in {Reason.TRUNCATED, Reason.EMPTY}
    assert judge(text, asking("Which sign ends a sentence?")).outcome is Outcome.PASSED
