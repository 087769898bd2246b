"""The notifier's settings."""

import ast
from itertools import pairwise
from pathlib import Path

import pytest

from gatemesh_common.errors import SettingsError
from gatemesh_common.settings import load_settings
from gatemesh_notifier import settings as module
from gatemesh_notifier.settings import NotifierSettings

PAGE = Path(__file__).parents[3] / "docs" / "notifier.md"


def test_defaults_work() -> None:
    """Only somebody to tell is missing."""
    settings = load_settings(NotifierSettings)
    assert settings.urls.get_secret_value() == ""
    assert (settings.pace.gather_s, settings.pace.burst) == (5, 3)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("GATEMESH_NOTIFIER_LANGUAGE", "fr"),
        ("GATEMESH_NOTIFIER_ALERTS", "some"),
        ("GATEMESH_NOTIFIER_PER_MIN", "0.4"),
        ("GATEMESH_NOTIFIER_BURST", "0"),
        ("GATEMESH_NOTIFIER_GATHER_S", "-1"),
        ("GATEMESH_NOTIFIER_GIVE_UP_AFTER_S", "1201"),
        ("GATEMESH_NOTIFIER_INCIDENT_LINK", "javascript:x"),
    ],
)
def test_a_wrong_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    """The operator knows which variable to change."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError, match=variable):
        load_settings(NotifierSettings)


def test_an_empty_path_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose files set what nobody has set to nothing."""
    monkeypatch.setenv("GATEMESH_NOTIFIER_TARGETS_FILE", "")
    assert load_settings(NotifierSettings).targets_file is None


def test_addresses_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings may be logged."""
    monkeypatch.setenv("GATEMESH_NOTIFIER_URLS", "slack://s3cret")
    assert "s3cret" not in repr(load_settings(NotifierSettings))


def test_every_setting_says_what_it_means() -> None:
    """One line under each, and a row in the page."""
    tree = ast.parse(Path(str(module.__file__)).read_text())
    [body] = [node.body for node in tree.body if isinstance(node, ast.ClassDef)]
    fields = [node for node in body if isinstance(node, ast.AnnAssign)]
    documented = [
        before
        for before, after in pairwise(body)
        if isinstance(before, ast.AnnAssign) and isinstance(after, ast.Expr)
    ]
    assert documented == fields
    page = PAGE.read_text()
    names = [f"`{name.upper()}`" for name in NotifierSettings.__annotations__]
    assert [name for name in names if name != "`MODEL_CONFIG`" and name not in page] == []
