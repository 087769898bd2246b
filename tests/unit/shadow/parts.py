"""Samples, tables and stand-in engines for the shadow's unit tests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from gatemesh_common.messages import (
    Decoding,
    InstanceState,
    RoutedInstance,
    RoutingTable,
    ShadowSample,
)
from gatemesh_shadow.asking import Replicas
from gatemesh_shadow.budget import Allowance, Budget
from gatemesh_shadow.corroborating import Corroboration
from gatemesh_shadow.fleet import Fleet
from gatemesh_shadow.limits import VersionLimits
from gatemesh_shadow.reference_rounds import ReferenceRounds
from gatemesh_shadow.references import Reference, References

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
TOKENS = (11, 12, 13, 14, 15, 16, 17, 18)
OWN = (-0.1, -0.5, -1.0, -0.2, -0.3, -0.4, -0.1, -0.05)


def sample_of(**more: Any) -> ShadowSample:
    """A greedy answer of engine-1, changed by keywords."""
    given: dict[str, Any] = {
        "message_id": "m1",
        "timestamp": NOW,
        "agent_id": "agent-0",
        "instance_id": "engine-1",
        "incarnation": 3,
        "request_id": "r1",
        "path": "/v1/chat/completions",
        "request": {
            "model": "sim",
            "messages": [{"role": "user", "content": "Tell me about roses."}],
            "temperature": 0,
        },
        "text": "Roses need sun and water.",
        "token_ids": TOKENS,
        "logprobs": OWN,
        "decoding": Decoding.GREEDY,
        "prompt_fingerprint": "fp",
        "tenant": "t1",
    }
    return ShadowSample.model_validate(given | more)


def instance(name: str, **more: Any) -> RoutedInstance:
    """A healthy instance."""
    given: dict[str, Any] = {
        "instance_id": name,
        "base_url": f"http://{name}:8000",
        "state": InstanceState.HEALTHY,
        "incarnation": 3,
        "model_version": "m1",
    }
    return RoutedInstance.model_validate(given | more)


def table(*instances: RoutedInstance, version: int = 1, pool: str = "default") -> RoutingTable:
    """A routing table."""
    return RoutingTable(timestamp=NOW, pool=pool, version=version, instances=instances)


Say = Callable[[str, Mapping[str, Any]], dict[str, Any]]


@dataclass
class Engines:
    """Answers for instances by address; notes what was asked."""

    say: dict[str, Say] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def post(self, base_url: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """One answer; an instance may raise instead."""
        name = base_url.removeprefix("http://").removesuffix(":8000")
        self.asked.append((name, path))
        return self.say[name](path, body)

    async def model(self, base_url: str) -> str:
        """The served model."""
        self.asked.append((base_url, "/v1/models"))
        return "sim"


def scored(ids: Sequence[int], shift_nats: float = 0.0) -> dict[str, Any]:
    """An answer with prompt scores: the sample's own figures, lowered as wanted."""
    known = dict(zip(TOKENS, OWN, strict=True))
    entries = [{str(one): {"logprob": known.get(one, -2.0) - shift_nats}} for one in ids[1:]]
    return {"choices": [{"text": "x", "prompt_logprobs": [None, *entries]}]}


def chat_answer(text: str, ids: Sequence[int] = (), nats: Sequence[float] = ()) -> dict[str, Any]:
    """A chat answer with log probabilities by token id."""
    entries = [
        {"token": f"token_id:{one}", "top_logprobs": [{"token": f"token_id:{one}", "logprob": lp}]}
        for one, lp in zip(ids, nats or [-0.1] * len(ids), strict=True)
    ]
    message = {"role": "assistant", "content": text}
    choice = {"message": message, "logprobs": {"content": entries}, "finish_reason": "stop"}
    return {"choices": [choice]}


def engine(
    *, shift_nats: float = 0.0, text: str = "Roses need sun and water.", ids: Sequence[int] = TOKENS
) -> Say:
    """A stand-in that scores with a shift, and answers with this text."""

    def say(path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if path == "/tokenize":
            found = [1, 2, 3] if "messages" in body else list(TOKENS)
            return {"tokens": found, "max_model_len": 2048}
        if path == "/v1/completions":
            return scored(body["prompt"], shift_nats)
        return chat_answer(text, ids, OWN if tuple(ids) == TOKENS else ())

    return say


def replicas_of(engines: Engines, *instances: RoutedInstance) -> Replicas:
    """Judges whose clock stands still."""
    fleet = Fleet()
    if instances:
        fleet.hear(table(*instances))
    budget = Budget(Allowance(8, 8, 1e6), lambda: 0.0)
    budget_clock = iter(range(10**9))
    budget.clock = lambda: float(next(budget_clock))
    return Replicas(fleet, budget, engines, lambda: NOW, 120.0, 512)


@dataclass
class Seconds:
    """A clock that a test moves; each look at it takes a millisecond."""

    now_s: float = 0.0

    def __call__(self) -> float:
        """The present second."""
        self.now_s += 0.001
        return self.now_s


def corroboration_of(replicas: Replicas, clock: Callable[[], float] | None = None) -> Corroboration:
    """References are asked without a pause."""
    return Corroboration(ReferenceRounds(replicas, clock or Seconds(), pause_s=0.0))


def limits_with_references(count: int = 3) -> VersionLimits:
    """Limits as they come, and so many references that a healthy stand-in bears out."""
    kept = tuple(Reference((1, 2, place), TOKENS, OWN) for place in range(count))
    return VersionLimits(measured_at="2026-05-01", references=References("sim", kept))
