"""How answers are phrased."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.phrasing import answers_with, numbers_in, plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("**Paris**", "Paris", id="bold"),
        pytest.param("`AB-1234`", "AB-1234", id="code"),
        pytest.param("# Answer\n> 5", "Answer 5", id="heading"),
        pytest.param(r"\boxed{5}", "5", id="boxed"),
        pytest.param(r"\( 2 + 3 = 5 \)", "2 + 3 = 5", id="latex"),
        pytest.param("ＡＢ－１２３４", "AB-1234", id="full-width"),
        pytest.param("“你好，世界。”", '"你好,世界。"', id="quotes"),
        pytest.param("AB–1234", "AB-1234", id="dash"),
        pytest.param("中國的首都是北京，蘋果", "中国的首都是北京,苹果", id="traditional"),
        pytest.param(" a \n\n b ", "a b", id="blanks"),
    ],
)
def test_marks_of_form_go(text: str, expected: str) -> None:
    """What is said stays."""
    assert plain(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "5",
        "５",
        "Five.",
        "five",
        "**5**",
        "The answer is 5.",
        "The answer is five!",
        "2+3=5",
        "2 + 3 = **5**",
        "5 (because 2 plus 3 makes 5)",
        "The answer is 5, since 2 and 3 are added.",
        "2加3等于5。",
        "等于五",
        "答案是五，因为二加三。",
        r"$\boxed{5}$",
        "5.0",
        "2 plus 3 equals 5",
    ],
)
def test_five_in_many_words(text: str) -> None:
    """In digits, words, Chinese, of any width."""
    assert answers_with(text, 5)


@pytest.mark.parametrize(
    "text", ["", "6", "2+3=6", "55", "5.5", "1,005", "fifty", "fifty-five", "2 and 3", "十五", "no"]
)
def test_another_number_is_not_five(text: str) -> None:
    """However near."""
    assert not answers_with(text, 5)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("forty-two", [42]),
        ("one hundred and five", [105]),
        ("nineteen", [19]),
        ("1,234 and -7", [1234, -7]),
        ("二十一", [21]),
        ("十", [10]),
        ("一百零五", [105]),
        ("二〇二四", [2024]),
        ("no one there", [1]),
        ("someone", []),
    ],
)
def test_numbers_are_read(text: str, numbers: list[int]) -> None:
    """English and Chinese ones."""
    assert [value for value, _ in numbers_in(text)] == numbers


@given(st.text(max_size=80), st.integers(-10, 200))
def test_any_text_is_read(text: str, number: int) -> None:
    """No answer breaks a probe."""
    assert answers_with(text, number) in (True, False)


@given(st.integers(0, 10**6))
def test_a_number_answers_with_itself(number: int) -> None:
    """Plain, grouped and in a sentence."""
    for text in (f"{number}", f"{number:,}", f"The answer is {number}."):
        assert answers_with(text, number)
