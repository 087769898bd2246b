"""The window hands out the same blocks, however the text was cut."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.gates.window import BLOCK, KEEP, SLACK, TextWindow

TEXT = st.text(alphabet=st.characters(), max_size=400)


def blocks_of(pieces: list[str]) -> list[str]:
    """Return the blocks and the rest that a window hands out."""
    window = TextWindow()
    seen: list[str] = []
    for piece in pieces:
        seen += [window.since(window.fresh) for _ in window.blocks(piece)]
    window.rest()
    return [*seen, window.since(window.fresh)]


@given(TEXT, st.lists(st.integers(0, 400), max_size=12))
def test_cutting_changes_nothing(text: str, cuts: list[int]) -> None:
    """Rules see the same blocks for every cut."""
    marks = [0, *sorted(cut for cut in cuts if cut <= len(text)), len(text)]
    pieces = [text[a:b] for a, b in pairwise(marks)]
    assert blocks_of(pieces) == blocks_of([text])
    assert "".join(blocks_of(pieces)) == text


def test_memory_is_bounded() -> None:
    """A long answer does not grow the window."""
    window = TextWindow()
    for _ in window.blocks("abcdefgh" * 10_000):
        assert len(window.tail) <= KEEP + SLACK + BLOCK
    assert window.end == 80_000
    assert window.since(window.end - 4) == "efgh"


def test_fences_are_counted_across_blocks() -> None:
    """A fence cut by a block counts once."""
    window = TextWindow()
    text = "x" * (BLOCK - 2) + "```py\ncode" + "y" * BLOCK + "```" + "z" * BLOCK
    opened = [window.in_fence for _ in window.blocks(text)]
    window.rest()
    assert opened[0] is False
    assert opened[1] is True
    assert window.fences == 2
    assert not window.in_fence


def test_checkpoints_lie_at_fixed_places() -> None:
    """Rules that look back run every 128 characters."""
    window = TextWindow()
    places = [window.end for _ in window.blocks("a" * 300) if window.at_checkpoint]
    assert places == [128, 256]


def test_the_last_characters() -> None:
    """No more than there are."""
    window = TextWindow()
    list(window.blocks("abcdefghijklmnopqr"))
    window.rest()
    assert window.last(4) == "opqr"
    assert window.last(99) == "abcdefghijklmnopqr"


def test_the_current_block_is_at_hand() -> None:
    """A rule about the newest characters need not cut them out of the text again."""
    window = TextWindow()
    for _ in window.blocks("a" * BLOCK + "b" * BLOCK + "c"):
        assert window.block == window.since(window.fresh)
    window.rest()
    assert window.block == "c"
