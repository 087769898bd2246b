"""An event is done when everybody has it."""

import asyncio
from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.unit.notifier.parts import NOW, told

from gatemesh_notifier.courier import Courier
from gatemesh_notifier.desk import Desk
from gatemesh_notifier.errors import UndeliveredError
from gatemesh_notifier.grouping import Mailbox, Pace
from gatemesh_notifier.journal import Journal
from gatemesh_notifier.targets import Target
from gatemesh_notifier.wording import Text, load_wording


def courier(name: str, folder: Path, texts: list[str], *, takes: bool = True) -> Courier:
    """Return a courier whose target takes everything, or nothing."""

    async def send(text: Text) -> bool:
        texts.append(f"{name}: {text.title}")
        return takes

    return Courier(
        target=Target(name=name, url=SecretStr("json://h")),
        mailbox=Mailbox(Pace(0, 0, 600, 100), {}),
        wording=load_wording("en", None),
        journal=Journal(folder),
        send=send,
        give_up_after_s=0,
        clock=lambda: NOW,
        monotonic=asyncio.get_running_loop().time,
    )


async def test_one_who_cannot_be_reached_is_named_and_others_are_told_once(tmp_path: Path) -> None:
    """The dead letter, published again, goes only to who missed it."""
    texts: list[str] = []
    couriers = [courier("a", tmp_path, texts), courier("b", tmp_path, texts, takes=False)]
    desk = Desk(couriers)
    running = asyncio.create_task(desk.run())
    for _ in range(2):
        with pytest.raises(UndeliveredError, match="not delivered to b:") as raised:
            await asyncio.wait_for(desk.tell(told(message_id="m-1")), 10)
        assert raised.value.targets == ("b",)
    running.cancel()
    assert [text[0] for text in texts] == ["a", "b", "b"]


async def test_nothing_to_tell_is_done_at_once(tmp_path: Path) -> None:
    """The message is acknowledged though no courier runs."""
    desk = Desk([courier("a", tmp_path, [])])
    await asyncio.wait_for(desk.tell(told(status="resolved")), 10)


async def test_who_stops_waiting_takes_nothing_away(tmp_path: Path) -> None:
    """A connection is lost while a message waits, and it comes again."""
    texts: list[str] = []
    desk = Desk([courier("a", tmp_path, texts)])
    lost = asyncio.create_task(desk.tell(told(message_id="m-1")))
    await asyncio.sleep(0)
    lost.cancel()
    again = asyncio.create_task(desk.tell(told(message_id="m-1")))
    running = asyncio.create_task(desk.run())
    await asyncio.wait_for(again, 10)
    running.cancel()
    assert len(texts) == 1


async def test_a_mention_waits_for_nobody(tmp_path: Path) -> None:
    """Alerts are acknowledged before."""
    texts: list[str] = []
    desk = Desk([one := courier("a", tmp_path, texts)])
    desk.mention(told())
    assert one.mailbox.waiting == 1
