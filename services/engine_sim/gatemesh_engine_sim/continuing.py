"""What of an answer a prompt already holds, so that the engine says exactly the rest. Pure."""

from collections.abc import Iterator, Sequence

from gatemesh_engine_sim.library import Library
from gatemesh_engine_sim.steps import Steps, text_of
from gatemesh_engine_sim.vocabulary import Vocabulary

TURN, END = 1, 2
ASSISTANT = "assistant\n"
NO_THOUGHTS = "<think>\n\n</think>\n\n"
"""What a template puts before the answer of a model that is told not to think."""

SHORT_TOKENS = 64
SHORT_CHARS = 220
"""The longest answers that no passage is known to begin."""

LEAST_SHARED = 12
"""Tokens or letters of an answer after which what follows is gone on with, whatever it is."""

Begun = Sequence[int] | str
"""The beginning of an answer, as token ids or as text."""

Split = tuple[str, Begun]
"""A question, and what of its answer there is."""


def turn_under_way(ids: Sequence[int], words: Vocabulary) -> Split | None:
    """The last question of a conversation given as ids, and the answer so far; None for others."""
    start = start_of_answer(ids, words)
    if start is None or END in ids[start:]:
        return None
    begun, quiet = ids[start:], words.encode(NO_THOUGHTS)
    if list(begun[: len(quiet)]) == quiet:
        begun = begun[len(quiet) :]
    return question_before(ids, words), begun


def start_of_answer(ids: Sequence[int], words: Vocabulary) -> int | None:
    """Where the text of the model's last turn begins."""
    opening = [TURN, *words.encode(ASSISTANT)]
    width = len(opening)
    starts = (at for at in range(len(ids) - width, -1, -1) if ids[at] == TURN)
    found = next((at for at in starts if list(ids[at : at + width]) == opening), None)
    return None if found is None else found + width


def question_before(ids: Sequence[int], words: Vocabulary) -> str:
    """The text of the turn before the model's last one."""
    turns: list[list[int]] = []
    for token_id in ids:
        if token_id == TURN or not turns:
            turns.append([])
        turns[-1].append(token_id)
    last = turns[-2] if len(turns) > 1 else []
    upto = last.index(END) if END in last else len(last)
    return words.decode(last[1:upto]).partition("\n")[2]


def splits_of(prompt: Begun | None, library: Library) -> Iterator[Split]:
    """Every way in which a plain prompt may be a question and the beginning of its answer."""
    if prompt is None:
        return iter(())
    if isinstance(prompt, str):
        return splits_of_text(prompt, library)
    return splits_of_ids(prompt, library)


def splits_of_ids(ids: Sequence[int], library: Library) -> Iterator[Split]:
    """The same of token ids."""
    words = library.vocabulary
    for at in range(1, len(ids)):
        if len(ids) - at <= SHORT_TOKENS or ids[at] in library.first_ids:
            yield words.decode(ids[:at]), ids[at:]


def splits_of_text(text: str, library: Library) -> Iterator[Split]:
    """The same of a text."""
    for at in range(1, len(text)):
        if len(text) - at <= SHORT_CHARS or text.startswith(library.first_texts, at):
            yield text[:at], text[at:]


def rest_of(steps: Steps, begun: Begun, library: Library) -> Steps | None:
    """What follows the beginning of an answer; None where it begins otherwise."""
    if isinstance(begun, str):
        return _rest_of_text(steps, begun, library)
    ids = [step.token_id for step in steps[: len(begun)]]
    return (steps[len(begun) :] or (library.end,)) if ids == list(begun) else None


def share_begun(steps: Steps, begun: Begun) -> int:
    """How many tokens or letters an answer and a beginning have in common from their start on."""
    said: Sequence[object] = (
        text_of(steps[: len(begun)])
        if isinstance(begun, str)
        else [step.token_id for step in steps[: len(begun)]]
    )
    pairs = enumerate(zip(said, begun, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(said), len(begun)))


def onward(steps: Steps, begun: Begun, library: Library) -> Steps:
    """What an engine says after a beginning that is not its own: the same from that place on."""
    if isinstance(begun, str):
        return library.written(text_of(steps)[len(begun) :])
    return steps[len(begun) :] or (library.end,)


def _rest_of_text(steps: Steps, begun: str, library: Library) -> Steps | None:
    at = 0
    for place, step in enumerate(steps):
        if at >= len(begun):
            # A cut within a token: the rest of it is spelled anew, as any tokenizer would.
            cut = steps[place - 1].text[len(steps[place - 1].text) - (at - len(begun)) :]
            return steps[place:] if at == len(begun) else library.written(cut)[:-1] + steps[place:]
        if not begun.startswith(step.text[: len(begun) - at], at):
            return None
        at += len(step.text)
    return (library.end,) if at == len(begun) else None
