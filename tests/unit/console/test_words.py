"""The catalogue is whole in both languages, and the browser's wish is followed."""

import re
import string
from pathlib import Path

import pytest

from gatemesh_common.words import Action, CheckLevel, InstanceState, Outcome
from gatemesh_console import application, words
from gatemesh_console.asking import ACTIONS
from gatemesh_console.tokens import Role

FOLDER = Path(application.__file__).parent
TEMPLATES = sorted((FOLDER / "templates").glob("*.html"))
FIELDS = string.Formatter()


def fields_of(text: str) -> set[str]:
    """Return the names of the values that a text takes."""
    return {name for _, name, _, _ in FIELDS.parse(text) if name}


def test_both_languages_say_the_same_things() -> None:
    """No key and no value is missing in one of them."""
    english, chinese = (words.load(language).known for language in words.LANGUAGES)
    assert set(english) == set(chinese)
    assert all(fields_of(english[key]) == fields_of(chinese[key]) for key in english)
    assert all(text.strip() for text in (*english.values(), *chinese.values()))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_word_of_a_page_is_in_the_catalogue(template: Path) -> None:
    """A missing key would be an error page."""
    used = set(re.findall(r'\bw\("([^"]+)"[,)]', template.read_text()))
    assert used - set(words.load("en").known) == set()


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_page_holds_a_script_a_style_or_a_handler(template: Path) -> None:
    """The content policy would stop them."""
    text = template.read_text()
    assert re.search(r"<script(?! src=)|<style|\sstyle=|\son\w+=|hx-on|\|\s*safe", text) is None


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("action", {*ACTIONS, *Action}),
        ("about", set(ACTIONS)),
        ("state", set(InstanceState)),
        ("gate", set(CheckLevel)),
        ("outcome", set(Outcome)),
        ("role", set(Role)),
        ("error", {kind.__name__ for kind in application.STATUSES}),
    ],
)
def test_every_word_of_a_closed_list_has_a_name(kind: str, names: set[str]) -> None:
    """In both languages, by the test above."""
    assert {f"{kind}.{name}" for name in names} - set(words.load("zh").known) == set()


@pytest.mark.parametrize(
    ("chosen", "accepted", "language"),
    [
        ("zh", "en", "zh"),
        ("en", "zh-CN", "en"),
        (None, "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        (None, "en-GB,en;q=0.9,zh;q=0.8", "en"),
        (None, "fr,zh;q=0.3,en;q=0.2", "zh"),
        (None, "fr", "en"),
        (None, "zh;q=0", "en"),
        (None, "", "en"),
        ("xx", "zh;q=nonsense", "zh"),
        (None, ";;;,=,q=1", "en"),
    ],
)
def test_a_choice_goes_before_the_browser_s_wish(
    chosen: str | None, accepted: str, language: str
) -> None:
    """And what neither names is English."""
    assert words.choose(chosen, accepted) == language


def test_values_are_put_in_and_unknown_words_stay() -> None:
    """A newer service may know a state that this console does not."""
    english = words.load("en")
    assert english("incident.title", instance="engine-0") == "Incident on engine-0"
    assert english.name("state", "healthy") == "healthy"
    assert english.name("state", "dreaming") == "dreaming"
    with pytest.raises(KeyError):
        english("no.such.key")
