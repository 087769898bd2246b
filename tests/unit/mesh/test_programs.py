"""Whatever a program needs, supervisord reads back as it was meant."""

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from supervisor.datatypes import dict_of_key_value_pairs
from supervisor.options import ServerOptions

from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.programs import (
    DaemonSpec,
    ProgramSpec,
    render_configuration,
    render_environment,
    render_program,
)

printable = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=20)


def spec(folder: Path, **changes: object) -> ProgramSpec:
    """Return a program whose command exists."""
    values: dict[str, object] = {
        "name": "one",
        "argv": ("/bin/echo", "x"),
        "log_file": folder / "one.log",
    }
    return ProgramSpec(**(values | changes))  # type: ignore[arg-type]


def read_back(folder: Path, program: ProgramSpec) -> dict[str, object]:
    """Return what supervisord itself makes of the configuration."""
    daemon = DaemonSpec(folder / "s.sock", folder, "user", "100%secret", is_root=False)
    path = folder / "supervisord.conf"
    path.write_text(render_configuration(daemon, [program]))
    options = ServerOptions()
    options.configfile = str(path)
    options.read_config(str(path))
    [group] = options.configroot.supervisord.process_group_configs
    [config] = group.process_configs
    return dict(vars(config))


@pytest.mark.parametrize(
    "argument",
    [
        "plain",
        "two words",
        "100%",
        "a ;b",
        ";b",
        "# x",
        "a #b",
        "it's",
        'say "x"',
        "%(here)s",
        "\\",
        "",
    ],
)
def test_every_argument_survives(tmp_path: Path, argument: str) -> None:
    """A command line means what it says."""
    config = read_back(tmp_path, spec(tmp_path, argv=("/bin/echo", argument, "end")))
    # As supervisord splits it.
    assert shlex.split(str(config["command"])) == ["/bin/echo", argument, "end"]


def test_stop_rules_reach_supervisord(tmp_path: Path) -> None:
    """SIGTERM goes to the server alone, the kill to its whole group, and nothing restarts it."""
    config = read_back(tmp_path, spec(tmp_path, stop_wait_s=60))
    assert config["stopwaitsecs"] == 60
    assert config["stopasgroup"] is False
    assert config["killasgroup"] is True
    assert config["autostart"] is False
    assert config["autorestart"] is False


def test_a_service_restarts(tmp_path: Path) -> None:
    """A crashed service comes back by itself."""
    text = render_program(spec(tmp_path, restarts=True, user="nobody"))
    assert "autorestart=true" in text
    assert "user=nobody" in text


def test_environment_survives(tmp_path: Path) -> None:
    """Passwords with per cent signs and commas arrive whole."""
    value = "amqp://u:50%25,x@127.0.0.1:1/;v#w"
    config = read_back(tmp_path, spec(tmp_path, environment={"GATEMESH_AMQP_URL": value}))
    assert config["environment"] == {"GATEMESH_AMQP_URL": value}


@given(printable)
def test_a_value_is_read_back_or_refused(value: str) -> None:
    """No value is changed silently."""
    try:
        text = render_environment({"NAME": value})
    except MeshError:
        return
    assert dict_of_key_value_pairs(text.replace("%%", "%")) == {"NAME": value}


@pytest.mark.parametrize("value", ['a"b', "a\nb", "a ;b", "a #b", "a'"])
def test_what_would_be_changed_is_refused_by_name(value: str) -> None:
    """A person learns which setting to write otherwise."""
    with pytest.raises(MeshError, match="NAME holds"):
        render_environment({"NAME": value})
