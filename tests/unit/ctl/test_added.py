"""Commands of other parts are found by entry point, and loaded only when they are run."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from gatemesh_ctl.added import GROUP, add_commands, load, runner_of, tell_addresses
from gatemesh_ctl.errors import CtlError


def echo(arguments: list[str], program: str) -> int:
    """Print what it was given; end with the number of its arguments."""
    typer.echo(f"{program}: {' '.join(arguments)}")
    return len(arguments)


def application() -> typer.Typer:
    """Return a command line with one command of its own and one that was added."""
    made = typer.Typer()

    @made.command()
    def own() -> None:
        """Do nothing."""

    point = EntryPoint("echo", f"{__name__}:echo", GROUP)
    settings = {"allow_extra_args": True, "ignore_unknown_options": True}
    made.command("echo", context_settings=settings, add_help_option=False)(runner_of(Loaded(point)))
    return made


class Loaded(EntryPoint):
    """An entry point of this very test."""

    def __new__(cls, point: EntryPoint) -> "Loaded":
        """Copy one."""
        return super().__new__(cls)

    def __init__(self, point: EntryPoint) -> None:
        super().__init__(point.name, point.value, point.group)

    def load(self) -> object:
        """Return the command."""
        return echo


def test_an_added_command_gets_its_arguments_and_gives_its_code() -> None:
    """Options are its own to read, `--help` too."""
    result = CliRunner().invoke(application(), ["echo", "a", "--flag", "--help"])
    assert result.exit_code == 3
    assert result.output == "gatemesh-ctl echo: a --flag --help\n"


def test_a_command_of_a_part_that_is_not_installed_says_what_to_install() -> None:
    """The part's name is that of its extra."""
    point = EntryPoint("judge", "gatemesh_nowhere.judge_cli:main", GROUP)
    with pytest.raises(CtlError, match=r"pip install 'gatemesh\[nowhere\]'"):
        load(point)


def test_judge_is_there() -> None:
    """The agent brings it along."""
    made = typer.Typer()
    add_commands(made)
    assert "judge" in [command.name for command in made.registered_commands]


def test_added_commands_find_the_local_stack(tmp_path: Path) -> None:
    """Its addresses are in the variables by then; those that are set stay."""
    state = tmp_path / ".gatemesh"
    state.mkdir()
    (state / "run.json").write_text(
        '{"amqp_url": "amqp://here", "database_url": "postgresql://here"}'
    )
    environment = {"GATEMESH_AMQP_URL": "amqp://mine"}
    tell_addresses(environment, tmp_path)
    assert environment == {
        "GATEMESH_AMQP_URL": "amqp://mine",
        "GATEMESH_DATABASE_URL": "postgresql://here",
    }
