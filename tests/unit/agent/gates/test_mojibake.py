"""Wrong encodings and double escapes."""

from collections.abc import Callable

import pytest

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.mojibake import decodes, nearly_decodes, settled
from gatemesh_common.messages import Outcome, Reason

Asking = Callable[..., RequestContext]
Judge = Callable[..., Judgement]


def misread(text: str, codec: str) -> str:
    """Return what a reader of the wrong encoding sees."""
    return text.encode().decode(codec, "ignore")


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("Très chère mamie, une année entourée de bonté.", "latin-1"),
        ("Schöne Grüße und bis später!", "cp1252"),
        ("Привет! У меня всё хорошо.", "cp1251"),
        ("请问今天的天气怎么样我想去公园", "gbk"),
    ],
)
def test_mojibake(text: str, codec: str, asking: Asking, judge: Judge) -> None:
    """The original passes, its misreading fails."""
    assert judge(text, asking()).outcome is Outcome.PASSED
    judgement = judge(misread(text, codec), asking())
    assert judgement.reason in {Reason.MOJIBAKE, Reason.CONTROL_CHARS}


@pytest.mark.parametrize(
    "text",
    [
        "SÃO PAULO é grande, não é?",
        "À bientôt, où êtes-vous ?",
        "Â° and Ã alone",
        "価格は５０％引きです",
    ],
)
def test_real_letters(text: str, asking: Asking, judge: Judge) -> None:
    """Languages that use those letters pass."""
    assert judge(text, asking()).outcome is Outcome.PASSED


def test_the_subject_of_the_prompt(asking: Asking, judge: Judge) -> None:
    """Explaining mojibake needs some."""
    text = "Ã© is é and Ã¨ is è in UTF-8 read as Latin-1."
    assert judge(text, asking("Why do I see mojibake?")).outcome is Outcome.PASSED
    assert judge(text, asking()).reason is Reason.MOJIBAKE


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("Bees live in hives.\\n\\nThey make honey.\\n", Outcome.FAILED),
        ("sch\\u00f6ne Gr\\u00fc\\u00dfe", Outcome.FAILED),
        ("One \\n\\n only.", Outcome.PASSED),
        ("Use `\\n\\n` and `\\t`, also `\\n` here.", Outcome.PASSED),
        ("$\\nu$ and $\\neq$ hold for $\\nabla f$.", Outcome.PASSED),
        ('{"a": "x\\n\\ny", "b": "\\u00e9\\u00e8"}', Outcome.PASSED),
        ("It is C:\\Users\\New\\Temp on the disk.", Outcome.PASSED),
    ],
)
def test_escapes(text: str, outcome: Outcome, asking: Asking, judge: Judge) -> None:
    """Escapes shown to a reader are a fault outside code, formulas and data."""
    assert judge(text, asking()).outcome is outcome


def test_settled_leaves_what_may_change() -> None:
    """A run of letters or an escape at the end waits for more."""
    assert settled("abc Ã") == 4
    assert settled("abc \\u00") == 4
    assert settled("abc") == 3


def test_decodes() -> None:
    """ASCII is no misreading."""
    assert decodes("Ã©", "cp1252")
    assert not decodes("abc", "cp1252")
    assert not decodes("é", "cp1252")


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        pytest.param(
            r"It is paid.\n\nIt's due in May.\n\nThanks for asking.", Outcome.FAILED, id="prose"
        ),
        pytest.param(
            "Split at b'\\x00\\xff' first, then at '\\x0d\\x0a', then at \"\\x1b\", in this order.",
            Outcome.PASSED,
            id="short-literals",
        ),
    ],
)
def test_escapes_in_short_literals_belong_to_a_program(
    text: str, outcome: Outcome, asking: Asking, judge: Judge
) -> None:
    """Answers of code models are not fenced, and name bytes in quotation marks."""
    assert judge(text, asking()).outcome is outcome


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("It‚Äôs called so ‚Äì and the baker‚Äôs oven makes it happen.", Reason.MOJIBAKE),
        ("K├Âln liegt am Rhein und ist f├╝r den Dom ber├╝hmt.", Reason.MOJIBAKE),
        (
            "It&#39;s held, e.g. &quot;here&quot;, and it doesn&#39;t own it; you&#39;ll see.",
            Reason.ESCAPED_TEXT,
        ),
        ("Tea%20is%20made%20from%20the%20leaves%20of%20a%20shrub.", Reason.ESCAPED_TEXT),
    ],
)
def test_other_encodings(text: str, reason: Reason, asking: Asking, judge: Judge) -> None:
    """Encodings of old systems, web entities and percent signs."""
    assert judge(text, asking("Why is that?")).reason is reason


@pytest.mark.parametrize(
    "text",
    [
        "The tree:\nsrc\n├── a.py\n└── b.py",
        "Das ist »weiß« und nicht grün, »heiß« und nicht kalt.",
        "See https://example.org/?q=cr%20me%20a%20b%20c%20d%20e for more.",
        "Use <b>bold</b> and write &quot; or &#39; or &amp; or &quot; as you like.",
        "echo knows:\n\n\\n new line\n\n\\t tab\n\n\\f feed\n\n\\n again",
    ],
)
def test_signs_with_a_meaning(text: str, asking: Asking, judge: Judge) -> None:
    """Trees, German quotation marks, links, markup, and escapes that are spoken of."""
    assert judge(text, asking("Tell me.")).outcome is Outcome.PASSED


LITERALS = """def test_prompt(self):
    reader.answer = "MÃ¼ller: "
    self.equal(ask(prompt="MÃ¼ller: "), reader.answer)
    reader.close()
"""


def test_a_literal_may_quote_one_misread_word(asking: Asking, judge: Judge) -> None:
    """Tests of decoders name one twice; two different ones are a habit in a program too."""
    assert judge(LITERALS, asking(), "length").outcome is Outcome.PASSED
    worse = LITERALS.replace("reader.close()", 'reader.answer = "JosÃ©"')
    assert judge(worse, asking(), "length").reason is Reason.MOJIBAKE


def test_line_breaks_between_sentences_where_a_program_is_spoken_of(
    asking: Asking, judge: Judge
) -> None:
    """A prompt about a language excuses escapes in literals, not an answer full of them."""
    prompt = "What does a decorator do in Python?"
    text = "It wraps a function.\\n\\nThe result takes its name.\\nIt is called instead.\\n"
    assert judge(text + text, asking(prompt)).reason is Reason.ESCAPED_TEXT
    assert judge(text + text, asking("What does a newline do?")).outcome is Outcome.PASSED
    quoted = 'Use print("Done.\\nBye.") or write("Ready.\\nGo.") or say("Well.\\nThen.") there. '
    assert judge(quoted * 2, asking(prompt)).outcome is Outcome.PASSED


def test_line_breaks_of_a_protocol(asking: Asking, judge: Judge) -> None:
    """An escape before a blank or a real line break ends a command that the text describes."""
    text = "The server says OK\\n or, if that fails:\n\nBADcode\\n\nIt then waits for GO\\n again."
    assert judge(text, asking("What does it say?")).outcome is Outcome.PASSED


def test_another_region_is_no_misreading() -> None:
    """Where most characters are unknown to an encoding, the rest proves nothing."""
    assert not nearly_decodes("这样默认边距会恢复（", "shift_jis")
    assert nearly_decodes(misread("请问今天的天气怎么样我想去公园", "gbk"), "gbk")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("уОБЮБМБ РПУНПФТЙФЕ ОБ ЪЕНМСОПЕ. уХИПК ИЧПУФЙЛ.", Reason.MOJIBAKE),
        ("Un v=C3=A9lo =C3=A0 l'atelier, d=C3=A9j=C3=A0 r=C3=A9par=C3=A9.", Reason.MOJIBAKE),
        ("Un v&eacute;lo &agrave; r&eacute;parer, d&eacute;j&agrave;.", Reason.ESCAPED_TEXT),
    ],
)
def test_further_encodings(text: str, reason: Reason, asking: Asking, judge: Judge) -> None:
    """KOI8 read as Windows-1251, quoted-printable, and accents as entities."""
    assert judge(text, asking("Tell me about bikes.")).reason is reason
    assert judge(text, asking("Show me such an encoding.")).outcome is Outcome.PASSED
