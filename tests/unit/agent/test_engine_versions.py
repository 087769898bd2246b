"""An engine is asked for its version once in a life."""

import pytest

from gatemesh_agent.engine_versions import AGAIN_S, MOST_LIVES, EngineVersions, version_in
from gatemesh_agent.reporting import Life

LIFE = Life("engine-0", 1, None, numbered=True)
NEXT = Life("engine-0", 2, None, numbered=True)


class Engine:
    """Says its version, and counts."""

    def __init__(self, version: str | None) -> None:
        self.version = version
        self.asked = 0
        self.now_s = 0.0
        addresses = {"engine-0": "http://e"}
        self.known = EngineVersions(self.ask, addresses.get, lambda: self.now_s)

    async def ask(self, base_url: str) -> str | None:
        """Answer."""
        assert base_url == "http://e"
        self.asked += 1
        return self.version


async def test_each_life_is_asked_once() -> None:
    """The next one may be of another release."""
    engine = Engine("0.32.0")
    assert [await engine.known.version(life) for life in (LIFE, LIFE, NEXT)] == ["0.32.0"] * 3
    assert engine.asked == 2


async def test_one_that_is_silent_is_not_asked_at_every_fault() -> None:
    """It may hang; later it is tried again."""
    engine = Engine(None)
    assert [await engine.known.version(LIFE) for _ in range(3)] == [None] * 3
    assert engine.asked == 1
    engine.version, engine.now_s = "0.33.0", AGAIN_S
    assert await engine.known.version(LIFE) == "0.33.0"


async def test_nobody_is_asked_who_has_no_address() -> None:
    """And what is known stays bounded."""
    engine = Engine("1")
    assert await engine.known.version(Life("gone", 1, None, numbered=True)) is None
    for n in range(MOST_LIVES + 5):
        await engine.known.version(Life("engine-0", n, None, numbered=True))
    assert engine.asked == MOST_LIVES + 5


@pytest.mark.parametrize(
    ("body", "version"),
    [
        (b'{"version":"0.32.0"}', "0.32.0"),
        (b"{}", None),
        (b"<html>", None),
        (b'{"version":1}', None),
    ],
)
def test_an_answer_that_is_none_is_no_version(body: bytes, version: str | None) -> None:
    """Not every engine has the route."""
    assert version_in(body) == version
