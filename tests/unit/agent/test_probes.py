"""Tickets and what comes of them, with instances that only answer by a table."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gatemesh_agent.calibration_store import CalibrationStore
from gatemesh_agent.probe_asking import Pace
from gatemesh_agent.probes import Desk, Prober, conclusion_of, cure_of
from gatemesh_agent.routing import PoolView
from gatemesh_agent.suite import Answer, Asking, ModelRule, Prompt, Result, Suite
from gatemesh_common.messages import (
    InstanceState,
    Message,
    Outcome,
    ProbeTicket,
    Reason,
    RoutedInstance,
    Verdict,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
IDS = "abcdefghij"
SUITE = Suite(
    version="9",
    least_prompts=4,
    prompts=tuple(Prompt(id=name, text=name, expect=name, quick=name in "ab") for name in IDS),
    models=(
        ModelRule(pattern="^ruled", required=("a",), left_out=("j",)),
        ModelRule(pattern="", calibrated=True, min_pass_share=0.8),
    ),
)


@dataclass
class Table:
    """Which prompts each instance answers rightly, and with which fault or state."""

    model: str = "new"
    right: dict[str, str] = field(default_factory=dict)
    fault: dict[str, str] = field(default_factory=dict)
    busy: set[str] = field(default_factory=set)
    down: set[str] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def wait_ready(self, base_url: str, longest_s: float) -> str | None:
        """Name the one model."""
        return None if base_url.removeprefix("http://") in self.down else self.model

    async def ask(self, instance_id: str, base_url: str, model: str, asking: Asking) -> Answer:
        """Look it up."""
        name = asking.prompt.id
        self.asked.append((instance_id, name))
        return Answer(
            name,
            name in self.right.get(instance_id, ""),
            self.fault.get(instance_id),
            busy=instance_id in self.busy,
            way=asking.way,
        )

    def asked_of(self, instance_id: str) -> str:
        """Return the prompts an instance was asked, in order of their names."""
        return "".join(sorted(name for whom, name in self.asked if whom == instance_id))


@dataclass
class Rig:
    """A prober and what it puts out."""

    table: Table
    prober: Prober
    verdicts: asyncio.Queue[Verdict]

    async def verdict(self, *instances: RoutedInstance, version: int = 1) -> Verdict:
        """Return what comes of the tickets in a view of these instances."""
        self.prober.follow(PoolView(version, NOON, instances))
        return await asyncio.wait_for(self.verdicts.get(), 10)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """Give a rig with an empty store."""
    return rig_in(tmp_path, Table())


def rig_in(folder: Path, table: Table) -> Rig:
    """Return a rig whose store is in this folder."""
    verdicts: asyncio.Queue[Verdict] = asyncio.Queue()

    def put(message: Message) -> None:
        assert isinstance(message, Verdict)
        verdicts.put_nowait(message)

    pace = Pace(parallel=2, health_s=1.0, answer_s=1.0, top_logprobs=0)
    prober = Prober(
        desk=Desk("agent-0", "default", put, lambda: NOON),
        suite=SUITE,
        asker=table,
        store=CalibrationStore(folder / "c.json"),
        pace=pace,
    )
    return Rig(table, prober, verdicts)


def one(
    name: str,
    ticket: str = "",
    state: InstanceState = InstanceState.PROBATION,
    model_version: str = "m@1",
    purpose: str = "probation",
) -> RoutedInstance:
    """Return an instance, with a ticket or without."""
    return RoutedInstance(
        instance_id=name,
        base_url=f"http://{name}",
        state=state,
        incarnation=1,
        model_version=model_version,
        probe=ProbeTicket(ticket_id=ticket, purpose=purpose) if ticket else None,
    )


async def test_a_rule_asks_no_calibration(rig: Rig) -> None:
    """What is required and what is left out is known."""
    rig.table.model, rig.table.right = "ruled", {"e0": "a"}
    verdict = await rig.verdict(one("e0", "T"))
    assert verdict.outcome is Outcome.PASSED
    assert rig.table.asked_of("e0") == "abcdefghi"
    assert verdict.details["dropped"] == ["j"]
    assert (verdict.request_id, verdict.details["purpose"]) == ("T", "probation")


async def test_a_new_model_is_calibrated_by_two_instances(rig: Rig) -> None:
    """What neither can answer is dropped, and said so."""
    rig.table.right = {"e0": "abcde", "e1": "abcd"}
    verdict = await rig.verdict(one("e0", "T"), one("e1"))
    assert verdict.outcome is Outcome.PASSED
    assert verdict.details["dropped"] == list("fghij")
    assert verdict.score == 1.0


async def test_a_damaged_instance_is_found_by_the_calibration(rig: Rig) -> None:
    """The healthy one shows what the model can."""
    rig.table.right = {"bad": "abc", "good": "abcdefgh"}
    verdict = await rig.verdict(one("bad", "T"), one("good"))
    assert (verdict.outcome, verdict.reason) == (Outcome.FAILED, Reason.PROBES_FAILED)
    assert verdict.details["dropped"] == ["i", "j"]
    assert verdict.details["failed"] == list("defgh")


async def test_an_instance_alone_shows_it_three_times(rig: Rig) -> None:
    """Then it is judged by that."""
    rig.table.right = {"e0": "abcde"}
    verdict = await rig.verdict(one("e0", "T"))
    assert verdict.outcome is Outcome.PASSED
    assert rig.table.asked_of("e0") == "".join(name * 3 for name in IDS)


async def test_others_that_cannot_show_it_are_passed_over(rig: Rig) -> None:
    """Down, of another version, or out of rotation."""
    rig.table.right, rig.table.down = {"e0": "abcde"}, {"down"}
    await rig.verdict(
        one("e0", "T"),
        one("down"),
        one("old", model_version="m@0"),
        one("doubted", state=InstanceState.SUSPECT),
    )
    assert {whom for whom, _ in rig.table.asked} == {"e0"}


async def test_a_calibrated_model_is_asked_only_what_it_can(rig: Rig) -> None:
    """From the second suite on, each life once in full."""
    rig.table.right = {"e0": "abcde", "e1": "abcde"}
    await rig.verdict(one("e0", "T1"), one("e1"))
    rig.table.asked.clear()
    await rig.verdict(one("e0", "T2"), one("e1"), version=2)
    assert rig.table.asked_of("e0") == "abcde"


async def test_a_confirmation_asks_a_few_prompts_at_once(rig: Rig) -> None:
    """An ejected instance waits for it; it shows nothing about the model."""
    rig.table.right = {"e0": "abcde"}
    await rig.verdict(one("e0", "T1"))
    rig.table.asked.clear()
    ejected = one("e9", "T2", InstanceState.EJECTED, purpose="confirm")
    rig.table.right["e9"] = "ab"
    verdict = await rig.verdict(ejected, version=2)
    assert rig.table.asked_of("e9") == "ab"
    assert (verdict.outcome, verdict.details["purpose"]) == (Outcome.PASSED, "confirm")


async def test_a_calibration_outlives_the_agent(rig: Rig, tmp_path: Path) -> None:
    """The next start asks nobody again."""
    rig.table.right = {"e0": "abcde"}
    await rig.verdict(one("e0", "T1"))
    again = rig_in(tmp_path, Table(right={"e0": "abcde"}))
    await again.verdict(one("e0", "T2"))
    assert again.table.asked_of("e0") == "abcde"


async def test_too_few_prompts_left_judge_nothing(rig: Rig) -> None:
    """An instance that answers nothing rightly does not pass because all is dropped."""
    rig.table.right = {"e0": "abc"}
    verdict = await rig.verdict(one("e0", "T"))
    assert (verdict.outcome, verdict.reason) == (Outcome.SKIPPED, Reason.PROBES_REFUSED)
    assert verdict.details["why"] == "too_few_prompts"


async def test_a_doubted_instance_alone_calibrates_nothing(rig: Rig) -> None:
    """Its answers are what is in doubt."""
    rig.table.right = {"e0": "abcdefghij"}
    verdict = await rig.verdict(one("e0", "T", InstanceState.EJECTED))
    assert (verdict.outcome, verdict.reason) == (Outcome.SKIPPED, Reason.WARMING)
    assert verdict.details["why"] == "not_calibrated"


async def test_a_fault_needs_no_calibration(rig: Rig) -> None:
    """NaN is NaN for every model."""
    rig.table.fault = {"e0": "nan_logits"}
    verdict = await rig.verdict(one("e0", "T"))
    assert verdict.outcome is Outcome.FAILED


async def test_an_instance_without_room_is_not_judged(rig: Rig) -> None:
    """A full queue is no evidence."""
    rig.table.model, rig.table.busy = "ruled", {"e0"}
    verdict = await rig.verdict(one("e0", "T"))
    assert verdict.outcome is Outcome.SKIPPED
    assert verdict.details["busy"] == 9


async def test_an_instance_that_is_down_fails(rig: Rig) -> None:
    """It was to be ready."""
    rig.table.down = {"e0"}
    verdict = await rig.verdict(one("e0", "T"))
    assert (verdict.outcome, verdict.details["failed"]) == (Outcome.FAILED, ["health"])


def result(**details: object) -> Result:
    """Return a result that judges nothing."""
    return Result(passed=False, judged=False, share=0.0, threshold=0.0, details=details)


@pytest.mark.parametrize(
    ("given", "reason", "cure"),
    [
        (result(), Reason.PROBES_REFUSED, "PROBE_API_KEY"),
        (result(busy=3), Reason.PROBES_REFUSED, "no room"),
        (result(why="too_few_prompts"), Reason.PROBES_REFUSED, "rule for this model"),
        (result(why="not_calibrated"), Reason.WARMING, "rule for this model"),
    ],
)
def test_what_was_not_judged_says_why(given: Result, reason: Reason, cure: str) -> None:
    """Never passed."""
    assert conclusion_of(given) == (Outcome.SKIPPED, reason)
    assert cure in cure_of(given)
