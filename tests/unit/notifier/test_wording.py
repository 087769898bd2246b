"""Templates: complete in both languages, checked, replaceable."""

from pathlib import Path

import pytest
from tests.unit.notifier.parts import NOW, brake, braked, incident, state, told, verdict

from gatemesh_common.errors import SettingsError
from gatemesh_notifier.facts import (
    AlertChoice,
    Fact,
    Level,
    alert_fact,
    brake_fact,
    incident_fact,
    state_fact,
)
from gatemesh_notifier.grouping import Line, Notification
from gatemesh_notifier.wording import LANGUAGES, LONGEST_LINE, MOST_LINES, load_wording

EVERY = [
    *(told(status=one) for one in ("open", "held", "quarantined", "resolved", "expired")),
    incident_fact(incident(would="eject")),
    brake_fact(brake()),
    brake_fact(brake(status="reset")),
    state_fact(state()),
    state_fact(state(before="quarantined", after="probation")),
    alert_fact(verdict(), AlertChoice.HARD),
]
FACTS = [fact for fact in EVERY if fact is not None]


def notification(*facts: Fact) -> Notification:
    """Return a notification of one line per fact."""
    return Notification("chat", tuple(Line(fact, 1, (fact.message_id,)) for fact in facts))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.word)
def test_every_fact_has_words(fact: Fact, language: str) -> None:
    """In both languages, with the instance or the reason in them."""
    text = load_wording(language, None).text_of(notification(fact))
    assert "chat" in text.title
    assert fact.instance in text.body
    assert "$" not in text.title + text.body
    assert text.level is fact.level


def test_the_languages_have_the_same_templates() -> None:
    """A line that is only in one would fail in the other."""
    words = {fact.word for fact in FACTS}
    for language in LANGUAGES:
        sections = load_wording(language, None)._sections
        assert set(sections["lines"]) == words
        assert set(sections["titles"]) == set(Level)
        assert set(sections["conditions"]) == set("ABCD")


def test_words_in_full() -> None:
    """What a person reads."""
    text = load_wording("en", None).text_of(notification(told()))
    assert text.title == "[gatemesh] pool chat: trouble, the mesh acts (1)"
    assert text.body == (
        "engine-0: condition B (proof of broken computing). hard L3 failure: nan_logits. "
        "Playbook: confirm. Incident i-1, 12:00:00 UTC"
    )
    assert NOW.hour == 12


def test_an_empty_value_is_a_dash() -> None:
    """A sentence with a hole in it looks like a fault of ours."""
    assert "accused run: -." in load_wording("en", None).text_of(notification(braked())).body


def test_a_link_is_put_behind_incidents() -> None:
    """And behind nothing else."""
    wording = load_wording("en", None, "https://console.example/incidents/$incident")
    assert wording.text_of(notification(told())).body.endswith("/incidents/i-1")
    assert "https" not in wording.text_of(notification(braked())).body


def test_no_more_lines_than_a_person_reads() -> None:
    """A thousand engines fit on a telephone; lines stay lines."""
    facts = [told(instance_id=f"e-{number}\nx", reason="y" * 2000) for number in range(100)]
    lines = load_wording("en", None).text_of(notification(*facts)).body.splitlines()
    assert len(lines) == MOST_LINES + 1
    assert lines[-1] == f"... and {100 - MOST_LINES} more"
    assert all(len(line) <= LONGEST_LINE for line in lines)


def test_single_lines_can_be_replaced(tmp_path: Path) -> None:
    """The rest stays."""
    (tmp_path / "en.toml").write_text(
        '[lines]\nbrake_fell = "STOP $pool"\n[conditions]\nmine = "too slow"\n'
    )
    wording = load_wording("en", tmp_path)
    assert wording.text_of(notification(braked())).body == "STOP chat"
    assert "mine (too slow)" in wording.text_of(notification(told(condition="mine"))).body
    assert load_wording("zh", tmp_path).text_of(notification(braked())).body != "STOP chat"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[lines]\nbrake_fell = 7\n", r"\[lines\] brake_fell: must be a text"),
        ('[lines]\nbrake_fell = "$nonsense"\n', r"\[lines\] brake_fell: \$nonsense is unknown"),
        ('[lines]\nbrake_fell = "5 $"\n', r"\[lines\] brake_fell: a '\$'"),
        ('[lines]\nbrake_fall = "x"\n', r"\[lines\] brake_fall: unknown; there are alert"),
        ('[texts]\nx = "y"\n', r"\[texts\]: unknown; there are titles"),
        ("lines = 1\n", r"\[lines\]: unknown"),
        ("[lines\n", "no valid TOML"),
    ],
)
def test_a_fault_in_a_file_is_named(tmp_path: Path, text: str, fault: str) -> None:
    """At start, and not when somebody is to be woken up."""
    (tmp_path / "en.toml").write_text(text)
    with pytest.raises(SettingsError, match=fault):
        load_wording("en", tmp_path)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    """As a file."""
    (tmp_path / "en.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="cannot be read as UTF-8"):
        load_wording("en", tmp_path)
