"""What was told outlives the process."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.notifier.parts import NOW, told, verdict

from gatemesh_common.errors import SettingsError
from gatemesh_notifier.facts import AlertChoice, Fact, alert_fact
from gatemesh_notifier.grouping import Line
from gatemesh_notifier.journal import FILE_NAME, Journal


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """A journal in a fresh folder."""
    found = Journal(tmp_path / "state")
    yield found
    found.close()


def line(fact: Fact) -> Line:
    """Return a line of one event."""
    return Line(fact, 1, (fact.message_id,))


def test_it_is_there_after_a_restart(tmp_path: Path) -> None:
    """Per target: another one was not told."""
    first = Journal(tmp_path)
    first.write("room", [line(told(message_id="m-1"))], NOW)
    first.close()
    again = Journal(tmp_path)
    assert again.has("room", "m-1")
    assert not again.has("oncall", "m-1")
    assert not again.has("room", "m-2")
    assert again.last_words("room") == {"incident:i-1": "incident_open"}
    again.close()


def test_what_is_over_has_no_last_word(journal: Journal) -> None:
    """Its end is not to be told again, but its message is known."""
    journal.write("room", [line(told(message_id="m-1"))], NOW)
    journal.write("room", [line(told(message_id="m-2", status="resolved"))], NOW)
    assert journal.last_words("room") == {}
    assert journal.has("room", "m-2")


def test_alerts_are_not_kept(journal: Journal) -> None:
    """Nobody sends them again, and there may be many."""
    fact = alert_fact(verdict(), AlertChoice.HARD)
    assert fact is not None
    journal.write("room", [line(fact)], NOW)
    assert not journal.has("room", fact.message_id)


def test_it_forgets(journal: Journal) -> None:
    """What is older than it can come again."""
    journal.write("room", [line(told(message_id="old"))], NOW - timedelta(days=20))
    journal.write("room", [line(told(message_id="new"))], NOW)
    assert journal.forget(NOW - timedelta(days=14)) == 1
    assert (journal.has("room", "old"), journal.has("room", "new")) == (False, True)


def test_a_message_written_twice_stands_once(journal: Journal) -> None:
    """The process died between telling and acknowledging."""
    for _ in range(2):
        journal.write("room", [line(told(message_id="m-1"))], NOW)
    assert journal.forget(NOW + timedelta(seconds=1)) == 1


def test_a_disk_that_takes_nothing_ends_nothing(tmp_path: Path) -> None:
    """Ended, the notifier would tell the same again at every start."""
    journal = Journal(tmp_path)
    journal.close()
    assert not journal.write("room", [line(told())], NOW)
    assert not journal.has("room", "m-1")
    assert journal.forget(NOW) == 0


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """With its setting, at start."""
    (tmp_path / FILE_NAME).write_bytes(b"no database, but long enough to be read as one" * 50)
    with pytest.raises(SettingsError, match="GATEMESH_NOTIFIER_STATE_DIR"):
        Journal(tmp_path)
    with pytest.raises(SettingsError, match="GATEMESH_NOTIFIER_STATE_DIR"):
        Journal(tmp_path / FILE_NAME)
