"""Settings from flags and variables."""

from pathlib import Path

import pytest

from gatemesh_engine_sim.settings import PREFIX, SettingsError, SimSettings, read_settings


def test_defaults_need_nothing() -> None:
    """A simulated engine on loopback, as fast as it can."""
    settings = read_settings([], {})
    assert settings == SimSettings()
    assert (settings.host, settings.tokens_per_s, settings.shutdown_timeout) == ("127.0.0.1", 0, 0)


def test_flags_win_over_variables() -> None:
    """As people expect."""
    environ = {f"{PREFIX}PORT": "1", f"{PREFIX}MODEL": "m", f"{PREFIX}IGNORE_SIGTERM": "1"}
    settings = read_settings(["--port", "8001", "--spawn-worker"], environ)
    assert (settings.port, settings.model) == (8001, "m")
    assert settings.ignore_sigterm
    assert settings.spawn_worker


def test_schedule_is_json() -> None:
    """A list of faults with windows."""
    settings = read_settings(["--schedule", '[{"fault": "nan", "from_s": 10, "to_s": 20}]'], {})
    [fault] = settings.schedule
    assert (fault.fault, fault.from_s, fault.to_s) == ("nan", 10, 20)


def test_chaos_file_has_its_own_variable() -> None:
    """Shared with the chaos plugin of the real engine."""
    settings = read_settings([], {"GATEMESH_CHAOS_FILE": "drill.json"})
    assert settings.chaos_file == Path("drill.json")
    own = read_settings(["--chaos-file", "own.json"], {"GATEMESH_CHAOS_FILE": "drill.json"})
    assert own.chaos_file == Path("own.json")


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (["--port", "65536"], "--port"),
        (["--tokens-per-s", "-1"], "--tokens-per-s"),
        (["--schedule", "[{]"], "--schedule"),
        (["--schedule", '[{"from_s": 1}]'], "--schedule"),
        (["--max-num-seqs", "0"], "--max-num-seqs"),
    ],
)
def test_errors_name_flag_and_variable(arguments: list[str], flag: str) -> None:
    """So that the reader knows what to change."""
    name = PREFIX + flag[2:].upper().replace("-", "_")
    with pytest.raises(SettingsError, match=rf"^{flag} \({name}\): "):
        read_settings(arguments, {})


def test_every_field_is_described() -> None:
    """The help text is the reference."""
    assert all(field.description for field in SimSettings.model_fields.values())
