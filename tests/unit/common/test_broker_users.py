"""The table of rights: who may send what, and that nobody may more than he needs."""

import re
from datetime import UTC, datetime

import pytest

from gatemesh_common.broker import COMMANDS, DEAD_LETTERS, EXCHANGES, SAMPLES, WORK_QUEUES
from gatemesh_common.broker_users import (
    NO_KEY,
    NOTHING,
    SERVICES,
    USERS,
    BrokerUser,
    Rights,
    any_of,
    keys,
    rights_of,
)
from gatemesh_common.messages import (
    ALERTS,
    CONTROL,
    EVENTS,
    MESSAGES,
    SHADOW,
    CheckLevel,
    Message,
    Verdict,
)

RIGHTS = {user.service: rights_of(user) for user in USERS}
PEOPLE = {"operator", "console"}
SENDERS = {
    "sample.v1": {"agent"},
    "request.v1": PEOPLE,
    "trial.v1": PEOPLE,
    "command.v1": {"health_manager"},
    **{key: {"executor"} for key in ("report.v1", "step.v1", "observed.v1")},
    **{key: {"agent"} for key in ("telemetry.v1", "rejected.v1", "applied.v1")},
    "capture.v1": {"agent", "shadow"},
}
"""By the first words of a key; what is not named is the manager's."""


def may_send(rights: Rights, exchange: str, key: str) -> bool:
    """Return what the broker would say."""
    pattern = rights.topics.get(exchange, (NO_KEY, NO_KEY))[0]
    return bool(re.search(rights.write, exchange) and re.search(pattern, key))


def key_of(message: type[Message]) -> str:
    """Return a routing key as such a message may have."""
    return f"{message.routing_key}.default.engine-0"


def verdict_key(level: CheckLevel) -> str:
    """Return the key by which a verdict of a gate really travels."""
    return Verdict(
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        instance_id="engine-0",
        request_id="r",
        check_level=level,
    ).key()


@pytest.mark.parametrize(
    ("level", "senders"),
    [
        (CheckLevel.L1, {"agent"}),
        (CheckLevel.L2, {"agent", "shadow"}),
        (CheckLevel.L3, {"agent"}),
        (CheckLevel.L4, {"shadow"}),
        (CheckLevel.L5, {"agent"}),
        (CheckLevel.PLUGIN, {"agent"}),
    ],
)
def test_a_gate_s_verdicts_come_from_where_it_judges(level: CheckLevel, senders: set[str]) -> None:
    """And from whoever is trusted with verdicts of any gate."""
    key = verdict_key(level)
    found = {name for name in SERVICES if may_send(RIGHTS[name], ALERTS, key)}
    assert found == senders | {"alerter"}


@pytest.mark.parametrize(
    "message",
    [each for each in MESSAGES if each is not Verdict],
    ids=lambda message: message.__name__,
)
def test_each_message_has_its_senders_and_no_others(message: type[Message]) -> None:
    """A new message needs a line in the table, or its service is refused."""
    expected = SENDERS.get(message.routing_key, {"health_manager"})
    key = key_of(message)
    assert {name for name in SERVICES if may_send(RIGHTS[name], message.exchange, key)} == expected


def test_nobody_publishes_past_the_exchanges() -> None:
    """The default exchange leads into any queue, commands too."""
    assert not [name for name in SERVICES if re.search(RIGHTS[name].write, "amq.default")]


def test_every_exchange_that_is_written_has_its_keys() -> None:
    """Without a line for an exchange the broker lets every key through."""
    for name in SERVICES:
        open_to = {each for each in EXCHANGES if re.search(RIGHTS[name].write, each)}
        assert open_to <= set(RIGHTS[name].topics)


@pytest.mark.parametrize(
    ("queue", "readers"),
    [
        (COMMANDS.name, {"executor", "health_manager"}),
        (SAMPLES.name, {"shadow", "health_manager"}),
        (DEAD_LETTERS, {"operator", "health_manager"}),
    ],
)
def test_a_queue_is_read_by_its_reader(queue: str, readers: set[str]) -> None:
    """And by the manager, who declares it: the broker asks for the right to read with it."""
    assert {name for name in SERVICES if re.search(RIGHTS[name].read, queue)} == readers


def test_the_manager_alone_declares_what_all_share() -> None:
    """Whoever may declare a queue may delete it."""
    names = [*EXCHANGES, DEAD_LETTERS, *(queue.name for queue in WORK_QUEUES)]
    for name in SERVICES:
        declared = [each for each in names if re.search(RIGHTS[name].configure, each)]
        assert declared == (names if name == "health_manager" else [])


@pytest.mark.parametrize("exchange", [CONTROL, SHADOW])
def test_nobody_listens_in_to_commands_and_prompts(exchange: str) -> None:
    """Their queues are read; a queue of one's own cannot be bound there."""
    bound = {name for name in SERVICES if re.search(RIGHTS[name].read, exchange)}
    assert bound == {"health_manager"}


def test_whoever_has_no_line_has_no_right() -> None:
    """Empty means nothing, never everything."""
    rights = rights_of(BrokerUser("nobody", "is not there"))
    assert rights == Rights(NOTHING, NOTHING, NOTHING, {})
    assert not re.search(NO_KEY, "")


@pytest.mark.parametrize(
    ("key", "matches"),
    [
        ("command.v1.drain.default.e", True),
        ("command.v1", True),
        ("command.v10.drain", False),
        ("xcommand.v1.drain", False),
        ("commands.v1.drain", False),
    ],
)
def test_keys_are_whole_words(key: str, *, matches: bool) -> None:
    """A prefix of another word is no match."""
    assert bool(re.search(keys("command"), key)) is matches


def test_names_are_whole() -> None:
    """A queue that only begins like an own one is not one's own."""
    pattern = any_of((r"executor\.commands",))
    assert re.search(pattern, "executor.commands")
    assert not re.search(pattern, "executor.commands.2")
    assert not re.search(pattern, "executorxcommands")


def test_reading_is_as_narrow_as_sending() -> None:
    """The notifier sees incidents and no telemetry; the agent no states."""
    heard = {
        name: re.search(RIGHTS[name].topics[EVENTS][1], "telemetry.v1.#")
        for name in ("notifier", "agent", "executor", "shadow")
    }
    assert not any(heard.values())
    assert ALERTS not in RIGHTS["executor"].topics
