"""Settings name what is wrong and the way out."""

from pathlib import Path

import pytest

from gatemesh_agent.settings import AgentSettings, read_pairs
from gatemesh_common.errors import SettingsError
from gatemesh_common.settings import ServiceSettings, load_settings


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("INSTANCES", "MODE", "PORT", "VOCAB_SIZES", "FINGERPRINT_KEY", "ID"):
        monkeypatch.delenv(f"GATEMESH_AGENT_{name}", raising=False)


def test_instances_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name and address, without a slash at the end."""
    monkeypatch.setenv("GATEMESH_AGENT_INSTANCES", "engine-0=http://a:1/, engine-1=http://b:2")
    settings = load_settings(AgentSettings)
    assert settings.instances == {"engine-0": "http://a:1", "engine-1": "http://b:2"}


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("INSTANCES", "engine-0", "write name=value"),
        ("INSTANCES", "e=http://a,e=http://b", "twice"),
        ("INSTANCES", "e=ftp://a", "must begin with http://"),
        ("PORT", "70000", "less than or equal to 65535"),
        ("VOCAB_SIZES", "m=one", "whole number"),
        ("FINGERPRINT_KEY", "short", "16 characters"),
        ("MODE", "sidecar", "must name one instance"),
    ],
)
def test_a_wrong_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, says: str
) -> None:
    """One clean message, no stack trace."""
    monkeypatch.setenv(f"GATEMESH_AGENT_{variable}", value)
    with pytest.raises(SettingsError, match=says) as raised:
        load_settings(AgentSettings)
    assert "GATEMESH_AGENT_" in str(raised.value)


def test_a_sidecar_names_one_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the one that is served."""
    monkeypatch.setenv("GATEMESH_AGENT_INSTANCES", "engine-0=http://a:1")
    monkeypatch.setenv("GATEMESH_AGENT_MODE", "sidecar")
    assert load_settings(AgentSettings).mode == "sidecar"


def test_vocabulary_sizes_by_model() -> None:
    """Unknown models have none."""
    settings = AgentSettings.model_validate({"vocab_sizes": "smol=49152"})
    assert settings.vocab_size("smol") == 49152
    assert settings.vocab_size("other") is None


def test_the_key_is_never_shown() -> None:
    """Neither in a log nor in a stack trace."""
    settings = AgentSettings.model_validate({"fingerprint_key": "0123456789abcdef"})
    assert "0123456789abcdef" not in repr(settings)
    assert settings.hash_key == b"0123456789abcdef"


def test_an_unset_key_is_random() -> None:
    """Hashes of two such agents cannot be joined, but neither can they be guessed."""
    assert AgentSettings().hash_key != AgentSettings().hash_key


def test_pairs_that_are_no_text_pass() -> None:
    """Tests and callers may hand over a mapping."""
    assert read_pairs({"a": "b"}) == {"a": "b"}
    assert read_pairs("") == {}


def test_the_page_names_every_setting() -> None:
    """docs/agent.md is complete."""
    page = (Path(__file__).parents[3] / "docs" / "agent.md").read_text(encoding="utf-8")
    table = page[page.index("## Settings") : page.index("## Metrics")]
    own = AgentSettings.model_fields.keys() - ServiceSettings.model_fields.keys()
    assert [name for name in sorted(own) if f"`{name.upper()}`" not in table] == []
