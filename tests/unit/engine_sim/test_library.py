"""The packaged answers."""

import random
import unicodedata

import pytest

from gatemesh_engine_sim.library import PAINTED_LIMIT, Library
from gatemesh_engine_sim.steps import text_of

PROMPTS = [f"Question {number}" for number in range(300)] + [f"问题 {n}" for n in range(200)]


def answers(library: Library) -> dict[str, str]:
    """Text by prompt."""
    return {one: text_of(library.clean(one, random.Random(one))) for one in PROMPTS}


def test_clean_answers_are_well_formed(library: Library) -> None:
    """No control, private-use or replacement character, no blank end, no repeated sentence."""
    for text in answers(library).values():
        kinds = {unicodedata.category(letter) for letter in text if letter != "\n"}
        assert kinds.isdisjoint({"Cc", "Co", "Cs", "Cn"})
        assert "\ufffd" not in text
        assert text == text.strip()
        sentences = [one for one in text.replace("。", ". ").split(". ") if one]
        assert len(set(sentences)) == len(sentences)


def test_clean_answers_vary(library: Library) -> None:
    """Load with many prompts does not look like one answer."""
    assert len(set(answers(library).values())) > 150


def test_language_follows_the_prompt(library: Library) -> None:
    """Chinese for Chinese."""
    for prompt, text in answers(library).items():
        assert ("的" in text or "，" in text) == ("问题" in prompt)


def test_clean_answers_end(library: Library) -> None:
    """With the end token, and the likeliest token at every step."""
    for prompt in PROMPTS:
        steps = library.clean(prompt, random.Random(prompt))
        assert steps[-1].ends
        assert all(one.logprob <= step.logprob for step in steps for one in step.top)


def test_recorded_prompt_gets_its_recorded_answer(library: Library) -> None:
    """With the real model's figures."""
    steps = library.clean("What is the capital of France?", random.Random(0))
    assert text_of(steps) == "The capital of France is Paris."
    assert steps[3].logprob == pytest.approx(-0.0107)


@pytest.mark.parametrize("greedy", [True, False])
def test_every_variant_has_answers(library: Library, *, greedy: bool) -> None:
    """For both decodings."""
    for variant in library.variants:
        assert library.damaged(variant, random.Random(0), greedy=greedy)


def test_nan_is_kept_and_flat_is_flat(library: Library) -> None:
    """The two proofs survive packing."""
    nan = library.damaged("nan_tensor", random.Random(0), greedy=True)
    flat = library.damaged("bitflip_msb_1", random.Random(0), greedy=True)
    assert not any(step.is_finite for step in nan)
    assert {one.logprob for step in flat for one in step.top} == {-10.8027}


def test_painted_texts_are_bounded(library: Library) -> None:
    """Echoed texts of any number do not fill the memory."""
    for number in range(PAINTED_LIMIT + 10):
        library.written(f"{number}")
    assert len(library._painted) == PAINTED_LIMIT


def test_decoded_ids_are_the_text(library: Library) -> None:
    """An answer can be continued by its ids."""
    steps = library.clean("问题", random.Random(3))
    assert library.vocabulary.decode(step.token_id for step in steps) == text_of(steps)


def test_essays_are_made_as_far_as_they_are_needed(library: Library) -> None:
    """A short answer to a long wish costs little, and is the beginning of the long one."""
    question = "Tell me about the sea, length 2000."
    short, long = library.essay(question, 50), library.essay(question, 10_000)
    assert 50 < len(short) < 2_000 < len(long)
    assert long[: len(short)] == short
    assert long[-1].ends
    assert not short[-1].ends
