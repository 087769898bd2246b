"""Asks a healthy instance about a sample, and another one where the first does not answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from gatemesh_common.clock import Clock
from gatemesh_common.messages import RoutedInstance, ShadowSample
from gatemesh_shadow.budget import Budget
from gatemesh_shadow.errors import ReplicaBrokenError, ReplicaUnavailableError, SampleExpiredError
from gatemesh_shadow.fleet import Fleet
from gatemesh_shadow.metrics import REPLICA_FAULTS, REPLICA_SECONDS
from gatemesh_shadow.replay import (
    CHAT,
    COMPLETIONS,
    PromptScores,
    SecondAnswer,
    prompt_ids,
    read_scores,
    read_second,
    score_body,
    second_body,
    tokenize_body,
)

T = TypeVar("T")
MOST_TOKEN_CHARS = 64
FIRST_DELAY_S = 0.1
LONGEST_DELAY_S = 5.0


@dataclass(frozen=True, slots=True)
class Question:
    """What is put to a healthy instance: a chat request or a completion."""

    path: str
    request: Mapping[str, Any]

    @property
    def model(self) -> str | None:
        """The model's name as the client wrote it."""
        return self.request.get("model")


class EngineClient(Protocol):
    """Talks to one instance at a time."""

    async def post(self, base_url: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request and return the whole answer; raises as `ReplicaClient.post` does."""

    async def model(self, base_url: str) -> str:
        """The model that an instance serves."""


@dataclass(slots=True)
class Replicas:
    """Healthy instances as judges, within the budget."""

    fleet: Fleet
    budget: Budget
    client: EngineClient
    clock: Clock
    max_age_s: float
    most_tokens: int

    def is_expired(self, sample: ShadowSample) -> bool:
        """True when a verdict on the sample would come too late to be worth its price."""
        return (self.clock() - sample.timestamp).total_seconds() > self.max_age_s

    async def with_judge(
        self,
        sample: ShadowSample,
        work: Callable[[RoutedInstance], Awaitable[T]],
        besides: Collection[str] = (),
    ) -> tuple[RoutedInstance, T] | None:
        """Let one judge do the work; another one where it fails. None where there is no judge.

        Raises:
            SampleExpiredError: no judge has answered while the sample was fresh.
        """
        failed: set[str] = set()
        delay_s = FIRST_DELAY_S
        while not self.is_expired(sample):
            judges = self.fleet.judges(sample, besides)
            if not judges:
                return None
            fresh = [one for one in judges if one.instance_id not in failed]
            async with self.budget.turn(fresh or judges) as judge:
                try:
                    return judge, await work(judge)
                except (ReplicaUnavailableError, ReplicaBrokenError) as error:
                    REPLICA_FAULTS.labels(error=type(error).__name__).inc()
                    failed.add(judge.instance_id)
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, LONGEST_DELAY_S)
        raise SampleExpiredError

    async def scores(
        self,
        judge: RoutedInstance,
        question: Question,
        prompt: Sequence[int],
        answer: Sequence[int],
    ) -> PromptScores:
        """Let a judge score the answer's tokens in one prefill."""
        body = score_body(question.model, [*prompt, *answer])
        found = await self.post(judge, COMPLETIONS, body, "score")
        with of_known_shape():
            return read_scores(found, answer)

    async def prompt(
        self, judge: RoutedInstance, question: Question, answer_tokens: int
    ) -> tuple[list[int], int]:
        """Token ids of the prompt, and how many of so many answer tokens fit behind it."""
        given = prompt_ids(question.request) if question.path == COMPLETIONS else None
        if given is not None:
            return given, answer_tokens
        body = tokenize_body(question.path, question.request)
        found = await self.post(judge, "/tokenize", body, "tokenize")
        with of_known_shape():
            ids, longest = token_ids(found), int(found["max_model_len"])
        # One more token is generated, whether wanted or not.
        return ids, min(answer_tokens, longest - len(ids) - 1)

    async def tokens_of(self, judge: RoutedInstance, question: Question, text: str) -> list[int]:
        """Token ids of an answer's text, where the engine did not tell them."""
        named = {"model": question.model} if question.model else {}
        # More is not scored; a whole book would hold up the instance that judges.
        head = text[: self.most_tokens * MOST_TOKEN_CHARS]
        body = {**named, "prompt": head, "add_special_tokens": False}
        found = await self.post(judge, "/tokenize", body, "tokenize")
        with of_known_shape():
            return token_ids(found)

    async def second(self, judge: RoutedInstance, question: Question) -> SecondAnswer:
        """Let a judge answer the same request."""
        body = second_body(question.path, question.request, self.most_tokens)
        path = CHAT if question.path == CHAT else COMPLETIONS
        found = await self.post(judge, path, body, "second")
        with of_known_shape():
            return read_second(path, found)

    async def post(
        self, judge: RoutedInstance, path: str, body: Mapping[str, Any], purpose: str
    ) -> dict[str, Any]:
        """Send one request and take its time."""
        begun_s = time.monotonic()
        try:
            return await self.client.post(judge.base_url, path, body)
        finally:
            REPLICA_SECONDS.labels(purpose=purpose).observe(time.monotonic() - begun_s)


@contextmanager
def of_known_shape() -> Iterator[None]:
    """Read an answer: one that lacks what is read is a broken instance's, not our fault."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ReplicaBrokenError("its answer has another shape") from error


def token_ids(found: Mapping[str, Any]) -> list[int]:
    """Return the ids in an answer of `/tokenize`."""
    return [int(one) for one in found["tokens"]]
