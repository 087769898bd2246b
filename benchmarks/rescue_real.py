"""Damage a real engine while it serves, and count what of it reaches a client under rescue.

    python benchmarks/rescue_real.py [--faults F,F] [--onsets N,N] [--json OUT] [--page PAGE]

Two real engines in float32 stand behind the real agent, which sends everything to the first one
while it may. The drill spoils its logits from the given token of each answer on: streamed and
whole, chats and completions, with and without log probabilities. At temperature 0 a rescued answer
must be the one that the healthy engine gives alone; one request runs at a time, so that no other
changes its figures. Needs the real engine (`./mesh demo` installs it).
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

# Run as a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.agent import HOST, free_ports
from benchmarks.rescue import MODES, RESCUE, TEXT_ONLY, Case, compared, names, outcome_of
from benchmarks.rescuing import (
    FAR_LESS,
    PATHS,
    Program,
    Read,
    agent_program,
    ask,
    body_of,
    new_session,
    store_routing,
)

from gatemesh_mesh.demo import load_prompts
from gatemesh_mesh.demo_engines import real_engine
from gatemesh_mesh.drills import FAULTS, Drill, end_drill, start_drill
from gatemesh_mesh.engine_machine import pick_cores, usable_cores
from gatemesh_mesh.real_engine import MODEL_NAME, is_installed, layout_of
from gatemesh_mesh.stack import REPOSITORY, answers_ok
from gatemesh_mesh.state import StateFolder, state_folder
from gatemesh_mesh.waiting import wait_until

ONSETS = (0, 8, 32)
TAIL_TOKENS = 64
"""Of each answer after the place where its fault begins."""
START_S = 300.0
BEGIN, END = "<!-- real rescue table -->", "<!-- real rescue table end -->"
COLUMNS = (
    "drill",
    "figures",
    "cases",
    "whole and equal",
    "clear error",
    "wrong or cut",
    "without a bad token",
    "most bad letters",
)
Mode = tuple[bool, str, str]


class Vllm(Program):
    """A real engine and its own processes."""

    def start(self) -> None:
        """Begin to start it."""
        environment = {**os.environ, **self.environment}
        self.process = subprocess.Popen(
            self.command,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def await_ready(self) -> None:
        """Wait until it answers."""
        if not wait_until(lambda: answers_ok(f"http://{HOST}:{self.port}/health"), START_S):
            raise SystemExit(f"{self.name} did not answer within {START_S:.0f} s")

    def end(self, number: int = signal.SIGKILL) -> None:
        """End all of its processes."""
        if self.is_running():
            os.killpg(self.pid, number)
            assert self.process
            self.process.wait()


@dataclass
class Bench:
    """Two real engines, and one agent with log probabilities and one without."""

    engines: Sequence[Vllm]
    agents: Mapping[str, Program]
    drill_file: Path

    async def uncut(self, route: str, body: Mapping[str, Any]) -> Read:
        """Return the healthy engine's own answer, whole: only then are its tokens counted."""
        url = f"http://{HOST}:{self.engines[1].port}{PATHS[route]}"
        async with new_session() as session:
            return await ask(session, url, {**body, "stream": False})

    async def drilled(self, fault: str, onset: int, mode: Mode, body: Mapping[str, Any]) -> Read:
        """Return what a client of the agent gets while the first engine is spoilt."""
        _, route, agent = mode
        url = f"http://{HOST}:{self.agents[agent].port}{PATHS[route]}"
        start_drill(self.drill_file, Drill(fault, self.engines[0].pid, after_tokens=onset))
        try:
            async with new_session() as session:
                return await ask(session, url, body)
        finally:
            end_drill(self.drill_file)


@contextmanager
def running_bench(folder: Path) -> Iterator[Bench]:
    """Run engines and agents until the block ends."""
    installed = state_folder(os.environ, REPOSITORY)
    if not is_installed(installed):
        raise SystemExit("the real engine is not installed; `./mesh demo` installs it")
    ports = free_ports(6)
    engines = [engine_of(folder, installed, number, ports[number]) for number in (0, 1)]
    with ExitStack() as stack:
        for engine in engines:
            stack.callback(engine.end)
            engine.start()
        for engine in engines:
            engine.await_ready()
        agents = {}
        for name, more, at in (("logprobs", {}, 2), ("text", TEXT_ONLY, 4)):
            store_routing(folder, name, engines, [1.0, FAR_LESS])
            pair = (ports[at], ports[at + 1])
            agents[name] = agent_program(folder, name, engines, pair, {**RESCUE, **more})
            stack.callback(agents[name].end)
            agents[name].start()
        yield Bench(engines, agents, folder / "drills" / "engine-0.json")


def engine_of(folder: Path, installed: StateFolder, number: int, port: int) -> Vllm:
    """Return one real engine that follows its drill file."""
    cores = pick_cores(usable_cores(), 2)
    made = real_engine(
        *(StateFolder(folder), layout_of(installed), f"engine-{number}", port, cores[number]),
        number_format="float32",
    )
    return Vllm(made.instance_id, made.program.argv, port, dict(made.program.environment))


async def strike(bench: Bench, prompt: str, fault: str, onset: int, mode: Mode) -> Case | None:
    """Spoil one answer and see what its client gets; None where it ends before its onset."""
    stream, route, agent = mode
    body = body_of(route, prompt, onset + TAIL_TOKENS, stream=stream, model=MODEL_NAME)
    uncut = await bench.uncut(route, body)
    if not uncut.is_whole or int(uncut.usage["completion_tokens"]) <= onset:
        return None
    got = await bench.drilled(fault, onset, mode, body)
    bad, missing = compared(got.text, uncut.text)
    return Case(
        *(fault, onset, stream, route, agent, outcome_of(got, uncut), bad),
        silent_tokens=0,
        missing_chars=missing,
        largest_gap_ms=round(1000 * (got.largest_gap_s if stream else got.wall_s), 1),
        error=got.error or (None if got.status == 200 else str(got.status)),
    )


async def measure(bench: Bench, options: argparse.Namespace) -> list[Case]:
    """Go through all faults, onsets and ways to ask, each with a prompt of its own."""
    cases: list[Case] = []
    prompts = load_prompts()
    turns = product(options.faults, options.onsets, MODES)
    for number, (fault, onset, mode) in enumerate(turns):
        case = await strike(bench, prompts[number % len(prompts)], fault, onset, mode)
        if case is None:
            continue
        cases.append(case)
        if case.outcome != "rescued":
            print(case, flush=True)
    return cases


def table(cases: Sequence[Case]) -> str:
    """Return the cases as a Markdown table, by drill and by what the engine told."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|---|---|{'---:|' * (len(COLUMNS) - 2)}"]
    for fault, agent in sorted({(one.kind, one.agent) for one in cases}):
        rows = [one for one in cases if (one.kind, one.agent) == (fault, agent)]
        equal = sum(one.outcome == "rescued" for one in rows)
        errors = sum(one.outcome == "error" for one in rows)
        cells = (
            *(f"`{fault}`", agent, len(rows), equal, errors, len(rows) - equal - errors),
            *(sum(not one.bad_chars for one in rows), max(one.bad_chars for one in rows)),
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def write_page(page: Path, text: str) -> None:
    """Put the table between the page's markers."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    if not begin:
        raise SystemExit(f"{page}: the marker {BEGIN} is missing")
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Count what a spoilt real engine's clients get.")
    parser.add_argument("--faults", type=names, default=list(FAULTS), help="of " + ",".join(FAULTS))
    parser.add_argument(
        "--onsets", type=lambda it: [int(one) for one in names(it)], default=list(ONSETS)
    )
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--page", type=Path, metavar="PAGE")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.faults) - set(FAULTS)):
        parser.error(f"--faults: {', '.join(unknown)} is unknown; known: {', '.join(FAULTS)}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = read_options(arguments)
    begun_s = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="gatemesh-rescue-") as folder,
        running_bench(Path(folder)) as bench,
    ):
        cases = asyncio.run(measure(bench, options))
    print(table(cases))
    print(f"{len(cases)} answers, {time.monotonic() - begun_s:.0f} s")
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in cases], indent=1) + "\n")
    if options.page:
        write_page(options.page, table(cases))
    return 0


if __name__ == "__main__":
    sys.exit(main())
