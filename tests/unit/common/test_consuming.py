"""Reasons for dead letters, and lost consumers."""

import asyncio
import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

import pytest
from aio_pika.abc import AbstractIncomingMessage
from faststream import ContextRepo
from faststream.rabbit import RabbitBroker
from prometheus_client import REGISTRY
from pydantic import ValidationError

from gatemesh_common.broker import VERDICTS, broadcast_queue, work_queue
from gatemesh_common.consuming import (
    body_kept,
    has_no_consumer,
    mend_topology,
    note_age,
    queue_of,
    reason_of,
    watch_consumers,
)
from gatemesh_common.errors import GatemeshError
from gatemesh_common.messages import ALERTS, EVENTS, SHADOW, ActionRequest, Verdict
from gatemesh_common.publisher import Publisher


def raised(body: object) -> ValidationError:
    """Return the error of a wrong verdict."""
    with pytest.raises(ValidationError) as caught:
        Verdict.model_validate(body)
    return caught.value


def test_a_wrong_field_is_named_and_not_repeated() -> None:
    """What a client wrote does not end in headers or logs."""
    reason = reason_of(raised({"instance_id": ["my secret"], "request_id": "r"}))
    assert "instance_id: Input should be a valid string" in reason
    assert "timestamp: Field required" in reason
    assert "secret" not in reason


def test_a_rule_of_ours_is_told() -> None:
    """Its words are ours."""
    with pytest.raises(ValidationError) as caught:
        ActionRequest.model_validate(
            {"timestamp": "2026-05-01T12:00:00Z", "requested_by": "a", "action": "drain"}
        )
    assert "instance_id: required for action 'drain'" in reason_of(caught.value)


def test_bad_json_is_told_by_its_place() -> None:
    """And not by its content."""
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads('{"a": secret}')
    assert reason_of(caught.value) == "body: no valid JSON, Expecting value at character 6"


def test_bytes_that_are_no_text() -> None:
    """Named by the encoding they are not of."""
    with pytest.raises(UnicodeDecodeError) as caught:
        b"\xff".decode()
    assert reason_of(caught.value) == "body: no valid utf-8"


def test_other_errors_are_named_by_class() -> None:
    """Their texts may hold data; ours do not."""
    assert reason_of(KeyError("secret")) == "KeyError"
    assert reason_of(GatemeshError("told")) == "told"
    assert len(reason_of(GatemeshError("x" * 5000))) == 1000


@pytest.mark.parametrize(
    ("sent", "age_s"),
    [("2026-05-01T12:00:00+00:00", 5), ("2026-05-01T12:00:09+00:00", 0), (None, None), (7, None)],
)
def test_the_age_of_a_message_is_noted(sent: object, age_s: float | None) -> None:
    """One that does not say when it was sent counts for nothing."""
    now = datetime(2026, 5, 1, 12, 0, 5, tzinfo=UTC).timestamp()
    names = [f"gatemesh_queue_age_seconds_{part}" for part in ("count", "sum")]
    before = [REGISTRY.get_sample_value(name, {"queue": "q"}) or 0 for name in names]
    note_age("q", sent, now)
    after = [REGISTRY.get_sample_value(name, {"queue": "q"}) or 0 for name in names]
    assert after[0] - before[0] == (age_s is not None)
    assert after[1] - before[1] == (age_s or 0)


class GivenUp:
    """A publisher whose connection is closed while somebody waits for an answer."""

    async def channel(self) -> "GivenUp":
        """Return what never answers."""
        return self

    async def declare_queue(self, name: str, *, passive: bool) -> None:
        """End as the client ends what waits on a connection that is closed."""
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        answer.cancel()
        await answer


async def test_a_connection_closed_by_others_is_no_lost_consumer() -> None:
    """A broker that hung for a while ended every service at once."""
    assert not await has_no_consumer(cast("Publisher", GivenUp()), VERDICTS)


class Counted:
    """A publisher whose broker tells at each look how many consumers a queue has."""

    def __init__(self, *counts: int) -> None:
        self._counts = list(counts)
        self.may_declare = True
        self.mended = False

    async def channel(self) -> "Counted":
        """Return the channel, too."""
        return self

    async def declare_queue(self, name: str, *, passive: bool) -> SimpleNamespace:
        """Tell the next count."""
        count = self._counts.pop(0)
        return SimpleNamespace(declaration_result=SimpleNamespace(consumer_count=count))

    async def declare_exchange(self, *_: object, **__: object) -> None:
        """Mend nothing."""
        self.mended = True
        raise OSError

    @property
    def looks_left(self) -> int:
        """How many looks were not taken."""
        return len(self._counts)


async def test_consumers_are_lost_at_two_looks_in_a_row() -> None:
    """A broker that was started again has none for a moment; that ended every service."""
    broker = Counted(1, 0, 1, 0, 0, 1)
    await watch_consumers(cast("Publisher", broker), (VERDICTS,), every_s=0)
    assert broker.looks_left == 1


async def test_who_may_not_declare_mends_nothing() -> None:
    """The broker would close the channel that publishes."""
    broker = Counted()
    broker.may_declare = False
    await mend_topology(cast("Publisher", broker))
    assert not broker.mended
    broker.may_declare = True
    await mend_topology(cast("Publisher", broker))
    assert broker.mended


def test_a_queue_of_one_process_has_the_label_of_all() -> None:
    """Else every start would leave a series behind."""
    broker = RabbitBroker()
    for queue, label in (
        (broadcast_queue("notifier.alerts.1f2e3d4c", "#"), "notifier.alerts"),
        (work_queue(VERDICTS), "health_manager.verdicts"),
    ):
        handler = broker.subscriber(queue)
        assert queue_of(cast("ContextRepo", {"handler_": handler})) == label
    assert queue_of(cast("ContextRepo", {})) == "unknown"


@pytest.mark.parametrize(
    ("exchange", "key", "kept"),
    [
        (ALERTS, "verdict.v1.l1.failed.e", b"{}"),
        (EVENTS, "capture_terms.v1.p", b"{}"),
        (EVENTS, "capture.v1.p.e", b""),
        (SHADOW, "sample.v1.p", b""),
    ],
)
def test_no_text_of_clients_is_among_the_dead_letters(exchange: str, key: str, kept: bytes) -> None:
    """Whoever looks at those may not read prompts and answers."""
    message = SimpleNamespace(exchange=exchange, routing_key=key, body=b"{}")
    assert body_kept(cast("AbstractIncomingMessage", message)) == kept
