"""What is kept of healthy answers, and how an instance stands to it."""

import json
from dataclasses import replace
from math import nan

import pytest
from tests.unit.shadow.parts import OWN, TOKENS, limits_with_references

from gatemesh_common.messages import Decoding, Outcome, Reason
from gatemesh_shadow.references import (
    LEAST_ANSWER_TOKENS,
    MOST_ANSWER_TOKENS,
    MOST_KEPT,
    MOST_PROMPT_TOKENS,
    PER_ROUND,
    UNUSUAL,
    Reference,
    References,
    Standing,
    choose,
    from_json,
    is_unusual,
    reference_of,
    to_json,
    unknown,
    weigh,
)
from gatemesh_shadow.scores import DEFAULT_LIMITS, Figures
from gatemesh_shadow.sequential import Normal

LIMITS = DEFAULT_LIMITS[Decoding.GREEDY]
SOUND = Figures(24, 0.5, 0.0, LIMITS.distance, 0.0, 0.1)
"""At the limit."""
PAST = replace(SOUND, distance=LIMITS.distance + 0.001)
FAR = replace(SOUND, distance=LIMITS.distance * 9)


@pytest.mark.parametrize(
    ("prompt_tokens", "answer_tokens", "is_usable"),
    [
        (1, LEAST_ANSWER_TOKENS, True),
        (MOST_PROMPT_TOKENS, MOST_ANSWER_TOKENS, True),
        (0, LEAST_ANSWER_TOKENS, False),
        (MOST_PROMPT_TOKENS + 1, LEAST_ANSWER_TOKENS, False),
        (1, LEAST_ANSWER_TOKENS - 1, False),
        (1, MOST_ANSWER_TOKENS + 1, False),
    ],
)
def test_sizes(prompt_tokens: int, answer_tokens: int, *, is_usable: bool) -> None:
    """At each bound and past it."""
    found = reference_of([7] * prompt_tokens, [8] * answer_tokens, [-0.5] * answer_tokens)
    assert (found is not None) is is_usable


@pytest.mark.parametrize("own", [(*OWN[:-1], None), (*OWN[:-1], nan), OWN[:-1]])
def test_figures_must_be_whole(own: tuple[float | None, ...]) -> None:
    """Of every token, and numbers."""
    assert reference_of([1], TOKENS, own) is None


def test_the_longest_that_pass_are_kept() -> None:
    """No more than are needed; what is past the limits at once would accuse for ever."""
    short = Reference((1,), TOKENS, OWN)
    long = Reference((2,), TOKENS * 2, OWN * 2)
    bad = Reference((3,), TOKENS * 3, OWN * 3)
    candidates = [*[(short, SOUND)] * MOST_KEPT, (long, SOUND), (bad, FAR)]
    chosen = choose("sim", candidates, LIMITS)
    assert chosen == References("sim", (long, *[short] * (MOST_KEPT - 1)))


def test_rounds_take_turns() -> None:
    """Each goes on where the last one ended; fewer than a round are asked once each."""
    kept = limits_with_references(5).references
    assert kept is not None
    numbers = [[one.prompt[-1] for one in kept.for_round(at)] for at in range(3)]
    assert numbers == [[0, 1, 2], [3, 4, 0], [1, 2, 3]]
    assert len(References("sim", kept.kept[:2]).for_round(7)) == 2
    assert References().for_round(1) == ()
    assert PER_ROUND == 3


def test_two_are_enough() -> None:
    """One is not."""
    one, two = limits_with_references(1).references, limits_with_references(2).references
    assert one is not None
    assert two is not None
    assert (one.suffice, two.suffice) == (False, True)


@pytest.mark.parametrize(
    ("scored", "standing"),
    [
        pytest.param([SOUND] * 3, Standing.AGREES, id="at-the-limit"),
        pytest.param([SOUND] * 2, Standing.AGREES, id="two"),
        pytest.param([SOUND, SOUND, PAST], Standing.UNCLEAR, id="one-of-three"),
        pytest.param([SOUND, PAST], Standing.UNCLEAR, id="half"),
        pytest.param([SOUND, PAST, PAST], Standing.DEVIATES, id="two-of-three"),
        pytest.param([SOUND, None, None], Standing.DEVIATES, id="no-numbers"),
        pytest.param([PAST], Standing.UNCLEAR, id="one"),
        pytest.param([], Standing.UNCLEAR, id="none"),
    ],
)
def test_standing(scored: list[Figures | None], standing: Standing) -> None:
    """Convicted by most, cleared by all, and neither otherwise."""
    found = weigh(scored, LIMITS)
    assert found.standing is standing
    outcomes = {
        Standing.AGREES: (Outcome.PASSED, Reason.CLEAN),
        Standing.DEVIATES: (Outcome.FAILED, Reason.REPLICA_DISAGREES),
        Standing.UNCLEAR: (Outcome.SKIPPED, Reason.NOT_COMPARABLE),
    }
    assert (found.judgement.outcome, found.judgement.reason) == outcomes[standing]


def test_the_worst_is_shown() -> None:
    """With how many were scored, and never a text."""
    found = weigh([PAST, FAR, SOUND], LIMITS).judgement
    assert found.score == FAR.distance
    assert found.details["broken"] == "distance"
    told = {name: found.details[name] for name in ("measure", "by", "scored", "failed")}
    assert told == {"measure": "references", "by": "references", "scored": 3, "failed": 2}


def test_nothing_is_known_without_references() -> None:
    """No verdict comes of that."""
    assert unknown().standing is Standing.UNKNOWN
    assert unknown().judgement.outcome is Outcome.SKIPPED


def test_quiet_deviation() -> None:
    """The median counts: at the bound it is usual; what is not known is."""
    normal = Normal(0.02, 0.01)
    at, past = 0.02 + UNUSUAL * 0.01, 0.02 + UNUSUAL * 0.01 + 1e-6
    assert not is_unusual([replace(SOUND, distance=at - 1e-9)] * 3, "distance", normal)
    assert is_unusual([replace(SOUND, distance=past)] * 3, "distance", normal)
    mixed = [replace(SOUND, distance=past), *[replace(SOUND, distance=0.0)] * 2]
    assert not is_unusual(mixed, "distance", normal)
    assert not is_unusual([FAR] * 3, "distance", None)
    assert not is_unusual([None], "distance", normal)


def test_they_survive_as_json() -> None:
    """Both ways; a file without them is an older one."""
    references = limits_with_references().references
    assert references is not None
    assert from_json(json.loads(json.dumps(to_json(references)))) == references
    assert from_json(None) is None


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"format": 2, "model": "sim", "kept": []},
        {"format": 1, "kept": []},
        {"format": 1, "model": "sim", "kept": [[[1], [2]]]},
        {"format": 1, "model": "sim", "kept": [[["x"], [2], [0.0]]]},
        {"format": 1, "model": "sim", "kept": 3},
        [],
    ],
)
def test_what_is_something_else_is_taken_anew(data: object) -> None:
    """Never a reason not to start."""
    assert from_json(data) is None  # type: ignore[arg-type]


def test_a_file_cannot_make_them_many_or_large() -> None:
    """Bounds hold for what is read, too."""
    fine = [[1], list(TOKENS), list(OWN)]
    large = [[1] * (MOST_PROMPT_TOKENS + 1), list(TOKENS), list(OWN)]
    data = {"format": 1, "model": "sim", "kept": [large, *[fine] * MOST_KEPT]}
    found = from_json(data)
    assert found is not None
    assert len(found.kept) == MOST_KEPT - 1
