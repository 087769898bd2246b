"""Damage one engine in every way and count what of it reaches a client under rescue.

    python benchmarks/rescue.py [--parts P,P] [--kinds K,K] [--onsets N,N] [--json OUT] [--page P]

The real agent with its gates stands in front of simulated engines, of which one is damaged: each
kind of fault begins at each onset, streamed and whole, chats and completions, with and without log
probabilities. At temperature 0 an answer gone on with on a healthy engine must be the uncut one, so
every other letter is counted: as bad where it is not the answer's, as missing where the answer is
cut. Then clean streams (what rescue costs them), engines that are killed or hang under a hundred
streams, memory under many streams, and what a token costs at the end of a very long stream.

Parts: matrix, clean, deaths, memory, long. `--page` writes the tables between the page's markers.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

# Run as a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks import rescue_loads
from benchmarks.rescuing import (
    CHAT,
    COMPLETIONS,
    QUICK_TO_DOUBT,
    Read,
    Rig,
    ask,
    body_of,
    new_session,
    running_rig,
    word_of,
)

from gatemesh_engine_sim.faults import fault_table
from gatemesh_engine_sim.library import load_library

ONSETS = (0, 1, 5, 50, 500, 2000)
MODES = tuple(product((True, False), (CHAT, COMPLETIONS), ("logprobs", "text")))
"""Streamed or whole, route, and whether the engine tells log probabilities."""
LEFT_OUT = ("slow",)
"""Late is not wrong: rescue has no business with it."""
ZERO_KINDS = ("nan", "flat", "stuck", "bang", "replacement", "special")
"""No bad token of these may reach a client."""
TAIL_TOKENS = 300
"""Of each answer after the place where its fault begins."""
SHORT_ONSET = 5
LEAST_LENGTH = 1_200
RESUMED_CHARS = 24
NEAR, NEAR_CHARS = "other length", 16
"""A text that is read anew may have another length in tokens, by a few."""
RESCUE = {"GATEMESH_AGENT_GUARD": "rescue"}
TEXT_ONLY = {"GATEMESH_AGENT_TOP_LOGPROBS": "0"}
BEGIN, END = "<!-- rescue table -->", "<!-- rescue table end -->"
PARTS = ("matrix", "clean", "deaths", "memory", "long")


@dataclass(frozen=True)
class Case:
    """One damaged request and what became of it."""

    kind: str
    onset: int
    stream: bool
    route: str
    agent: str
    outcome: str
    bad_chars: int
    silent_tokens: int
    """Tokens without text beyond those of the uncut answer."""
    missing_chars: int
    largest_gap_ms: float
    error: str | None = None


def compared(got: str, uncut: str) -> tuple[int, int]:
    """Return the letters of an answer that are not the uncut one's, and those that it lacks.

    All are bad from the first other one to where the uncut answer goes on again, if it does.
    """
    start = common(got, uncut)
    after = uncut[start:]
    places = range(start, len(got))
    resumed = next((at for at in places if is_from(got[at : at + RESUMED_CHARS], after)), len(got))
    return resumed - start, max(0, len(uncut) - len(got) + resumed - start)


def is_from(piece: str, text: str) -> bool:
    """Return True for a piece of a text that is too long to be there by chance, or its end."""
    return piece in text if len(piece) == RESUMED_CHARS else text.endswith(piece)


def common(one: str, other: str) -> int:
    """Return how many letters two texts begin with alike."""
    place = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        place += 1
    return place


def outcome_of(read: Read, uncut: Read) -> str:
    """Return how a damaged request ended for its client."""
    if read.error is not None or read.status != 200:
        return "error"
    if not read.ended:
        return "torn"
    if read.text == uncut.text:
        return "rescued" if read.finish == uncut.finish else "wrong end"
    return NEAR if is_near_end(read, uncut) else "missed"


def is_near_end(read: Read, uncut: Read) -> bool:
    """Return True where two answers differ only in where their common limit has cut them."""
    alike = read.text.startswith(uncut.text) or uncut.text.startswith(read.text)
    near = abs(len(read.text) - len(uncut.text)) <= NEAR_CHARS
    return alike and near and read.finish == uncut.finish == "length"


def question_of(number: int, onset: int, *, counted: bool = False) -> tuple[str, int]:
    """Return a question whose answer outlasts the onset, and the tokens it may take.

    Every other short answer ends by itself, the rest at their limits. The only number in it is
    above those that gates take for a wish to be told something so many times, unless it is
    `counted`: then it says how many words there are to be, as people do.
    """
    if number % 2 and onset <= SHORT_ONSET and not counted:
        return f"Explain {word_of(number)} to a child.", TAIL_TOKENS
    words = max(LEAST_LENGTH, onset + TAIL_TOKENS)
    wish = " in 300 words" if counted else ""
    return f"Tell me about {word_of(number)}{wish}, length {words}.", onset + TAIL_TOKENS


async def strike(
    rig: Rig, number: int, fault: tuple[str, int], mode: tuple[bool, str, str], *, counted: bool
) -> Case | None:
    """Damage the victim for one request, and see what its client gets; None if it was spared."""
    (kind, onset), (stream, route, agent) = fault, mode
    question, tokens = question_of(number, onset, counted=counted)
    body = body_of(route, question, tokens, stream=stream)
    lasting = kind in LASTING
    async with new_session() as session:
        uncut = await ask(session, rig.url(None, route), body)
        order = {"fault": kind, "after_tokens": onset, "requests": None if lasting else 1}
        await asyncio.to_thread(rig.order, order)
        got = await ask(session, rig.url(agent, route), body)
    struck = await asyncio.to_thread(rig.struck)
    await asyncio.to_thread(rig.order, None)
    if not struck or not uncut.is_whole:
        return None
    outcome = outcome_of(got, uncut)
    bad, missing = (0, 0) if outcome == NEAR else compared(got.text, uncut.text)
    return Case(
        *(kind, onset, stream, route, agent, outcome, bad),
        silent_tokens=max(0, got.silent_events - uncut.silent_events),
        missing_chars=missing,
        largest_gap_ms=round(1000 * (got.largest_gap_s if stream else got.wall_s), 1),
        error=got.error or (None if got.status == 200 else str(got.status)),
    )


LASTING = ("hang", "exit")
"""These strike every request of the victim: an engine that hangs for one only is another fault."""


def matrix(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return what became of every damaged request."""
    usual = {**QUICK_TO_DOUBT, **options.rescue}
    agents = {"logprobs": usual, "text": {**usual, **TEXT_ONLY}}
    cases: list[Case] = []
    unstruck = []
    with running_rig(folder, agents) as rig:
        before = {name: rig.metrics(name, "rescue", "held") for name in agents}
        for number, (kind, onset, mode) in enumerate(
            product(options.kinds, options.onsets, options.modes)
        ):
            struck = strike(rig, number, (kind, onset), mode, counted=options.counted)
            case = asyncio.run(struck)
            if case is None:
                unstruck.append((kind, onset, *mode))
                continue
            cases.append(case)
            if options.verbose and case.outcome != "rescued":
                print(case, flush=True)
        counted = {
            name: risen(before[name], rig.metrics(name, "rescue", "held")) for name in agents
        }
    return {"cases": [asdict(one) for one in cases], "unstruck": unstruck, "metrics": counted}


def risen(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return by how much figures have risen."""
    return {
        name: value - before.get(name, 0.0)
        for name, value in after.items()
        if value != before.get(name, 0.0)
    }


def summed(cases: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield a row of the table for each kind."""
    by_kind: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for case in cases:
        by_kind[case["kind"]].append(case)
    for kind, found in by_kind.items():
        counts = [sum(one["outcome"] in names for one in found) for names in COLUMNS]
        others = len(found) - sum(counts)
        bad = [one["bad_chars"] + one["silent_tokens"] for one in found]
        gaps = sorted(one["largest_gap_ms"] for one in found if one["stream"])
        gap = f"{statistics.median(gaps):.0f} / {gaps[-1]:.0f}" if gaps else ""
        clean = sum(not one for one in bad)
        yield [
            f"`{kind}`{' **0**' if kind in ZERO_KINDS else ''}",
            *map(str, (len(found), *counts, others, clean, max(bad))),
            gap,
        ]


AGENTS = {"logprobs": "With log probabilities", "text": "Without log probabilities"}
COLUMNS = (("rescued",), (NEAR,), ("error",))
HEAD = (
    "kind", "cases", "whole and equal", "but for the limit", "clear error", "bad or cut",
    "without a bad token",
    "most bad letters", "longest silence, ms: median / most",
)  # fmt: skip


def table(rows: Iterator[list[str]], head: Sequence[str] = HEAD) -> str:
    """Return Markdown."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page_of(report: Mapping[str, Any]) -> str:
    """Return all that was measured as Markdown."""
    parts = []
    cases = report.get("matrix", {}).get("cases", ())
    for agent, words in AGENTS.items():
        found = [one for one in cases if one["agent"] == agent]
        if found:
            onsets = ", ".join(map(str, sorted({one["onset"] for one in found})))
            parts.append(f"{words}; {len(found)} answers, fault at token {onsets}:")
            parts.append(table(summed(found)))
    for name in PARTS[1:]:
        if name in report:
            rows = ([key, str(value)] for key, value in flat(report[name]))
            parts.append(table(rows, (name, "")))
    return "\n\n".join(parts)


def flat(found: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every figure with its full name."""
    for name, value in found.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{before}{name}: ")
        else:
            yield f"{before}{name}", round(value, 3) if isinstance(value, float) else value


def write_page(page: Path, text: str) -> None:
    """Put the tables between the page's markers; a page that is missing is begun."""
    if not page.exists():
        page = page.with_name("rescue-measured.md")
        if not page.exists():
            page.write_text(f"# Rescue, measured\n\n{BEGIN}\n{END}\n", encoding="utf-8")
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    if not begin:
        raise SystemExit(f"{page}: the marker {BEGIN} is missing")
    _, end, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after if end else rest}", encoding="utf-8")


MAKERS: dict[str, Callable[[argparse.Namespace, Path], dict[str, Any]]] = {
    "matrix": matrix,
    "clean": rescue_loads.clean,
    "deaths": rescue_loads.deaths,
    "memory": rescue_loads.memory,
    "long": rescue_loads.long_stream,
}


def names(text: str) -> list[str]:
    """Read `a,b`."""
    return [name for name in text.split(",") if name]


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    kinds = [kind for kind in fault_table(load_library()) if kind not in LEFT_OUT]
    parser = argparse.ArgumentParser(description="Count what reaches a client under rescue.")
    parser.add_argument("--parts", type=names, default=list(PARTS), help="of " + ",".join(PARTS))
    parser.add_argument("--kinds", type=names, default=kinds, help="fault kinds of engine_sim")
    parser.add_argument(
        "--onsets", type=lambda it: [int(one) for one in names(it)], default=list(ONSETS)
    )
    parser.add_argument("--streamed-only", action="store_true", help="leave whole answers out")
    parser.add_argument(
        "--counted", action="store_true", help="have each question say `in 300 words`"
    )
    parser.add_argument("--guard", default="rescue", help="the agent's GUARD; observe to compare")
    parser.add_argument(
        "--set",
        type=names,
        default=[],
        metavar="NAME=VALUE,...",
        help="more of the agent's settings",
    )
    parser.add_argument("--clean", type=int, default=10_000, help="clean streams")
    parser.add_argument(
        "--clean-clients",
        type=int,
        default=1,
        help="so many at once; several wait for each other's turn on a core, not for rescue",
    )
    parser.add_argument("--streams", type=int, default=256, help="streams at once for the memory")
    parser.add_argument("--memory-s", type=float, default=20.0, help="for how long, s")
    parser.add_argument("--long-tokens", type=int, default=30_000)
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--merge", type=Path, nargs="*", default=[], help="earlier runs' JSON")
    parser.add_argument("--page", type=Path, metavar="PAGE")
    parser.add_argument("--verbose", action="store_true", help="print each case that went wrong")
    options = parser.parse_args(arguments)
    options.modes = [mode for mode in MODES if mode[0] or not options.streamed_only]
    given = dict(one.split("=", 1) for one in options.set)
    options.rescue = {**RESCUE, "GATEMESH_AGENT_GUARD": options.guard, **given}
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 means that a bad token of a kind that allows none reached a client."""
    options = read_options(arguments)
    report: dict[str, Any] = {"guard": options.guard}
    for part in options.parts:
        begun_s = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="gatemesh-rescue-") as folder:
            report[part] = MAKERS[part](options, Path(folder))
        print(f"{part}: {time.monotonic() - begun_s:.0f} s", flush=True)
        if options.json:
            options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    earlier = [json.loads(path.read_text(encoding="utf-8")) for path in options.merge]
    report = merged([*earlier, report])
    print(page_of(report))
    if options.page:
        write_page(options.page, page_of(report))
    return 1 if leaked(report) else 0


def merged(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what several runs have measured, of a part other than the matrix the last."""
    found: dict[str, Any] = {}
    cases = [case for one in reports for case in one.get("matrix", {}).get("cases", ())]
    for report in reports:
        found |= report
    return found | ({"matrix": {"cases": cases}} if cases else {})


def leaked(report: Mapping[str, Any]) -> bool:
    """Return True when a kind that allows no bad token had one."""
    cases = report.get("matrix", {}).get("cases", ())
    strict = (one for one in cases if one["kind"] in ZERO_KINDS)
    return any(one["bad_chars"] or one["silent_tokens"] for one in strict)


if __name__ == "__main__":
    sys.exit(main())
