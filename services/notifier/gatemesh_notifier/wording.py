"""Words: templates from data files, checked when they are read, and filled for one target."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from gatemesh_common.errors import SettingsError
from gatemesh_notifier.facts import Fact, Level
from gatemesh_notifier.grouping import Line, Notification

LANGUAGES = ("en", "zh")
MOST_LINES = 20
LONGEST_LINE = 400
NOTHING = "-"
"""Stands where a value is empty."""

LINE_NAMES = frozenset(
    {
        *("instance", "pool", "at", "count", "incident", "condition", "meaning", "reason"),
        *("playbook", "would", "version", "state", "trigger", "gate", "link"),
    }
)
NAMES = {
    "titles": frozenset({"pool", "count"}),
    "lines": LINE_NAMES,
    "conditions": frozenset[str](),
    "parts": frozenset({"count", "link"}),
}
"""Sections of a template file, and what their templates may name."""


@dataclass(frozen=True)
class Text:
    """A notification in words."""

    title: str
    body: str
    level: Level


class Wording:
    """The templates of one language."""

    def __init__(self, sections: Mapping[str, Mapping[str, str]], link: str = "") -> None:
        self._sections = sections
        self._link = link

    def text_of(self, notification: Notification) -> Text:
        """Put a notification into words; no more lines than a person reads."""
        lines = notification.lines
        shown = [self._line(line, notification.pool) for line in lines[:MOST_LINES]]
        if len(lines) > MOST_LINES:
            shown.append(self._fill("parts", "more", {"count": str(len(lines) - MOST_LINES)}))
        values = {"pool": notification.pool, "count": str(len(lines))}
        title = self._fill("titles", notification.level.value, values)
        return Text(one_line(title), "\n".join(shown), notification.level)

    def trial(self) -> Text:
        """Return the message with which targets are checked."""
        title = self._fill("parts", "trial_title", {})
        return Text(title, self._fill("parts", "trial", {}), Level.NOTE)

    def _line(self, line: Line, pool: str) -> str:
        values = self._values(line.fact) | {"pool": pool, "count": str(line.count)}
        parts = [self._fill("lines", line.fact.word, values)]
        if values["link"] != NOTHING:
            parts.append(self._fill("parts", "link", values))
        return " ".join(one_line(part) for part in parts)

    def _values(self, fact: Fact) -> dict[str, str]:
        condition = fact.values.get("condition", "")
        incident = fact.values.get("incident", "")
        link = Template(self._link).safe_substitute(incident=incident) if incident else ""
        values = {
            **dict.fromkeys(LINE_NAMES, ""),
            **fact.values,
            "instance": fact.instance,
            "at": fact.at.strftime("%H:%M:%S UTC"),
            "meaning": self._sections["conditions"].get(condition, condition),
            "link": link,
        }
        return {name: value or NOTHING for name, value in values.items()}

    def _fill(self, section: str, name: str, values: Mapping[str, str]) -> str:
        return Template(self._sections[section][name]).substitute(values)


def one_line(text: str) -> str:
    """Return the text without line breaks and control characters, not too long."""
    plain = "".join(sign if sign.isprintable() else " " for sign in text)
    return plain if len(plain) <= LONGEST_LINE else f"{plain[: LONGEST_LINE - 1]}…"


def load_wording(language: str, folder: Path | None, link: str = "") -> Wording:
    """Read a language's templates; a file of the same name in `folder` replaces single ones.

    Raises:
        SettingsError: the file cannot be used; names the file and the template.
    """
    packaged = files("gatemesh_notifier") / "templates" / f"{language}.toml"
    sections = parse_templates(packaged.read_text(encoding="utf-8"), str(packaged))
    own = folder / f"{language}.toml" if folder else None
    if own is None or not own.exists():
        return Wording(sections, link)
    try:
        changes = parse_templates(own.read_text(encoding="utf-8"), str(own))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{own}: cannot be read as UTF-8 text") from error
    for section, templates in changes.items():
        if section != "conditions" and (unknown := sorted(set(templates) - set(sections[section]))):
            known = ", ".join(sorted(sections[section]))
            raise SettingsError(f"{own}: [{section}] {unknown[0]}: unknown; there are {known}")
    merged = {name: {**known, **changes.get(name, {})} for name, known in sections.items()}
    return Wording(merged, link)


def parse_templates(text: str, source: str) -> dict[str, dict[str, str]]:
    """Return the templates of a file by section and name.

    Raises:
        SettingsError: it is no TOML, or a template is none or names what there is not.
    """
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{source}: no valid TOML: {error}") from error
    for section, templates in read.items():
        if section not in NAMES or not isinstance(templates, dict):
            raise SettingsError(f"{source}: [{section}]: unknown; there are {', '.join(NAMES)}")
        for name, template in templates.items():
            if fault := fault_of(template, NAMES[section]):
                raise SettingsError(f"{source}: [{section}] {name}: {fault}")
    return read


def fault_of(template: object, allowed: frozenset[str]) -> str | None:
    """Return what is wrong with a template; None for a good one."""
    if not isinstance(template, str):
        return "must be a text"
    made = Template(template)
    if not made.is_valid():
        return "a '$' must be followed by a name, or be written '$$'"
    unknown = sorted(set(made.get_identifiers()) - allowed)
    if unknown:
        return f"${unknown[0]} is unknown; there are {', '.join(sorted(allowed)) or 'none'}"
    return None
