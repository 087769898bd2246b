"""What telemetry says of an instance: rates beside its pool, and how fast its budget burns."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from gatemesh_common.delays import quantile
from gatemesh_health_manager.own_conditions import BurnCondition, RateCondition, TelemetryCondition

P95 = 0.95


@dataclass(frozen=True)
class Traffic:
    """What one life of an instance answered in some span."""

    answers: int = 0
    """Without those that failed by the client's own doing."""
    server_errors: int = 0
    failures: int = 0
    """Answers that the gates of a rule failed."""
    unguarded: int = 0
    tokens: int = 0
    busy_s: float = 0.0
    """Seconds, each counted as often as requests were running."""
    first_tokens: Mapping[int, int] = field(default_factory=dict)
    """Streamed answers by the time to their first token, in bins of delays."""

    def counted(self, rule: RateCondition) -> int:
        """Return the answers that a rule goes by: streamed ones where it is about delays."""
        return sum(self.first_tokens.values()) if rule.of == "first_token_p95" else self.answers


NO_TRAFFIC = Traffic()


@dataclass(frozen=True)
class Measure:
    """What one rule goes by, of one instance at one moment."""

    answers: int
    value: float
    """Share of the answers, tokens per second, or burn in the fast window."""
    others: float | None = None
    """The median of the other instances; none where there are fewer than two."""
    slow: float | None = None
    """Burn in the slow window."""


Measures = tuple[tuple[str, Measure], ...]
"""By the name of the rule."""
FEWEST_OTHERS = 2


def rates(rule: RateCondition, pool: Mapping[str, Traffic]) -> dict[str, Measure]:
    """Return the rate of each instance of a pool that answered enough, beside the others."""
    values = {
        name: value
        for name, traffic in pool.items()
        if traffic.counted(rule) >= rule.min_answers
        and (value := rate_of(rule, traffic)) is not None
    }
    return {
        name: Measure(pool[name].counted(rule), value, median_of_others(values, name))
        for name, value in values.items()
    }


def rate_of(rule: RateCondition, traffic: Traffic) -> float | None:
    """Return the rate that a rule is about; None where nothing can be said."""
    if rule.of == "tokens_per_s":
        return traffic.tokens / traffic.busy_s if traffic.busy_s > 0 else None
    if rule.of == "first_token_p95":
        return quantile(traffic.first_tokens, P95)
    bad = {
        "server_errors": traffic.server_errors,
        "failures": traffic.failures,
        "unguarded": traffic.unguarded,
    }[rule.of]
    return min(1.0, bad / traffic.answers)


def median_of_others(values: Mapping[str, float], name: str) -> float | None:
    """Return the median of all instances but one; None where too few are left."""
    others = [value for other, value in values.items() if other != name]
    return statistics.median(others) if len(others) >= FEWEST_OTHERS else None


def burns(
    rule: BurnCondition, fast: Mapping[str, Traffic], slow: Mapping[str, Traffic]
) -> dict[str, Measure]:
    """Return how many times too fast each instance burns its budget, in both windows."""
    return {
        name: Measure(
            traffic.answers, burn_of(rule, traffic), slow=burn_of(rule, slow.get(name, traffic))
        )
        for name, traffic in fast.items()
        if traffic.answers >= rule.min_answers
    }


def burn_of(rule: BurnCondition, traffic: Traffic) -> float:
    """Return the bad answers over what the objective allows."""
    server_errors = traffic.server_errors if "server_errors" in rule.bad else 0
    failures = traffic.failures if "failures" in rule.bad else 0
    bad = min(1.0, (server_errors + failures) / max(1, traffic.answers))
    return bad / (1 - rule.objective)


def breaks_measure(measure: Measure, rule: TelemetryCondition) -> bool:
    """True when a measure breaks its rule."""
    if isinstance(rule, BurnCondition):
        slow = measure.slow
        return (
            measure.value > rule.burn_more_than and slow is not None and slow > rule.burn_more_than
        )
    above = rule.more_than is None or measure.value > rule.more_than
    return above and (rule.times_pool is None or is_worse(measure, rule, rule.times_pool))


def is_worse(measure: Measure, rule: RateCondition, times: float) -> bool:
    """True when an instance is so many times worse than the others; unknown is not worse."""
    if measure.others is None:
        return False
    if rule.of == "tokens_per_s":
        return measure.value * times < measure.others
    return measure.value > times * measure.others


def said_of(measure: Measure, rule: TelemetryCondition) -> str:
    """Word what broke a rule."""
    if isinstance(rule, BurnCondition):
        return (
            f"burn {measure.value:.3g} in {rule.fast_s:g} s and {measure.slow:.3g} in "
            f"{rule.slow_s:g} s, objective {rule.objective:g}"
        )
    beside = f", others {measure.others:.3g}" if measure.others is not None else ""
    return f"{rule.of} {measure.value:.3g}{beside}, {measure.answers} answers"
