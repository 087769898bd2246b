"""What is kept of an answer."""

from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.reading import CallParts, Reading
from gatemesh_agent.transcript import MOST_CHARS, Transcript


def reading(text: str, *steps: TokenStep, other: bool = False) -> Reading:
    """Return what one event holds."""
    return Reading(text, steps, other, ())


def test_text_tokens_and_figures_are_kept_in_order() -> None:
    """And how it ended, once."""
    kept = Transcript()
    kept.take(reading("Hello", TokenStep("Hello", -0.5, token_id=7)))
    kept.take(reading(" you", TokenStep(" you", -2.0, token_id=9)))
    kept.end("stop", CallParts())
    kept.end("length", CallParts())
    assert (kept.text, kept.known_ids(), kept.logprobs) == ("Hello you", (7, 9), [-0.5, -2.0])
    assert (kept.range_nats(), kept.finish_reason) == ((-2.0, -0.5), "stop")
    assert kept.is_whole


def test_ids_are_told_only_when_all_are_known() -> None:
    """A gap would shift all that follows."""
    kept = Transcript()
    kept.take(reading("ab", TokenStep("a", -0.5, token_id=7), TokenStep("b", None)))
    assert kept.known_ids() is None
    assert Transcript().known_ids() is None
    assert Transcript().range_nats() is None


def test_a_long_or_cut_answer_is_not_whole() -> None:
    """Memory is bounded whatever the engine sends."""
    kept = Transcript()
    assert not kept.is_whole
    for _ in range(3):
        kept.take(reading("x" * (MOST_CHARS // 2)))
    kept.end("stop", CallParts())
    assert not kept.is_whole
    assert len(kept.text) <= MOST_CHARS


def test_output_beside_the_text_is_noticed() -> None:
    """Reasoning and tool calls are output, too."""
    kept = Transcript()
    kept.take(reading("", other=True))
    assert kept.other_output
