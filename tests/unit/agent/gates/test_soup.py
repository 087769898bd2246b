"""Passages without words."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.soup import (
    BLOB_LIMIT,
    GLUED_LIMIT,
    HEX_LIMIT,
    LONG_WORD,
    LONG_WORDS_LIMIT,
    LOOSE_BLOB_LIMIT,
    PASSAGE,
    WORDS_PASSAGE,
    are_words,
    digit_soup,
    glued_words,
    hold_long_words,
    is_glued_prose,
    is_newly_unbroken,
    may_be_glued,
    may_hold_blob,
    sign_soup,
)
from gatemesh_agent.gates.window import TextWindow
from gatemesh_common.messages import Outcome, Reason

Asking = Callable[..., RequestContext]
Judge = Callable[..., Judgement]

GLUED = "theyfeelsafebutalsowhentheyareinpain,becausethevibrationseemstocalmthemanddoesgood."
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def blob(size: int) -> str:
    """Return something that looks like base64."""
    return "".join(random.Random(5).choices(ALPHABET, k=size))


def signs(size: int) -> str:
    """Return loose signs."""
    return "".join(random.Random(5).choices("{}[]();:<>|&=!?\\*^%$#@~+,.\"'", k=size))


def digits(size: int) -> str:
    """Return digits and fragments, oddly spaced."""
    parts = ("1", "2", "11", "of", ",", ".", "the", "3 .", ", 2", "in", "a", "1 ,", "..")
    return " ".join(random.Random(5).choices(parts, k=size))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(signs(300), Reason.SYMBOL_SOUP, id="signs"),
        pytest.param(digits(120), Reason.SYMBOL_SOUP, id="digits"),
        pytest.param("Cats purr when " + GLUED, Reason.SPACING_LOST, id="glued"),
        pytest.param("Have a look at " + blob(2 * BLOB_LIMIT), Reason.ENCODED_BLOB, id="blob"),
    ],
)
def test_faults(text: str, reason: Reason, asking: Asking, judge: Judge) -> None:
    """Each kind is named."""
    assert judge(text, asking(), "length").reason is reason


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("Tell me a rule", signs(120)),
        ("Draw something in ASCII", signs(300)),
        ("Encode it in base64", blob(400)),
        ("Write it without spaces", GLUED),
        ("Which page?", "See https://example.org/a/" + blob(300)),
        ("Morse please", "... --- ... / .... . .-.. .-.. --- / " * 8),
        ("The key?", "```\n" + blob(300) + "\n```"),
        ("Long word?", "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz"),
    ],
)
def test_healthy(prompt: str, text: str, asking: Asking, judge: Judge) -> None:
    """Short, wanted, quoted and linked ones pass."""
    assert judge(text, asking(prompt), "length").outcome is Outcome.PASSED


def test_glued_prose_needs_the_mix_of_words() -> None:
    """A cry, a sequence and a key are no glued prose."""
    assert is_glued_prose(GLUED)
    assert len(GLUED) > GLUED_LIMIT
    assert not is_glued_prose("a" * 90)
    assert not is_glued_prose("ACGT" * 25)
    assert not is_glued_prose("bcdfghjklmnpqrstvwxz" * 4)


LETTERS = "w e s l e e p b e c a u s e t h e b r a i n n e e d s r e s t a n d g r o w s"
HEX = "9f3ab27c51de08844fa7b3c9912e6d70" * 4


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("A cow ,.;: ).( ,, ;;. (.,) :.; ,.( );,. ..;( ,)(. ;:, .(,; ).,; (:., ;,) .;:( ,.)", "s"),
        ("It was 48219 00371 5520 9981 3 44721 8 90021 7745 120 33 9 58810 2214 7 66 9 1 80", "s"),
        ("Turn it off " + "".join(chr(0x1F300 + 7 * n) for n in range(70)), "s"),
        ("In short, " + LETTERS, "l"),
        ("Osmosis is " + HEX[:110], "b"),
    ],
)
def test_more_soups(text: str, reason: str, asking: Asking, judge: Judge) -> None:
    """Stops, numbers, pictures, single letters, and hexadecimal digits of odd length."""
    expected = {"s": Reason.SYMBOL_SOUP, "l": Reason.SPACING_LOST, "b": Reason.ENCODED_BLOB}
    assert judge(text, asking("What is it?"), "length").reason is expected[reason]


@pytest.mark.parametrize(
    "text",
    [
        "The digest is " + HEX,
        "The numbers are " + " ".join(map(str, range(1, 40))),
        "a b c d e f g h i j k l m n o p q r s t u v w x y z",
    ],
)
def test_rows_with_an_order(text: str, asking: Asking, judge: Judge) -> None:
    """A digest, sorted numbers and the alphabet."""
    assert judge(text, asking("What is it?"), "length").outcome is Outcome.PASSED


OPERATORS = ("+", "-", "*", "/", "%", "**", "<<", ">>", "&", "|", "^", "~", "<=", "==", "!=") * 3
MONTH = """Mon Tue Wed Thu Fri     Mon Tue Wed Thu Fri
  2   3   4   5   6       6   7   8   9  10
  9  10  11  12  13      13  14  15  16  17
 16  17  18  19  20      20  21  22  23  24
 23  24  25  26  27      27  28  29  30  31
"""


@pytest.mark.parametrize(
    "text",
    [
        MONTH * 2,
        "Mine are " + ", ".join(f"'{sign}'" for sign in OPERATORS),
        'flags("'
        + ",".join(["readonly", "hidden", "draggable", "spellcheck", "autofocus"] * 3)
        + '")',
    ],
    ids=["calendar", "operators", "names"],
)
def test_lists_and_grids(text: str, asking: Asking, judge: Judge) -> None:
    """Days of a month, quoted operators, and names joined by commas."""
    assert judge(text, asking("What is it?"), "length").outcome is Outcome.PASSED


def test_packed_data_is_no_glued_prose(asking: Asking, judge: Judge) -> None:
    """Letters and digits without a blank for a whole passage are data, however long it is."""
    rng = random.Random(3)
    sizes = [8, 12, 9, 7, 10] + [90] * 30
    parts = ["".join(rng.choices("abcdefhilmnoprstu", k=size)) + "7" for size in sizes]
    assert judge('load("' + ";".join(parts), asking("What?"), "length").outcome is Outcome.PASSED
    assert judge("So " + GLUED, asking("What?"), "length").reason is Reason.SPACING_LOST


SOURCE = "".join(f"row{n} = find({n});\nname{n} = row{n}.title;\n" for n in "12345678")


@pytest.mark.parametrize("lead", ["It says ", SOURCE + "it is "])
def test_a_loose_blob(lead: str, asking: Asking, judge: Judge) -> None:
    """Between blanks a blob needs fewer characters, behind a program too."""
    judgement = judge(lead + blob(LOOSE_BLOB_LIMIT + 30), asking("What is it?"), "length")
    assert judgement.reason is Reason.ENCODED_BLOB


@pytest.mark.parametrize("chars", range(900, 1160, 19))
def test_a_blob_behind_other_text(chars: int, asking: Asking, judge: Judge) -> None:
    """Wherever it lies among the passages whose words are looked at first."""
    rng = random.Random(7)
    lead = " ".join("".join(rng.choices("aeiounrstldm", k=rng.randint(2, 8))) for _ in range(300))
    text = f"{lead[:chars]} {blob(LOOSE_BLOB_LIMIT + 8)} {lead[chars : chars + 140]}"
    judgement = judge(text, asking("What is it?"), "length")
    assert judgement.reason is Reason.ENCODED_BLOB


@pytest.mark.parametrize(
    "text",
    [
        "It says " + blob(LOOSE_BLOB_LIMIT - 8) + " and no more",
        "Its public key is " + blob(LOOSE_BLOB_LIMIT + 30),
        "example.org. IN DNSKEY 257 3 8 " + blob(LOOSE_BLOB_LIMIT + 30),
        'It says "' + blob(LOOSE_BLOB_LIMIT + 30) + '" and no more',
        "Call Load2ReadAndWriteAllRowsOfTheTable4UserAndGroup" * 3,
    ],
    ids=["short", "named", "record", "quoted", "name"],
)
def test_blobs_that_mean_something(text: str, asking: Asking, judge: Judge) -> None:
    """Short ones, ones that the text names or quotes, and long names."""
    assert judge(text, asking("What is it?"), "length").outcome is Outcome.PASSED


def test_a_word_is_looked_at_once_when_it_grows_too_long() -> None:
    """Whatever comes before it, exactly one block asks for a look."""
    for lead in range(0, 64, 5):
        window = TextWindow()
        text = "ab " * lead + "x" * 400
        assert sum(is_newly_unbroken(window) for _ in window.blocks(text)) == 1


@given(st.lists(st.sampled_from(["a" * 40, "B7+/=_-" * 8, " ", "\n", "。", "x" * 73])))
def test_a_blob_needs_so_many_signs_in_a_row(parts: list[str]) -> None:
    """Looking from blank to blank finds what cutting at every other sign finds."""
    text = "".join(parts)
    longest = max(map(len, text.replace("。", " ").split()), default=0)
    assert may_hold_blob(text) == (longest > HEX_LIMIT)


@given(st.lists(st.sampled_from(["word", "9", "it", "x-y", "über", "..."])))
def test_a_quick_look_at_words_never_says_more_than_the_pattern(tokens: list[str]) -> None:
    """What it calls words has more long ones than a soup may have."""
    if are_words(tokens):
        assert len(LONG_WORD.findall(" ".join(tokens))) > LONG_WORDS_LIMIT * len(tokens)


TOKENS = st.lists(
    st.sampled_from(
        ("word", "reading", "a", "B", "12", "..", "(", "x7", "=", " ", "n" * 70, "ab,")
    ),
    max_size=140,
)


@given(TOKENS)
def test_long_words_rule_out_every_soup(tokens: list[str]) -> None:
    """A look at the words of the longer passage must change no verdict on the shorter one."""
    text = " ".join(tokens)[-WORDS_PASSAGE:]
    if hold_long_words(text.split()):
        assert sign_soup(text[-PASSAGE:]) == 0.0
        assert digit_soup(text[-PASSAGE:]) == 0.0


@given(TOKENS, st.sampled_from((" ", "")))
def test_only_long_or_many_single_letters_may_be_glued(tokens: list[str], blank: str) -> None:
    """A look at the sizes of the words lets nothing pass that the rule would find."""
    window = TextWindow()
    for _ in window.blocks(blank.join(tokens)):
        words = window.last(WORDS_PASSAGE).split()
        if not may_be_glued(list(map(len, words))):
            assert glued_words(window, RequestContext()) is None


APART = "Commencez par mesurer votre trajet, pour moins de cinq."
ARABIC = "لاتحتاجإلىساعاتطويلةبلإلىعادةثابتةخصصعشريندقيقةكلصباحقبلأنتفتحبريدكواجعلهاموعدا"


@pytest.mark.parametrize(
    ("prompt", "text", "reason"),
    [
        ("Un vélo ?", " ".join(APART), Reason.SPACING_LOST),
        ("كيف أتعلم شيئا جديدا وأنا أعمل؟", ARABIC, Reason.SPACING_LOST),
        ("Who is it?", "It is 0x" + "3f9a0c17be5d2468" * 8 + "7 ", Reason.ENCODED_BLOB),
        ("When is it?", "On Friday. " + "🚗🎈🧩😀🧨🦴🐙🥝🪁" * 16, Reason.SYMBOL_SOUP),
        ("今天星期几？", f"星期三。{''.join(map(chr, range(0x3400, 0x3480)))}", Reason.SYMBOL_SOUP),
        (
            "일찍 자고 싶어요.",
            f"주무세요. {'ㄱㅏㄴㅑㄷㅓㄹㅕㅁㅗㅂㅛㅅㅜ' * 9}",
            Reason.SYMBOL_SOUP,
        ),
    ],
)
def test_further_floods(
    prompt: str, text: str, reason: Reason, asking: Asking, judge: Judge
) -> None:
    """Blanks lost or added in further ways, and signs that no reader knows."""
    assert judge(text, asking(prompt), "length").reason is reason
