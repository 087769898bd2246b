"""The check of expressions sees what is wrong, and nothing else."""

import pytest

from .expressions import faults, selectors


@pytest.mark.parametrize(
    ("expression", "read"),
    [
        ('up{job=~"a|b"} == 0', [("up", {"job"})]),
        ("sum by (le) (rate(x_bucket[5m])) > 5", [("x_bucket", set())]),
        ('(sum(a) or vector(0)) < 1 and b{x="{}", y!=""}', [("a", set()), ("b", {"x", "y"})]),
        ("histogram_quantile(0.9, sum(rate(vllm:t_bucket[$__rate_interval])) by (le))",
         [("vllm:t_bucket", set())]),
        ("a unless a offset 10m", [("a", set()), ("a", set())]),
    ],
)  # fmt: skip
def test_what_is_read(expression: str, read: list[tuple[str, set[str]]]) -> None:
    """Functions, words, numbers, ranges and groupings are no metrics."""
    assert [(name, set(labels)) for name, labels in selectors(expression)] == read


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("gatemesh_agent_request_total > 1", "no metric gatemesh_agent_request_total"),
        ('gatemesh_instances{status="x"}', "no label status of gatemesh_instances"),
        ("sum by (gate) (gatemesh_instances)", "nothing has label gate"),
        ("rate(gatemesh_tick_seconds[5m])", "no metric gatemesh_tick_seconds"),
    ],
)
def test_what_nobody_shows_is_named(expression: str, fault: str) -> None:
    """A wrong name shows an empty panel and an alert that never fires."""
    assert faults(expression) == [fault]


def test_what_is_shown_passes() -> None:
    """With labels of its own, of histograms and of the scrape."""
    rate = 'rate(gatemesh_tick_seconds_bucket{job="x"}[5m])'
    assert not faults(f"histogram_quantile(0.9, sum by (le, job) ({rate}))")
