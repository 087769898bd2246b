"""A passage in another language of the same script: counted by little words. Pure.

A script tells Russian from German, but not German from Spanish. Every language has a few dozen
words without which no sentence of it gets by; those that no other language here has are counted.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from itertools import chain

from gatemesh_agent.gates.classes import ASCII_CODES
from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Finding
from gatemesh_agent.gates.topics import Topic
from gatemesh_agent.gates.window import TextWindow
from gatemesh_common.messages import Reason

LITTLE_WORDS: Mapping[str, str] = {
    "en": "the and of is was are were that this with for which have has not from they been would",
    "de": "der und ist nicht ein eine einen mit auf für dass sich auch wird werden oder"
    " sind wenn bei nach wie aus zum zur durch einer einem dem diese dieser sie",
    "fr": "les est des une dans pour qui sur avec pas vous ce cette sont aux mais ou leur"
    " nous être plus ses ces lorsque vos elle du au",
    "es": "los las que una por del para con como pero su más este esta cuando sobre también"
    " hasta es muy sus hay porque lo el y se",
    "it": "che di il gli della delle per con una non sono è nel anche come più dei alla"
    " questo quando le della degli essere viene ogni",
    "pt": "não uma os das dos para com que por mais como são você está ao pela pelo quando"
    " também muito seu sua isso em às ou",
    "nl": "het een van en niet dat met zijn voor aan ook als bij wordt naar door deze"
    " worden maar hebben heeft om kan uit hij",
    "sv": "och att det som en är av för på med inte till den ett om har kan eller från när"
    " detta ska där",
    "pl": "nie się jest na do że jak to ale przez dla oraz lub są być może tego który jego po tym",
    "cs": "je se na že jsou který pro ale jako nebo při být tak jeho podle pokud může této když",
    "ro": "și este nu pe cu pentru care din mai sunt sau prin fi dacă cum această acest poate",
    "hu": "és hogy nem egy az ez van meg vagy csak mint lehet amely ezt már azt kell",
    "tr": "ve bir bu için ile olarak çok daha olan gibi ya değil sonra kadar her ise",
    "id": "yang dan di untuk dengan ini tidak dari pada adalah atau dalam ke akan juga dapat",
    "fi": "ja on ei että se joka kun ovat tai myös kuin mutta voi sen ole",
    "da": "og er at det ikke til med den som på af kan fra eller når være skal har",
}
SETS = {language: frozenset(text.split()) for language, text in LITTLE_WORDS.items()}
SHARED = Counter(word for known in SETS.values() for word in known)
OWNERS = {word: language for language, known in SETS.items() for word in known if SHARED[word] == 1}
"""The language of each word that only one of them has."""

WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
PLAIN_WORDS = {code: chr(code).lower() if chr(code).isalpha() else " " for code in ASCII_CODES}
"""Leaves lower-case words and blanks of plain ASCII text."""
QUOTED = re.compile(r"[\"“”„«»‘].{0,400}?[\"“”«»’]|`[^`]*`", re.DOTALL)
OFTEN_FOREIGN = "en"
"""Notices, names and commands in English stand in texts of any language."""
BEGINNING_HITS = 8
BEGINNING_SHARE = 0.8
PASSAGE_HITS = 6
PASSAGE_SHARE = 0.75
DISTINCT_WORDS = 4
"""One word may be a name or a letter."""
PASSAGE_PARTS = 2
"""Parts of 128 characters in which nothing but the new language is left."""


class Languages:
    """Follows which language an answer is in; a late passage in another one is a fault."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._asked: Counter[str] | None = None
        """Little words of the prompt by language; counted once an answer has many of its own."""
        self._off = context.hot
        self._before: Counter[str] = Counter()
        """Little words before the latest parts, by language."""
        self._parts: deque[str | list[str]] = deque()
        """The latest parts; their words are read once there is something to compare with."""
        self._read = 0

    def scan(self, window: TextWindow) -> Finding | None:
        """Look at the part that is new since the last look."""
        part = window.since(self._read)
        start, self._read = self._read, window.end
        if self._off or window.in_fence:
            return None
        self._parts.append(part)
        if len(self._parts) > PASSAGE_PARTS:
            for word in words_of(self._parts.popleft()):
                self._before[OWNERS[word]] += 1
        if self._before.total() < BEGINNING_HITS:
            return None
        finding = self._switched(start, window.end)
        if finding is not None and self._context.asks(Topic.LANGUAGES):
            # Asked only of what would fail: looking through a long prompt takes milliseconds.
            self._off = True
            return None
        return finding

    def _switched(self, start: int, end: int) -> Finding | None:
        if self._asked is None:
            self._asked = by_language(little_words(self._context.prompt))
        # Languages whose words are no fault in any answer.
        calm = {*self._asked, OFTEN_FOREIGN}
        parts = list(map(words_of, self._parts))
        self._parts = deque(parts)
        recent = list(chain.from_iterable(parts))
        foreign = [word for word in recent if OWNERS[word] not in calm]
        if len(recent) < PASSAGE_HITS or len(foreign) < PASSAGE_SHARE * len(recent):
            return None
        main = main_language(self._before)
        if main is None or (main == OFTEN_FOREIGN and self._asked[OFTEN_FOREIGN] <= 1):
            # Half-translated manuals begin in English and go on in what was asked for.
            return None
        other, found = by_language(recent).most_common(1)[0]
        if other == main or other in calm:
            return None
        distinct = sum(OWNERS[word] == other for word in set(recent))
        if distinct < DISTINCT_WORDS or found < PASSAGE_SHARE * len(recent):
            return None
        return Finding(Reason.LANGUAGE_SWITCH, float(found), float(PASSAGE_HITS), start, end)


def words_of(part: str | list[str]) -> list[str]:
    """Return the little words of a part outside quotation marks, or as they were read before."""
    return little_words(unquoted(part)) if isinstance(part, str) else part


def unquoted(text: str) -> str:
    """Return a text without what stands in quotation marks."""
    if text.isascii() and '"' not in text and "`" not in text:
        return text
    return QUOTED.sub(" ", text)


def main_language(counts: Counter[str]) -> str | None:
    """Return the language that nearly all little words belong to; None without one."""
    total = counts.total()
    if total < BEGINNING_HITS:
        return None
    main, hits = counts.most_common(1)[0]
    return main if hits >= BEGINNING_SHARE * total else None


def by_language(words: Iterable[str]) -> Counter[str]:
    """Count little words by their language."""
    return Counter([OWNERS[word] for word in words])


def little_words(text: str) -> list[str]:
    """Return the words of a text that only one language has."""
    if text.isascii() and "'" not in text:
        words = text.translate(PLAIN_WORDS).split()
    else:
        words = WORD.findall(text.lower())
    return [word for word in words if word in OWNERS]
