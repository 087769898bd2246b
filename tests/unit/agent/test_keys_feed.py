"""The file of keys is followed, and a fault in it changes nothing."""

import logging
from pathlib import Path

import pytest

from gatemesh_agent.door import Door, Holder
from gatemesh_agent.keys import Limits, digest_of, written
from gatemesh_agent.keys_feed import KeysFeed
from gatemesh_agent.metrics import KEYS, KEYS_INVALID
from gatemesh_common.errors import SettingsError


def write(path: Path, *secrets: str) -> None:
    """Write a file of these keys."""
    path.write_text("\n".join(written(one, digest_of(one), {}) for one in secrets))


def feed_of(path: Path) -> tuple[KeysFeed, Door]:
    """Return a feed and its door."""
    door = Door()
    return KeysFeed(path, Limits(), door), door


def opens(door: Door, secret: str) -> bool:
    """Tell whether a key opens the door."""
    return isinstance(door.enter(secret, 0.0), Holder)


def test_a_change_is_taken_in(tmp_path: Path) -> None:
    """A new key opens, one that was taken away does not."""
    path = tmp_path / "keys.toml"
    write(path, "one")
    feed, door = feed_of(path)
    feed.open()
    assert opens(door, "one")
    write(path, "two", "three")
    feed.look()
    assert not opens(door, "one")
    assert opens(door, "two")
    assert KEYS._value.get() == 2


def test_a_file_that_comes_back_is_read_again(tmp_path: Path) -> None:
    """Also the same file as before, with the same marks: its rights were mended, or its place."""
    path, aside = tmp_path / "keys.toml", tmp_path / "aside"
    write(path, "one")
    feed, door = feed_of(path)
    feed.open()
    path.rename(aside)
    feed.look()
    assert KEYS_INVALID._value.get() == 1
    aside.rename(path)
    feed.look()
    assert opens(door, "one")
    assert KEYS_INVALID._value.get() == 0


def test_a_file_that_is_no_text_is_a_fault(tmp_path: Path) -> None:
    """And not the end of whoever follows it."""
    path = tmp_path / "keys.toml"
    path.write_bytes(b"\xff\xfe[")
    with pytest.raises(SettingsError, match="no UTF-8 at byte 0"):
        feed_of(path)[0].open()
    write(path, "one")
    feed, door = feed_of(path)
    feed.open()
    path.write_bytes(b"\xff\xfe[")
    feed.look()
    assert KEYS_INVALID._value.get() == 1
    assert opens(door, "one")


@pytest.mark.parametrize("text", ["[[keys]", None], ids=["at-fault", "gone"])
def test_a_fault_changes_nothing_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str | None
) -> None:
    """The keys of before hold until it is mended."""
    path = tmp_path / "keys.toml"
    write(path, "one")
    feed, door = feed_of(path)
    feed.open()
    path.unlink() if text is None else path.write_text(text)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            feed.look()
    assert opens(door, "one")
    assert [record.message for record in caplog.records] == ["keys_invalid"]
    assert KEYS_INVALID._value.get() == 1
    write(path, "two")
    feed.look()
    assert opens(door, "two")
    assert KEYS_INVALID._value.get() == 0


@pytest.mark.parametrize("text", ["[[keys]", None], ids=["at-fault", "gone"])
def test_an_agent_without_keys_to_check_does_not_start(tmp_path: Path, text: str | None) -> None:
    """Rather than to let everybody in, or nobody."""
    path = tmp_path / "keys.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsError, match=r"GATEMESH_AGENT_KEYS_FILE: .*keys\.toml"):
        feed_of(path)[0].open()
