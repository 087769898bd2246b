"""The settings reach what learns of engines."""

import random
from pathlib import Path
from typing import Any

from gatemesh_agent.insight import build_insight
from gatemesh_agent.routing import Router, bootstrap
from gatemesh_agent.settings import AgentSettings


def settings(**more: Any) -> AgentSettings:
    """Settings with a key."""
    return AgentSettings.model_validate({"fingerprint_key": "0123456789abcdef", **more})


def insight(**more: Any) -> Any:
    """The parts, in front of no engine."""
    upstream: Any = None
    return build_insight(settings(**more), Router(random.Random(), 1.0, bootstrap({})), upstream)


async def test_without_a_socket_nothing_is_opened() -> None:
    """And requests carry no ids."""
    built = insight(vocab_sizes="m=5")
    built.open()
    assert built.feed is None
    assert built.vocabulary.size("m") == 5
    await built.stop()


async def test_a_socket_is_open_until_the_end(tmp_path: Path) -> None:
    """And gone after it."""
    path = tmp_path / "s"
    built = insight(plugin_socket=str(path))
    built.open()
    assert path.is_socket()
    await built.stop()
    assert not path.exists()
