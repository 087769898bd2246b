"""`gatemesh-ctl watch`, `explain` and `doctor`: what happens, why it happened, what is wrong."""

import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gatemesh_common.clock import utc_now
from gatemesh_ctl.addresses import read_run
from gatemesh_ctl.application import (
    EXIT_FAILED,
    EXIT_UNDECIDED,
    JsonForm,
    OfInstance,
    addresses,
    check_instance,
    console,
    open_store,
    show_json,
)
from gatemesh_ctl.completing import incident_ids
from gatemesh_ctl.output import plain, printable

if TYPE_CHECKING:
    from gatemesh_ctl.findings import Finding
    from gatemesh_ctl.watching import Look

HEADINGS = {
    "why": "Why",
    "verdicts": "What the gates said",
    "brakes": "What the brakes said",
    "steps": "What was done",
    "states": "States",
    "end": "End",
}
STYLES = {"ok": "green", "unknown": "dim", "warning": "yellow", "fault": "bold red"}


def register(application: typer.Typer) -> None:
    """Add the commands."""
    for command in (watch, explain, doctor):
        application.command()(command)


def watch(
    *,
    instance: OfInstance = None,
    every_s: Annotated[float, typer.Option(min=0.2, max=3600, help="Seconds between looks.")] = 1.0,
    for_s: Annotated[
        float | None, typer.Option(min=0, help="End after so many seconds; without it: Ctrl-C.")
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="One line per event, as when it is no terminal.")
    ] = False,
    json_form: Annotated[bool, typer.Option("--json", help="One JSON object per event.")] = False,
) -> None:
    """Show what happens while it happens; a live screen, or lines where it is no terminal."""
    from gatemesh_ctl.watching import Watcher  # noqa: PLC0415

    live = sys.stdout.isatty() and not lines and not json_form
    with open_store() as store, suppress(KeyboardInterrupt):
        check_instance(store, instance)
        watcher = Watcher(
            store, lambda row: instance in (None, row["instance_id"]), every_s, whole=live
        )
        if live:
            from gatemesh_ctl.live_screen import show_live  # noqa: PLC0415

            show_live(watcher.looks(for_s), console())
        else:
            print_looks(watcher.looks(for_s), json_form=json_form)


def print_looks(looks: "Iterable[Look]", *, json_form: bool) -> None:
    """Print each event on a line; an outage is told once, and its end."""
    from gatemesh_ctl.watching import CUT, event_line  # noqa: PLC0415

    away = False
    for look in looks:
        if look.fault is not None and not away:
            sys.stderr.write(f"{look.fault.wrong}; trying again\n")
        if look.fault is None and away:
            sys.stderr.write("the database answers again\n")
        if look.is_cut:
            sys.stderr.write(f"{CUT}\n")
        away = look.fault is not None
        for row in look.events:
            as_one = json.dumps(row, default=plain, ensure_ascii=False)
            sys.stdout.write(f"{as_one if json_form else event_line(row)}\n")
        sys.stdout.flush()


def explain(
    incident_id: Annotated[
        str,
        typer.Argument(help="The incident; the beginning is enough.", autocompletion=incident_ids),
    ],
    *,
    json_form: JsonForm = False,
) -> None:
    """Say why an incident was opened and what became of it, in words with numbers."""
    from gatemesh_ctl import explaining  # noqa: PLC0415
    from gatemesh_ctl.explain_facts import read_facts  # noqa: PLC0415

    with open_store() as store:
        explained = explaining.explain(read_facts(store, incident_id))
    if json_form:
        show_json(explained)
        return
    screen = console()
    for title, sentences in explained["words"].items():
        screen.print(HEADINGS[title], style="bold")
        for sentence in sentences:
            screen.print(f"  {printable(sentence)}", markup=False, highlight=False)


def doctor(
    *,
    policy: Annotated[
        Path | None, typer.Option(help="The policy file; else the manager's variable names it.")
    ] = None,
    admin: Annotated[
        list[str] | None,
        typer.Option(
            help="A service's admin port, NAME=URL; may be given again.", metavar="NAME=URL"
        ),
    ] = None,
    json_form: JsonForm = False,
) -> None:
    """Look at everything that has to work, and say the cure of what does not.

    Exit code 0: nothing to do; 1: something does not work; 3: only warnings.
    """
    from gatemesh_ctl.doctor import Patient, admin_urls, diagnose  # noqa: PLC0415
    from gatemesh_ctl.doctor_broker import diagnose_broker  # noqa: PLC0415
    from gatemesh_ctl.doctor_policy import FILE_VARIABLE, installed_check  # noqa: PLC0415

    named = os.environ.get(FILE_VARIABLE)
    patient = Patient(
        addresses=addresses(),
        clock=utc_now,
        broker=diagnose_broker,
        policy_file=policy or (Path(named) if named else None),
        policy_check=installed_check(),
        admin_urls=admin_urls(admin or (), read_run(os.environ, Path.cwd())),
    )
    show_findings(diagnose(patient), json_form=json_form)


def show_findings(findings: "list[Finding]", *, json_form: bool) -> None:
    """Print what was found and its cures; exit with a code that says how grave it is."""
    from gatemesh_ctl.findings import Level, gravest  # noqa: PLC0415

    worst = gravest(findings)
    if json_form:
        show_json({"worst": worst, "findings": [one.as_row() for one in findings]})
    else:
        print_findings(findings)
    codes = {Level.FAULT: EXIT_FAILED, Level.WARNING: EXIT_UNDECIDED}
    raise typer.Exit(codes.get(worst, 0))


def print_findings(findings: "list[Finding]") -> None:
    """Print each finding on a line, with its cure below where there is something to do."""
    screen = console()
    for one in findings:
        line = printable(f"{one.level:8} {one.check:13} {one.what}")
        screen.print(line, style=STYLES[one.level], markup=False, highlight=False)
        if one.cure and one.level != "ok":
            screen.print(f"{'':22} -> {one.cure}", markup=False, highlight=False)
