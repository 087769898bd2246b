"""A pool with a made-up life, decided about by the real functions, and kept as a history."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from gatemesh_common.messages import (
    Action,
    CheckLevel,
    CommandReport,
    InstanceObserved,
    Outcome,
    Reason,
    ReportOutcome,
    Verdict,
)
from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.history import Given, History
from gatemesh_health_manager.inputs import (
    NO_MEASURES,
    Input,
    InputKind,
    fleet_body,
    is_decided,
    is_weighty,
    message_body,
    seen_body,
    tick_one,
    ticks_body,
)
from gatemesh_health_manager.measuring import Measures
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import CommandOrder, Decision
from gatemesh_health_manager.remembered import Failures
from gatemesh_health_manager.replaying import Step, judge, steps_of

DAWN = datetime(2026, 11, 30, tzinfo=UTC)
STARTS = (Action.RESTART, Action.REPLACE)


class Recorder:
    """Decides about events as the manager's store does, and keeps what a replay needs."""

    def __init__(self, policy: Policy, pool: str = "default") -> None:
        self.policy = policy
        self.fleet = Fleet(policy, [PoolRecord(pool)], [])
        self.given: list[Given] = []
        self.steps: list[Step] = []
        self._failures = Failures()
        self._begin = self._input(InputKind.FLEET, fleet_body(self.fleet), DAWN)

    def judge(self, verdicts: Sequence[Verdict], at: datetime) -> list[Decision]:
        """Decide about a batch."""
        self._begin_work()
        for verdict in verdicts:
            self.fleet.register(verdict.instance_id, verdict.pool or "default", at)
        decisions = judge(self._failures, self.fleet, verdicts, at)
        return self._keep(InputKind.VERDICTS, {"count": len(verdicts)}, decisions, at, verdicts)

    def take(self, event: CommandReport | InstanceObserved, at: datetime) -> list[Decision]:
        """Decide about one event."""
        self._begin_work()
        is_new = event.instance_id not in self.fleet.records
        before = self.fleet.register(event.instance_id, event.pool or "default", at)
        decision = self.fleet.apply(event.instance_id, event, at)
        if not is_new and not is_decided(before, decision.record):
            return [decision]
        return self._keep(InputKind.of(event), message_body(event), [decision], at)

    def ask(self, request: Asked, at: datetime) -> list[Decision]:
        """Follow or refuse a request."""
        self._begin_work()
        _, decisions = self.fleet.answer(request, at)
        return self._keep(InputKind.REQUEST, message_body(request), decisions, at)

    def tick(self, at: datetime, measures: Mapping[str, Measures] = NO_MEASURES) -> list[Decision]:
        """Let time pass for all."""
        self._begin_work()
        before = dict(self.fleet.records)
        observed = [name for name, record in before.items() if record.observed]
        decisions = [tick_one(self.fleet, name, 0, at, measures.get(name, ())) for name in observed]
        body = ticks_body(before, self.fleet, {}, measures)
        if not body:
            return decisions
        return self._keep(InputKind.TICK, body, decisions, at)

    def history(self) -> History:
        """Return all of it."""
        return History(
            policies={self.policy.version: self.policy},
            begin=self._begin,
            earlier=(),
            inputs=self.given,
            steps=self.steps,
            incidents=(),
        )

    def _begin_work(self) -> None:
        self.fleet.stored = dict(self.fleet.records)

    def _keep(
        self,
        kind: InputKind,
        body: dict[str, Any],
        decisions: list[Decision],
        at: datetime,
        verdicts: Sequence[Verdict] = (),
    ) -> list[Decision]:
        seen = seen_body(self.fleet) if any(map(is_weighty, decisions)) else {}
        self.given.append(Given(self._input(kind, body, at, seen), verdicts))
        self.steps.extend(steps_of(decisions, at))
        return decisions

    def _input(
        self, kind: InputKind, body: Any, at: datetime, seen: dict[str, Any] | None = None
    ) -> Input:
        pools = tuple(sorted(self.fleet.pools))
        return Input(at, kind, self.policy.version, pools, body, seen or {})


@dataclass
class Engine:
    """One engine process: which life runs, and how bad its answers are."""

    life: int = 1
    running: bool = True
    failing_share: float = 0.0
    hard: bool = False
    orders: list[CommandOrder] = field(default_factory=list)

    def start(self) -> None:
        """Begin another life, as good as new."""
        self.life += 1
        self.running, self.failing_share, self.hard = True, 0.0, False


class MadeUpPool:
    """Engines that go bad, an executor that obeys, agents that judge, and people who ask."""

    def __init__(
        self,
        names: Iterable[str],
        policy: Policy | None = None,
        seed: int = 1,
        *,
        mishaps: bool = True,
    ) -> None:
        self.recorder = Recorder(policy or Policy())
        self.engines = {name: Engine() for name in names}
        self.now = DAWN
        self._random = random.Random(seed)
        self._serial = 0
        self._has_mishaps = mishaps

    def live(self, seconds: int, verdicts_per_s: int) -> None:
        """Let them live, second by second."""
        for second in range(seconds):
            self.now += timedelta(seconds=1)
            if self._has_mishaps:
                self._mishap()
            for name in self.engines:
                if second % 2 == 0:
                    self._observe(name)
                self._obey(name)
                self._answer_probes(name)
            self._talk(verdicts_per_s)
            self._note(self.recorder.tick(self._soon()))

    def _soon(self) -> datetime:
        """Return another moment of this second, so that no two events share one."""
        self.now += timedelta(microseconds=self._random.randrange(1, 900))
        return self.now

    def _mishap(self) -> None:
        dice, name = self._random.random(), self._random.choice(list(self.engines))
        engine = self.engines[name]
        if dice < 0.01:
            engine.failing_share = self._random.choice((0.02, 0.3, 1.0))
            engine.hard = self._random.random() < 0.5
        elif dice < 0.013:
            engine.running = False
        elif dice < 0.02:
            self._ask(name)

    def _ask(self, name: str) -> None:
        of_instances = ("drain", "release", "eject", "restart", "quarantine")
        of_pools = ("pause", "resume", "reset_brake")
        action = self._random.choice((*of_instances, *of_pools))
        backlog = self._random.choice(("skip", "replay")) if action == "reset_brake" else None
        request = Asked(
            message_id=self._id(),
            timestamp=self.now,
            action=action,
            instance_id=None if action in of_pools else name,
            backlog=backlog,
            requested_by="somebody",
        )
        self._note(self.recorder.ask(request, self._soon()))

    def _observe(self, name: str) -> None:
        engine, at = self.engines[name], self._soon()
        event = InstanceObserved(
            message_id=self._id(),
            timestamp=at,
            instance_id=name,
            running=engine.running,
            life_id=f"{name}-{engine.life}" if engine.running else None,
            base_url="http://127.0.0.1:1",
        )
        self._note(self.recorder.take(event, at))

    def _obey(self, name: str) -> None:
        engine = self.engines[name]
        while engine.orders:
            command, at = engine.orders.pop(0).command, self._soon()
            if command.action is Action.DRAIN:
                engine.running = False
            elif command.action in STARTS:
                engine.start()
            event = CommandReport(
                message_id=self._id(),
                timestamp=at,
                instance_id=name,
                command_id=command.message_id,
                action=command.action,
                incarnation=command.incarnation,
                fence=command.fence,
                outcome=self._how_it_ended(),
                life_id=f"{name}-{engine.life}" if engine.running else None,
            )
            self._note(self.recorder.take(event, at))

    def _how_it_ended(self) -> ReportOutcome:
        fails = self._has_mishaps and self._random.random() < 0.1
        return ReportOutcome.FAILED if fails else ReportOutcome.SUCCEEDED

    def _answer_probes(self, name: str) -> None:
        record = self.recorder.fleet.records.get(name)
        if record is None or record.ticket is None:
            return
        good = self.engines[name].running and self.engines[name].failing_share < 0.1
        verdict = self._verdict(name, CheckLevel.L5, failed=not good)
        suite = verdict.model_copy(update={"request_id": record.ticket.ticket_id})
        self._note(self.recorder.judge([suite], self._soon()))

    def _talk(self, count: int) -> None:
        serving = [name for name, one in self.recorder.fleet.records.items() if one.serving]
        if not serving:
            return
        names = self._random.choices(serving, k=count)
        verdicts = [self._judged(name) for name in names]
        for first in range(0, count, 50):
            self._note(self.recorder.judge(verdicts[first : first + 50], self._soon()))

    def _judged(self, name: str) -> Verdict:
        engine = self.engines[name]
        levels = (CheckLevel.L1, CheckLevel.L2, CheckLevel.L3, CheckLevel.L4)
        failed = self._random.random() < engine.failing_share
        level = CheckLevel.L3 if engine.hard and failed else self._random.choice(levels)
        return self._verdict(name, level, failed=failed)

    def _verdict(self, name: str, level: CheckLevel, *, failed: bool) -> Verdict:
        record = self.recorder.fleet.records[name]
        return Verdict(
            message_id=self._id(),
            timestamp=self.now - timedelta(milliseconds=self._random.randrange(2000)),
            instance_id=name,
            pool="default",
            incarnation=self._random.choice((None, record.incarnation, record.incarnation)),
            request_id=self._id(),
            check_level=level,
            outcome=Outcome.FAILED if failed else Outcome.PASSED,
            reason=Reason.REPORTED if failed else Reason.CLEAN,
            hard=failed and self.engines[name].hard and level is CheckLevel.L3,
            prompt_fingerprint=f"prompt-{self._random.randrange(200)}",
        )

    def _note(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            engine = self.engines[decision.record.instance_id]
            engine.orders.extend(decision.commands)

    def _id(self) -> str:
        self._serial += 1
        return f"id-{self._serial}"
