"""Every link between pages leads somewhere."""

from pathlib import Path
from urllib.parse import unquote

import pytest

from .pages import PAGES, REPOSITORY, anchors, links, slug

NAMES = [path.relative_to(REPOSITORY).as_posix() for path in PAGES]


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_links_lead_to_files_and_headings_that_are_there(path: Path) -> None:
    """Nobody is sent into the void."""
    broken = [link for link in links(path.read_text()) if not leads_somewhere(path, link)]
    assert broken == []


def leads_somewhere(page: Path, link: str) -> bool:
    """Return whether a link's file and heading exist; other sites are not asked."""
    if link.startswith(("http://", "https://", "mailto:")):
        return True
    file, _, anchor = unquote(link).partition("#")
    target = (page.parent / file) if file else page
    if not target.exists():
        return False
    return not anchor or anchor in anchors(target.read_text())


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_pages_of_the_site_do_not_link_out_of_it(path: Path) -> None:
    """The site holds docs/ only; elsewhere is named in words."""
    docs = REPOSITORY / "docs"
    if not path.is_relative_to(docs):
        return
    outside = [
        link
        for link in links(path.read_text())
        if "://" not in link
        and not (path.parent / link.split("#")[0]).resolve().is_relative_to(docs)
    ]
    assert outside == []


@pytest.mark.parametrize(
    ("heading", "wanted"),
    [
        pytest.param("What is kept", "what-is-kept", id="words"),
        pytest.param("`/v1/responses` and `/v1/messages`", "v1responses-and-v1messages", id="code"),
        pytest.param("Agent: `x_y`, [a link](b.md)!", "agent-x_y-a-link", id="marks"),
        pytest.param("1. 安装（两分钟）", "1-安装两分钟", id="chinese"),
    ],
)
def test_anchors_are_those_of_code_hosts(heading: str, wanted: str) -> None:
    """The links are written for them."""
    assert slug(heading) == wanted


def test_the_chinese_pages_have_their_twins() -> None:
    """A reader finds the other language, from either side."""
    twins = [path for path in PAGES if path.name.endswith(".zh-CN.md")]
    assert {path.name for path in twins} == {"README.zh-CN.md", "tutorial.zh-CN.md"}
    for twin in twins:
        english = twin.with_name(twin.name.replace(".zh-CN", ""))
        assert english.name in links(twin.read_text())
        assert twin.name in links(english.read_text())


def test_the_twin_of_the_tutorial_has_the_same_commands() -> None:
    """A step that is missing in one language is found by its reader only."""
    docs = REPOSITORY / "docs"
    texts = [(docs / name).read_text() for name in ("tutorial.md", "tutorial.zh-CN.md")]
    blocks = [text.split("```")[1::2] for text in texts]
    assert blocks[0] == blocks[1]
