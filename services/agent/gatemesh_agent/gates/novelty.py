"""How much of the latest passage is new against the text before it: tells a loop from a list."""

import regex

from gatemesh_agent.gates.window import TextWindow

GRAM = 4
"""Words in a row; about eight tokens."""
PASSAGE_WORDS = 64
REACH = 2048

WORD = regex.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[\p{L}\p{M}\p{N}'’]+")


def new_share(window: TextWindow) -> float:
    """Return which share of the latest groups of words has not stood in the text before; 1 early.

    Costs as much as reading the window once, so ask only where something else is suspicious.
    """
    words = WORD.findall(window.last(REACH).lower())
    grams = list(zip(*(words[at:] for at in range(GRAM)), strict=False))
    recent = grams[-PASSAGE_WORDS:]
    if len(grams) < 2 * PASSAGE_WORDS:
        return 1.0
    known = set(grams[:-PASSAGE_WORDS])
    return sum(gram not in known for gram in recent) / len(recent)
