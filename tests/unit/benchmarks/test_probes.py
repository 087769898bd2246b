"""Figures of the probe suite."""

from benchmarks.probes import never_right, sign_of, tally, unsteady

from gatemesh_agent.suite import Answer, Way

RUNS = [
    [
        Answer("a", matched=True),
        Answer("b", matched=False),
        Answer("c", matched=False, fault="empty"),
    ],
    [
        Answer("a", matched=False),
        Answer("b", matched=False),
        Answer("b", matched=True, way=Way.CACHED),
        Answer("c", matched=False, refused=True),
    ],
]


def test_each_run_has_its_sign() -> None:
    """By prompt and way."""
    assert tally(RUNS) == {
        "a": {"plain": "+-"},
        "b": {"cached": "+", "plain": "--"},
        "c": {"plain": "!?"},
    }
    assert sign_of(Answer("a", matched=False, busy=True)) == "?"


def test_what_to_leave_out_is_told() -> None:
    """What is never right when asked plainly; what is so at times is unsteady."""
    assert never_right(tally(RUNS)) == ["b", "c"]
    assert unsteady(tally(RUNS)) == ["a"]
