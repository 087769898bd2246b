"""The stack of compose.yaml under a name of its own, driven and read as a user would."""

import base64
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
UP_DEADLINE_S = 300
BUILD_DEADLINE_S = 1_200
CALL_DEADLINE_S = 150
LOOP_DEADLINE_S = 180.0
INTERVAL_S = 0.5

OURS = ("agent", "health_manager", "executor", "shadow", "console", "engines")
LASTING = (*OURS, "rabbitmq", "postgres", "prometheus", "grafana")
ENGINES = ("engine-0", "engine-1", "engine-2")


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Composed:
    """One running stack."""

    project: str
    agent_port: int = field(default_factory=free_port)
    console_port: int = field(default_factory=free_port)
    options: tuple[str, ...] = ()
    """More of `docker compose` itself, such as a profile."""
    settings: dict[str, str] = field(default_factory=dict)

    def compose(self, *arguments: str, deadline_s: float = CALL_DEADLINE_S, stdin: str = "") -> str:
        """Run `docker compose` and return what it prints; fail with what it says."""
        result = subprocess.run(
            [
                "docker",
                "compose",
                "-f",
                "compose.yaml",
                *self.options,
                "-p",
                self.project,
                *arguments,
            ],
            cwd=REPOSITORY,
            env={
                **os.environ,
                "GATEMESH_AGENT_PORT": str(self.agent_port),
                "GATEMESH_CONSOLE_PORT": str(self.console_port),
                **self.settings,
            },
            input=stdin,
            capture_output=True,
            text=True,
            timeout=deadline_s,
            check=False,
        )
        assert result.returncode == 0, f"{arguments}:\n{result.stdout}\n{result.stderr}"
        return result.stdout

    def up(self) -> None:
        """Start what does not run, and wait until all of it is healthy."""
        wait = ("--wait", "--wait-timeout", str(UP_DEADLINE_S))
        self.compose("up", "-d", *wait, deadline_s=UP_DEADLINE_S + 60)

    def execute(self, service: str, *command: str) -> str:
        """Run a command inside a service's container."""
        return self.compose("exec", "-T", service, *command)

    def python(self, service: str, code: str) -> str:
        """Run Python inside a service's container."""
        return self.execute(service, "python", "-c", code)

    def containers(self) -> dict[str, dict[str, Any]]:
        """Return what compose says of each container that exists, by service."""
        lines = self.compose("ps", "-a", "--format", "json").splitlines()
        return {row["Service"]: row for row in map(json.loads, lines)}

    def inspected(self, service: str) -> dict[str, Any]:
        """Return all that the engine knows of a service's container."""
        identity = self.compose("ps", "-a", "-q", service).strip()
        shown = subprocess.run(
            ["docker", "inspect", identity], capture_output=True, check=True, timeout=60
        )
        return dict(json.loads(shown.stdout)[0])

    def secrets(self) -> dict[str, str]:
        """Return every password that was made."""
        reading = ("run", "--rm", "-T", "--entrypoint", "cat", "secrets")
        return dict(json.loads(self.compose(*reading, "/secrets/own/secrets.json")))

    def psql(self, query: str, **values: str) -> list[str]:
        """Return the rows that the readers' login gets, columns parted by bars.

        A value is written `:'name'` in the query.
        """
        words = 'PGPASSWORD=$(cat /run/gatemesh/reader) exec psql -h 127.0.0.1 -U reader "$@"'
        settings = {"ON_ERROR_STOP": "1"} | values
        options = (
            "-d",
            "gatemesh",
            "-At",
            *(f"-v{name}={text}" for name, text in settings.items()),
        )
        command = ("exec", "-T", "postgres", "sh", "-c", words, "psql", *options)
        return self.compose(*command, stdin=query).splitlines()

    def is_healthy(self) -> bool:
        """Tell whether every lasting container is healthy."""
        found = self.containers()
        return all(found[name]["Health"] == "healthy" for name in LASTING)

    def is_settled(self) -> bool:
        """Tell whether every engine serves and nothing is open."""
        [row] = self.psql(
            "SELECT (SELECT count(*) FROM instance_health_v1 WHERE in_rotation),"
            " (SELECT count(*) FROM incidents_v1 WHERE ended_at IS NULL),"
            " (SELECT count(*) FROM commands_v1 WHERE ended_at IS NULL)"
        )
        return row == f"{len(ENGINES)}|0|0"

    def settled(self) -> None:
        """Wait until the stack is at rest."""
        until(self.is_settled, "every engine in rotation, nothing open")

    def commands(self, since: datetime) -> list[str]:
        """Return action, instance, status and whether it took a kill, oldest first."""
        return self.psql(
            "SELECT action, instance_id, status, coalesce(killed, false) FROM commands_v1"
            " WHERE issued_at >= :'since' AND action <> 'readmit' ORDER BY issued_at",
            since=since.isoformat(),
        )

    def incidents(self, since: datetime) -> list[str]:
        """Return condition, status and reason of the incidents since a moment."""
        return self.psql(
            "SELECT condition, status, reason FROM incidents_v1 WHERE opened_at >= :'since'",
            since=since.isoformat(),
        )

    def life_of(self, engine: str) -> str:
        """Return the present life of an engine, its process and start."""
        query = "SELECT life_id FROM instance_health_v1 WHERE instance_id = :'engine'"
        [life] = self.psql(query, engine=engine)
        return life

    def ask(
        self, prompt: str, headers: dict[str, str] | None = None, **fields: object
    ) -> tuple[int, Any]:
        """Send one chat request through the agent; return status and answer."""
        messages = [{"role": "user", "content": prompt}]
        body = {"model": "sim", "messages": messages, **fields}
        url = f"http://127.0.0.1:{self.agent_port}/v1/chat/completions"
        return call(url, body, headers or {})

    def spoil(self, engine: str, fault: str, requests: int | None = None) -> None:
        """Make an engine emit a fault with so many answers, or with every one until its end."""
        port, order = (
            8000 + ENGINES.index(engine),
            json.dumps({"fault": fault, "requests": requests}),
        )
        self.python(
            "engines",
            "import urllib.request as r; r.urlopen(r.Request("
            f"'http://127.0.0.1:{port}/sim/fault', b'{order}',"
            " {'Content-Type': 'application/json'}))",
        )

    def broker(self, method: str, path: str, body: object = None) -> Any:
        """Call the broker's HTTP API as a person would."""
        address = self.compose("port", "rabbitmq", "15672").strip()
        login = base64.b64encode(f"gatemesh:{self.secrets()['broker']}".encode()).decode()
        headers = {"Authorization": f"Basic {login}"}
        status, answer = call(f"http://{address}/api/{path}", body, headers, method)
        assert status < 300, answer
        return answer

    def page(self, service: str, port: int, path: str, password: str = "") -> Any:
        """Read a page of Prometheus or Grafana through its published port."""
        address = self.compose("port", service, str(port)).strip()
        login = base64.b64encode(f"admin:{password}".encode()).decode()
        headers = {"Authorization": f"Basic {login}"} if password else {}
        status, answer = call(f"http://{address}{path}", None, headers, "GET")
        assert status == 200, answer
        return answer

    def publish(self, exchange: str, routing_key: str, message: dict[str, Any]) -> None:
        """Publish a message by hand; fail when the broker routes it to nobody."""
        envelope = {
            "properties": {"delivery_mode": 2, "content_type": "application/json"},
            "routing_key": routing_key,
            "payload": json.dumps(message),
            "payload_encoding": "string",
        }
        answer = self.broker("POST", f"exchanges/%2F/{exchange}/publish", envelope)
        assert answer == {"routed": True}


def call(url: str, body: object, headers: dict[str, str], method: str = "POST") -> tuple[int, Any]:
    """Make one HTTP call; return the status and the JSON of the answer, None without one."""
    request = urllib.request.Request(  # noqa: S310 (this machine)
        url,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **headers},
        method=method,
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
            status, text = response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            status, text = error.code, error.read()
    return status, json.loads(text) if text else None


def until(reached: Callable[[], bool], what: str, deadline_s: float = LOOP_DEADLINE_S) -> None:
    """Wait until something is so; fail with its name when it is not in time."""
    end = time.monotonic() + deadline_s
    while not reached():
        assert time.monotonic() < end, f"not within {deadline_s:.0f} s: {what}"
        time.sleep(INTERVAL_S)


def now() -> datetime:
    """Return the present moment."""
    return datetime.now(UTC)


def published_addresses(containers: Sequence[dict[str, Any]]) -> set[str]:
    """Return the addresses of the host on which containers listen."""
    ports = [port for one in containers for port in one["Publishers"] or ()]
    return {port["URL"] for port in ports if port["PublishedPort"]}
