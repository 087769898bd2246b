"""`./mesh`: the local stack, its demo and its tests, from one command line."""

import importlib
import logging
import os
import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Annotated
from xmlrpc.client import Error as XmlRpcError

import typer
from rich.console import Console
from rich.table import Table

from gatemesh_mesh import models_env, suite
from gatemesh_mesh.asyncapi import write as write_asyncapi
from gatemesh_mesh.checkers import ensure_browser, promtool_facts
from gatemesh_mesh.drills import FAULTS
from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.foreground import (
    await_first_engine,
    running_stack,
    stop_everything,
    stop_requests,
    watch,
)
from gatemesh_mesh.kube_lab import kube_facts
from gatemesh_mesh.options import DemoOptions, StackOptions
from gatemesh_mesh.plan import StackPlan
from gatemesh_mesh.postgres import plain_url
from gatemesh_mesh.prerequisites import ensure_balancers
from gatemesh_mesh.progress import ConsoleProgress, Progress
from gatemesh_mesh.stack import REPOSITORY
from gatemesh_mesh.state import StateFolder, state_folder
from gatemesh_mesh.supervision import Supervision

INTERRUPTED = 130
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}

application = typer.Typer(
    help="The local gatemesh stack: broker, database, services and engines on this machine.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    # Its tracebacks would show local variables, passwords among them.
    pretty_exceptions_enable=False,
)

Engines = Annotated[int, typer.Option(min=1, max=32, help="How many simulated engines to run.")]
Port = Annotated[
    int | None, typer.Option(min=1, max=65_535, help="Port of the agent; a free one without it.")
]


def main() -> None:
    """Run the command line; a failure says what is wrong and what to do, without a traceback."""
    # What the broker's client logs on a failure is told by the failure itself.
    logging.getLogger("aiormq").addHandler(logging.NullHandler())
    try:
        application(prog_name="./mesh")
    except MeshError as error:
        Console(stderr=True, soft_wrap=True).print(f"error: {error}", markup=False, style="red")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def this_folder() -> StateFolder:
    """Return the state folder of this run."""
    return state_folder(os.environ, REPOSITORY)


@application.command()
def up(engines: Engines = 3, agent_port: Port = None) -> None:
    """Run the whole stack in the foreground; Ctrl-C ends all of it."""
    console = Console()
    progress = ConsoleProgress(console)
    options = StackOptions.from_environment(os.environ, engines, agent_port)
    began = datetime.now(UTC)
    with stop_requests(), running_stack(this_folder(), options, progress) as (stack, plan):
        await_first_engine(plan, progress, began)
        print_addresses(console, plan)
        with suppress(KeyboardInterrupt):
            watch(stack, progress)


def print_addresses(console: Console, plan: StackPlan) -> None:
    """Tell where everything is."""
    database = plain_url(plan.addresses.database_url)
    lines = [
        f"agent (model: sim)          AGENT={plan.agent_url}",
        f"agent's metrics             {plan.admin_url('agent')}/metrics",
        *(f"{engine.instance_id:<28}{engine.base_url}" for engine in plan.engines),
        f"console                     {plan.console_url}",
        f"console's token             {plan.console_token}",
        f"broker                      {plan.addresses.amqp_url}",
        f"broker's pages              {plan.addresses.management_url or '(not ours)'}",
        f'database                    psql "{database}"',
        f"logs                        {plan.folder.logs}",
        "Ctrl-C ends all of it.",
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


@application.command()
def down() -> None:
    """End everything that runs from the state folder, also after the starter was killed."""
    console = Console()
    found = stop_everything(this_folder(), ConsoleProgress(console))
    console.print("Nothing is left running." if found else "Nothing was running.")


@application.command()
def status() -> None:
    """Show which programs run, and where they answer. Exit code 3 when nothing runs."""
    console = Console()
    folder = this_folder()
    table = Table("program", "state", "process", "up for")
    try:
        rows = Supervision(folder).statuses() if folder.run_file.exists() else []
    except (OSError, HTTPException, XmlRpcError):
        rows = []
    if not rows:
        console.print("Nothing is running; `./mesh up` starts the stack.")
        raise typer.Exit(3)
    for row in rows:
        table.add_row(row.name, row.state.lower(), str(row.pid or ""), f"{row.uptime_s} s")
    console.print(table)
    facts = folder.read_run()
    for name in ("agent_url", "console_url", "management_url"):
        if facts.get(name):
            console.print(f"{name.removesuffix('_url')}: {facts[name]}", highlight=False)
    for service, url in facts.get("admin_urls", {}).items():
        console.print(f"{service}'s metrics: {url}/metrics", highlight=False)


@application.command()
def asyncapi() -> None:
    """Write docs/asyncapi.yaml anew from the message classes."""
    Console().print(f"written: {write_asyncapi(REPOSITORY)}", markup=False, soft_wrap=True)


@application.command("test", context_settings=PASS_ON)
def check_and_test(
    context: typer.Context,
    *,
    fast: Annotated[bool, typer.Option("--fast", help="Unit and contract tests only.")] = False,
    real: Annotated[bool, typer.Option(help="Also run the tests of the real engine.")] = True,
    compose: Annotated[
        bool, typer.Option("--compose", help="Also run those of compose.yaml; needs Docker.")
    ] = False,
    containers: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION",
            parser=suite.broker_version,
            help="Broker of this version (3, 4, 4.3) and database in containers, where Docker is.",
        ),
    ] = None,
    faults: Annotated[
        bool, typer.Option("--faults", help="Play the whole fault suite, and nothing else.")
    ] = False,
    page: Annotated[
        Path | None, typer.Option(help="With --faults: write its table into this page.")
    ] = None,
    kube: Annotated[
        bool, typer.Option("--kube", help="Also run those of a real Kubernetes API server.")
    ] = False,
) -> None:
    """Check format, types and layers, then run the tests; more arguments go to pytest."""
    if containers:
        # Every part of the tests inherits it.
        os.environ[suite.CONTAINERS_VARIABLE] = containers
    if faults:
        command = suite.faults_command(context.args)
        raise typer.Exit(suite.run_tests(command, REPOSITORY, [], suite.faults_facts(page)))
    console = Console()
    with ExitStack() as opened:
        if kube:
            os.environ.update(opened.enter_context(kube_facts(REPOSITORY, os.environ, console)))
        raise typer.Exit(run_suite(context.args, console, fast=fast, real=real, compose=compose))


def run_suite(
    arguments: list[str], console: Console, *, fast: bool, real: bool, compose: bool
) -> int:
    """Run checks and tests and return the exit code of it all."""
    # Before all parts: the first one needs them.
    progress = ConsoleProgress(console)
    os.environ.update(balancer_facts(progress))
    os.environ.update(promtool_facts(this_folder().root / "checkers", progress))

    def check() -> list[str]:
        return suite.run_checks(suite.static_checks(REPOSITORY), REPOSITORY, console)

    def prepare() -> dict[str, str]:
        if not fast:
            ensure_browser(progress)
        facts = real_engine_facts(console, wanted=real and not fast)
        return facts | ({suite.COMPOSE_VARIABLE: "1"} if compose else {})

    if arguments or fast:
        command = suite.pytest_command(REPOSITORY, arguments, fast=fast)
        return suite.run_tests(command, REPOSITORY, check(), prepare())
    return suite.run_all_tests(suite.PARTS, REPOSITORY, check, prepare, console)


def balancer_facts(progress: Progress) -> dict[str, str]:
    """Install the load balancers that tests run against; return why their tests are skipped."""
    try:
        ensure_balancers(progress)
    except MeshError as error:
        return {suite.BALANCERS_VARIABLE: error.reason}
    return {}


def real_engine_facts(console: Console, *, wanted: bool) -> dict[str, str]:
    """Install real engine and models where they are wanted; return why tests are skipped."""
    if not wanted:
        reason = "not asked for (--fast or --no-real)"
        return dict.fromkeys((suite.REAL_ENGINE_VARIABLE, suite.MODELS_VARIABLE), reason)
    # Imported late: the other commands need nothing of it.
    from gatemesh_mesh.real_engine import (  # noqa: PLC0415
        RealEngineUnavailableError,
        ensure_installed,
    )

    folder = this_folder()
    folder.create()
    facts: dict[str, str] = {}
    for variable, what, install in (
        (suite.REAL_ENGINE_VARIABLE, "real engine", ensure_installed),
        (suite.MODELS_VARIABLE, "models", install_models),
    ):
        try:
            install(folder, ConsoleProgress(console))
        except RealEngineUnavailableError as error:
            console.print(f"the tests of the {what} are skipped: {error}", markup=False)
            facts[variable] = error.reason
    return facts


def install_models(folder: StateFolder, progress: Progress) -> models_env.ModelsLayout:
    """Install the shadow's models where they are missing; raises as `ensure_installed` does."""
    return models_env.ensure_installed(folder, sys.executable, progress)


@application.command()
def models() -> None:
    """Install the shadow's models (1.5 GB); `up`, `demo` and `test` use them from then on."""
    console = Console()
    folder = this_folder()
    folder.create()
    layout = install_models(folder, ConsoleProgress(console))
    console.print(f"The models are in {layout.venv}.", highlight=False, soft_wrap=True)


@application.command()
def demo(
    *,
    sim: Annotated[bool, typer.Option("--sim", help="Simulated engines only.")] = False,
    fault: Annotated[
        list[str] | None,
        typer.Option(help=f"What to break, once per option: {', '.join(FAULTS)}. Default: nan."),
    ] = None,
    drills: Annotated[int, typer.Option(min=1, max=50, help="How often to go through them.")] = 1,
    rescue: Annotated[
        bool, typer.Option(help="Have streams that go bad continued by the other instance.")
    ] = True,
) -> None:
    """Break an engine on purpose and show how it is found, isolated, repaired and readmitted."""
    # Imported late: the other commands need nothing of it.
    run_demo = importlib.import_module("gatemesh_mesh.demo").run_demo
    faults = tuple(fault or ("nan",)) * drills
    unknown = sorted(set(faults) - set(FAULTS))
    if unknown:
        raise MeshError(
            f"--fault: {', '.join(unknown)} is unknown", f"use one of {', '.join(FAULTS)}"
        )
    stack = StackOptions.from_environment(os.environ, engine_count=2)
    stack = replace(stack, guard="rescue" if rescue else "observe")
    options = DemoOptions(sim=sim, faults=faults, stack=stack)
    with stop_requests():
        raise typer.Exit(run_demo(options, this_folder()))
