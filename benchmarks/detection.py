"""Damage a real engine while it serves, and say what was caught, by which gate, and how soon.

    python benchmarks/detection.py [--requests N] [--kinds A,B] [--json OUT] [--page PAGE]

Kinds are drills in the running engine (`drill:nan`, `drill:flat@24`: from the 24th token on) and
damaged weight files, loaded at a restart (`nan_element`, `noise_layer15`, ...). `clean` is neither.
Run it with the project's own Python; it installs the real engine if that is missing. Kinds that the
file of `--json` holds are not measured again, so a long table can be made in several runs. `--page`
writes the table into docs/detection.md between its markers.
"""

import argparse
import asyncio
import json
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

# Run as a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks import damage
from benchmarks.detecting import (
    POLICY,
    SICK,
    Answered,
    Lab,
    Verdicts,
    engines_with_own_models,
    link_model,
    make_damaged,
)

from gatemesh_common.messages import Outcome, Verdict
from gatemesh_common.publisher import Publisher
from gatemesh_mesh.drills import FAULTS
from gatemesh_mesh.foreground import running_stack
from gatemesh_mesh.options import StackOptions
from gatemesh_mesh.progress import ConsoleProgress
from gatemesh_mesh.real_engine import EngineLayout, ensure_installed
from gatemesh_mesh.stack import REPOSITORY
from gatemesh_mesh.state import StateFolder

CLEAN = "clean"
DRILL = "drill:"
BEGIN, END = "<!-- figures begin -->", "<!-- figures end -->"
EVERY_KIND = (
    CLEAN,
    *(f"{DRILL}{fault}" for fault in FAULTS),
    *(f"{DRILL}{fault}@24" for fault in FAULTS),
    *sorted(damage.KINDS),
)

Failures = dict[str, list[tuple[datetime, Verdict]]]


def figures(answers: Sequence[Answered], failed: Failures, suite: Verdict | None) -> dict[str, Any]:
    """Return what was caught of the answers of one kind."""
    caught = [one for one in answers if one.request_id in failed]
    first = [min(failed[one.request_id], key=lambda heard: heard[0]) for one in caught]
    waits = [(at - one.began).total_seconds() for one, (at, _) in zip(caught, first, strict=True)]
    chars = [one.chars_at(at) for one, (at, _) in zip(caught, first, strict=True)]
    order = sorted(answers, key=lambda one: one.began)
    places = [number for number, one in enumerate(order, 1) if one.request_id in failed]
    reasons = Counter(
        f"{verdict.check_level} {verdict.reason}"
        for heard in failed.values()
        for _, verdict in heard
    )
    gates = Counter(
        level
        for heard in failed.values()
        for level in {str(verdict.check_level) for _, verdict in heard}
    )
    return {
        "answers": len(answers),
        "caught_share": round(len(caught) / len(answers), 3) if answers else 0.0,
        "hard_share": share_hard(answers, failed),
        "by_gate": {gate: round(hits / len(answers), 3) for gate, hits in sorted(gates.items())},
        "reasons": dict(reasons.most_common(4)),
        "first_caught_request": places[0] if places else None,
        "median_s": round(statistics.median(waits), 2) if waits else None,
        "median_chars": statistics.median(chars) if chars else None,
        "suite": word_of(suite),
    }


def share_hard(answers: Sequence[Answered], failed: Failures) -> float:
    """Return the share of answers with proof against them."""
    hard = sum(any(verdict.hard for _, verdict in heard) for heard in failed.values())
    return round(hard / len(answers), 3) if answers else 0.0


def word_of(suite: Verdict | None) -> str:
    """Say how the probe suite ended."""
    if suite is None:
        return "no answer"
    if suite.outcome is not Outcome.FAILED or suite.score is None:
        return str(suite.outcome)
    faults = Counter(map(str, dict(suite.details.get("faults") or {}).values()))
    return ", ".join(
        [f"failed ({suite.score:.2f} right)", *(f"{name} {n}" for name, n in faults.items())]
    )


class Detection:
    """Goes through the kinds, one after the other."""

    def __init__(
        self, lab: Lab, verdicts: Verdicts, publisher: Publisher, requests: int, link: Path
    ) -> None:
        self._lab = lab
        self._verdicts = verdicts
        self._publisher = publisher
        self._requests = requests
        self._link = link

    async def measure(self, kind: str, models: dict[str, Path]) -> dict[str, Any]:
        """Damage the engine in one way and return what was caught."""
        if kind in models and not await asyncio.to_thread(
            self._lab.reload, self._link, models[kind]
        ):
            return {"answers": 0, "suite": "the engine did not start"}
        self._lab.next_life()
        await self._lab.route(self._publisher)
        fault, _, after = kind.removeprefix(DRILL).partition("@")
        drilled = kind.startswith(DRILL)
        async with self._lab.drill(fault, int(after or 0)) if drilled else nullcontext():
            answers = await self._lab.traffic(self._requests, 4 * self._requests)
            suite = await self._lab.probe(self._publisher)
            await self._verdicts.settle()
        return figures(answers, self._verdicts.failed({one.request_id for one in answers}), suite)


async def measure_all(
    lab: Lab, amqp_url: str, verdicts: Verdicts, options: argparse.Namespace, paths: dict[str, Path]
) -> dict[str, dict[str, Any]]:
    """Measure every kind; the first answers, all clean, are what the baselines are learnt from."""
    console = Console()
    found = kept(options)
    async with verdicts.listening(amqp_url), Publisher(amqp_url, "detection") as publisher:
        link = paths.pop("link")
        detection = Detection(lab, verdicts, publisher, options.requests, link)
        for kind in missing(options):
            found[kind] = await detection.measure(kind, paths)
            console.print(kind, found[kind], markup=False)
            keep(found, options)
    return found


def kept(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return what earlier runs have left; a kind without answers is measured once more."""
    if options.json is None or not options.json.exists():
        return {}
    found: dict[str, dict[str, Any]] = json.loads(options.json.read_text(encoding="utf-8"))
    return {kind: row for kind, row in found.items() if row["answers"]}


def missing(options: argparse.Namespace) -> list[str]:
    """Return the kinds that nothing is known of yet."""
    known = kept(options)
    return [kind for kind in options.kinds if kind not in known]


def keep(found: dict[str, dict[str, Any]], options: argparse.Namespace) -> None:
    """Write what there is so far, so that a run which is cut short leaves it behind."""
    found = {kind: found[kind] for kind in (*EVERY_KIND, *found) if kind in found}
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))
    if options.page:
        made = f"{options.requests} answers of up to {options.tokens} tokens each"
        learnt = f"learnt from {options.learn} clean answers"
        write_page(options.page, f"{table(found)}\n\n{made}; {learnt}.")


def run(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Start the stack, let it learn, and measure."""
    progress = ConsoleProgress(Console())
    base = StateFolder(REPOSITORY / ".gatemesh")
    base.create()
    layout = ensure_installed(base, progress)
    folder = StateFolder(base.root / "detection")
    folder.create()
    kinds = [kind for kind in missing(options) if kind in damage.KINDS]
    with progress.step(f"Damaging copies of the model ({len(kinds)})"):
        paths = make_damaged(layout, kinds, folder.root / "damaged")
    return with_stack(options, progress, layout, folder, paths)


def with_stack(
    options: argparse.Namespace,
    progress: ConsoleProgress,
    layout: EngineLayout,
    folder: StateFolder,
    paths: dict[str, Path],
) -> dict[str, dict[str, Any]]:
    """Measure while the stack runs."""
    models = folder.root / "models"
    make = engines_with_own_models(layout, models)
    verdicts = Verdicts()
    policy = folder.root / "policy.toml"
    policy.write_text(POLICY)
    chosen = StackOptions(engine_count=2, policy_file=policy)
    with running_stack(folder, chosen, progress, make) as (stack, plan):
        lab = Lab(stack, plan, verdicts, options.seed, options.tokens)
        with progress.step(f"Learning from {options.learn} clean answers"):
            asyncio.run(lab.learn(options.learn))
        stack.supervision.stop_programs(["health_manager", "executor"])
        link = models / SICK
        try:
            url = plan.addresses.amqp_url
            everything = paths | {"link": link}
            return asyncio.run(measure_all(lab, url, verdicts, options, everything))
        finally:
            link_model(link, layout.model)


def table(found: dict[str, dict[str, Any]]) -> str:
    """Return the figures as a Markdown table."""
    lines = [
        "| kind | answers | caught | hard | by gate | first caught request | seconds | characters"
        " | probe suite | reasons |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for kind, row in found.items():
        gates = ", ".join(f"{gate} {part:.0%}" for gate, part in row.get("by_gate", {}).items())
        reasons = ", ".join(f"{name} {number}" for name, number in row.get("reasons", {}).items())
        cells = (
            f"`{kind}`",
            row["answers"],
            f"{row.get('caught_share', 0):.0%}",
            f"{row.get('hard_share', 0):.0%}",
            gates or "-",
            row.get("first_caught_request") or "-",
            "-" if row.get("median_s") is None else row["median_s"],
            "-" if row.get("median_chars") is None else row["median_chars"],
            row["suite"],
            reasons or "-",
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def write_page(page: Path, text: str) -> None:
    """Put the table between the markers of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=24, help="answers of the sick engine, each")
    parser.add_argument("--learn", type=int, default=240, help="clean answers to learn from")
    parser.add_argument("--tokens", type=int, default=64, help="most tokens of an answer")
    parser.add_argument("--kinds", default=",".join(EVERY_KIND), help="separated by commas")
    parser.add_argument(
        "--json", type=Path, metavar="OUT", help="figures as JSON; kept and added to"
    )
    parser.add_argument("--page", type=Path, help="write the table into this page")
    parser.add_argument("--seed", type=int, default=1, help="of the order of prompts")
    options = parser.parse_args(argv)
    options.kinds = options.kinds.split(",")
    unknown = [kind for kind in options.kinds if kind.partition("@")[0] not in EVERY_KIND]
    if unknown:
        parser.error(f"--kinds: {', '.join(unknown)} is unknown; known: {', '.join(EVERY_KIND)}")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = arguments(argv)
    print(table(run(options)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
