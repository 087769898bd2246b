"""The demo: real traffic, an engine that goes bad while it answers 200, a loop that closes."""

import asyncio
import random
import shutil
import tomllib
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rich.console import Console

from gatemesh_common.clock import utc_now
from gatemesh_mesh import history
from gatemesh_mesh.demo_engines import choose_engines
from gatemesh_mesh.drill_report import DrillResult, show_summary, show_timeline
from gatemesh_mesh.drills import Drill, end_drill, start_drill
from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.foreground import running_stack
from gatemesh_mesh.history import History
from gatemesh_mesh.options import DemoOptions, StackOptions
from gatemesh_mesh.plan import StackPlan
from gatemesh_mesh.ports import LOOPBACK
from gatemesh_mesh.postgres import bundled_binaries, place_server, plain_url
from gatemesh_mesh.progress import ConsoleProgress, Progress
from gatemesh_mesh.stack import Stack, clear_leftovers
from gatemesh_mesh.state import StateFolder, demo_folder
from gatemesh_mesh.supervision import Supervision
from gatemesh_mesh.traffic import Traffic
from gatemesh_mesh.waiting import wait_until

HEALTHY_DEADLINE_S = 600.0
REPAIR_DEADLINE_S = 600.0
"""A busy machine needs minutes for the start of a real engine alone."""
WARM_REQUESTS = 12
SETTLING_REQUESTS = 8
METRICS_S = 10.0
CONTINUATIONS = "gatemesh_agent_continuations_total"
USUAL_DRILLS = 3
"""The default policy's restarts of one instance within an hour."""


def run_demo(options: DemoOptions, folder: StateFolder) -> int:
    """Run the drills and show what happened; 0 when every loop closed."""
    console = Console()
    progress = ConsoleProgress(console)
    folder.create()
    make_engines, model = choose_engines(folder, progress, simulated=options.sim)
    own = demo_folder(folder)
    start_afresh(own, progress)
    stack_options = with_budget_for(options, own)
    with running_stack(own, stack_options, progress, make_engines) as (stack, plan):
        progress.note(f"look on: {plan.console_url}, token {plan.console_token}")
        results = asyncio.run(Demo(stack, plan, model, progress).run(options.faults))
        for result in results:
            show_timeline(console, result)
        show_summary(console, results)
        show_rescues(console, plan)
        show_query(console, plan, results[0])
    return 0 if all(one.complete and not one.other_errors for one in results) else 1


def start_afresh(folder: StateFolder, progress: Progress) -> None:
    """Forget earlier demos: their restarts would count against the budget of this one.

    Raises:
        MeshError: a demo is running.
    """
    folder.create()
    with folder.hold():
        clear_leftovers(Supervision(folder), progress)
        place, _ = place_server(folder.root, bundled_binaries())
        for data in (place / "data", folder.rabbit, folder.spool, folder.logs):
            shutil.rmtree(data, ignore_errors=True)


def with_budget_for(options: DemoOptions, folder: StateFolder) -> StackOptions:
    """Return the options of the stack; many drills in an hour need a larger budget."""
    drills = len(options.faults)
    if drills <= USUAL_DRILLS:
        return options.stack
    policy = folder.root / "policy.toml"
    policy.write_text(
        f"[defaults.restart]\nrestarts = {drills}\nback_off_s = [0]\n"
        "[defaults.flap]\nenabled = false\n"
    )
    return replace(options.stack, policy_file=policy)


def show_rescues(console: Console, plan: StackPlan) -> None:
    """Say how many streams others went on with, where that is on."""
    if plan.guard == "rescue":
        count = sum_of(metrics_of(plan, "agent"), CONTINUATIONS)
        console.print(
            f"rescue: streams that had gone bad or broken off, continued elsewhere: {count:.0f}",
            soft_wrap=True,
            highlight=False,
        )


def metrics_of(plan: StackPlan, service: str) -> str:
    """Return what a service shows to a monitoring system."""
    url = f"http://{LOOPBACK}:{plan.ports[f'{service}_admin']}/metrics"
    with urllib.request.urlopen(url, timeout=METRICS_S) as page:
        return str(page.read().decode())


def sum_of(page: str, metric: str) -> float:
    """Return the sum of a counter over its labels."""
    lines = (line for line in page.splitlines() if line.startswith((f"{metric}{{", f"{metric} ")))
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


def show_query(console: Console, plan: StackPlan, result: DrillResult) -> None:
    """Print the SQL that tells the same history."""
    query = history.TIMELINE_QUERY.strip()
    query = query.replace("%(instance)s", f"'{result.instance}'")
    query = query.replace("%(since)s", f"'{result.began_at.isoformat()}'")
    console.print("The timeline is the answer to this query, while the stack runs:")
    console.print(
        f'psql "{plain_url(plan.addresses.database_url)}" <<SQL\n{query};\nSQL',
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


class Demo:
    """One running stack, its traffic, and the drills that are done to it."""

    def __init__(
        self, stack: Stack, plan: StackPlan, model: str, progress: ConsoleProgress
    ) -> None:
        self._stack = stack
        self._plan = plan
        self._progress = progress
        self._history = History(plain_url(plan.addresses.database_url))
        self._traffic = Traffic(plan.agent_url, model, load_prompts(), utc_now)

    async def run(self, faults: Sequence[str]) -> list[DrillResult]:
        """Do one drill per fault, each on another instance, under traffic.

        Raises:
            MeshError: the engines never became healthy, or an instance never came back.
        """
        with self._progress.step("Waiting until the probes have let every engine into rotation"):
            await self._until(self._all_healthy, HEALTHY_DEADLINE_S, "engines in rotation")
        await self._traffic.start()
        try:
            with self._progress.step(f"Sending clean traffic ({WARM_REQUESTS} requests first)"):
                await self._answered(WARM_REQUESTS)
            await asyncio.to_thread(self._require_quiet)
            return [await self._drill(fault, turn) for turn, fault in enumerate(faults)]
        finally:
            await self._traffic.stop()

    def _require_quiet(self) -> None:
        commands = self._history.count(history.COMMANDS)
        self._progress.note(f"clean traffic so far led to {commands} actions")

    async def _drill(self, fault: str, turn: int) -> DrillResult:
        engine = self._plan.engines[(turn + 1) % len(self._plan.engines)]
        drill_file = self._plan.folder.root / "drills" / f"{engine.instance_id}.json"
        pid = self._pid_of(engine.program.name)
        seen = len(self._traffic.exchanges)
        began_at = utc_now()
        start_drill(drill_file, Drill(fault, pgid=pid))
        title = f"Drill: {engine.instance_id} emits {fault!r} while it answers 200"
        with self._progress.step(title):
            try:
                await self._until(
                    lambda: self._is_back(engine.instance_id, began_at),
                    REPAIR_DEADLINE_S,
                    f"return of {engine.instance_id}",
                )
            finally:
                end_drill(drill_file)
        await self._answered(SETTLING_REQUESTS)
        result = await asyncio.to_thread(self._result, fault, engine.instance_id, began_at, seen)
        prompts = {one.prompt for one in result.suspects}
        # The instance itself, repaired: the same engine that answered badly before.
        clean = {one: await self._traffic.clean_answer(engine.base_url, one) for one in prompts}
        return replace(result, clean_answers=clean)

    def _result(self, fault: str, instance: str, began_at: datetime, seen: int) -> DrillResult:
        moment = self._history.moment
        return DrillResult(
            instance=instance,
            fault=fault,
            began_at=began_at,
            first_bad_token_at=moment(history.FIRST_FAILURE, instance, began_at),
            ejected_at=moment(history.REACHED, instance, began_at, "ejected"),
            confirmed_at=moment(history.CONFIRMED_OUT, instance, began_at),
            readmitted_at=moment(history.REACHED, instance, began_at, "healthy"),
            timeline=self._history.timeline(instance, began_at),
            exchanges=self._traffic.exchanges[seen:],
        )

    def _pid_of(self, program: str) -> int:
        return next(one.pid for one in self._stack.supervision.statuses() if one.name == program)

    def _all_healthy(self) -> bool:
        return self._history.count(history.HEALTHY) >= len(self._plan.engines)

    def _is_back(self, instance: str, since: datetime) -> bool:
        out = self._history.moment(history.REACHED, instance, since, "restarting")
        back = self._history.moment(history.REACHED, instance, since, "healthy")
        return out is not None and back is not None and self._all_healthy()

    async def _answered(self, count: int) -> None:
        target = len(self._traffic.exchanges) + count
        await self._until(
            lambda: len(self._traffic.exchanges) >= target, HEALTHY_DEADLINE_S, "answers"
        )

    async def _until(self, reached: Callable[[], bool], deadline_s: float, what: str) -> None:
        if not await asyncio.to_thread(wait_until, reached, deadline_s):
            raise MeshError(
                f"no {what} within {deadline_s:.0f} s",
                f"read the logs in {self._plan.folder.logs}",
            )


def load_prompts() -> list[str]:
    """Return the demo's prompts."""
    text = (Path(__file__).parent / "demo_prompts.toml").read_text(encoding="utf-8")
    prompts = tomllib.loads(text)["prompts"]
    random.Random(11).shuffle(prompts)  # noqa: S311 (only an order)
    return [str(prompt) for prompt in prompts]
