"""The pages as a site: complete navigation, strict build, nothing fetched."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy.docs.hooks import DECISIONS, MORE, completed, on_page_markdown, pages_of

from .pages import REPOSITORY

NAV_ONLY = re.compile(r"^nav:\n.*", re.MULTILINE | re.DOTALL)
FETCHED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?(https?:[^\"\s>]+)")


def nav() -> list[Any]:
    """Return the navigation; the rest of the file holds tags that only MkDocs reads."""
    found = NAV_ONLY.search((REPOSITORY / "mkdocs.yml").read_text())
    assert found
    return list(yaml.safe_load(found.group())["nav"])


def test_the_navigation_names_pages_once_that_are_there() -> None:
    """A page that was renamed is found before the site is built."""
    named = list(pages_of(nav()))
    assert len(named) == len(set(named))
    assert [page for page in named if not (REPOSITORY / "docs" / page).exists()] == []


def test_every_page_is_in_the_completed_navigation() -> None:
    """Also those that nobody has put anywhere."""
    docs = REPOSITORY / "docs"
    pages = sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    assert sorted(pages_of(completed(nav(), docs))) == pages


def test_left_pages_come_under_their_sections(tmp_path: Path) -> None:
    """Decisions apart from the rest."""
    (tmp_path / "adr").mkdir()
    for name in ("index.md", "new.md", "adr/0001-x.md"):
        (tmp_path / name).touch()
    added = [{MORE: ["new.md"]}, {DECISIONS: ["adr/0001-x.md"]}]
    assert completed([{"Home": "index.md"}], tmp_path) == [{"Home": "index.md"}, *added]


def test_a_complete_navigation_stays_as_it_is(tmp_path: Path) -> None:
    """No empty section is shown."""
    (tmp_path / "index.md").touch()
    assert completed([{"Home": "index.md"}], tmp_path) == [{"Home": "index.md"}]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("Text\n- one\n- two\n", "Text\n\n- one\n- two\n", id="list"),
        pytest.param("Text\n1. one\n", "Text\n\n1. one\n", id="numbers"),
        pytest.param("<!-- x -->\n| a |\n|---|\n", "<!-- x -->\n\n| a |\n|---|\n", id="table"),
        pytest.param("```\n$ x\n```\n- one\n", "```\n$ x\n```\n\n- one\n", id="below-code"),
        pytest.param("```\nText\n- x\n| y |\n```\n", "```\nText\n- x\n| y |\n```\n", id="code"),
        pytest.param("- one\n  goes on\n- two\n", "- one\n  goes on\n- two\n", id="goes-on"),
        pytest.param("# Head\n| a |\n", "# Head\n| a |\n", id="heading"),
    ],
)
def test_blocks_are_parted_from_the_text_above(text: str, wanted: str) -> None:
    """Code hosts show them as lists and tables; the site must, too."""
    assert on_page_markdown(text) == wanted


@pytest.mark.skipif(
    importlib.util.find_spec("material") is None,
    reason="mkdocs-material is not installed: pip install -c constraints.txt '.[docs]'",
)
def test_the_site_is_built_without_a_warning_and_fetches_nothing(tmp_path: Path) -> None:
    """Links and anchors as the site's own builder sees them; a reader's browser stays here."""
    command = (sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir")
    result = subprocess.run(
        (*command, str(tmp_path)),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )
    assert result.returncode == 0, result.stderr + result.stdout
    built = list(tmp_path.rglob("*.html"))
    assert (tmp_path / "index.html") in built
    fetched = {url for page in built for url in FETCHED.findall(page.read_text())}
    assert fetched == set()
