"""Healthy texts are cut from packages as a reader sees them."""

from collections.abc import Iterator

import pytest
from benchmarks.clean_sources import (
    CleanText,
    blocks_of,
    clean,
    cut_passages,
    evenly,
    roff_paragraphs,
)

PAGE = r""".TH LS 1
.SH NAMN
ls \- lista \fIkataloger\fP
.SH BESKRIVNING
.PP
Listar filer (som \(lqls\(rq).
.BR stat (2)
.nf
x = 1
y = 2
.fi
"""


def test_a_manual_page() -> None:
    """Markup is gone, sections are told apart, and lines of code stay lines."""
    assert list(roff_paragraphs(PAGE)) == [
        "",
        "ls - lista kataloger",
        "",
        'Listar filer (som "ls"). stat(2) x = 1 y = 2',
    ]
    assert list(roff_paragraphs(PAGE + ".de XX\n")) == []


def test_passages_have_the_length_of_an_answer() -> None:
    """Short paragraphs are joined, sections are not, and scraps are left out."""

    def paragraphs() -> Iterator[str]:
        yield from ("a" * 100, "b" * 100, "", "c" * 20, "", "d" * 2300, "e" * 200)

    sizes = [len(passage) for passage in cut_passages(paragraphs())]
    assert sizes == [202, 2300, 200]


@pytest.mark.parametrize(("text", "reason"), [("It ends.", "stop"), ("It goes on:", "length")])
def test_a_passage_that_was_cut_says_so(text: str, reason: str) -> None:
    """Only a full sentence is an end."""
    assert clean("en", "x", "Explain x.", text).finish_reason == reason


def test_every_group_has_its_share() -> None:
    """A large language does not crowd out a small one."""
    groups = {
        name: [CleanText(name, str(n), "", "") for n in range(size)]
        for name, size in (("de", 50), ("fi", 3), ("ja", 50))
    }
    taken = [one.group for one in evenly(groups, 23, seed=1)]
    assert (taken.count("fi"), taken.count("de") + taken.count("ja")) == (3, 20)
    assert taken.count("de") == 10


def test_a_readme_keeps_its_code_together() -> None:
    """A heading begins a passage; a fence with empty lines stays in one piece."""
    readme = "# Owl\n\nIt hoots.\n\n```\na\n\nb\n```\n\nEnd."
    assert blocks_of(readme) == ["", "# Owl", "It hoots.", "```\na\n\nb\n```", "End."]
