"""Rounds of references: within the budget, shared, and always fresh."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.shadow.parts import (
    Engines,
    Say,
    Seconds,
    engine,
    instance,
    limits_with_references,
    replicas_of,
)

from gatemesh_common.messages import Decoding
from gatemesh_shadow.errors import ReplicaBrokenError, ReplicaUnavailableError
from gatemesh_shadow.limits import ENOUGH_FIGURES, VersionLimits
from gatemesh_shadow.reference_rounds import (
    LONE_DOUBTED_S,
    LONE_EVERY_S,
    MOST_LIVES,
    ReferenceRounds,
)
from gatemesh_shadow.references import Standing
from gatemesh_shadow.scores import Figures

JUDGE = instance("engine-0")


def rounds_of(say: Say) -> tuple[ReferenceRounds, Engines, Seconds]:
    """Rounds with one stand-in, and a clock that the test moves."""
    engines, seconds = Engines({"engine-0": say}), Seconds()
    return ReferenceRounds(replicas_of(engines, JUDGE), seconds, pause_s=0.0), engines, seconds


def failing(error: Exception) -> Say:
    """A stand-in that never answers."""

    def say(_path: str, _body: Mapping[str, Any]) -> dict[str, Any]:
        raise error

    return say


@pytest.mark.parametrize(
    ("say", "standing"),
    [
        pytest.param(engine(), Standing.AGREES, id="as-it-was"),
        pytest.param(engine(shift_nats=0.1), Standing.AGREES, id="noise"),
        pytest.param(engine(shift_nats=2.0), Standing.DEVIATES, id="damaged"),
        pytest.param(failing(ReplicaBrokenError("x")), Standing.DEVIATES, id="no-numbers"),
        pytest.param(failing(ReplicaUnavailableError("x")), Standing.UNCLEAR, id="away"),
    ],
)
async def test_standing(say: Say, standing: Standing) -> None:
    """By what an instance makes of answers that a healthy one gave."""
    rounds, _, _ = rounds_of(say)
    assert (await rounds.weigh(JUDGE, limits_with_references())).standing is standing


async def test_one_fault_is_chance() -> None:
    """The other two of the round decide."""
    answers = iter([failing(ReplicaUnavailableError("x")), engine(), engine()])

    def say(path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return next(answers)(path, body)

    rounds, _, _ = rounds_of(say)
    assert (await rounds.weigh(JUDGE, limits_with_references())).standing is Standing.AGREES


async def test_an_instance_that_is_away_is_asked_twice() -> None:
    """A round must not take three deadlines."""
    rounds, engines, _ = rounds_of(failing(ReplicaUnavailableError("x")))
    await rounds.weigh(JUDGE, limits_with_references())
    assert len(engines.asked) == 2


@pytest.mark.parametrize("limits", [VersionLimits(), limits_with_references(1)])
async def test_without_references_nobody_is_asked(limits: VersionLimits) -> None:
    """Or with too few of them."""
    rounds, engines, _ = rounds_of(engine())
    assert (await rounds.weigh(JUDGE, limits)).standing is Standing.UNKNOWN
    assert engines.asked == []


async def test_those_who_wait_share_a_round() -> None:
    """Two rounds for many: the one that runs may have begun before the damage."""
    rounds, engines, _ = rounds_of(engine())
    limits = limits_with_references()
    found = await asyncio.gather(*(rounds.weigh(JUDGE, limits) for _ in range(5)))
    assert {one.standing for one in found} == {Standing.AGREES}
    assert len(engines.asked) == 3


async def test_a_finished_round_says_nothing_about_later() -> None:
    """The damage may have come since."""
    rounds, engines, _ = rounds_of(engine())
    limits = limits_with_references()
    await rounds.weigh(JUDGE, limits)
    engines.say["engine-0"] = engine(shift_nats=2.0)
    assert (await rounds.weigh(JUDGE, limits)).standing is Standing.DEVIATES


async def test_rounds_keep_their_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of the pause is waited for."""
    rounds, _, seconds = rounds_of(engine())
    rounds.pause_s = 2.0
    slept = []

    async def sleep(wait_s: float) -> None:
        slept.append(wait_s)
        seconds.now_s += wait_s

    monkeypatch.setattr("gatemesh_shadow.reference_rounds.asyncio.sleep", sleep)
    await rounds.weigh(JUDGE, limits_with_references())
    seconds.now_s += 0.5
    await rounds.weigh(JUDGE, limits_with_references())
    assert slept == [0.0, pytest.approx(1.5, abs=0.02)]


async def test_quiet_deviation_clears_nobody_of_drift() -> None:
    """Within the limits, and yet too far off for one that accuses another of drift."""
    limits = limits_with_references()
    for _ in range(ENOUGH_FIGURES):
        limits.learn(Decoding.GREEDY, Figures(24, 0.5, 0.0, 0.01, 0.0, 0.1))
    rounds, _, _ = rounds_of(engine(shift_nats=0.045))
    assert (await rounds.weigh(JUDGE, limits)).standing is Standing.AGREES
    assert (await rounds.weigh(JUDGE, limits, "distance")).standing is Standing.UNCLEAR
    sound, _, _ = rounds_of(engine())
    assert (await sound.weigh(JUDGE, limits, "distance")).standing is Standing.AGREES


@pytest.mark.parametrize(
    ("say", "wait_s"),
    [
        pytest.param(engine(), LONE_EVERY_S, id="sound"),
        pytest.param(engine(shift_nats=2.0), LONE_DOUBTED_S, id="damaged"),
    ],
)
async def test_an_instance_alone_is_asked_seldom(say: Say, wait_s: float) -> None:
    """Sooner once it has deviated, so that three in a row take no minutes."""
    rounds, engines, seconds = rounds_of(say)
    limits = limits_with_references()
    assert await rounds.weigh_alone(JUDGE, limits) is not None
    seconds.now_s += wait_s - 0.5
    assert await rounds.weigh_alone(JUDGE, limits) is None
    seconds.now_s += 0.5
    assert await rounds.weigh_alone(JUDGE, limits) is not None
    assert len(engines.asked) == 6


async def test_a_new_life_begins_anew() -> None:
    """Nothing is held against it, or known of it."""
    rounds, _, _ = rounds_of(engine())
    assert await rounds.weigh_alone(JUDGE, limits_with_references()) is not None
    later = instance("engine-0", incarnation=4)
    assert await rounds.weigh_alone(later, limits_with_references()) is not None


async def test_lives_do_not_pile_up() -> None:
    """The one longest unseen goes."""
    rounds, _, _ = rounds_of(engine())
    for place in range(MOST_LIVES + 1):
        rounds._known(instance("engine-0", incarnation=place))
    assert len(rounds._lives) == MOST_LIVES
    assert ("engine-0", 0) not in rounds._lives
