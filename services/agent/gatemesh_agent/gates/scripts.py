"""Letters of scripts that neither the prompt nor the answer is written in."""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import regex

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Finding
from gatemesh_agent.gates.topics import Topic
from gatemesh_agent.gates.window import TextWindow
from gatemesh_common.messages import Reason

ESTABLISHED_LETTERS = 40
"""Letters after which an answer has a script of its own."""
PROMPT_LETTERS = 2
LONGEST_WORD = 48
CUE_CHARS = 32
SCRIPTS_LIMIT = 1
SCRIPTS_LIMIT_WIDE = 2
WORDS_LIMIT = 1
SWITCH_LETTERS = 24
SWITCH_LETTERS_WIDE = 100
SWITCH_WORDS = 2
SWITCH_WORD_LETTERS = 32
"""A single foreign word of this length is a passage in a script without blanks."""
PLAIN_WORDS = 2
RUN_GAP = 12
"""Characters between two words of one foreign passage."""
MIXED_LIMIT = 3
MIXED_SCRIPTS = 2
JUMBLED_SCRIPTS = 2

NON_LATIN = regex.compile(
    r"[^\P{L}\p{Latin}\p{Common}](?:[\p{L}\p{M}\u200c\u200d'’-]*[\p{L}\p{M}])?"
)
"""One word whose first letter is not Latin."""
RANGES = (
    ("greek", 0x0370, 0x03FF),
    ("cyrillic", 0x0400, 0x052F),
    ("armenian", 0x0530, 0x058F),
    ("hebrew", 0x0590, 0x05FF),
    ("arabic", 0x0600, 0x08FF),
    ("devanagari", 0x0900, 0x097F),
    ("tibetan", 0x0F00, 0x0FFF),
    ("burmese", 0x1000, 0x109F),
    ("georgian", 0x10A0, 0x10FF),
    ("hangul", 0x1100, 0x11FF),
    ("ethiopic", 0x1200, 0x139F),
    ("canadian", 0x1400, 0x167F),
    ("mongolian", 0x1800, 0x18AF),
    ("greek", 0x1F00, 0x1FFF),
    ("kana", 0x3040, 0x30FF),
    ("bopomofo", 0x3100, 0x312F),
    ("hangul", 0x3130, 0x318F),
    ("kana", 0x31F0, 0x31FF),
    ("han", 0x3400, 0x9FFF),
    ("hangul", 0xA960, 0xA97F),
    ("hangul", 0xAC00, 0xD7FF),
    ("han", 0xF900, 0xFAFF),
    ("hebrew", 0xFB1D, 0xFB4F),
    ("arabic", 0xFB50, 0xFDFF),
    ("arabic", 0xFE70, 0xFEFF),
    ("kana", 0xFF66, 0xFF9F),
    ("hangul", 0xFFA0, 0xFFDC),
    ("han", 0x20000, 0x3FFFF),
)
LATIN = range(0x0370), range(0x1D00, 0x1F00), range(0x2C60, 0x2C80), range(0xA720, 0xA800)
RELATIVES = {"kana": ("han",), "hangul": ("han",), "bopomofo": ("han",), "han": ("bopomofo",)}
ALWAYS = frozenset({"latin"})
OPENERS = regex.compile(r"[(\[{\"'“”«»„「『《（【*_:：=→|/`~>-]\s*$|[—–]\s*$")
CUE = regex.compile(
    r"""word | character | letter | kanji | hanzi | symbol | called | known\ as | \bterm
        | name | means?\b | meaning | written | pronounc | spell | sign | script | phrase
        | palabra | carácter | letra | llama | significa | termo | chama | mot\b | lettre
        | appel | terme | signifi | wort | zeichen | buchstabe | genannt | bedeut | слово
        | greek | hebrew | arabic | russian | chinese | japanese | korean | hindi | sanskrit
        | persian | thai | cyrillic | from\ latin | original | lyrics | griechisch | grec\b
        | буква | знак | называ | означа | иероглиф | 字 | 词 | 叫 | 意思 | という | 글자
        | 단어""",
    regex.VERBOSE | regex.IGNORECASE,
)


STRONG = regex.compile(
    r"""\b(?: how | what | why | explain | who | which | where | write | give | describe | tell
        | wie
        | warum | erkläre | schreibe? | comment | pourquoi | expli\w+ | écris | cómo | qué
        | escrib\w+ | perché | quale | scrivi | como | escrev\w+ | waarom )\b""",
    regex.VERBOSE | regex.IGNORECASE,
)
WEAK = regex.compile(
    r"""\b(?: the | of | are | does | and | for | with | can | you | list | is | in | about
        | der | die
        | das | ist | eine | und | für | les | est | une | dans | qui | los | por | una | para
        | são | che | sono | della | het | een )\b""",
    regex.VERBOSE | regex.IGNORECASE,
)
"""One strong or two weak words show that a prompt is in a language with Latin letters."""


@lru_cache(maxsize=8192)
def script_of(letter: str) -> str:
    """Return the script of a letter; letters of small scripts are named after their block."""
    code = ord(letter)
    for name, first, last in RANGES:
        if first <= code <= last:
            return name
    return "latin" if any(code in span for span in LATIN) else f"block_{code >> 7:x}"


def scripts_in(text: str) -> Counter[str]:
    """Count the letters of each script but Latin."""
    counts: Counter[str] = Counter()
    for word in NON_LATIN.findall(text):
        counts.update(script_of(sign) for sign in word if sign.isalpha())
    counts.pop("latin", None)
    return counts


@dataclass(slots=True)
class Run:
    """Foreign words in a row."""

    letters: int = 0
    words: int = 0
    start: int = 0
    end: int = 0
    script: str = ""
    bare: bool = False


class Scripts:
    """Follows which scripts an answer uses."""

    __slots__ = (
        "_asked",
        "_bare",
        "_bare_at",
        "_context",
        "_home",
        "_lenient",
        "_letters",
        "_mixed",
        "_run",
        "_seen",
        "_since",
    )

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        # Of a prompt in token ids nothing is known, so its script may be any.
        self._lenient = context.wide or not context.prompt
        self._asked: set[str] | None = None
        self._home: set[str] | None = None
        self._letters: Counter[str] = Counter()
        self._bare: Counter[str] = Counter()
        self._bare_at = 0
        self._mixed = 0
        self._run = Run()
        self._seen: set[str] = set()
        self._since = 0

    @property
    def is_jumble(self) -> bool:
        """True where scripts change inside words, which strings of a program do not do either."""
        return self._mixed > MIXED_LIMIT and len(self._seen) > JUMBLED_SCRIPTS

    def scan(self, window: TextWindow, *, last: bool = False) -> Finding | None:
        """Look at the words that ended since the last time."""
        text = window.since(self._since - CUE_CHARS)
        start = window.end - len(text)
        fresh = max(self._since - start, 0)
        done = len(text) if last else len(text) - unfinished(text)
        if done <= fresh:
            return None
        self._since = start + done
        if last and window.quiet >= len(text) - fresh:
            # Behind the end nothing asks in which scripts ASCII was written.
            return None
        return self._words(text, start, fresh, done)

    def _words(self, text: str, start: int, fresh: int, done: int) -> Finding | None:
        piece = text[fresh:done]
        self._count(piece)
        if piece.isascii():
            return None
        for word in NON_LATIN.finditer(text, fresh, done):
            finding = self._word(word, text, start)
            if finding is not None:
                return finding
        return None

    def _count(self, piece: str) -> None:
        """Let the first letters of the answer say in which scripts it is written."""
        if self._home is not None:
            return
        missing = ESTABLISHED_LETTERS - sum(self._letters.values())
        letters = [sign for sign in piece if sign.isalpha()]
        self._letters.update(map(script_of, letters[:missing]))
        if len(letters) >= missing:
            self._home = self._expected()

    def _expected(self) -> set[str]:
        """Return the scripts that may appear: the answer's, the prompt's, and their relatives."""
        if self._asked is None:
            counts = scripts_in(self._context.prompt)
            self._asked = {name for name, n in counts.items() if n >= PROMPT_LETTERS}
        total = sum(self._letters.values())
        own = {name for name, n in self._letters.items() if n * 4 >= total}
        if not self._asked and not self._lenient and is_plain(self._context.prompt):
            own = set()
        home = self._asked | own | ALWAYS
        return home | {relative for name in home for relative in RELATIVES.get(name, ())}

    def _word(self, word: "regex.Match[str]", text: str, start: int) -> Finding | None:
        home = self._home if self._home is not None else self._expected()
        names = [script_of(sign) for sign in word.group() if sign.isalpha()]
        foreign = [name for name in names if name not in home]
        self._follow_run(len(foreign), start + word.start(), start + word.end())
        if not foreign:
            return None
        self._mixed += is_mixed(word, text, set(names))
        self._seen.update(foreign)
        run = self._run
        # The second word of a name in brackets is as little loose as its first.
        goes_on = run.words > 1 and run.script == foreign[0]
        run.bare = run.bare if goes_on else is_bare(word, text)
        run.script = foreign[0]
        if len(foreign) > 1 and run.bare:
            self._bare_at = self._bare_at or start + word.start()
            self._bare[foreign[0]] += 1
        finding = self._judge(start + word.end())
        return None if finding is None or self._wanted() else finding

    def _follow_run(self, letters: int, start: int, end: int) -> None:
        """Count the foreign letters and words in a row."""
        run = self._run
        if not letters or start - run.end > RUN_GAP:
            run.letters = run.words = 0
        if letters:
            run.start = run.start if run.words else start
            run.letters += letters
            run.words += 1
            run.end = end

    def _judge(self, end: int) -> Finding | None:
        wide = self._lenient
        scripts, words = len(self._bare), max(self._bare.values(), default=0)
        limit = SCRIPTS_LIMIT_WIDE if wide else SCRIPTS_LIMIT
        if scripts > limit or (words > WORDS_LIMIT and not wide and not self._running()):
            score = float(max(scripts, words))
            return Finding(Reason.SCRIPT_SALAD, score, float(limit), self._bare_at, end)
        if self._mixed > MIXED_LIMIT and scripts >= MIXED_SCRIPTS:
            return Finding(
                Reason.SCRIPT_SALAD, float(self._mixed), float(MIXED_LIMIT), self._bare_at, end
            )
        return self._switched(end)

    def _running(self) -> bool:
        return self._run.words > 1

    def _switched(self, end: int) -> Finding | None:
        letters, words, at = self._run.letters, self._run.words, self._run.start
        limit = SWITCH_LETTERS_WIDE if self._lenient else SWITCH_LETTERS
        few = words < SWITCH_WORDS and letters < SWITCH_WORD_LETTERS
        if self._home is None or letters <= limit or few:
            return None
        return Finding(Reason.LANGUAGE_SWITCH, float(letters), float(limit), at, end)

    def _wanted(self) -> bool:
        return self._context.asks(Topic.LANGUAGES)


def is_plain(prompt: str) -> bool:
    """Return True for a prompt that is plainly written in a language with Latin letters."""
    if scripts_in(prompt):
        return False
    weak = len({word.lower() for word in WEAK.findall(prompt)})
    return weak >= PLAIN_WORDS or STRONG.search(prompt) is not None


def unfinished(text: str) -> int:
    """Return how many characters at the end belong to a word that may go on."""
    count = 0
    for sign in reversed(text[-LONGEST_WORD:]):
        if sign.isspace() or (sign.isascii() and not sign.isalnum()):
            break
        count += 1
    return count if count < LONGEST_WORD else 0


def is_mixed(word: "regex.Match[str]", text: str, names: set[str]) -> bool:
    """Return True when scripts change inside a word that no language writes so."""
    before = text[word.start() - 1 : word.start()]
    after = text[word.end() : word.end() + 1]
    touches = any(sign.isalpha() and sign.isascii() for sign in (before, after) if sign)
    return touches or len(names - {"han", "kana"}) > 1


def is_bare(word: "regex.Match[str]", text: str) -> bool:
    """Return True for a foreign word in the flow of a sentence, neither quoted nor introduced."""
    before = text[max(word.start() - CUE_CHARS, 0) : word.start()]
    if OPENERS.search(before) is not None or CUE.search(before) is not None:
        return False
    return bool(before.strip())
