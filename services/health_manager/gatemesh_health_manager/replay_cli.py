"""`gatemesh-ctl replay`: decide about stored history once more, with the same rules or others."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console

from gatemesh_common.errors import GatemeshError, SettingsError
from gatemesh_health_manager.comparing import repeat
from gatemesh_health_manager.history import History, HistoryError, read_history, write_history
from gatemesh_health_manager.policy import load_policy
from gatemesh_health_manager.replay_report import (
    compared_fields,
    played_fields,
    show_compared,
    show_played,
)
from gatemesh_health_manager.store_history import HistoryStore
from gatemesh_health_manager.what_if import what_if

ALIKE, DIFFERENT, WRONG = 0, 1, 2
DAY = timedelta(days=1)
DATABASE_VARIABLE = "GATEMESH_DATABASE_URL"
DESCRIPTION = """\
Decide about stored verdicts, reports, observations and requests once more, by the same functions.
Without --policy the rules of then are used and every decision must be as it is stored (exit code 0;
1 where one is not). With --policy the difference is shown: which incidents would not, or would
also, have happened, capacity taken out, time to isolate. 2: it cannot be replayed."""


def main(argv: Sequence[str], prog: str = "gatemesh-ctl replay") -> int:
    """Replay what the command line names; return the exit code."""
    options = arguments(argv, prog)
    try:
        return replay(options, os.environ)
    except (SettingsError, GatemeshError) as error:
        Console(stderr=True, soft_wrap=True).print(f"error: {error}", markup=False, style="red")
        return WRONG


def arguments(argv: Sequence[str], prog: str) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog=prog, description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--from", dest="since", type=moment, metavar="T",
        help="ISO 8601, UTC unless it names a zone; a day ago, or where a file begins",
    )  # fmt: skip
    parser.add_argument(
        "--to", dest="until", type=moment, metavar="T", help="now, or where a file ends"
    )
    parser.add_argument("--policy", type=Path, metavar="FILE", help="other rules")
    parser.add_argument(
        "--database", metavar="URL", help=f"a reader may do; default {DATABASE_VARIABLE}"
    )
    parser.add_argument("--history", type=Path, metavar="FILE", help="read this, no database")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the history read, packed")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(argv)
    if options.since and options.until and options.since >= options.until:
        parser.error("--from: must be before --to")
    return options


def moment(text: str) -> datetime:
    """Read a moment; one without a zone is in UTC.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no moment; write 2026-11-30T14:00 or 2026-11-30T14:00+08:00"
        ) from None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def replay(options: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Replay and print; return the exit code.

    Raises:
        GatemeshError: the history or the rules cannot be had.
    """
    if options.history:
        return replay_history(options, cut(read_history(options.history), options.until))
    url = options.database or environment.get(DATABASE_VARIABLE)
    if not url:
        raise HistoryError(
            f"--database: not given; name the database there or in {DATABASE_VARIABLE}, "
            "or a file by --history"
        )
    until = options.until or datetime.now(UTC)
    with HistoryStore(url) as store:
        return replay_history(options, store.read(options.since or until - DAY, until))


def replay_history(options: argparse.Namespace, history: History) -> int:
    """Replay a history and print; return the exit code."""
    if options.save:
        write_history(options.save, history)
    console = Console(soft_wrap=True)
    since = max(options.since or history.begin.at, history.begin.at)
    if options.policy is None:
        comparison = repeat(history, since)
        if options.json:
            console.print_json(data=compared_fields(comparison))
        else:
            show_compared(console, comparison)
        return DIFFERENT if comparison.differences else ALIKE
    outcomes = what_if(history, load_policy(options.policy))
    until = last_moment(history)
    if options.json:
        console.print_json(data=played_fields(outcomes, since, until))
    else:
        show_played(console, outcomes, since, until)
    return ALIKE


def cut(history: History, until: datetime | None) -> History:
    """Return a history up to a moment."""
    if until is None:
        return history
    return replace(
        history,
        inputs=[given for given in history.inputs if given.input.at <= until],
        steps=[step for step in history.steps if step.at <= until],
        incidents=[one for one in history.incidents if one.opened_at <= until],
    )


def last_moment(history: History) -> datetime:
    """Return when the history ends."""
    return max([history.begin.at, *(given.input.at for given in history.inputs)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], "python -m gatemesh_health_manager.replay_cli"))
