"""The page about messages follows the code."""

from pathlib import Path

import pytest

from gatemesh_common.broker import WORK_QUEUES
from gatemesh_common.messages import MESSAGES, Message

PAGE = (Path(__file__).parents[3] / "docs" / "messages.md").read_text()


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)
def test_a_message_is_described_with_every_field(message: type[Message]) -> None:
    """Whoever writes a consumer in another language has only this page."""
    section = PAGE.split(f"### {message.__name__}\n", 1)[1].split("\n### ", 1)[0]
    assert f"`{message.exchange}`" in section
    assert message.routing_key in section
    missing = [name for name in message.model_fields if f"`{name}`" not in section]
    assert missing == []


def test_every_queue_is_listed() -> None:
    """Operators look queues up by name."""
    assert [queue.name for queue in WORK_QUEUES if f"`{queue.name}`" not in PAGE] == []
