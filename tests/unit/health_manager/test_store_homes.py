"""Where instances are is asked once."""

from collections.abc import Collection
from typing import cast

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from gatemesh_health_manager import store_homes
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.store_homes import Homes

from .samples import NOW, record

NO_CONNECTION = cast(AsyncConnection, None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Have a database that knows two instances; give what it is asked."""
    found: list[list[str]] = []

    async def pools_of(_connection: object, names: Collection[str]) -> dict[str, str]:
        found.append(sorted(names))
        return {name: "p" for name in names if name in {"a", "b"}}

    monkeypatch.setattr(store_homes, "pools_of", pools_of)
    return found


async def test_what_is_known_is_not_asked_again(asked: list[list[str]]) -> None:
    """What nobody knows is asked every time: it may be registered meanwhile."""
    homes = Homes()
    assert await homes.of(NO_CONNECTION, ["a", "x"]) == {"a": "p"}
    assert await homes.of(NO_CONNECTION, ["a", "b", "x"]) == {"a": "p", "b": "p"}
    assert asked == [["a", "x"], ["b", "x"]]


async def test_what_proved_wrong_is_asked_again(asked: list[list[str]]) -> None:
    """An instance may move to another pool."""
    homes = Homes()
    await homes.of(NO_CONNECTION, ["a", "b"])
    homes.forget(["a", "never known"])
    await homes.of(NO_CONNECTION, ["a", "b"])
    assert asked == [["a", "b"], ["a"]]


async def test_what_was_read_or_locked_is_known(asked: list[list[str]]) -> None:
    """As the database has it, not as a transaction that may fail would have it."""
    homes, pool = Homes(), Fleet(Policy(), [PoolRecord("default")], [record()])
    pool.register("engine-7", "default", NOW)
    homes.learn(pool)
    assert await homes.of(NO_CONNECTION, ["engine-0"]) == {"engine-0": "default"}
    assert asked == []
    assert await homes.of(NO_CONNECTION, ["engine-7"]) == {}
