"""The share of new groups of words."""

from gatemesh_agent.gates.novelty import new_share
from gatemesh_agent.gates.window import TextWindow


def share_of(text: str) -> float:
    """Return the share of what is new at the end of a text."""
    window = TextWindow()
    for _ in window.blocks(text):
        pass
    window.rest()
    return new_share(window)


def test_a_loop_brings_nothing_new() -> None:
    """Exact repeats bring nothing, a frame with other names little, a long text everything."""
    sentence = "Then the loader opens the file and reads the next line of it. "
    assert share_of(sentence * 30) == 0.0
    framed = "".join(sentence.replace("loader", f"loader{n}") for n in range(30))
    assert 0.0 < share_of(framed) < 0.5
    assert share_of(" ".join(f"word{n}" for n in range(400))) == 1.0


def test_a_short_text_is_all_new() -> None:
    """Without enough text before it a passage cannot be judged."""
    assert share_of("the same words " * 8) == 1.0
