"""The shadow's settings."""

import ast
from pathlib import Path

import pytest

from gatemesh_common.errors import SettingsError
from gatemesh_common.settings import load_settings
from gatemesh_shadow import settings as module
from gatemesh_shadow.settings import ShadowSettings


def test_defaults_work() -> None:
    """Everything has a default; the packaged models are taken."""
    settings = load_settings(ShadowSettings)
    assert (settings.embedding_model, settings.verifier_model) == ("", "")
    assert settings.score


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("GATEMESH_SHADOW_MAX_AGE_S", "0"),
        ("GATEMESH_SHADOW_SECOND_ANSWER_SHARE", "1.1"),
        ("GATEMESH_SHADOW_EMBEDDING", "maybe"),
        ("GATEMESH_SHADOW_EMBEDDING_LANGUAGES", "EN"),
        ("GATEMESH_SHADOW_AT_ONCE", "0"),
    ],
)
def test_a_wrong_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    """The operator knows which variable to change."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError, match=variable):
        load_settings(ShadowSettings)


def test_every_setting_says_what_it_means() -> None:
    """A docstring behind each field."""
    tree = ast.parse(Path(module.__file__).read_text())
    [body] = [node.body for node in tree.body if isinstance(node, ast.ClassDef)]
    fields = [at for at, node in enumerate(body) if isinstance(node, ast.AnnAssign)]
    told = [body[at + 1] for at in fields if at + 1 < len(body)]
    assert len(told) == len(fields)
    assert all(isinstance(node, ast.Expr) for node in told)


def test_the_page_names_every_setting() -> None:
    """docs/shadow.md is complete."""
    page = (Path(__file__).parents[3] / "docs" / "shadow.md").read_text()
    own = set(ShadowSettings.model_fields) - set(ShadowSettings.__mro__[1].model_fields)  # type: ignore[attr-defined]
    missing = [name for name in sorted(own) if f"`{name.upper()}`" not in page]
    assert not missing
