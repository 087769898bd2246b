"""`gatemesh-ctl judge`: the gates over answers that were saved, with an exit code that tells."""

import argparse
import gzip
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from rich.console import Console

from gatemesh_agent.gates.pool_baseline import NO_BASELINE, PoolBaseline
from gatemesh_agent.judge_report import as_fields, show, summary
from gatemesh_agent.plugins import Source, load_gates
from gatemesh_agent.saved import SavedAnswer, SavedError, object_of, read_saved
from gatemesh_agent.saved_judging import Gates, JudgedAnswer, judge_answer
from gatemesh_agent.settings import read_pairs
from gatemesh_common.errors import SettingsError
from gatemesh_common.invalid import misfits_of, place_words
from gatemesh_common.messages import BaselineEntry

CLEAN, FAILED, WRONG = 0, 1, 2
STDIN = "-"
OPTIONS = Source("--gate", "--gate-settings")
GZIP_MAGIC = b"\x1f\x8b"
ENTRIES = TypeAdapter(tuple[BaselineEntry, ...])
DESCRIPTION = """\
Run the gates over saved answers: a whole answer, a captured stream (of /v1/chat/completions,
/v1/completions, /v1/responses or /v1/messages), or JSON Lines of cases or recorded answers.
Exit code 0: clean; 1: a gate failed; 2: the input cannot be judged."""


def main(argv: Sequence[str], prog: str = "gatemesh-ctl judge") -> int:
    """Judge what the command line names; return the exit code."""
    options = arguments(argv, prog)
    try:
        gates = gates_of(options)
        judged = [judge_answer(answer, gates) for answer in answers(options)]
    except (SavedError, SettingsError) as error:
        Console(stderr=True, soft_wrap=True).print(f"error: {error}", markup=False, style="red")
        return WRONG
    if options.json:
        sys.stdout.write(f"{as_json(judged)}\n")
    else:
        print_all(judged, options)
    if any(one.failed for one in judged):
        return FAILED
    # What no gate could judge is not clean.
    return CLEAN if any(one.judged for one in judged) else WRONG


def arguments(argv: Sequence[str], prog: str) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog=prog, description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", metavar="FILE", help="what to judge; `-` reads standard input")
    parser.add_argument(
        "--request",
        type=Path,
        metavar="FILE",
        help="the request, as JSON; without it the gates do not know what the prompt asked for",
    )
    parser.add_argument("--vocab-size", type=int, metavar="N", help="sharpens the bounds of L3")
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="a baseline message, or its entries, for L2"
    )
    parser.add_argument(
        "--gate", action="append", default=[], metavar="NAME", help="a plugged-in gate; repeatable"
    )
    parser.add_argument(
        "--gate-settings", default="", metavar="NAME.KEY=VALUE,…", help="settings of those gates"
    )
    parser.add_argument("--all", action="store_true", help="show clean answers of a file, too")
    parser.add_argument("--json", action="store_true", help="print JSON with every field")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    return parser.parse_args(argv)


def answers(options: argparse.Namespace) -> Iterator[SavedAnswer]:
    """Yield the answers that the command line names.

    Raises:
        SavedError: they cannot be read.
    """
    request = json_of(options.request) if options.request else {}
    name = "standard input" if options.file == STDIN else options.file
    yield from read_saved(read_bytes(options.file), name, request)


def read_bytes(name: str | Path) -> bytes:
    """Return the content of a file, or of standard input, unpacked.

    Raises:
        SavedError: it cannot be read.
    """
    try:
        data = sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
        return gzip.decompress(data) if data.startswith(GZIP_MAGIC) else data
    except (OSError, EOFError) as error:
        raise SavedError(f"{name} cannot be read ({error}); is it there and complete?") from error


def json_of(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file.

    Raises:
        SavedError: it holds none.
    """
    return object_of(read_bytes(path), str(path))


def gates_of(options: argparse.Namespace) -> Gates:
    """Return what the gates are given.

    Raises:
        SavedError: the baseline cannot be read.
        SettingsError: a plugged-in gate cannot be had.
    """
    baseline = baseline_of(options.baseline) if options.baseline else NO_BASELINE
    plugs = load_gates(options.gate, settings_in(options.gate_settings), "saved", OPTIONS)
    return Gates(options.vocab_size, baseline, plugs)


def settings_in(text: str) -> Mapping[str, str]:
    """Return the settings of plugged-in gates.

    Raises:
        SettingsError: they are not written as `name.key=value,…`.
    """
    try:
        pairs = read_pairs(text)
    except ValueError as error:
        raise SettingsError(f"--gate-settings: {error}") from error
    return pairs if isinstance(pairs, dict) else {}


def baseline_of(path: Path) -> PoolBaseline:
    """Return the baseline in a file: a baseline message, or the list of its entries.

    Raises:
        SavedError: it holds none.
    """
    try:
        value = json.loads(read_bytes(path))
        entries = value.get("entries") if isinstance(value, dict) else value
        return PoolBaseline.of(ENTRIES.validate_python(entries))
    except ValidationError as error:
        place, message = misfits_of(error)[0]
        field = place_words(("entries", *place))
        raise SavedError(f"{path}: field {field!r}: {message}") from error
    except ValueError as error:
        raise SavedError(f"{path}: not JSON ({error})") from error


def print_all(judged: Sequence[JudgedAnswer], options: argparse.Namespace) -> None:
    """Print what failed, and everything where there is only one answer."""
    colour = {"always": True, "never": False}.get(options.color)
    console = Console(force_terminal=colour, highlight=False, width=None if colour else 120)
    if not options.request and len(judged) == 1 and not judged[0].answer.request:
        console.print("without --request the gates do not know what was asked for", style="dim")
    for one in judged:
        if one.failed or options.all or len(judged) == 1:
            show(console, one)
    if len(judged) > 1:
        console.print(told(summary(judged)))


def told(counts: Mapping[str, int]) -> str:
    """Return the sums in a line."""
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())


def as_json(judged: Sequence[JudgedAnswer]) -> str:
    """Return everything as JSON."""
    fields = {**summary(judged), "results": [as_fields(one) for one in judged]}
    return json.dumps(fields, ensure_ascii=False, indent=1, default=str)
