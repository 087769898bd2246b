"""Writes docs/settings.md from the settings that services define.

    python -m deploy.docs.settings_page

Needs every service's packages, as the tests do.
"""

import ast
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any, get_args

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from gatemesh_common.settings import ServiceSettings

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "settings.md"
HEAD = """\
# Settings

Written by `python -m deploy.docs.settings_page` from the code; a test compares it. Services read
environment variables, once, at their start; one that is wrong is named, and the service ends with
exit code 2. In our images a file in `/run/gatemesh` that is called like a variable gives its value.
Units are in the names; lists are written with commas. Rules of deciding are no settings:
[policy.md](policy.md). Those of the simulated engine: [engine-sim.md](engine-sim.md).
"""
BOUNDS = (("ge", "≥ {}"), ("gt", "> {}"), ("le", "≤ {}"), ("lt", "< {}"))


@dataclass(frozen=True)
class Setting:
    """One variable."""

    variable: str
    default: str
    accepts: str
    meaning: str


def settings_classes() -> dict[str, type[ServiceSettings]]:
    """Return the settings class of every service that has one, by the service's name."""
    found = {}
    for path in sorted(REPOSITORY.glob("services/*/gatemesh_*/settings.py")):
        module = import_module(f"{path.parent.name}.settings")
        for value in vars(module).values():
            if is_settings(value) and value.__module__ == module.__name__:
                found[path.parents[1].name] = value
    return found


def is_settings(value: object) -> bool:
    """Return whether something is a settings class of a service."""
    return inspect.isclass(value) and issubclass(value, ServiceSettings)


def is_own(base: type) -> bool:
    """Return whether a base class is a part of one service's settings."""
    return base.__module__.startswith("gatemesh_") and base is not ServiceSettings


def settings_of(found: type[ServiceSettings]) -> Iterator[Setting]:
    """Yield the settings that a class itself defines."""
    # What every service reads has a section of its own.
    bases = [base for base in reversed(found.__mro__) if base is found or is_own(base)]
    meanings = {name: text for base in bases for name, text in meanings_of(base).items()}
    for name, meaning in meanings.items():
        field = found.model_fields[name]
        yield Setting(variable_of(found, name, field), default_of(field), accepts(field), meaning)


def meanings_of(found: type) -> dict[str, str]:
    """Return the text below each field of a class, by the field's name."""
    [definition] = ast.parse(dedent(inspect.getsource(found))).body
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
        if isinstance(text.value.value, str)
    }


def variable_of(found: type[ServiceSettings], name: str, field: FieldInfo) -> str:
    """Return the variable that a field is read from."""
    prefix = str(found.model_config.get("env_prefix", ""))
    return str(field.validation_alias or f"{prefix}{name}".upper())


def default_of(field: FieldInfo) -> str:
    """Return the default as one would write it; nothing secret or random is shown."""
    if field.is_required():
        return "(must be set)"
    if field.default is PydanticUndefined:
        return "" if field.default_factory in (dict, list, tuple) else "random"
    value: Any = field.default
    if hasattr(value, "get_secret_value") or value is None or value in ("", ()):
        return ""
    return f"`{written(value)}`"


def written(value: object) -> str:
    """Return a value as an environment has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and value < 1e6 else str(value)  # noqa: PLR2004


def accepts(field: FieldInfo) -> str:
    """Return the words, or the bounds, that a field is held to."""
    words = [word for word in get_args(field.annotation) if isinstance(word, str)]
    if words:
        return ", ".join(f"`{word}`" for word in words)
    parts = [
        shape.format(written(getattr(rule, name)))
        for rule in field.metadata
        for name, shape in BOUNDS
        if getattr(rule, name, None) is not None
    ]
    return ", ".join(parts)


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD, section("Every service", ServiceSettings)]
    parts += [section(name, found) for name, found in settings_classes().items()]
    return "\n".join(parts)


def section(title: str, found: type[ServiceSettings]) -> str:
    """Return the part of the page about one class."""
    rows = [
        f"| `{one.variable}` | {one.default} | {one.accepts} | {cell(one.meaning)} |"
        for one in settings_of(found)
    ]
    head = ("| variable | default | accepts | meaning |", "|---|---|---|---|")
    return "\n".join((f"## {title}", *head, *rows, ""))


def cell(text: str) -> str:
    """Return a text that fits into a cell of a table."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE}\n")
