"""Figures are those of the whole answer, however it came."""

import math
import random

import pytest

from gatemesh_agent.gates.figures import (
    CALM_NATS,
    LONG_WINDOW,
    MOST_NATS,
    SCRIPT_STEPS,
    SHORT_WINDOW,
    SHORTEST_STEPS,
    Figures,
    main_script,
)
from gatemesh_agent.gates.pool_baseline import Metric


def of(steps: list[tuple[float, float, float]], text: str = "word ") -> Figures:
    """Return the figures of some steps: surprisal, entropy, probability of the likeliest."""
    figures = Figures()
    for nll, entropy, top in steps:
        figures.take(text, nll, entropy, math.log(top))
    return figures


def test_windows_are_the_most_extreme_ones() -> None:
    """Against a plain computation over all windows."""
    rng = random.Random(7)
    nats = [rng.expovariate(1.0) for _ in range(300)]
    entropies = [rng.random() for _ in nats]
    values = of(list(zip(nats, entropies, [0.5] * 300, strict=True))).values()

    def means(figures: list[float], size: int) -> list[float]:
        return [sum(figures[at : at + size]) / size for at in range(len(figures) - size + 1)]

    assert values[Metric.NLL_16] == pytest.approx(max(means(nats, SHORT_WINDOW)))
    assert values[Metric.NLL_64] == pytest.approx(max(means(nats, LONG_WINDOW)))
    assert values[Metric.NLL_64_LOW] == pytest.approx(min(means(nats, LONG_WINDOW)))
    assert values[Metric.ENTROPY_16] == pytest.approx(max(means(entropies, SHORT_WINDOW)))
    assert values[Metric.NLL_WHOLE] == pytest.approx(sum(nats) / 300)
    assert values[Metric.ENTROPY_WHOLE] == pytest.approx(sum(entropies) / 300)
    assert values[Metric.TOP1_WHOLE] == pytest.approx(0.5)
    capped = [min(entropy, CALM_NATS) for entropy in entropies]
    assert values[Metric.ENTROPY_CAPPED] == pytest.approx(sum(capped) / 300)


@pytest.mark.parametrize(
    ("steps", "metrics"),
    [
        (SHORTEST_STEPS - 1, 0),
        (SHORTEST_STEPS, 4),
        (SHORT_WINDOW - 1, 4),
        (SHORT_WINDOW, 6),
        (LONG_WINDOW - 1, 6),
        (LONG_WINDOW, 8),
    ],
)
def test_a_figure_needs_its_window(steps: int, metrics: int) -> None:
    """A short answer has fewer figures, never padded ones."""
    assert len(of([(1.0, 1.0, 0.5)] * steps).values()) == metrics


def test_the_end_of_the_worst_window_is_known() -> None:
    """For the span of a verdict."""
    figures = of([(0.1, 0.1, 0.9)] * 100 + [(5.0, 3.0, 0.1)] * 16 + [(0.1, 0.1, 0.9)] * 100)
    assert figures.high16_end == 116
    assert 116 <= figures.high64_end <= 164
    assert figures.high16 == pytest.approx(5.0)


def test_a_clamp_is_no_figure() -> None:
    """Engines write -9999 for impossible."""
    assert of([(9999.0, 0.0, 1.0)] * 16).values()[Metric.NLL_WHOLE] == MOST_NATS


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("The tide turns.", "latin"),
        ("Der Fluß", "latin"),
        ("Вода течёт вниз", "cyrillic"),
        ("潮汐在转", "han"),
        ("東京はとても大きいです", "kana"),
        ("12 * 11 = 132", "none"),
        ("слово word", "mixed"),
        ("Here:\n```python\nx = 1", "code"),
    ],
)
def test_scripts(text: str, script: str) -> None:
    """Baselines differ by nats between them."""
    assert main_script(text) == script


def test_the_beginning_decides_about_the_script() -> None:
    """So that limits do not change under an answer's feet."""
    figures = of([(1.0, 1.0, 0.5)] * SCRIPT_STEPS)
    assert figures.script == "latin"
    for _ in range(500):
        figures.take("слово ", 1.0, 1.0, -1.0)
    assert figures.script == "latin"
    assert of([(1.0, 1.0, 0.5)], "潮").script == "han"
