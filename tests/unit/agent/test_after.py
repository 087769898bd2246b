"""Every reader hears of every answer."""

from unittest.mock import Mock

from gatemesh_agent.after import After, Answered


def test_every_reader_is_told() -> None:
    """In the order in which they came."""
    told: list[object] = []
    after = After(Mock(), [told.append, told.append])
    answer = Mock(spec=Answered)
    after.answered(answer)
    assert told == [answer, answer]


def test_refusals_are_told_too() -> None:
    """With status and body."""
    told: list[object] = []
    after = After(Mock(), refusals=[lambda *given: told.append(given)])
    request, life = Mock(), Mock()
    after.refused(request, life, 400, b"{}")
    assert told == [(request, life, 400, b"{}")]
