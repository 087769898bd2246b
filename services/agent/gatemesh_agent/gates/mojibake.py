"""Text whose bytes were read in the wrong encoding, or that was encoded twice."""

from collections.abc import Iterator

import regex

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Finding
from gatemesh_agent.gates.sourcecode import LITERAL_REACH, OPEN_QUOTE, in_literal
from gatemesh_agent.gates.topics import Topic
from gatemesh_agent.gates.units import looks_like_code
from gatemesh_agent.gates.window import TextWindow
from gatemesh_common.messages import Reason

LIMIT = 1
"""One such sequence may be a quotation; two are a habit."""
ESCAPE_LIMIT = 1
BETWEEN_LIMIT = 2
"""Line breaks written out between sentences, where the prompt speaks of a program."""
CODE_REACH = 128
HURRIED_CODE_REACH = 96
SHORTEST_READ = 4
LOST_SHARE = 0.2
KEPT_SHARE = 0.8
"""Of the characters, which the encoding that they would come from must have."""
LONGEST_RUN = 64

WESTERN = regex.compile(
    "[\xc2-\xdb][\x80-\xbf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u203a\u20ac\u2122]"
    "|[\xe0-\xef][\x80-\xbf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u203a\u20ac\u2122]{2}"
    "|\xf0[\x80-\xbf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u203a\u20ac\u2122]{3}"
)
"""One character of UTF-8, read as Latin-1 or Windows-1252."""
CYRILLIC = regex.compile("[\u0400-\u04ff\u00a0-\u00bf\u2013-\u203a\u20ac\u2116\u2122]{6,}")
EAST_ASIAN = regex.compile("[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]{8,}")
LEGACY = ((CYRILLIC, ("cp1251", "koi8_r")), (EAST_ASIAN, ("gbk", "shift_jis")))
"""Runs that are tried in the old encodings of their region."""
DOS = regex.compile(r"(?<=\p{L})[├┬]\S|[├┬]\S(?=\p{L})")
MAC = regex.compile(r"(?<=\p{L})√[^\s\w]|√[^\s\w](?=\p{L})|‚Ä\S")
SEQUENCES = (
    (WESTERN, ("cp1252", "latin-1")),
    (DOS, ("cp437", "cp850")),
    (MAC, ("mac_roman",)),
)
"""Short sequences that are tried; in old systems they show as frames and signs."""
CONTROL = regex.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")
INVERTED = regex.compile(r"(?<!\p{L})[а-яё](?=[А-ЯЁ]*[АЕЁИОУЫЭЮЯ])[А-ЯЁ]{4,}(?!\p{L})")
"""Cyrillic letters of KOI8 read as Windows-1251: small and capital letters change places.
Names such as мРНК have no vowel."""
KNOWN = regex.compile("锟斤拷|烫烫烫|屯屯屯|ï»¿|â€[™œ\x9d\x93\x94]|Ã[©¨¤¶¼±³]")
ESCAPE = regex.compile(
    r"\\u[0-9a-fA-F]{4}|\\n\\n|\\n(?=[A-Z\d*#-]|[ ]{2}|$)|\\t(?=[A-Z\d\s]|$)|\\x[0-9a-f]{2}"
)
BETWEEN = regex.compile(r"[.!?:]\\n")
CODE = regex.compile(r"\": \"|^\s*[{\[]|`[^`\n]{1,200}`|\$[^$\n]{1,200}\$|\\\[|\\\(|[A-Za-z]:\\")
ENTITY = regex.compile(
    r"(?<=\w)&#(?:\d{2,4}|x[0-9a-f]{2,4});(?=\w)|&(?:amp;|quot;|nbsp;|#34;)|&(?:m|n)dash;"
    r"|(?<=\p{L})&(?:[a-zA-Z](?:acute|grave|circ|uml|cedil|tilde|ring)|szlig|[lr]squo);"
    r"|(?<=\s)&[aeiouAEIOU](?:acute|grave|circ|uml);"
)
PERCENT_BLANK = regex.compile(r"(?<![/?=&#]\S{0,80})(?<=[\p{L}.,;])%(?:20|2C)(?=[\p{L}%])")
MAIL_BYTES = regex.compile(
    r"(?<=[\p{L}\s])=[C-F][0-9A-F]=[0-9A-F]{2}|(?<=\p{L})\+A[A-Z][A-Za-z0-9]-(?=\p{L})"
)
"""Letters as mail programs write them: quoted-printable and UTF-7."""
ENCODED_LEADS = ("&", "%", "=C3=", "=D0=", "=E2=", "+A")
ENCODED_LIMIT = 3
MARKUP = regex.compile(r"</?[a-zA-Z][^<>\n]*>|://")
BYTES = regex.compile(r"\\x[0-9a-f]{2}.{0,8}$|\\[abcefrtv]$")
"""Other escapes right before: the bytes of a program or the words of a protocol."""
WORD_EDGE = regex.compile(r"[\s\"'`]")
RUNNING_ON = regex.compile(r"(?:[^\s\\\"'`]|(?:^|[^\\])\\n)$")
"""An escape that is part of the text follows a word, a full stop or another line break."""


class Mojibake:
    """Counts characters that are bytes of other characters."""

    __slots__ = (
        "_between",
        "_code_reach",
        "_context",
        "_count",
        "_encodings",
        "_escapes",
        "_quoted",
        "_since",
    )

    def __init__(self, context: RequestContext) -> None:
        self._code_reach = CODE_REACH
        self._context = context
        self._count = 0
        self._escapes = 0
        self._between = 0
        self._encodings = 0
        self._quoted: set[str] = set()
        self._since = 0

    def hurried(self, window: TextWindow) -> Finding | None:
        """Look ahead of the checkpoint where a line break is written out between sentences."""
        if BETWEEN.search(window.since(window.fresh - 2)) is None:
            return None
        self._code_reach = HURRIED_CODE_REACH
        finding = self.scan(window)
        self._code_reach = CODE_REACH
        return finding

    def scan(self, window: TextWindow, *, last: bool = False) -> Finding | None:
        """Look at the text since the last checkpoint; a run that touches the end waits."""
        text = window.since(self._since)
        start = window.end - len(text)
        cut = len(text) if last else settled(text)
        self._since = start + cut
        text = text[:cut]
        return (
            self._misread(text, start, window)
            or self._escaped(text, start, window)
            or self._encoded(text, start, window)
        )

    def _misread(self, text: str, start: int, window: TextWindow) -> Finding | None:
        if text.isascii():
            return None
        hits = list(misread(text))
        if hits and in_literal(window, start + hits[0]):
            hits = self._new_in_literals(text, hits)
        self._count += len(hits)
        if not hits or self._count <= LIMIT or self._context.asks(Topic.ENCODING):
            return None
        span = (start + hits[0], start + len(text))
        return Finding(Reason.MOJIBAKE, float(self._count), float(LIMIT), *span)

    def _new_in_literals(self, text: str, hits: list[int]) -> list[int]:
        """Return the first hit in each new word; tests of decoders quote one, and again."""
        words = {word_at(text, at): at for at in reversed(hits)}
        found = sorted(at for word, at in words.items() if word not in self._quoted)
        self._quoted.update(words)
        return found

    def _escaped(self, text: str, start: int, window: TextWindow) -> Finding | None:
        if "\\" not in text or window.in_fence or self._context.demands_json:
            return None
        hits = [at for at in escapes(text) if is_loose(before(window, start + at))]
        if not hits or is_code(window.last(max(self._code_reach, len(text)))):
            return None
        self._escapes += len(hits)
        self._between += len([at for at in hits if BETWEEN.match(text, max(at - 1, 0))])
        if self._escapes <= ESCAPE_LIMIT or not self._is_unwanted():
            return None
        span = (start + hits[0], start + len(text))
        return Finding(Reason.ESCAPED_TEXT, float(self._escapes), float(ESCAPE_LIMIT), *span)

    def _is_unwanted(self) -> bool:
        """Return True for escapes that the prompt does not speak of; programs have few in prose."""
        if not self._context.asks(Topic.ESCAPES):
            return True
        return self._between > BETWEEN_LIMIT and not self._context.asks(Topic.LINE_BREAKS)

    def _encoded(self, text: str, start: int, window: TextWindow) -> Finding | None:
        if not may_hold_encoded(text) or window.in_fence or MARKUP.search(text):
            return None
        hits = encoded_signs(text)
        self._encodings += len(hits)
        if not hits or self._encodings <= ENCODED_LIMIT or "`" in text:
            return None
        if self._context.asks(Topic.ESCAPES, Topic.ENCODED, Topic.ENCODING, Topic.MARKUP):
            return None
        span = (start + min(hits), start + len(text))
        mailed = MAIL_BYTES.search(text) is not None
        reason = Reason.MOJIBAKE if mailed else Reason.ESCAPED_TEXT
        return Finding(reason, float(self._encodings), float(ENCODED_LIMIT), *span)


def escapes(text: str) -> list[int]:
    """Return where escape sequences stand."""
    return [hit.start() for hit in ESCAPE.finditer(text)]


def is_loose(text: str) -> bool:
    """Return True where an escape follows running text; one that stands alone is spoken of."""
    # Escapes in a quotation are a program's.
    if OPEN_QUOTE.search(text) is not None or BYTES.search(text) is not None:
        return False
    return RUNNING_ON.search(text) is not None


def word_at(text: str, at: int) -> str:
    """Return the letters and signs around a place, up to quotation marks and blanks."""
    return WORD_EDGE.split(text[:at])[-1] + WORD_EDGE.split(text[at:])[0]


def may_hold_encoded(text: str) -> bool:
    """Return True where a character may stand as web pages or mail programs write it."""
    return any(lead in text for lead in ENCODED_LEADS)


def encoded_signs(text: str) -> list[int]:
    """Return where characters stand as web pages and addresses write them."""
    hits = [hit.start() for hit in ENTITY.finditer(text)]
    hits += [hit.start() for hit in MAIL_BYTES.finditer(text)]
    return hits + [hit.start() for hit in PERCENT_BLANK.finditer(text)]


def before(window: TextWindow, offset: int) -> str:
    """Return the characters before an offset that a short quotation can begin in."""
    return window.since(offset - LITERAL_REACH)[: min(LITERAL_REACH, offset)]


def is_code(text: str) -> bool:
    """Return True where escapes have a meaning: code, formulas and data."""
    return CODE.search(text) is not None or looks_like_code(text)


def settled(text: str) -> int:
    """Return how much of a text later characters can no longer change."""
    end = len(text)
    while (
        end
        and (not text[end - 1].isascii() or text[end - 1] == "\\")
        and len(text) - end < LONGEST_RUN
    ):
        end -= 1
    at = text.rfind("\\", max(end - 6, 0), end)
    return at if at >= 0 else end


def misread(text: str) -> Iterator[int]:
    """Yield where a sequence stands that makes sense as UTF-8."""
    for runs, codecs in SEQUENCES:
        for hit in runs.finditer(text):
            if any(decodes(hit.group(), codec) for codec in codecs):
                yield hit.start()
    for pattern in (INVERTED, KNOWN):
        yield from (hit.start() for hit in pattern.finditer(text))
    for runs, codecs in LEGACY:
        for hit in runs.finditer(text):
            if any(nearly_decodes(hit.group(), codec) for codec in codecs):
                yield from (hit.start(), hit.start())


def nearly_decodes(text: str, codec: str) -> bool:
    """Return True where only a few bytes, lost on the way, keep a run from being UTF-8."""
    raw = text.encode(codec, "ignore")
    if len(raw.decode(codec, "ignore")) < KEPT_SHARE * len(text):
        return False
    read = raw.decode("utf-8", "replace")
    readable = CONTROL.search(read) is None and len(read) >= SHORTEST_READ
    return readable and read.count("\ufffd") <= LOST_SHARE * len(read)


def decodes(text: str, codec: str) -> bool:
    """Return True when the bytes of a text in one encoding are UTF-8 of something else."""
    try:
        return text.encode(codec).decode() != text
    except UnicodeError:
        return False
