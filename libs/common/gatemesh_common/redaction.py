"""Takes out of text what must not leave the process: by rules with names, in bounded time. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import regex

from gatemesh_common.captures import BuiltinRule, RedactionRule
from gatemesh_common.shortening import GAP

SECONDS_PER_RULE = 0.5
"""A pattern that takes longer on one text is unusable: it would hold up the process."""
LONGEST_END_CHARS = 2**16
EDGE_CHARS = 512
EDGE = "edge"
"""Name of what stands at a cut and may be half of anything."""

PEM = (
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?"
    r"(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)"
)
NAMED_WORD = (
    r"(?i:pass(?:word|wd|phrase)?|secret|token|api[ _-]?key|access[ _-]?key|credentials?"
    r"|\u5bc6\u7801|\u5bc6\u94a5|\u53e3\u4ee4)"
    r"""["']?\s{0,3}[:=\uff1a]\s{0,3}["']?[^\s"',;]{4,}+"""
    r"""|(?i:pass(?:word|wd|phrase)\s{1,3}is\s{1,3}|\u5bc6\u7801\u662f\s{0,3})["']?[^\s"',;]{4,}+"""
)
"""What is called a password, secret, token or key, in English and Chinese."""
MARKED_KEY = (
    r"(?<![A-Za-z0-9])(?:(?:sk|pk|rk)[-_]|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|hf_|npm_"
    r"|AIza|AKIA|ASIA|eyJ)[A-Za-z0-9_.+/=-]{12,}+"
)
LONG_KEY = (
    r"(?<![A-Za-z0-9+/_-])(?=[A-Za-z+/_=-]*+\d)(?=[0-9+/_=-]*+[A-Za-z])[A-Za-z0-9+/_=-]{32,}+"
)
"""Letters and digits in one long run, as hexadecimal and base64 keys are."""
CREDENTIALS = r"""(?i:bearer|basic)\s+[^\s"',;]{8,}+|://[^\s/@:]++:[^\s/@]++@"""
BUILTIN: dict[BuiltinRule, str] = {
    "email": r"(?<![\p{L}\p{N}._%+'-])[\p{L}\p{N}._%+'-]++@[\p{L}\p{N}.-]++",
    "key": "|".join(
        (PEM, MARKED_KEY, CREDENTIALS, NAMED_WORD, LONG_KEY),
    ),
    "card": r"(?<!\d)(?<!\d\.)\d(?:[ \-]?\d){12,18}(?!\d)",
    "phone": (
        r"(?<![A-Za-z0-9.])(?:(?:\+|00)(?:[\s().\-/]{0,2}\d){7,15}"
        r"|1[3-9]\d[ \-]?\d{4}[ \-]?\d{4}|\(?\d{3}\)?[ .\-]{1,2}\d{3}[ .\-]\d{4}"
        r"|\(?0\d{1,4}\)?[ \-/]{1,2}\d{2,4}(?:[ \-]?\d){3,8})(?!\d)"
    ),
}
"""Patterns that begin only where a run begins: a long run is looked at once."""
LAST_RUN = regex.compile(r"(?:(?<!\S)[\p{N}().+/\-]+[ \t\-]{1,2})*[\x21-\x7e\p{N}]*\Z")
FIRST_RUN = regex.compile(r"\A[\x21-\x7e\p{N}]*(?:[ \t\-]{1,2}[\p{N}().+/\-]+(?!\S))*")


class RuleUnusableError(ValueError):
    """A redaction rule cannot be used; names it and says why."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"rule {name!r}: {why}")
        self.name = name


class Found(NamedTuple):
    """A stretch that must not be told, half-open, and the rule that says so."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a text was cut out of a longer one."""

    before: bool = False
    after: bool = False


WHOLE = Cut()


@dataclass(frozen=True)
class Redacted:
    """What is left of a text, and how often each rule struck."""

    text: str
    counts: Counter[str] = field(default_factory=Counter)


class Redactor:
    """Knows the rules, and finds what they forbid.

    Raises:
        RuleUnusableError: a pattern is none.
    """

    def __init__(self, builtin: Iterable[BuiltinRule], own: Iterable[RedactionRule] = ()) -> None:
        known = [(name, BUILTIN[name]) for name in BUILTIN if name in set(builtin)]
        own_rules = [(rule.name, rule.pattern) for rule in own]
        self._rules = [(name, compiled(name, pattern)) for name, pattern in [*own_rules, *known]]

    def find(self, text: str, cut: Cut = WHOLE) -> list[Found]:
        """Return what must not be told, in order, no two of them overlapping.

        Raises:
            RuleUnusableError: a rule took too long.
        """
        return merged([*self._matches(text), *edges(text, cut)])

    def redact(self, text: str, cut: Cut = WHOLE) -> Redacted:
        """Return the text with a name in place of each stretch.

        Raises:
            RuleUnusableError: a rule took too long.
        """
        found = self.find(text, cut)
        return Redacted(told(text, found), Counter(one.name for one in found))

    def redact_ends(self, text: str) -> Redacted:
        """Do the same; of a very long text only both ends are read, and shown.

        Raises:
            RuleUnusableError: a rule took too long.
        """
        if len(text) <= 2 * LONGEST_END_CHARS:
            return self.redact(text)
        first = self.redact(text[:LONGEST_END_CHARS], Cut(after=True))
        last = self.redact(text[-LONGEST_END_CHARS:], Cut(before=True))
        return Redacted(f"{first.text}\n{GAP}\n{last.text}", first.counts + last.counts)

    def _matches(self, text: str) -> Iterator[Found]:
        for name, pattern in self._rules:
            try:
                found = pattern.finditer(text, timeout=SECONDS_PER_RULE, concurrent=True)
                yield from [Found(*match.span(), name) for match in found if match.group()]
            except TimeoutError:
                raise RuleUnusableError(name, "took too long; write a simpler pattern") from None


def compiled(name: str, pattern: str) -> "regex.Pattern[str]":
    """Return a rule's pattern, ready for use.

    Raises:
        RuleUnusableError: it is none.
    """
    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise RuleUnusableError(name, f"no regular expression: {error}") from None


def edges(text: str, cut: Cut) -> Iterator[Found]:
    """Yield what stands at a cut: half of a secret looks like none."""
    if cut.before:
        first = FIRST_RUN.match(text, 0, EDGE_CHARS, concurrent=True)
        if first is not None and first.end():
            yield Found(0, first.end(), EDGE)
    if cut.after:
        begin = max(0, len(text) - EDGE_CHARS)
        # Brackets and dashes in a row can take a tenth of a second: others go on meanwhile.
        last = LAST_RUN.search(text, begin, concurrent=True)
        if last is not None and last.start() < len(text):
            yield Found(last.start(), len(text), EDGE)


def merged(found: Sequence[Found]) -> list[Found]:
    """Return the stretches in order; those that overlap become one, by the name of the first."""
    kept: list[Found] = []
    for one in sorted(found):
        if kept and one.start < kept[-1].end:
            kept[-1] = kept[-1]._replace(end=max(kept[-1].end, one.end))
        else:
            kept.append(one)
    return kept


def told(text: str, found: Sequence[Found]) -> str:
    """Return the text with the name of each stretch in its place."""
    return told_between(text, 0, len(text), found)


def told_between(text: str, start: int, end: int, found: Sequence[Found]) -> str:
    """Return a part of a text; a stretch that began before it is left out without a word."""
    inside = [one for one in found if one.start < end and one.end > start]
    bounds = [Found(start, start, ""), *inside, Found(end, end, "")]
    pieces = []
    for before, after in pairwise(bounds):
        pieces.append(text[max(before.end, start) : max(before.end, after.start)])
        pieces.append(f"[{after.name}]" if after.name and after.start >= start else "")
    return "".join(pieces)
