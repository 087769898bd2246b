"""Who is obeyed where keys are set: the executor as a process, over a real broker."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aio_pika.abc import AbstractIncomingMessage

from gatemesh_common.broker import COMMANDS, DEAD_LETTERS
from gatemesh_common.messages import (
    CONTROL,
    CommandReport,
    EjectInstance,
    InstanceCommand,
    ReportOutcome,
    RestartInstance,
)
from gatemesh_common.publisher import envelope
from gatemesh_common.signing import SigningKey, TrustedKeys

from .conftest import DEADLINE_S, ExecutorProcess, Manager, Platform

pytestmark = pytest.mark.integration
OLD, NEW = SigningKey.from_seed(bytes(32)), SigningKey.from_seed(b"n" * 32)


class Site:
    """An executor that trusts the keys of a file, and a manager that signs."""

    def __init__(self, manager: Manager, file: Path) -> None:
        self.manager = manager
        self._file = file

    def trust(self, *keys: SigningKey) -> None:
        """Put another file in the place of the one that the executor reads."""
        draft = self._file.with_suffix(".new")
        draft.write_text("".join(key.public_pem() for key in keys))
        draft.replace(self._file)

    async def send(
        self,
        command: InstanceCommand,
        key: SigningKey | None = OLD,
        change: Callable[[bytes], bytes] = lambda body: body,
    ) -> InstanceCommand:
        """Publish a command; `change` is what a stranger does to it after it was signed."""
        message = envelope(command, "test-manager")
        if key:
            message.headers |= key.sign(message.body)
        message.body = change(message.body)
        await self.manager.publisher.publish_raw(message, CONTROL, command.key(), mandatory=True)
        return command

    async def refusal_of(self, command: InstanceCommand, reason: str) -> CommandReport:
        """Wait for a refusal with this reason."""
        return await self.manager.find(
            CommandReport,
            lambda it: it.command_id == command.message_id and it.reason.startswith(reason),
        )

    async def is_obeyed(self, key: SigningKey) -> bool:
        """Tell how a new command ended that was signed with this key."""
        report = await self.manager.report_of(await self.send(self.command(), key))
        return report.outcome is ReportOutcome.SUCCEEDED

    def command(self, **fields: object) -> InstanceCommand:
        """Return a harmless command with the next fence."""
        return self.manager.command(EjectInstance, **fields)


@pytest.fixture
async def site(platform: Platform, executor: ExecutorProcess, manager: Manager) -> Site:
    """Give an executor that trusts the old key."""
    file = platform.instances_file.parent / "trusted.pem"
    site = Site(manager, file)
    site.trust(OLD)
    platform.start()
    executor._environment["GATEMESH_EXECUTOR_TRUSTED_KEYS_FILE"] = str(file)
    executor.start()
    return site


async def test_forgeries_are_refused_and_the_real_command_goes_on(
    platform: Platform, site: Site
) -> None:
    """They bear its id and a higher fence; each has its reason, and nothing is done for them."""
    platform.supervision.start_program("engine-0")
    life = (await site.manager.observed(lambda it: it.running)).life_id
    real = site.manager.command(RestartInstance, life_id=life, grace_s=5)
    forged = real.model_copy(update={"fence": 1000})
    await site.send(forged, key=None)
    await site.send(forged, key=NEW)
    await site.send(real, change=lambda body: body.replace(b'"grace_s":5.0', b'"grace_s":0.0'))
    for reason in ("unsigned", f"unknown_key: {NEW.key_id!r}", "bad_signature"):
        report = await site.refusal_of(real, reason)
        assert (report.outcome, report.ends_command) == (ReportOutcome.REFUSED, False)
    await site.send(real)
    done = await site.manager.find(CommandReport, lambda it: it.ends_command)
    assert (done.command_id, done.outcome) == (real.message_id, ReportOutcome.SUCCEEDED)
    assert len(site.manager.lives()) == 2


async def test_signed_commands_are_still_fenced(site: Site) -> None:
    """Whoever has listened may send them again: expired, stale and ended ones are refused."""
    past = datetime.now(UTC) - timedelta(seconds=1)
    stale, expired, newest = site.command(), site.command(expires_at=past), site.command()
    assert (await site.manager.report_of(await site.send(newest))).reason == ""
    for command, reason, ends in (
        (expired, "expired", True),
        (stale, "stale_fence", True),
        (newest, "duplicate", False),
    ):
        await site.send(command)
        report = await site.refusal_of(command, reason)
        assert (report.outcome, report.ends_command) == (ReportOutcome.REFUSED, ends)


async def test_keys_are_changed_while_it_runs(site: Site) -> None:
    """First both are valid, then the old one is taken out; nothing is started anew."""
    assert await site.is_obeyed(OLD)
    assert not await site.is_obeyed(NEW)
    site.trust(OLD, NEW)
    assert await site.is_obeyed(NEW)
    assert await site.is_obeyed(OLD)
    site.trust(NEW)
    assert not await site.is_obeyed(OLD)
    assert await site.is_obeyed(NEW)


async def next_letter(site: Site) -> AbstractIncomingMessage:
    """Wait for a dead letter and take it away."""
    channel = await site.manager.publisher.channel()
    dead = await channel.declare_queue(DEAD_LETTERS, passive=True)
    async with dead.iterator(timeout=DEADLINE_S) as letters:
        letter = await anext(letters)
        await letter.ack()
    assert letter.headers["x-gatemesh-queue"] == COMMANDS.name
    return letter


async def test_a_dead_letter_can_still_be_proven(site: Site) -> None:
    """What a newer manager ordered keeps its signature, for the executor that will know it."""
    message = envelope(site.command(), "test-manager")
    message.body = message.body.replace(b'"action":"eject"', b'"action":"dance"')
    message.headers |= OLD.sign(message.body)
    await site.manager.publisher.publish_raw(message, CONTROL, "command.v1.dance", mandatory=True)
    letter = await next_letter(site)
    assert "'action'" in str(letter.headers["x-gatemesh-reason"])
    assert TrustedKeys.from_pem(OLD.public_pem()).distrust(letter.body, letter.headers) is None


async def test_a_forgery_that_is_no_command_is_not_lost_either(site: Site) -> None:
    """There is nothing to report, so the dead letter says both."""
    await site.send(site.command(), key=None, change=lambda body: body[:-1])
    reason = str((await next_letter(site)).headers["x-gatemesh-reason"])
    assert reason.startswith("unsigned; body: no valid JSON")
