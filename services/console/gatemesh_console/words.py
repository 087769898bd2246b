"""The catalogue of the pages' words: data in `catalogue/*.json`, one file per language."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

LANGUAGES = ("en", "zh")
DEFAULT = "en"
NAMES = {"en": "English", "zh": "中文"}
CODES = {"en": "en", "zh": "zh-Hans"}
QUALITY = re.compile(r"q=(?P<quality>[01](?:\.\d{0,3})?)")


@dataclass(frozen=True)
class Words:
    """The words of one language."""

    language: str
    known: Mapping[str, str]

    def __call__(self, key: str, **values: object) -> str:
        """Return a text with its values put in; an unknown key is a fault of ours."""
        return self.known[key].format_map(values)

    def name(self, kind: str, word: object) -> str:
        """Return a word of a closed list; one that a newer service made up stays as it is."""
        return self.known.get(f"{kind}.{word}", str(word))


@cache
def load(language: str) -> Words:
    """Return the words of a language that there is."""
    text = (files("gatemesh_console") / "catalogue" / f"{language}.json").read_text(
        encoding="utf-8"
    )
    return Words(language, json.loads(text))


def choose(chosen: str | None, accepted: str) -> str:
    """Return the language that was chosen, else the one that the browser likes best."""
    if chosen in LANGUAGES:
        return str(chosen)
    liked = sorted(_liked(accepted), key=lambda each: -each[1])
    return next((name for name, quality in liked if quality > 0), DEFAULT)


def _liked(accepted: str) -> list[tuple[str, float]]:
    found = []
    for part in accepted[:500].split(","):
        tag, _, parameters = part.partition(";")
        match = QUALITY.search(parameters)
        name = tag.strip().lower().partition("-")[0]
        if name in LANGUAGES:
            found.append((name, float(match["quality"]) if match else 1.0))
    return found
