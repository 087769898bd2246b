"""Picks the answer to a request and spoils it as ordered. Pure but for the fault plan."""

import hashlib
import random
from dataclasses import dataclass

import orjson

from gatemesh_engine_sim.continuing import (
    LEAST_SHARED,
    onward,
    rest_of,
    share_begun,
    splits_of,
)
from gatemesh_engine_sim.essays import wanted_words
from gatemesh_engine_sim.fault_plan import FaultSpec
from gatemesh_engine_sim.faults import Delivery, Fault, Scene
from gatemesh_engine_sim.generation import Emission, emissions
from gatemesh_engine_sim.intake import Asked
from gatemesh_engine_sim.known import example_of, known_answer
from gatemesh_engine_sim.library import Library
from gatemesh_engine_sim.steps import Steps


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything decided about one response before its first byte."""

    choices: tuple[list[Emission], ...]
    delivery: Delivery
    after_tokens: int
    """Tokens delivered before the delivery fault strikes."""

    @property
    def refuses(self) -> bool:
        """True when the request fails before even the status of a stream is sent."""
        return self.delivery is Delivery.SERVER_ERROR and not self.after_tokens


def plan_answer(
    asked: Asked, spec: FaultSpec | None, faults: dict[str, Fault], library: Library
) -> Plan:
    """The same request gets the same answer, whichever instance it reaches."""
    fault = faults[spec.fault] if spec else None
    after_tokens = spec.after_tokens if spec else 0
    choices = []
    for index in range(asked.choices):
        steps, rng = healthy_steps(asked, library, index)
        if fault:
            scene = Scene(steps, library, rng, asked.greedy, after_tokens)
            steps = fault.spoil(scene, asked.max_tokens)
        choices.append(emissions(steps, asked.max_tokens, asked.stops))
    return Plan(tuple(choices), fault.delivery if fault else Delivery.NORMAL, after_tokens)


def healthy_steps(asked: Asked, library: Library, index: int) -> tuple[Steps, random.Random]:
    """What a healthy engine says, of an answer under way exactly the rest; and its chance."""
    prompt = asked.prompt
    found = rest_of_plain(asked, library, index)
    if found is not None:
        return found
    steps, rng = clean_steps(asked, prompt.question, library, index)
    rest = rest_of(steps, prompt.begun, library)
    return onward(steps, prompt.begun, library) if rest is None else rest, rng


def rest_of_plain(asked: Asked, library: Library, index: int) -> tuple[Steps, random.Random] | None:
    """The rest of the answer that a plain prompt ends with; None where it is a question alone.

    Of an answer that has become another one in its middle, what comes from that place on.
    """
    nearest, shared = None, LEAST_SHARED
    for question, begun in splits_of(asked.prompt.plain, library):
        steps, rng = clean_steps(asked, question, library, index)
        rest = rest_of(steps, begun, library)
        if rest is not None:
            return rest, rng
        if share_begun(steps, begun) >= shared:
            shared = share_begun(steps, begun)
            nearest = onward(steps, begun, library), rng
    return nearest


def clean_steps(
    asked: Asked, question: str, library: Library, index: int
) -> tuple[Steps, random.Random]:
    """What a healthy engine says to a question, and the chance that is left."""
    rng = chance_of(asked, question, index)
    if wanted_words(question):
        return library.essay(question, len(asked.prompt_ids) + asked.max_tokens), rng
    text = _structured(asked) or known_answer(question)
    return library.written(text) if text else library.clean(question, rng), rng


def chance_of(asked: Asked, question: str, index: int) -> random.Random:
    """Chance that is the same wherever a question is asked."""
    key = f"{question}\0{asked.seed}\0{index}".encode("utf-8", "surrogatepass")
    return random.Random(hashlib.blake2b(key, digest_size=16).digest())  # noqa: S311


def _structured(asked: Asked) -> str | None:
    kind = asked.response_format.get("type")
    if kind == "json_schema":
        schema = asked.response_format.get("json_schema", {}).get("schema", {})
        return orjson.dumps(example_of(schema)).decode()
    return '{"answer": "yes", "confidence": 0.9}' if kind == "json_object" else None
