"""Commands that other parts of gatemesh add: found by entry point, loaded when they are run."""

import os
from collections.abc import Callable, MutableMapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import typer

from gatemesh_ctl.addresses import BROKER_VARIABLE, DATABASE_VARIABLE, find_addresses
from gatemesh_ctl.errors import CtlError

GROUP = "gatemesh.ctl_commands"
"""Each names a function that takes arguments and the program's name, and returns an exit code."""
HELP = {
    "agent-keys": "Make, list and take away the API keys of an agent's clients.",
    "broker-users": "Write a definitions.json with a user per service for a RabbitMQ of yours.",
    "judge": "Run the gates over saved answers; --help says more.",
    "replay": "Decide about stored history once more, with other rules too; --help says more.",
}
PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Options are the command's own to read, `--help` too."""


def add_commands(application: typer.Typer) -> None:
    """Add the commands of every installed part."""
    known = {command.name for command in application.registered_commands}
    points = [point for point in entry_points(group=GROUP) if point.name not in known]
    for point in sorted(points, key=lambda one: one.name):
        application.command(
            point.name,
            help=HELP.get(point.name, f"Added by {point.module}; --help says more."),
            context_settings=dict(PASSED_ON),
            add_help_option=False,
        )(runner_of(point))


def runner_of(point: EntryPoint) -> Callable[[typer.Context], None]:
    """Return what runs one added command."""

    def run(context: typer.Context) -> None:
        command = load(point)
        tell_addresses(os.environ, Path.cwd())
        raise typer.Exit(command(context.args, f"gatemesh-ctl {point.name}"))

    return run


def tell_addresses(environment: MutableMapping[str, str], folder: Path) -> None:
    """Let added commands find the local stack in the variables, as our own commands find it."""
    known = find_addresses(environment, folder)
    for variable, address in (
        (BROKER_VARIABLE, known.amqp_url),
        (DATABASE_VARIABLE, known.database_url),
    ):
        if address:
            # With the file of authorities in it, where one is named.
            environment[variable] = address


def load(point: EntryPoint) -> Callable[[list[str], str], int]:
    """Return an added command.

    Raises:
        CtlError: its part of gatemesh is not installed here.
    """
    try:
        command: Callable[[list[str], str], int] = point.load()
    except ImportError as error:
        part = point.module.partition(".")[0].removeprefix("gatemesh_")
        raise CtlError(
            f"{point.name} needs {error.name or point.module}, which is not installed",
            f"pip install 'gatemesh[{part}]'",
        ) from error
    return command
