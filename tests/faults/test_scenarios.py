"""The fault suite: each scenario of the table against a running stack."""

from collections.abc import Callable

import pytest
from tests.faults.scenario import Scenario, play
from tests.faults.site import Site
from tests.faults.table import SCENARIOS

pytestmark = [
    pytest.mark.faults,
    # The broker's client makes it of each connection that was refused and is thrown away.
    pytest.mark.filterwarnings("ignore:coroutine 'Connection.close' was never:RuntimeWarning"),
]


def marks_of(scenario: Scenario) -> list[pytest.MarkDecorator]:
    """Return the marks of a scenario: whether it is a long one, and what it needs."""
    long = [] if scenario.in_every_run else [pytest.mark.long_fault]
    return [*long, *([scenario.needs] if scenario.needs else [])]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "scenario",
    [pytest.param(one, id=one.name, marks=marks_of(one)) for one in SCENARIOS],
)
async def test_scenario(
    scenario: Scenario, site: Site, record_property: Callable[[str, object], None]
) -> None:
    """The fault strikes under traffic, and its pass rule holds."""
    record_property("scenario", scenario.name)
    record_property("rule", scenario.rule)
    played = await play(scenario, site)
    record_property("back_s", played.back_s)
