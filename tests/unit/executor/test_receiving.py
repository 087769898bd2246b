"""Proven first, read then."""

from json import JSONDecodeError

import pytest
from pydantic import ValidationError

from gatemesh_common.messages import AnyCommand, EjectInstance, Message, RestartInstance
from gatemesh_common.signing import SigningKey, TrustedKeys
from gatemesh_executor.receiving import NotTrustedError, Receiver
from gatemesh_executor.trust import Trust

from .conftest import World

KEY = SigningKey.from_seed(bytes(32))


class Notebook:
    """Obeys by writing down."""

    def __init__(self) -> None:
        self.obeyed: list[AnyCommand] = []
        self.refused: list[tuple[AnyCommand, str]] = []
        self.is_abandoned = False

    async def obey(self, command: AnyCommand) -> None:
        """Write it down."""
        self.obeyed.append(command)

    async def refuse(self, command: AnyCommand, reason: str) -> None:
        """Write it down."""
        self.refused.append((command, reason))

    def abandon(self) -> None:
        """Write it down."""
        self.is_abandoned = True


@pytest.fixture
def notebook() -> Notebook:
    """Give one with nothing in it."""
    return Notebook()


@pytest.fixture
def strict(notebook: Notebook) -> Receiver:
    """Give a receiver that trusts one key."""
    return Receiver(Trust(TrustedKeys.from_pem(KEY.public_pem())), notebook)


def body_of(command: Message) -> bytes:
    """Return what travels."""
    return command.model_dump_json().encode()


async def test_what_is_signed_is_obeyed_as_its_own_class(
    world: World, strict: Receiver, notebook: Notebook
) -> None:
    """The action tells which."""
    for kind in (EjectInstance, RestartInstance):
        body = body_of(world.command(kind))
        await strict.receive(body, KEY.sign(body))
    assert [type(command) for command in notebook.obeyed] == [EjectInstance, RestartInstance]


async def test_what_is_not_signed_is_refused_with_the_reason(
    world: World, strict: Receiver, notebook: Notebook
) -> None:
    """One byte more is another command."""
    command = world.command(EjectInstance)
    body = body_of(command)
    await strict.receive(body, {})
    await strict.receive(body + b" ", KEY.sign(body))
    assert notebook.refused == [(command, "unsigned"), (command, "bad_signature")]
    assert notebook.obeyed == []


async def test_what_is_neither_signed_nor_a_command_has_both_reasons(strict: Receiver) -> None:
    """It goes to the dead letters, where people look for it."""
    for body, match in (
        (b"{", "unsigned; body: no valid JSON"),
        (b"\xff", "unsigned; body: no valid utf-8"),
        (b'{"action": "eject"}', "unsigned; eject.timestamp: Field required"),
    ):
        with pytest.raises(NotTrustedError, match=match):
            await strict.receive(body, {})


async def test_a_signed_body_that_is_no_command_is_told_as_ever(strict: Receiver) -> None:
    """A newer manager may know more."""
    for body, kind in ((b"{", JSONDecodeError), (b'{"action": "dance"}', ValidationError)):
        with pytest.raises(kind):
            await strict.receive(body, KEY.sign(body))


async def test_without_keys_everything_is_obeyed(world: World, notebook: Notebook) -> None:
    """As before there were signatures."""
    command = world.command(EjectInstance)
    await Receiver(Trust(), notebook).receive(body_of(command), {"x-signature": "whatever"})
    assert notebook.obeyed == [command]


def test_what_is_under_way_is_let_go(strict: Receiver, notebook: Notebook) -> None:
    """When the consumer is lost."""
    strict.abandon()
    assert notebook.is_abandoned
