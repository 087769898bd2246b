"""The page about new consumers follows the code."""

import re
from pathlib import Path

import pytest

from gatemesh_common.broker import DELIVERY_LIMIT, WorkQueue, queue_arguments
from gatemesh_common.messages import EVENTS, MESSAGES

REPOSITORY = Path(__file__).parents[3]
PAGE = (REPOSITORY / "docs" / "extend.md").read_text()
NODE = (REPOSITORY / "examples" / "consumer_node" / "incidents.mjs").read_text()
KEY = re.compile(r"`([a-z]+\.v\d)[^`]*#`")


def test_the_example_is_the_tested_one() -> None:
    """What a reader copies works."""
    example = (REPOSITORY / "examples" / "consumer" / "incidents.py").read_text().rstrip()
    assert f"```python\n{example}\n```" in PAGE


def test_every_key_is_one_of_ours() -> None:
    """A binding to nothing waits for ever."""
    keys = set(KEY.findall(PAGE))
    assert len(keys) > 4
    assert keys <= {message.routing_key for message in MESSAGES}


@pytest.mark.parametrize("text", [PAGE, NODE], ids=["page", "node"])
def test_a_queue_of_another_language_is_like_ours(text: str) -> None:
    """Declared with other arguments, it would be refused, or lose messages."""
    arguments = queue_arguments(WorkQueue("q", EVENTS, "#"))
    assert [name for name in arguments if name not in text] == []
    assert re.search(rf"x-delivery-limit\"?: {DELIVERY_LIMIT}\b", text)
