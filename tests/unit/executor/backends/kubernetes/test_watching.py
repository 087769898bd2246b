"""Following objects through cuts and expiries."""

import asyncio
from typing import Any

import pytest
from tests.unit.executor.conftest import Time

from gatemesh_common.errors import SettingsError
from gatemesh_executor.backends.base import BackendUnavailableError
from gatemesh_executor.backends.kubernetes.api import PODS, Object
from gatemesh_executor.backends.kubernetes.watching import (
    FIRST_DELAY_S,
    LONGEST_DELAY_S,
    News,
    Watched,
)

from .conftest import FakeAnswer, Script, status


def item(name: str, version: int) -> dict[str, Any]:
    """Return an object."""
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def listing(version: int, *items: Object) -> FakeAnswer:
    """Return the answer to a list."""
    return FakeAnswer(200, {"items": items, "metadata": {"resourceVersion": str(version)}})


def watch(*events: tuple[str, Object]) -> FakeAnswer:
    """Return a watch that ends after these events."""
    return FakeAnswer(200, "", [{"type": kind, "object": found} for kind, found in events])


END = status(403, "the end of the script")


async def followed(*answers: FakeAnswer | Exception) -> tuple[Watched, Script, Time, list[str]]:
    """Follow a script to its end."""
    script, time = Script([*answers, END]), Time()
    told: list[str] = []
    watched = Watched(
        script.api,
        PODS,
        "pool",
        News(),
        lambda found: told.append(found["metadata"]["name"]),
        time.pace,
    )
    with pytest.raises(SettingsError):
        await watched.run()
    return watched, script, time, told


def versions(script: Script) -> list[str | None]:
    """Return what each request began from; a list from nothing."""
    return [dict(call.query).get("resourceVersion") for call in script.calls]


async def test_a_list_then_every_change() -> None:
    """Each object is told once per change."""
    changes = watch(
        ("ADDED", item("b", 11)),
        ("MODIFIED", item("a", 12)),
        ("BOOKMARK", {"metadata": {"resourceVersion": "15"}}),
        ("DELETED", item("b", 16)),
    )
    watched, script, _, told = await followed(listing(10, item("a", 9)), changes)
    assert watched.objects == {"a": item("a", 12)}
    assert told == ["a", "b", "a", "b"]
    assert versions(script) == [None, "10", "16"]


async def test_a_cut_goes_on_from_the_last_version() -> None:
    """Nothing is listed again, nothing is missed."""
    cut = OSError("reset")
    _, script, _, _ = await followed(listing(10), watch(("ADDED", item("a", 11))), cut, watch())
    assert versions(script) == [None, "10", "11", "11", "11"]


@pytest.mark.parametrize("expired", [status(410), watch(("ERROR", {"code": 410}))])
async def test_an_expiry_lists_again(expired: FakeAnswer) -> None:
    """What is gone by then is told as well."""
    watched, script, _, told = await followed(
        listing(10, item("a", 9)), expired, listing(30, item("b", 29))
    )
    assert versions(script) == [None, "10", None, "30"]
    assert (told, set(watched.objects)) == (["a", "a", "b"], {"b"})


async def test_an_api_that_stays_away_is_asked_ever_more_rarely() -> None:
    """Ten executors must not keep a struggling API server down."""
    tries = 12
    _, _, time, _ = await followed(*[OSError()] * tries)
    waits = [min(FIRST_DELAY_S * 2**n, LONGEST_DELAY_S) for n in range(tries)]
    assert time.elapsed_s == pytest.approx(sum(waits))


async def test_watches_that_end_at_once_do_not_spin() -> None:
    """Each is followed by a pause."""
    _, _, time, _ = await followed(listing(10), *[watch()] * 3)
    assert time.elapsed_s >= 3 * FIRST_DELAY_S


async def test_nothing_is_believed_before_a_watch_stands() -> None:
    """A fault stays until then."""
    watched = Watched(Script().api, PODS, "", News())
    assert isinstance(watched.fault, BackendUnavailableError)
    lost, _, _, _ = await followed(listing(10))
    assert isinstance(lost.fault, SettingsError)


async def test_news_wakes_who_waits() -> None:
    """As soon as it holds, and not before."""
    news, facts = News(), list[int]()
    waiting = asyncio.create_task(news.until(lambda: len(facts) == 2, 30.0))
    for fact in range(2):
        await asyncio.sleep(0)
        assert not waiting.done()
        facts.append(fact)
        news.tell()
    assert await waiting


async def test_a_deadline_is_told() -> None:
    """Nobody waits for ever."""
    assert not await News().until(lambda: False, 0.0)
