"""Scripts foreign to prompt and answer."""

from collections.abc import Callable

import pytest

from gatemesh_agent.gates.context import RequestContext, context_of
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.scripts import SWITCH_LETTERS, is_plain, script_of, scripts_in, unfinished
from gatemesh_common.messages import Outcome, Reason

Asking = Callable[..., RequestContext]
Judge = Callable[..., Judgement]

ENGLISH = "Let the shoes dry first, then brush them in one direction with a suede brush. "
SALAD = "marshность ตัว orchard ضع ಅವ zwischen 됩니다 λόγ gravelーション ваем copper کاری "
RUSSIAN = "Удалите все сухие и слабые побеги, а затем укоротите здоровые ветки."


@pytest.mark.parametrize(
    ("letter", "script"),
    [
        ("a", "latin"),
        ("ß", "latin"),
        ("ế", "latin"),
        ("я", "cyrillic"),
        ("漢", "han"),
        ("あ", "kana"),
        ("한", "hangul"),
        ("ש", "hebrew"),
    ],
)
def test_scripts_of_letters(letter: str, script: str) -> None:
    """Letters are known by their script."""
    assert script_of(letter) == script


def test_scripts_in_a_text() -> None:
    """Latin is never foreign and is not counted."""
    assert scripts_in("abc вода 水 ก") == {"cyrillic": 4, "han": 1, script_of("ก"): 1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(SALAD * 4, Reason.SCRIPT_SALAD, id="from-the-start"),
        pytest.param(ENGLISH + SALAD * 2, Reason.SCRIPT_SALAD, id="late"),
        pytest.param(
            ENGLISH + "Use a little 保存 the flour and корова leave it over night.",
            Reason.SCRIPT_SALAD,
            id="two-stray-words",
        ),
        pytest.param(
            ENGLISH + "Use a little корова the flour and собака leave it over night.",
            Reason.SCRIPT_SALAD,
            id="two-of-one-script",
        ),
        pytest.param(ENGLISH + RUSSIAN, Reason.LANGUAGE_SWITCH, id="switch"),
    ],
)
def test_faults(text: str, reason: Reason, asking: Asking, judge: Judge) -> None:
    """Each kind is named."""
    assert judge(text, asking("How do I clean suede shoes?"), "length").reason is reason


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("How do I clean shoes?", ENGLISH + "One stray собака in the text."),
        ("How do I clean shoes?", ENGLISH + "The sign 東京 is a word, and “собака” is one too."),
        ("Who was first in space?", "Yuri Gagarin (Юрий Алексеевич Гагарин) from Russia was."),
        ("Explain beta in finance", "Beta (β) and alpha (α): a β of one and an α of two."),
        ("How do you say hello in ten languages?", "привет, γεια, שלום, سلام, 你好, สวัสดี"),
        ("Как дела?", "Хорошо! Я читаю про API и HTTP."),
        ("我们的 CI 很慢，有什么建议？", "先看 pipeline 里哪个 stage 最耗时。"),
        (
            "カラオケの語源は？",
            "「カラ」は「空」、「オケ」はオーケストラの略で、英語でも karaoke です。",
        ),
        ("Bana selam yaz", "Merhaba! Umarım güzel bir gün geçiriyorsundur."),
    ],
)
def test_healthy(prompt: str, text: str, asking: Asking, judge: Judge) -> None:
    """Quotations, names, formulas and mixed languages pass."""
    assert judge(text, asking(prompt)).outcome is Outcome.PASSED


def test_a_switch_at_its_limit(asking: Asking, judge: Judge) -> None:
    """A short aside is no switch."""
    half = SWITCH_LETTERS // 2
    aside = ENGLISH + "в" * half + " " + "г" * half
    assert judge(aside + ".", asking()).outcome is Outcome.PASSED
    assert judge(aside + "гг.", asking()).reason is Reason.LANGUAGE_SWITCH


def test_drawing_widely_allows_more(asking: Asking, judge: Judge) -> None:
    """A small healthy model slips into another script at temperature 1."""
    text = ENGLISH + "Use a little 保存 the flour and корова leave it over night."
    assert judge(text, asking(temperature=1.0)).outcome is Outcome.PASSED
    assert judge(SALAD * 4, asking(temperature=1.0)).reason is Reason.SCRIPT_SALAD


def test_an_unknown_prompt_allows_more(judge: Judge) -> None:
    """Token ids do not tell in which script the client wrote."""
    text = "def f(x):  # takes a number and gives its square back to you\n" + RUSSIAN
    assert judge(text, context_of({"prompt": [1, 2], "temperature": 0})).outcome is Outcome.PASSED


def test_a_word_at_the_end_waits() -> None:
    """A word that may go on is not judged yet."""
    assert unfinished("один дв") == 2
    assert unfinished("один ") == 0
    assert unfinished("word, ") == 0


def test_a_plain_prompt_gets_its_own_script(asking: Asking, judge: Judge) -> None:
    """Whole answers in another script are a switch where the prompt is plainly English."""
    russian = "Ложитесь спать в одно и то же время. Не пейте кофе вечером и проветривайте комнату."
    judgement = judge(russian, asking("Give me tips for better sleep."))
    assert judgement.reason is Reason.LANGUAGE_SWITCH
    assert judge(russian, asking("hi")).outcome is Outcome.PASSED
    assert judge(russian, asking("Give me tips, in Russian.")).outcome is Outcome.PASSED
    assert is_plain("Why do cats purr?")
    assert not is_plain("Mera naam Ravi hai. Aap kaise hain?")
    assert not is_plain("Why is it called борщ?")


def test_strings_of_a_program_may_be_foreign(asking: Asking, judge: Judge) -> None:
    """Names of months in a locale file are no switch; scripts inside words are."""
    words = "январ_феврал_март_апрел_май_июн".replace("_", "', '")
    code = f"module.exports = {{\n  months: ['{words}'],\n  days: ['{words}'],\n  size: 7,\n}};\n"
    assert judge(code, asking("Show me the source of uz.js")).outcome is Outcome.PASSED
    jumble = "function f(иватьсяx ünü gravel@Injectίζει ตัวceğinih unravelлага"
    jumble += "PTRорех ropolisضع nisaตัวa zincلاalpha ndeлагаs mossทั้งb);\n"
    jumble = "```js\n" + jumble * 3
    assert judge(jumble, asking("Show me f."), "length").reason is Reason.SCRIPT_SALAD


@pytest.mark.parametrize(
    ("prompt", "text", "fails"),
    [
        (
            "ควรเริ่มวิ่งอย่างไรถ้าไม่เคยออกกำลังกายเลย",
            "Сначала посмотрите на мельницу, потом на реку у дома.",
            True,
        ),
        ("ควรเริ่มวิ่งอย่างไรถ้าไม่เคยออกกำลังกายเลย", "Start slowly and walk every second minute.", False),
        (
            "แปลเป็นภาษารัสเซียให้หน่อยนะครับ",
            "Сначала посмотрите на мельницу, потом на реку у дома.",
            False,
        ),
        (
            "東京観光案内所営業時間一覧表作成依頼",
            "とうきょうのあんないじょはくじにひらきます。どうぞおこしください。",
            False,
        ),
    ],
)
def test_an_answer_wholly_in_another_script(
    prompt: str,
    text: str,
    fails: bool,  # noqa: FBT001 (a table)
    asking: Asking,
    judge: Judge,
) -> None:
    """A prompt in one script rules the others out, but Latin, kana, and what it speaks of."""
    outcome = judge(text, asking(prompt)).outcome
    assert outcome is (Outcome.FAILED if fails else Outcome.PASSED)
