"""What language a text is in."""

import pytest

from gatemesh_shadow.languages import language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The bread is baked in a hot oven for an hour.", "en"),
        ("Paris.", "en"),
        ("El pan se hornea en un horno caliente durante una hora.", "es"),
        ("Le pain est cuit dans un four pendant une heure.", "fr"),
        ("Das Brot wird in einem Ofen gebacken und ist nicht teuer.", "de"),
        ("面包在烤箱里烤一个小时。", "zh"),
        ("パンはオーブンで焼きます。", "ja"),
        ("Хлеб пекут в печи.", "ru"),
        ("def f(x):\n    return x", "code"),
        ("qwxz plorf snib grunt vlad", "und"),
    ],
)
def test_language(text: str, language: str) -> None:
    """By script, then by the words that every sentence has."""
    assert language_of(text) == language
