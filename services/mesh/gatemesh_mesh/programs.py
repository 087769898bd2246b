"""What a program of the stack is, and how supervisord reads it."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gatemesh_mesh.errors import MeshError

LOG_BYTES = 20_000_000


@dataclass(frozen=True)
class ProgramSpec:
    """One program: what to run, as whom, and how it wants to be stopped."""

    name: str
    argv: tuple[str, ...]
    log_file: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    cwd: Path = Path("/")
    user: str | None = None
    """Run as this user; None means as the one who starts the stack."""
    stop_signal: str = "TERM"
    stop_wait_s: int = 20
    """How long it may take to leave before it is killed."""
    restarts: bool = False
    """Whether supervisord starts it again when it dies."""
    kill_group: bool = True
    """Whether the kill after a stop in vain goes to all it has started."""


@dataclass(frozen=True)
class DaemonSpec:
    """The supervisord itself."""

    socket: Path
    folder: Path
    user: str
    password: str
    is_root: bool


def render_configuration(daemon: DaemonSpec, programs: Iterable[ProgramSpec]) -> str:
    """Return the configuration of a supervisord that starts nothing by itself."""
    blocks = [render_daemon(daemon), *(render_program(program) for program in programs)]
    return "\n".join(blocks)


def render_daemon(daemon: DaemonSpec) -> str:
    """Return the sections of supervisord itself: a private socket and nothing else."""
    lines = [
        "[unix_http_server]",
        f"file={escape(str(daemon.socket))}",
        "chmod=0700",
        f"username={escape(daemon.user)}",
        f"password={escape(daemon.password)}",
        "",
        "[supervisord]",
        f"logfile={escape(str(daemon.folder / 'supervisord.log'))}",
        f"pidfile={escape(str(daemon.folder / 'supervisord.pid'))}",
        f"childlogdir={escape(str(daemon.folder))}",
        "nodaemon=true",
        "silent=true",
        *(["user=root"] if daemon.is_root else []),
        "",
        "[rpcinterface:supervisor]",
        "supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface",
        "",
    ]
    return "\n".join(lines)


def render_program(program: ProgramSpec) -> str:
    """Return one program's section."""
    command = " ".join(shlex.quote(part) for part in program.argv)
    options = {
        "command": escape(command.replace(" ;", " '';").replace(" #", " ''#")),
        "directory": escape(str(program.cwd)),
        "user": program.user,
        "environment": render_environment(program.environment) or None,
        "autostart": "false",
        "autorestart": _word(program.restarts),
        # Without restarts, an early end is an end and not a failed try.
        "startsecs": "1" if program.restarts else "0",
        "startretries": "20" if program.restarts else "0",
        "stopsignal": program.stop_signal,
        "stopwaitsecs": str(program.stop_wait_s),
        "stopasgroup": "false",
        "killasgroup": _word(program.kill_group),
        "redirect_stderr": "true",
        "stdout_logfile": escape(str(program.log_file)),
        "stdout_logfile_maxbytes": str(LOG_BYTES),
        "stdout_logfile_backups": "1",
    }
    lines = [f"{name}={value}" for name, value in options.items() if value is not None]
    return "\n".join([f"[program:{program.name}]", *lines, ""])


def render_environment(environment: Mapping[str, str]) -> str:
    """Return the `environment=` value.

    Raises:
        MeshError: a value holds what supervisord cannot read back.
    """
    return ",".join(
        f'{name}="{escape(_representable(name, value))}"'
        for name, value in sorted(environment.items())
    )


def _representable(name: str, value: str) -> str:
    # Its reader knows no escape inside quotes, strips both kinds, and cuts a line at " ;" or " #".
    if any(piece in value for piece in ('"', "\n", " ;", " #")) or value != value.strip("'"):
        raise MeshError(
            f"{name} holds a double quote, a line break, ' ;', ' #', or starts or ends in a quote",
            f"write {name} without them (percent-encode them in an address)",
        )
    return value


def escape(text: str) -> str:
    """Return the text so that supervisord expands nothing in it."""
    return text.replace("%", "%%")


def _word(value: bool) -> str:  # noqa: FBT001 (a plain conversion)
    return "true" if value else "false"
