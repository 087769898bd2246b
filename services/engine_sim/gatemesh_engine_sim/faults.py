"""Every way the stand-in engine can go wrong, as one table."""

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from gatemesh_engine_sim.library import Library
from gatemesh_engine_sim.steps import NAN, SPECIAL_TOKENS, Candidate, Step, Steps, text_of

FLAT_NATS = -10.802672386169434
"""-ln(49,152): every token equally likely, as recorded."""

SURE_NATS = 0.0
NEXT_NATS = -20.0
"""Chosen and next token of a stuck engine, as seen on the real one."""
WRONG_NATS = -14.0

TOP_COUNT = 20
BLANK_EVERY = 4

HAN_SHARE = 0.2
"""Of random tokens that are Chinese."""


class Delivery(StrEnum):
    """What happens to the response itself, apart from its text."""

    NORMAL = "normal"
    HANG = "hang"
    SLOW = "slow"
    DISCONNECT = "disconnect"
    EXIT = "exit"
    SERVER_ERROR = "server_error"
    QUEUE_FULL = "queue_full"
    UNENDED = "unended"


@dataclass(frozen=True, slots=True)
class Scene:
    """What a fault works with: the answer there would have been, and chance."""

    clean: Steps
    library: Library
    rng: random.Random
    greedy: bool
    after_tokens: int = 0

    def clean_on(self) -> Iterator[Step]:
        """The clean steps from the onset on, then the whole answer again and again."""
        body = [step for step in self.clean if not step.ends]
        return itertools.chain(body[self.after_tokens :], itertools.cycle(body))


Maker = Callable[[Scene], Iterable[Step]]


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault: bad steps from the onset on, or a bad delivery."""

    promise: str
    make: Maker | None = None
    delivery: Delivery = Delivery.NORMAL

    def spoil(self, scene: Scene, limit: int) -> Steps:
        """The answer, clean up to the onset, then spoilt, up to `limit` steps."""
        if self.make is None:
            return scene.clean[:limit]
        kept = [step for step in scene.clean[: scene.after_tokens] if not step.ends]
        return tuple(itertools.islice(itertools.chain(kept, self.make(scene)), limit))


def surely(text: str, scene: Scene, token: str | None = None) -> Step:
    """A step that emits `text` with almost no doubt."""
    shown = text if token is None else token
    rest = scene.library.palette.latin[: TOP_COUNT - 1]
    top = (
        Candidate(shown, SURE_NATS),
        *(Candidate(one, NEXT_NATS - at / 8) for at, one in enumerate(rest)),
    )
    return Step(text, shown, scene.library.vocabulary.token_id(shown), SURE_NATS, top)


def _level(text: str, token: str, token_id: int, logprob: float) -> Step:
    """A step whose candidates are all alike: NaN or flat."""
    rest = [one for one in ('"', *SPECIAL_TOKENS, "#", "!") if one != token]
    top = tuple(Candidate(one, logprob) for one in (token, *rest[: TOP_COUNT - 1]))
    return Step(text, token, token_id, logprob, top)


def nan(_scene: Scene) -> Iterator[Step]:
    """Token 0, hidden, with NaN for every figure."""
    return itertools.repeat(_level("", SPECIAL_TOKENS[0], 0, NAN))


def flat(scene: Scene) -> Iterator[Step]:
    """Equal logits: token 0 when greedy, uniformly random tokens when sampled."""
    if scene.greedy:
        return itertools.repeat(_level("", SPECIAL_TOKENS[0], 0, FLAT_NATS))
    return (
        _level(token, token, scene.library.vocabulary.token_id(token), FLAT_NATS)
        for token in _random_tokens(scene)
    )


def _random_tokens(scene: Scene) -> Iterator[str]:
    palette = scene.library.palette
    while True:
        yield scene.rng.choice(palette.han if scene.rng.random() < HAN_SHARE else palette.latin)


def shift(scene: Scene) -> Iterator[Step]:
    """Each token replaced by the one with the next id, candidates too: the figures look right."""
    shifted: dict[Step, Step] = {}
    for place, step in enumerate(scene.clean_on()):
        if step not in shifted:
            shifted[step] = _shifted(step, step.token, scene)
        yield shifted[step]
        # Reading its own wrong words, the real engine soon falls into blanks, which show as DEL.
        if place % BLANK_EVERY == BLANK_EVERY - 1:
            yield _shifted(step, " ", scene)


def _shifted(step: Step, token: str, scene: Scene) -> Step:
    vocabulary = scene.library.vocabulary
    shown = vocabulary.after(token)
    rest = (Candidate(vocabulary.after(one.token), one.logprob) for one in step.top[1:])
    top = (Candidate(shown, step.logprob), *rest)
    return Step(shown, shown, vocabulary.token_id(shown), step.logprob, top)


def wrong_choice(scene: Scene) -> Iterator[Step]:
    """Each token replaced by another, while the distribution stays right."""
    vocabulary = scene.library.vocabulary
    for step in scene.clean_on():
        token = vocabulary.after(step.token)
        top = (Candidate(token, WRONG_NATS), *step.top[: TOP_COUNT - 1])
        yield Step(token, token, vocabulary.token_id(token), WRONG_NATS, top)


def stuck(scene: Scene) -> Iterator[Step]:
    """One ordinary token for ever, with certainty."""
    return itertools.repeat(surely(" the", scene))


def _sure_texts(*texts: str) -> Maker:
    def make(scene: Scene) -> Iterator[Step]:
        return itertools.cycle([surely(text, scene) for text in texts])

    return make


def _random_letters(first: int, last: int, *, share: float) -> Maker:
    """Clean tokens, of which a share is replaced by a letter of the given range."""

    def make(scene: Scene) -> Iterator[Step]:
        for step in scene.clean_on():
            spoilt = scene.rng.random() < share
            yield surely(chr(scene.rng.randint(first, last)), scene) if spoilt else step

    return make


def empty(scene: Scene) -> Iterable[Step]:
    """The end of the turn at once."""
    return (scene.library.end,)


def loop(scene: Scene) -> Iterator[Step]:
    """One sentence again and again."""
    sentence = scene.library.written(" The answer depends on the value of the answer.")[:-1]
    return itertools.cycle(sentence)


def template_loop(scene: Scene) -> Iterator[Step]:
    """One sentence again and again, with a number that counts up."""
    for number in itertools.count(1):
        yield from scene.library.written(f"\nStep {number}: repeat the step before step {number}.")[
            :-1
        ]


def mojibake(scene: Scene) -> Iterator[Step]:
    """UTF-8 read as Latin-1."""
    text = text_of(scene.library.clean("你好", scene.rng))
    wrong = text.encode().decode("latin-1")
    return itertools.cycle(surely(wrong[at : at + 3], scene) for at in range(0, len(wrong), 3))


def salad(scene: Scene) -> Iterator[Step]:
    """Random words of two scripts, each from an undecided distribution."""
    for token in _random_tokens(scene):
        rest = scene.rng.sample(scene.library.palette.latin, TOP_COUNT - 1)
        top = (
            Candidate(token, -6.5),
            *(Candidate(one, -3.5 - 0.125 * at) for at, one in enumerate(rest)),
        )
        yield Step(token, token, scene.library.vocabulary.token_id(token), -6.5, top)


def truncated_json(scene: Scene) -> Iterable[Step]:
    """JSON that ends in the middle of a value, yet by itself."""
    return scene.library.written(
        '{"name": "Ada Lovelace", "born": 1815, "fields": ["mathematics", "comp'
    )


def recorded(variant: str) -> Maker:
    """The recorded answers of a really damaged engine, from the start again at the end."""

    def make(scene: Scene) -> Iterator[Step]:
        steps = scene.library.damaged(variant, scene.rng, greedy=scene.greedy)
        return iter(steps) if steps[-1].ends else itertools.cycle(steps)

    return make


FAULTS: dict[str, Fault] = {
    "nan": Fault("NaN logits: hidden token 0, empty text, null logprobs", nan),
    "flat": Fault("equal logits: entropy ln(V)", flat),
    "shift": Fault(
        "token ids shifted by one: wrong words, control characters, normal figures", shift
    ),
    "wrong_choice": Fault("tokens that the distribution does not favour", wrong_choice),
    "stuck": Fault("one token repeated with entropy near 0", stuck),
    "bang": Fault("a flood of exclamation marks", _sure_texts("!!!!")),
    "replacement": Fault("a run of U+FFFD", _sure_texts("\ufffd")),
    "special": Fault(
        "special tokens leaked into the text",
        _sure_texts("<|im_end|>", "\n", "<|im_start|>", "assistant", "\n"),
    ),
    "control": Fault("control characters among the text", _random_letters(0, 8, share=0.3)),
    "private_use": Fault(
        "private-use characters among the text", _random_letters(0xE000, 0xE0FF, share=0.3)
    ),
    "empty": Fault("no text at all, finish reason stop", empty),
    "whitespace": Fault("a flood of blanks and new lines", _sure_texts(" ", "\n", "\t", "\n\n")),
    "loop": Fault("one sentence repeated", loop),
    "template_loop": Fault("one sentence repeated with a counter", template_loop),
    "mojibake": Fault("UTF-8 shown as Latin-1", mojibake),
    "salad": Fault("random words of two scripts, high entropy", salad),
    "truncated_json": Fault("JSON that breaks off, finish reason stop", truncated_json),
    "hang": Fault("the answer stalls; /health stays 200", delivery=Delivery.HANG),
    "slow": Fault("a few tokens per second", delivery=Delivery.SLOW),
    "disconnect": Fault("the connection is cut", delivery=Delivery.DISCONNECT),
    "exit": Fault("the engine dies, the process exits with code 0", delivery=Delivery.EXIT),
    "http500": Fault("500, or an error event once streaming", delivery=Delivery.SERVER_ERROR),
    "unended": Fault(
        "a stream that ends without a finish reason; whole: half of the JSON",
        delivery=Delivery.UNENDED,
    ),
    "http503": Fault("503 queue full; streamed: an error event", delivery=Delivery.QUEUE_FULL),
}
"""Fault kinds by name; `corpus:VARIANT` is added for each recorded variant."""


def fault_table(library: Library) -> dict[str, Fault]:
    """All faults, the recorded ones included."""
    corpus = {
        f"corpus:{variant}": Fault(f"recorded answers of the damage {variant}", recorded(variant))
        for variant in library.variants
    }
    return FAULTS | corpus
