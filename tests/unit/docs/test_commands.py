"""Every command that the pages show exists."""

import importlib.util
import re
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

import pytest
from typer.main import get_command

from gatemesh_ctl.added import GROUP
from gatemesh_ctl.asking import ACTIONS
from gatemesh_ctl.cli import application as ctl
from gatemesh_mesh.cli import application as mesh

from .pages import PAGES, REPOSITORY, Shown, commands

SHOWN = sorted({shown for path in PAGES for shown in commands(path)}, key=str)
PLACEHOLDER = re.compile(r"^[A-Z][A-Z_]*$|^-|\.\.\.|[<>…\[\]]")
"""A word that the reader puts something else for, or an option."""
OTHERS_MODULES = {"venv", "pip", "build", "http.server", "vllm.entrypoints.openai.api_server"}
"""Modules that are not ours, run with `python -m`."""


def of_program(*names: str) -> Iterator[Shown]:
    """Yield what is shown of some programs, with words behind the program."""
    return (one for one in SHOWN if one.words[0].endswith(names) and len(one.words) > 1)


def ids(shown: list[Shown]) -> list[str]:
    """Return names for test cases."""
    return [str(one)[:100] for one in shown]


def options_of(command: Any) -> set[str]:
    """Return the options that a command takes."""
    return {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {
        "--help"
    }


def check_options(command: Any, words: tuple[str, ...]) -> None:
    """Fail for an option that the command does not take; what follows `--` is another's."""
    own = words[: words.index("--")] if "--" in words else words
    asked = {word.split("=")[0] for word in own if re.fullmatch(r"--[a-z][a-z-]*(=.*)?", word)}
    assert asked - options_of(command) == set()


def subcommand(group: Any, words: tuple[str, ...]) -> Any | None:
    """Return the command that the words name; None where they name none yet."""
    word = words[1]
    if PLACEHOLDER.search(word):
        return None
    assert word in group.commands, f"{word} is no command"
    return group.commands[word]


MESH = [one for one in of_program("/mesh") if one.words[0] == "./mesh"]


@pytest.mark.parametrize("shown", MESH, ids=ids(MESH))
def test_mesh_knows_it(shown: Shown) -> None:
    """Verbs and their options."""
    command = subcommand(get_command(mesh), shown.words)
    if command is not None:
        check_options(command, shown.words)


CTL = list(of_program("gatemesh-ctl"))
ADDED = {point.name for point in entry_points(group=GROUP)} | {"judge", "replay"}
"""Commands that read their options themselves."""


@pytest.mark.parametrize("shown", CTL, ids=ids(CTL))
def test_ctl_knows_it(shown: Shown) -> None:
    """Verbs, options, and the actions that can be asked for."""
    if shown.words[1] in ADDED:
        return
    command = subcommand(get_command(ctl), shown.words)
    if command is None:
        return
    if hasattr(command, "commands"):
        command = subcommand(command, shown.words[1:]) if len(shown.words) > 2 else None
    if command is not None:
        check_options(command, shown.words)
    if shown.words[1] == "request" and len(shown.words) > 2:
        action = shown.words[2]
        assert action in ACTIONS or PLACEHOLDER.search(action)


MODULES = [
    (one, one.words[one.words.index("-m") + 1])
    for one in of_program("python", "python3")
    if one.words[1:2] == ("-m",) and len(one.words) > 2
]


@pytest.mark.parametrize(("shown", "module"), MODULES, ids=ids([one for one, _ in MODULES]))
def test_modules_are_there(shown: Shown, module: str) -> None:
    """`python -m NAME` for every name of ours."""
    if module not in OTHERS_MODULES and not PLACEHOLDER.search(module):
        assert importlib.util.find_spec(module) is not None


SCRIPTS = [
    (one, word)
    for one in of_program("python", "python3", "bash", "sh", "docker", "kubectl")
    for word in one.words[1:]
    if re.fullmatch(r"(\./)?(benchmarks|deploy|examples|tests)/[\w./-]+", word)
]


@pytest.mark.parametrize(("shown", "path"), SCRIPTS, ids=ids([one for one, _ in SCRIPTS]))
def test_files_are_there(shown: Shown, path: str) -> None:
    """Files and folders of this repository that a command names."""
    assert (REPOSITORY / path).exists(), str(shown)


def test_commands_are_found_at_all() -> None:
    """A reader of pages that finds nothing would pass everything."""
    assert min(len(MESH), len(CTL), len(MODULES), len(SCRIPTS)) > 5
