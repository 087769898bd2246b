"""English prose that lost letters."""

import random
from collections.abc import Callable

import pytest

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.letters import LETTERS, ODD_WORDS, groups_of, is_odd, odd_share
from gatemesh_common.messages import Outcome, Reason

Asking = Callable[..., RequestContext]
Judge = Callable[..., Judgement]

PROSE = (
    "A mutex is a key to a room that only one person may enter at a time. The room is some piece of"
    " shared data, such as a counter or a list, and the people are threads. Whoever holds the key"
    " can read and change the data in peace; the rest of them wait at the door until the key comes"
    " back. Without the key two threads may read the same value, both add one, and both write the"
    " same result, so that one update is lost. That bug shows up once in ten thousand runs and"
    " never on your own machine. Keep the time inside the room short. Take the key, do the one"
    " thing that needs it, and give it back, also when something goes wrong. In most languages a"
    " scope guard or a block does that for you. "
)
QUESTION = "Explain what a mutex is to a junior developer."


def damaged(share: float, seed: int) -> str:
    """Return the prose without a share of its letters."""
    rng = random.Random(seed)
    return "".join(sign for sign in PROSE if rng.random() >= share)


@pytest.mark.parametrize("seed", range(8))
def test_lost_letters(seed: int, asking: Asking, judge: Judge) -> None:
    """One letter in eight is missing: readable, and clearly broken."""
    text = damaged(0.13, seed)
    assert judge(text, asking(QUESTION), "length").reason is Reason.SPACING_LOST


@pytest.mark.parametrize(
    "prompt",
    [
        "Explain it with lots of typos.",
        "Erkläre mir, was eine Sperre ist und wie sie geht.",
        "Explain which Linux commands show it.",
        "Explain it in Middle English.",
    ],
)
def test_what_excuses_odd_words(prompt: str, asking: Asking, judge: Judge) -> None:
    """Wanted typos, names of commands, and prompts in other languages."""
    assert judge(damaged(0.13, 1), asking(prompt), "length").outcome is Outcome.PASSED


def test_sound_prose_has_no_odd_words() -> None:
    """Not one of the words of a plain explanation is odd."""
    assert [word for word in PROSE.lower().replace(";", " ").split() if is_odd_word(word)] == []
    assert odd_share(PROSE) == 0


def is_odd_word(word: str) -> bool:
    """Return True for an odd word, stops aside."""
    return is_odd(word.strip(".,"))


def test_the_limit_of_odd_words() -> None:
    """So many different words without sense count, one fewer does not; common words must be few."""
    plain = "they hold lamps under green roofs near small rivers while birds sing of summer days "
    odd = ["lvng", "mpyt", "fxd", "vlwt", "qck", "brwn", "jmps", "kdg", "wrldz"]
    assert all(map(is_odd, odd))
    text = f"{plain * 5}the to and the to and the "
    assert odd_share(text + " ".join(odd[:ODD_WORDS])) > 0
    assert odd_share(text + " ".join(odd[: ODD_WORDS - 1])) == 0
    assert odd_share("the of and in a to is it on at " * 8 + text + " ".join(odd)) == 0
    assert (
        odd_share(text.replace("they", "we").replace("the to and", "we saw") + " ".join(odd)) == 0
    )
    assert odd_share(f'{text} "{" ".join(odd)}" and so on') == 0


def test_groups_are_numbered_apart() -> None:
    """Each group of three letters, edges included, has its own bit."""
    assert list(groups_of("a")) == [LETTERS.index("a") * len(LETTERS)]
    assert len(list(groups_of("river"))) == len("river")
    assert max(groups_of("zz")) < len(LETTERS) ** 3
