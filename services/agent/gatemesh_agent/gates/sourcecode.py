"""Tells source code and data files from prose, also where no fence marks them."""

import regex

from gatemesh_agent.gates.window import TextWindow

PASSAGE = 1536
LINES = 3
SHARE = 0.5
SHORTEST = 48
LONGEST_LINE_SIGNS = 0.12
"""Share of code signs in text without line breaks, as in minified scripts."""

CODE_LINE = regex.compile(
    r"""[^\n]*[;{}\[\],(\\>]\s*$ | [^\n]*[)\]}'"]\s*[,:;+.]?\s*$ | \s*(?:\#|//|/?\*|--|%|;)
    | \s*(?:import | from | def | class | return | if | elif | else | for | while | try | const
    | let | var | function | export | print | end | local | public | private | static | type
    | interface | package | use | fn | func | select | insert | create)\b.*[^.!?\n]$
    | \s*[\w.$\["'-]+\s*(?:=|:=|\+=|:)\s*\S | \s*[@.<]\w""",
    regex.VERBOSE | regex.IGNORECASE,
)
SIGN = regex.compile(r"[(){}\[\]<>=;_|\"'`/\\:&$]")
STRONG = regex.compile(
    r"""[{};=] | \w\( | [\w)\]]\.\w | \w:\s*[\"'\[\d] | [\"']\s*: | [\"']\s*,\s*[\"'\[{] | \[[\"'{]
    | /[gimsuy]{0,3}[,;)] | ^\s*(?:\#|//|/?\*)""",
    regex.VERBOSE | regex.MULTILINE,
)
ENTITY = regex.compile(r"&#?\w{2,6};")


def reads_as_code(window: TextWindow) -> bool:
    """Return True where the latest lines are a program or a data file."""
    return window.in_fence or is_source(window.last(PASSAGE))


def is_source(text: str) -> bool:
    """Return True for text of which at least half the lines are code."""
    if len(text) < SHORTEST:
        return False
    text = ENTITY.sub("", text)
    lines = [line for line in text.split("\n") if line.strip()]
    if len(STRONG.findall(text)) * 60 < len(text):
        return False
    if len(lines) < LINES:
        return len(SIGN.findall(text)) >= LONGEST_LINE_SIGNS * len(text)
    code = sum(CODE_LINE.match(line) is not None for line in lines)
    return code >= SHARE * len(lines)
