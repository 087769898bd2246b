"""No secret passes the rules, however the text around it is cut."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatemesh_common.captures import BUILTIN_RULES, RedactionRule
from gatemesh_common.redaction import (
    EDGE,
    Cut,
    Found,
    Redactor,
    RuleUnusableError,
    merged,
    told_between,
)

ALL = Redactor(BUILTIN_RULES)
SECRETS = {
    "email": ("alice.b+x@example.org", "bob@localhost", "ünal@例子.cn"),
    "phone": ("+49 170 1234567", "0049 (170) 1234567", "13800138000", "(555) 123-4567"),
    "card": ("4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005"),
    "key": (
        "sk-abcdefghijklmnopqrstuv",
        "AKIAIOSFODNN7EXAMPLE",
        "0123456789abcdef0123456789abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
    ),
}
PLANTED = [(name, secret) for name, secrets in SECRETS.items() for secret in secrets]
AROUND = st.text(alphabet="abc XYZ.,!?\n中文é", max_size=60)


@pytest.mark.parametrize(("name", "secret"), PLANTED)
def test_a_secret_is_replaced_by_the_name_of_its_rule(name: str, secret: str) -> None:
    """Whoever reads the capture knows what stood there."""
    found = ALL.redact(f"It is {secret}, she said.")
    assert found.text.replace(".[", "[") == f"It is [{name}], she said."
    assert found.counts == {name: 1}


@pytest.mark.parametrize(
    "plain",
    [
        "On 2026-01-01 12:00:00 it was 3.14159265358979.",
        "The word token is here, and secret things happen.",
        "x" * 500,
        "1" * 500,
        "a = b[17] + 1024 * 4096",
    ],
)
def test_plain_text_stays(plain: str) -> None:
    """Evidence is what is left."""
    assert ALL.redact(plain).text == plain


@pytest.mark.parametrize(
    "words", ["password: hunter22", "api_key=abcd1234", "password is hunter22"]
)
def test_what_is_called_a_secret_is_one(words: str) -> None:
    """Whatever it looks like."""
    assert ALL.redact(words).text == "[key]"


@settings(max_examples=200, deadline=None)
@given(AROUND, st.sampled_from(PLANTED), AROUND, st.data())
def test_no_part_of_a_planted_secret_passes_a_cut(
    before: str, planted: tuple[str, str], after: str, data: st.DataObject
) -> None:
    """Whether the text ends before, within or after the secret."""
    _, secret = planted
    text = f"{before} {secret} {after}"
    end = data.draw(st.integers(min_value=0, max_value=len(text)))
    begin = data.draw(st.integers(min_value=0, max_value=len(before) + 1))
    part = text[begin:end]
    shown = ALL.redact(part, Cut(before=begin > 0, after=end < len(text))).text
    assert secret not in shown
    inside = text[len(before) + 1 : end][: len(secret)]
    if len(inside) >= 4 and not inside.startswith("-----BEGIN"):
        assert (
            inside[:4] not in shown or inside[:4] in f"{before} {after} [email][phone][card][key]"
        )


@given(st.lists(st.text(alphabet="ab @.1", max_size=8), max_size=12), st.data())
def test_pieces_of_a_redacted_text_make_the_whole(pieces: list[str], data: st.DataObject) -> None:
    """Cutting after redaction neither shows nor loses anything."""
    text = "".join(pieces)
    found = ALL.find(text)
    cut = data.draw(st.integers(min_value=0, max_value=len(text)))
    whole = told_between(text, 0, len(text), found)
    parts = told_between(text, 0, cut, found) + told_between(text, cut, len(text), found)
    assert parts == whole


def test_own_rules_come_first() -> None:
    """An operator's name for a thing is the better one."""
    redactor = Redactor(["email"], [RedactionRule(name="customer", pattern=r"C-\d+@\S+")])
    assert redactor.redact("C-17@shop and x@y.z").text == "[customer] and [email]"


def test_a_pattern_that_is_none_is_refused_by_name() -> None:
    """Not found out when the first secret passes."""
    with pytest.raises(RuleUnusableError, match="'broken'"):
        Redactor([], [RedactionRule(name="broken", pattern="(")])


def test_a_pattern_that_takes_for_ever_is_given_up() -> None:
    """A client's text must not hold up the process."""
    slow = Redactor([], [RedactionRule(name="slow", pattern=r"(?:a+a+)+\d")])
    with pytest.raises(RuleUnusableError, match="took too long"):
        slow.redact("a" * 3000)


def test_overlapping_stretches_are_one() -> None:
    """By the name of the one that began first."""
    stretches = [Found(4, 9, "b"), Found(0, 5, "a"), Found(9, 10, "c")]
    assert merged(stretches) == [Found(0, 9, "a"), Found(9, 10, "c")]


def test_text_without_blanks_keeps_its_end() -> None:
    """Chinese has none; only what may be half of something goes."""
    shown = ALL.redact("中文文字没有空格。电话1380", Cut(after=True))
    assert shown.text == f"中文文字没有空格。电话[{EDGE}]"
