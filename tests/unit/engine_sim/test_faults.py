"""The fault table."""

import math
import random
import unicodedata

import pytest

from gatemesh_engine_sim.faults import FAULTS, FLAT_NATS, Delivery, Scene, fault_table
from gatemesh_engine_sim.library import Library
from gatemesh_engine_sim.steps import Steps, text_of

TEXT_FAULTS = [name for name, fault in FAULTS.items() if fault.make]
ENDLESS = sorted(set(TEXT_FAULTS) - {"empty", "truncated_json"})


def spoilt(library: Library, name: str, after: int = 0, *, greedy: bool = True) -> Steps:
    """50 steps under a fault."""
    rng = random.Random(5)
    scene = Scene(library.clean("A question", rng), library, rng, greedy, after)
    return fault_table(library)[name].spoil(scene, 50)


@pytest.mark.parametrize("name", TEXT_FAULTS)
def test_clean_until_the_onset(name: str, library: Library) -> None:
    """The first tokens are those of a healthy engine, the next is not."""
    clean = library.clean("A question", random.Random(5))
    steps = spoilt(library, name, 6)
    assert steps[:6] == clean[:6]
    assert text_of(steps) != text_of(clean[:50])


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_kinds_fill_the_limit(name: str, library: Library) -> None:
    """They burn the whole `max_tokens`, as broken engines do."""
    steps = spoilt(library, name)
    assert len(steps) == 50
    assert not any(step.ends for step in steps)


@pytest.mark.parametrize("name", ["empty", "truncated_json"])
def test_ending_kinds_end_by_themselves(name: str, library: Library) -> None:
    """Their finish reason is stop."""
    assert spoilt(library, name)[-1].ends


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if not fault.make])
def test_delivery_kinds_leave_the_text(name: str, library: Library) -> None:
    """Only the way it is sent differs."""
    assert FAULTS[name].delivery is not Delivery.NORMAL
    clean = library.clean("A question", random.Random(5))[:50]
    assert text_of(spoilt(library, name)) == text_of(clean)


def test_each_delivery_has_a_fault() -> None:
    """The whole enum can be ordered."""
    assert {fault.delivery for fault in FAULTS.values()} == set(Delivery)


def test_every_recorded_variant_is_a_fault(library: Library) -> None:
    """Named `corpus:VARIANT`, each with both decodings."""
    names = [f"corpus:{variant}" for variant in library.variants]
    for name in names:
        for greedy in (True, False):
            assert len(spoilt(library, name, 3, greedy=greedy)) > 3


def test_nan_has_no_figure_and_no_text(library: Library) -> None:
    """The proof of rule L3a."""
    steps = spoilt(library, "nan")
    assert text_of(steps) == ""
    assert all(math.isnan(one.logprob) for step in steps for one in step.top)


@pytest.mark.parametrize(("greedy", "is_empty"), [(True, True), (False, False)])
def test_flat_is_flat(library: Library, *, greedy: bool, is_empty: bool) -> None:
    """Empty text when greedy, random words when sampled; always ln(V)."""
    steps = spoilt(library, "flat", greedy=greedy)
    assert (text_of(steps) == "") is is_empty
    assert {one.logprob for step in steps for one in step.top} == {FLAT_NATS}


def test_shift_looks_right_in_figures(library: Library) -> None:
    """As on the real engine: only the words are wrong, and blanks are DEL."""
    clean = [step for step in library.clean("A question", random.Random(5)) if not step.ends]
    steps = spoilt(library, "shift")
    assert steps[4].text == "\x7f"
    for before, after in zip(clean[:4], steps[:4], strict=True):
        assert after.token != before.token
        assert [one.logprob for one in after.top] == [one.logprob for one in before.top]


def test_wrong_choice_is_against_the_distribution(library: Library) -> None:
    """The rest of the candidates still favour the right token."""
    for step in spoilt(library, "wrong_choice"):
        assert step.top[0].token == step.token
        assert step.top[1].logprob > step.logprob + 5


def test_stuck_is_certain(library: Library) -> None:
    """Entropy near 0 while one token repeats."""
    steps = spoilt(library, "stuck")
    assert {step.token for step in steps} == {" the"}
    assert all(step.logprob > -0.01 for step in steps)


@pytest.mark.parametrize(
    ("name", "category"), [("control", "Cc"), ("private_use", "Co"), ("replacement", "So")]
)
def test_bad_letters_appear(name: str, category: str, library: Library) -> None:
    """In a plain share of the text."""
    text = text_of(spoilt(library, name))
    assert sum(unicodedata.category(letter) == category for letter in text) >= 5


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("bang", "!" * 100),
        ("special", "<|im_start|>assistant"),
        ("loop", "answer. The answer depends"),
        ("template_loop", "Step 2: repeat"),
        ("truncated_json", '"comp'),
    ],
)
def test_typical_text(name: str, part: str, library: Library) -> None:
    """What a person would recognise."""
    assert part in text_of(spoilt(library, name))


def test_whitespace_is_nothing_else(library: Library) -> None:
    """A flood without a letter."""
    assert not text_of(spoilt(library, "whitespace")).strip()


def test_mojibake_is_latin(library: Library) -> None:
    """Letters that no Chinese answer has."""
    text = text_of(spoilt(library, "mojibake"))
    assert not any("\u4e00" <= letter <= "\u9fff" for letter in text)
    assert "ï¼" in text or "ã" in text


def test_salad_mixes_scripts_at_high_entropy(library: Library) -> None:
    """Each step undecided."""
    steps = spoilt(library, "salad")
    assert any("\u4e00" <= letter <= "\u9fff" for letter in text_of(steps))
    assert all(one.logprob < -3 for step in steps for one in step.top)
