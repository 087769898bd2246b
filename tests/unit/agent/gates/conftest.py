"""Helpers to run one rule family over a text."""

from collections.abc import Callable

import pytest

from gatemesh_agent.gates.context import RequestContext, context_of
from gatemesh_agent.gates.judgement import Finding, Judgement
from gatemesh_agent.gates.l1_text import TextGate
from gatemesh_agent.gates.window import TextWindow
from gatemesh_common.gates import Ending

Scan = Callable[[TextWindow], Finding | None]


def asking(prompt: str = "Tell me about rivers.", **fields: object) -> RequestContext:
    """Return the context of a chat request."""
    request = {"messages": [{"role": "user", "content": prompt}], "temperature": 0.7, **fields}
    return context_of(request)


def judge(text: str, context: RequestContext, reason: str | None = "stop") -> Judgement:
    """Judge a whole answer with L1."""
    gate = TextGate(context)
    gate.feed_text(text)
    return gate.finish(Ending(reason))


def scanned(text: str, scan: Scan) -> Finding | None:
    """Run one rule after each block of a text and once more at its end."""
    window = TextWindow()
    for _ in window.blocks(text):
        finding = scan(window)
        if finding is not None:
            return finding
    window.rest()
    return scan(window)


@pytest.fixture(name="asking")
def asking_fixture() -> Callable[..., RequestContext]:
    """Return what makes a request context."""
    return asking


@pytest.fixture(name="judge")
def judge_fixture() -> Callable[..., Judgement]:
    """Return what judges a whole answer with L1."""
    return judge


@pytest.fixture(name="scanned")
def scanned_fixture() -> Callable[[str, Scan], Finding | None]:
    """Return what runs one rule over a text."""
    return scanned
