"""Tells source code and data files from prose, also where no fence marks them."""

import regex

from gatemesh_agent.gates.window import TextWindow

PASSAGE = 1536
LINES = 3
SHARE = 0.5
SHORTEST = 48
LONG_LINE = 96
VERY_LONG_LINE = 240
STRONG_EVERY = 60
"""Characters of code, blanks at the ends of lines aside, that hold one strong sign or more."""
LONGEST_LINE_SIGNS = 0.12
"""Share of code signs in text without line breaks, as in minified scripts."""

CODE_LINE = regex.compile(
    r"""[^\n]*[;{}\[\],(\\>]\s*$ | [^\n]*[)\]}'"]\s*[,:;+.]?\s*$ | \s*(?:\#|//|/?\*|--|%|;)
    | \s*(?:import | from | def | class | return | if | elif | else | for | while | try | const
    | let | var | function | export | print | end | local | public | private | static | type
    | interface | package | use | fn | func | select | insert | create)\b.*[^.!?\n]$
    | \s*[\w.$\["'-]+\s*(?:=|:=|\+=|:)\s*\S | \s*[@.<]\w
    | >>>\s | \.\.\.\s | Traceback\b""",
    regex.VERBOSE | regex.IGNORECASE,
)
SIGN = regex.compile(r"[(){}\[\]<>=;_|\"'`/\\:&$]")
STRONG = regex.compile(
    r"""[{};=] | \w\( | [\w)\]]\.\w | \w:\s*[\"'\[\d] | [\"']\s*: | [\"']\s*,\s*[\"'\[{] | \[[\"'{]
    | /[gimsuy]{0,3}[,;)] | [\w.?)\]]\|[\w(\[^] | ^>>>\s | ^Traceback\b
    | ^\s*(?:\#|//|/?\*)""",
    regex.VERBOSE | regex.MULTILINE,
)
OPEN_QUOTE = regex.compile(r"(?:^|[\s(\[{=,:+])[bfru]{0,2}(\"|')(?:(?!\1)[^\n])*$")
"""A short quotation that has begun and not ended."""
LITERAL_REACH = 60
ENTITY = regex.compile(r"&#?\w{2,6};")


def reads_as_code(window: TextWindow) -> bool:
    """Return True where the latest lines are a program or a data file."""
    return window.in_fence or is_source(window.last(PASSAGE))


def runs_on(window: TextWindow) -> bool:
    """Return True for a long line, or end of one, without any sign of a program."""
    line = window.last(PASSAGE).rpartition("\n")[2]
    if len(line) < LONG_LINE:
        return False
    return SIGN.search(line if len(line) < VERY_LONG_LINE else line[-VERY_LONG_LINE:]) is None


def in_literal(window: TextWindow, offset: int) -> bool:
    """Return True for a place inside a short literal of a program."""
    before = window.since(offset - LITERAL_REACH)[: min(LITERAL_REACH, offset)]
    return OPEN_QUOTE.search(before) is not None and reads_as_code(window)


def is_source(text: str) -> bool:
    """Return True for text of which at least half the lines are code."""
    if len(text) < SHORTEST:
        return False
    text = ENTITY.sub("", text)
    lines = [line for line in map(str.strip, text.split("\n")) if line]
    # Indentation says nothing: deeper blocks are as much code as others.
    size = sum(map(len, lines))
    if len(STRONG.findall(text)) * STRONG_EVERY < size:
        return False
    if len(lines) < LINES:
        return len(SIGN.findall(text)) >= LONGEST_LINE_SIGNS * len(text)
    code = sum(CODE_LINE.match(line) is not None for line in lines)
    return code >= SHARE * len(lines)
