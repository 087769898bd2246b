"""Every answer the engine can give, loaded once from the package's data."""

import gzip
import itertools
import random
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from importlib import resources
from typing import Any

import orjson

from gatemesh_engine_sim.canned import Palette, Profile, paint
from gatemesh_engine_sim.essays import OPENINGS, essay, paragraphs, wanted_words
from gatemesh_engine_sim.steps import NAN, Candidate, Step, Steps, text_of
from gatemesh_engine_sim.vocabulary import Vocabulary, split

RECORDED_SHARE = 0.1
"""Of free answers that are a recorded one in full."""

SPELLED_TENTHS = 3
"""Of the ideographs, those that take several tokens."""

OPENING_CHARS = 8

PAINTED_LIMIT = 2_048
"""Painted texts kept; the oldest goes first."""


class Library:
    """Deals out answers; the same prompt and seed always get the same one."""

    def __init__(self, clean: list[Any], damaged: dict[str, Any], topics: dict[str, Any]) -> None:
        self._recorded = {one["prompt"]: _steps(one) for one in clean}
        self._damaged = {
            variant: {
                mode: [_steps(one) for one in answers if one["mode"] == mode]
                for mode in ("greedy", "temp1")
            }
            for variant, answers in damaged.items()
        }
        self._topics: dict[str, list[list[str]]] = topics
        self._end = next(iter(self._recorded.values()))[-1]
        self._painted: dict[str, Steps] = {}
        self.palette = _palette(self._recorded.values(), self._all_damaged(), topics)

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer that knows every token in here."""
        return self.palette.vocabulary

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the recorded kinds of damage."""
        return tuple(self._damaged)

    @property
    def end(self) -> Step:
        """The end of a turn."""
        return self._end

    @cached_property
    def first_ids(self) -> frozenset[int]:
        """The tokens that answers to plain prompts begin with, short answers apart."""
        return frozenset(steps[0].token_id for steps in self._openings())

    @cached_property
    def first_texts(self) -> tuple[str, ...]:
        """The first letters of those answers."""
        return tuple({text_of(steps)[:OPENING_CHARS] for steps in self._openings()})

    def essay(self, question: str, most_tokens: int) -> Steps:
        """A long answer, as many words as the question asks for; no more of it than is needed."""
        steps: list[Step] = []
        for part in essay(question, wanted_words(question)):
            steps += self.written(part)[:-1]
            if len(steps) > most_tokens:
                return tuple(steps)
        return (*steps, self._end)

    def written(self, text: str) -> Steps:
        """A finished answer with exactly this text."""
        steps = self._painted.get(text)
        if steps is None:
            if len(self._painted) >= PAINTED_LIMIT:
                del self._painted[next(iter(self._painted))]
            steps = self._painted[text] = paint(text, self.palette)
        return (*steps, self._end)

    def clean(self, prompt: str, rng: random.Random) -> Steps:
        """A well-formed answer in the language of the prompt."""
        recorded = self._recorded.get(prompt)
        if recorded is not None:
            return recorded
        is_chinese = any("\u4e00" <= letter <= "\u9fff" for letter in prompt)
        if not is_chinese and rng.random() < RECORDED_SHARE:
            return rng.choice(list(self._recorded.values()))
        return self._paragraph("zh" if is_chinese else "en", rng)

    def passages(self) -> Iterator[Steps]:
        """Everything that clean answers are put together from, also as their text is tokenized."""
        yield from self._recorded.values()
        for recorded in self._recorded.values():
            yield self.written(text_of(recorded))
        for language, groups in self._topics.items():
            blanks = ("",) if language == "zh" else ("", " ")
            for blank, sentence in itertools.product(blanks, itertools.chain(*groups)):
                yield self.written(blank + sentence)[:-1]

    def damaged(self, variant: str, rng: random.Random, *, greedy: bool) -> Steps:
        """A recorded answer of an engine with this kind of damage."""
        modes = self._damaged[variant]
        return rng.choice(modes["greedy" if greedy else "temp1"] or modes["greedy"])

    def _paragraph(self, language: str, rng: random.Random) -> Steps:
        sentences = rng.choice(self._topics[language])
        kept = sorted(rng.sample(range(1, len(sentences)), rng.randint(1, len(sentences) - 2)))
        blank = "" if language == "zh" else " "
        parts = [sentences[0], *(blank + sentences[place] for place in kept)]
        # Each sentence is painted once, with and without its blank, and shared by all paragraphs.
        return (*itertools.chain(*(self.written(part)[:-1] for part in parts)), self._end)

    def _openings(self) -> Iterator[Steps]:
        yield from self._recorded.values()
        for topic in itertools.chain(*self._topics.values()):
            yield self.written(topic[0])
        for number in range(0, len(paragraphs()), len(paragraphs()) // OPENINGS):
            yield self.written(paragraphs()[number])

    def _all_damaged(self) -> list[Steps]:
        modes = itertools.chain(*(kinds.values() for kinds in self._damaged.values()))
        return list(itertools.chain(*modes))


def load_library() -> Library:
    """The library of the installed package."""
    data = resources.files("gatemesh_engine_sim") / "data"
    clean = orjson.loads(gzip.decompress((data / "clean.json.gz").read_bytes()))
    damaged = orjson.loads(gzip.decompress((data / "damaged.json.gz").read_bytes()))
    return Library(clean, damaged, orjson.loads((data / "topics.json").read_bytes()))


def _steps(packed: dict[str, Any]) -> Steps:
    return tuple(
        Step(text, token, token_id, _number(logprob), tuple(_candidates(top)))
        for text, token, token_id, logprob, top in packed["steps"]
    )


def _candidates(top: list[tuple[str, float | None]]) -> Iterable[Candidate]:
    return (Candidate(token, _number(logprob)) for token, logprob in top)


def _number(logprob: float | None) -> float:
    return NAN if logprob is None else logprob


def _palette(clean: Iterable[Steps], damaged: Iterable[Steps], topics: dict[str, Any]) -> Palette:
    clean_steps = list(itertools.chain(*clean))
    pieces = {
        language: sorted({piece for text in itertools.chain(*groups) for piece in split(text)})
        for language, groups in topics.items()
    }
    pieces["en"] += sorted({f" {piece}" for piece in pieces["en"] if piece.isalpha()})
    recorded = [(step.token, step.token_id) for step in (*clean_steps, *itertools.chain(*damaged))]
    return Palette(
        profiles=_profiles(clean_steps),
        latin=pieces["en"],
        han=pieces["zh"],
        vocabulary=Vocabulary(recorded, [*pieces["en"], *filter(_is_whole, pieces["zh"])]),
    )


def _is_whole(piece: str) -> bool:
    """False for the ideographs that take several tokens; in the recorded model most do."""
    return zlib.crc32(piece.encode()) % 10 >= SPELLED_TENTHS


def _profiles(steps: Sequence[Step]) -> list[Profile]:
    """The falling ones only: a greedy step whose choice is plainly the likeliest."""
    return [
        tuple(one.logprob for one in step.top)
        for step in steps
        if not step.ends and all(step.logprob > one.logprob for one in step.top[1:])
    ]
