"""Who waits, and since when nothing came."""

import pytest
from multidict import CIMultiDict

from gatemesh_agent.attribution import ClientRequest
from gatemesh_agent.reporting import Life, Origin
from gatemesh_agent.requests import Route, understand
from gatemesh_agent.upstream import Order
from gatemesh_agent.watchdog import FORGET_S, Patience, Quiet, Waiting, Watch

ASKED = understand(Route.CHAT, b'{"messages":[]}')
REQUEST = ClientRequest(ASKED, Origin("R1"), Order("POST", "/", CIMultiDict(), b""))
LIFE = Life("e", 0, None, numbered=True)
PATIENCE = Patience(stall_s=20.0, stall_first_s=60.0)


@pytest.fixture
def watch() -> Watch:
    """Return a fresh watch."""
    return Watch(PATIENCE)


def begin(watch: Watch, now_s: float) -> Waiting:
    """Send a request."""
    return watch.begin(REQUEST, LIFE, "http://e", now_s)


def look(watch: Watch, from_s: int, to_s: int) -> list[Quiet]:
    """Look every second; return what the last look found."""
    found: list[Quiet] = []
    for second in range(from_s, to_s + 1):
        found = watch.quiet(float(second))
    return found


def test_a_stream_that_stops_is_noticed(watch: Watch) -> None:
    """After the time that a token may take."""
    wait = begin(watch, 100.0)
    watch.note(wait, 1, 101.0)
    assert look(watch, 101, 120) == []
    [quiet] = look(watch, 121, 121)
    assert (quiet.longest, quiet.quiet_s, quiet.waiting, quiet.overdue) == (wait, 20.0, 1, True)


def test_a_first_token_may_take_longer(watch: Watch) -> None:
    """It is looked at, but only the longer time speaks for itself."""
    begin(watch, 100.0)
    [early] = look(watch, 100, 120)
    assert not early.overdue
    [late] = look(watch, 121, 160)
    assert late.overdue


def test_others_that_progress_speak_for_the_instance(watch: Watch) -> None:
    """A long queue or a large prompt is no stall."""
    begin(watch, 100.0)
    other = begin(watch, 100.0)
    for second in range(101, 200):
        watch.note(other, second, float(second))
        assert watch.quiet(float(second)) == []


def test_a_client_that_does_not_read_stalls_only_itself(watch: Watch) -> None:
    """The instance is not waited for meanwhile."""
    wait = begin(watch, 100.0)
    watch.note(wait, 1, 100.0)
    wait.hold()
    assert look(watch, 100, 300) == []
    wait.resume(300.0)
    assert look(watch, 301, 319) == []
    assert look(watch, 320, 320)


def test_those_that_gave_up_have_waited_too(watch: Watch) -> None:
    """Clients with little patience do not hide a stall."""
    for began in range(100, 130, 10):
        wait = begin(watch, float(began))
        found = look(watch, began, began + 9)
        watch.end(wait, began + 9.0)
    [quiet] = found
    assert quiet.quiet_s >= 20.0


def test_idle_time_is_no_waiting(watch: Watch) -> None:
    """Nobody asked."""
    watch.end(begin(watch, 100.0), 101.0)
    look(watch, 100, 500)
    begin(watch, 500.0)
    assert look(watch, 501, 515) == []


def test_progress_is_remembered_and_the_rest_forgotten(watch: Watch) -> None:
    """A life that nobody asks any more costs nothing."""
    wait = begin(watch, 100.0)
    watch.note(wait, 1, 105.0)
    assert watch.moved_since(LIFE, 104.0)
    assert not watch.moved_since(LIFE, 105.0)
    watch.end(wait, 106.0)
    watch.note(wait, 2, 106.0)
    watch.quiet(107.0)
    watch.quiet(107.0 + FORGET_S + 1)
    assert not watch.moved_since(LIFE, 0.0)
    watch.note(wait, 3, 1000.0)
    watch.end(wait, 1000.0)
