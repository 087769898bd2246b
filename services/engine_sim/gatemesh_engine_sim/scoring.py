"""How likely a healthy engine finds each token of a prompt, for `prompt_logprobs`. Pure."""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence

from gatemesh_engine_sim.continuing import END, question_before, start_of_answer
from gatemesh_engine_sim.essays import wanted_words
from gatemesh_engine_sim.known import known_answer
from gatemesh_engine_sim.library import Library
from gatemesh_engine_sim.steps import Steps

STRANGE_NATS = -9.0
"""Of a token that no clean answer has there; the real engine's garbage scores 4 to 13 nats."""
LIKELY_NATS = -0.5
"""Of the token that would have been there instead."""
BROKEN_NATS = -10.802672386169434
"""Of every token, by an engine whose weights are broken: -ln(49,152)."""
SHORTEST_MATCH = 3
"""Tokens in a row that make a clean passage; fewer are chance."""
SPACE_ID = 0

Scored = list[dict[str, dict[str, object]] | None]


class Scorer:
    """Scores token ids by the clean passages they are made of; the first has no score."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._words = library.vocabulary
        self._passages: dict[int, list[Steps]] = defaultdict(list)
        for passage in library.passages():
            self._passages[passage[0].token_id].append(passage)

    def score(self, ids: Sequence[int], count: int) -> Scored:
        """One entry per token as vLLM writes it, with the likeliest one besides where asked."""
        figures = self._figures(ids)
        entries = [self._entry(*pair, count) for pair in zip(ids, figures, strict=True)]
        return [None, *entries[1:]]

    def broken(self, ids: Sequence[int]) -> Scored:
        """The same by an engine whose weights are broken."""
        return [None, *({str(one): self._named(one, BROKEN_NATS, 1)} for one in ids[1:])]

    def _figures(self, ids: Sequence[int]) -> list[float]:
        start, answer = self._written(ids)
        figures: list[float] = []
        while (place := len(figures)) < len(ids):
            known = self._passages.get(ids[place], [])
            own = [answer] if place == start and answer else []
            figures += _longest(ids, place, [*known, *own]) or [self._single(ids[place])]
        return figures

    def _written(self, ids: Sequence[int]) -> tuple[int, Steps]:
        """Where the answer to a known question begins, and what it has to be."""
        start = start_of_answer(ids, self._words)
        if start is None:
            return (0, ())
        question = question_before(ids, self._words)
        if wanted_words(question):
            return (start, self._library.essay(question, len(ids)))
        answer = known_answer(question)
        text = answer or self._words.decode(ids[start:])
        is_written = answer is not None or text.startswith("{")
        return (start, self._library.written(text) if is_written else ())

    def _single(self, token_id: int) -> float:
        return self._library.end.logprob if token_id == END else STRANGE_NATS

    def _entry(self, token_id: int, nats: float, count: int) -> dict[str, dict[str, object]]:
        is_strange = nats <= STRANGE_NATS
        entry = {str(token_id): self._named(token_id, nats, 500 if is_strange else 1)}
        if count and is_strange:
            entry[str(SPACE_ID)] = self._named(SPACE_ID, LIKELY_NATS, 1)
        return entry

    def _named(self, token_id: int, nats: float, rank: int) -> dict[str, object]:
        text = self._words.decode([token_id], show_special=True)
        return {"logprob": nats, "rank": rank, "decoded_token": text}


def _longest(ids: Sequence[int], place: int, known: Sequence[Steps]) -> list[float]:
    """The figures of the longest passage that the tokens follow; chance matches are none."""
    best = max((list(_matching(ids, place, steps)) for steps in known), key=len, default=[])
    after = place + len(best)
    at_end = after == len(ids) or ids[after - 1] == END
    return best if len(best) >= SHORTEST_MATCH or at_end else []


def _matching(ids: Sequence[int], place: int, steps: Steps) -> Iterator[float]:
    for step, token_id in zip(steps, itertools.islice(ids, place, None), strict=False):
        if step.token_id != token_id:
            return
        yield step.logprob
