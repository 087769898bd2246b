"""Programs and data are told from prose without a fence."""

import inspect
import json

import pytest

from gatemesh_agent.gates import sourcecode
from gatemesh_agent.gates.sourcecode import in_literal, is_source, reads_as_code, runs_on
from gatemesh_agent.gates.window import TextWindow

PROSE = (
    "The keeper climbed the stairs (all ninety of them) and lit the lamp. It had rained; the\n"
    "glass was wet. He wrote in his book: two ships, one of them late.\n\nThen he slept."
)


@pytest.mark.parametrize(
    "text",
    [
        inspect.getsource(sourcecode),
        json.dumps({"names": ["a", "b"], "size": 3}, indent=1) * 3,
        "function s(a){for(var i=0;i<a.length;i++){if(a[i]){return a[i]}}return null};s([1,2]);",
    ],
    ids=["python", "json", "minified"],
)
def test_code_is_seen(text: str) -> None:
    """Lines of a program, of a data file, and one long line."""
    assert is_source(text)


def test_prose_is_no_code() -> None:
    """Brackets and colons of running text do not make a program; nor does a scrap."""
    assert not is_source(PROSE)
    assert not is_source("x = 1;")
    assert not is_source("")


def test_a_fence_is_enough() -> None:
    """What stands in a fence counts as code."""
    window = TextWindow()
    for _ in window.blocks("Here it is:\n```\nplain words\n"):
        pass
    window.rest()
    assert reads_as_code(window)


@pytest.mark.parametrize(
    "text",
    [
        "class Store:\n"
        + "                def open_all(self):\n                    'Opens.'\n" * 4,
        ">>> total([1, 2], key)\nTraceback (most recent call last):\nKeyError: no such part\n" * 3,
        "const seasons = [\n    /^frühl/i,\n    /^so(?:m)?|so/i,\n    /^(herbst|hrb\\.?)/i,\n];\n",
    ],
    ids=["indented", "console", "patterns"],
)
def test_more_kinds_of_code(text: str) -> None:
    """Deep indentation, transcripts of a console, and tables of patterns."""
    assert is_source(text)


def test_a_place_in_a_literal() -> None:
    """A short quotation of a program; prose in quotation marks is none."""
    window = TextWindow()
    code = "def check(self):\n    name = clean(raw)\n    self.equal(name, 'fish"
    for _ in window.blocks(code):
        pass
    window.rest()
    assert in_literal(window, len(code))
    assert not in_literal(window, code.index("clean"))
    prose = TextWindow()
    for _ in prose.blocks(PROSE + " 'He"):
        pass
    prose.rest()
    assert not in_literal(prose, prose.end)


def test_a_long_line_without_signs_runs_on() -> None:
    """It is no code, whatever stands in the lines before it; a short one may be."""
    code = "rows = table.find(1);\nname = rows[0].name;\n" * 8
    window = TextWindow()
    for _ in window.blocks(code + "word after word " * 3):
        pass
    assert not runs_on(window)
    for _ in window.blocks("and word after word " * 4):
        pass
    assert runs_on(window)
    for _ in window.blocks("f(x) " + "word after word " * 8):
        pass
    assert not runs_on(window)
