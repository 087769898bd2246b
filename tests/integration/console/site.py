"""A console as a process, and a client that keeps cookies as a browser does."""

import http.client
import os
import random
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from gatemesh_console.tokens import Role, digest_of
from gatemesh_mesh.ports import choose_ports

TOKENS = {Role.OPERATOR: "token-of-ann", Role.VIEWER: "token-of-bob"}
NAMES = {Role.OPERATOR: "ann", Role.VIEWER: "bob"}
FORM_KEY = re.compile(r'name="form_key" value="([^"]+)"')
START_DEADLINE_S = 120.0


@dataclass
class Answer:
    """What a page answered."""

    status: int
    headers: Mapping[str, str]
    text: str


@dataclass
class Client:
    """Asks for pages, keeps cookies, follows no redirect."""

    port: int
    cookies: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> Answer:
        """Ask for a page."""
        return self._ask("GET", path, None, headers)

    def post(self, path: str, form: Mapping[str, str], **headers: str) -> Answer:
        """Send a form from a page of this very site."""
        told = {"content-type": "application/x-www-form-urlencoded"} | headers
        told.setdefault("origin", f"http://127.0.0.1:{self.port}")
        return self._ask("POST", path, urlencode(form), told)

    def sign_in(self, role: Role) -> Answer:
        """Begin a session."""
        return self.post("/sign-in", {"token": TOKENS[role], "next": "/"})

    def form_key(self) -> str:
        """Return the key that forms of this session carry."""
        found = FORM_KEY.search(self.get("/policy").text)
        assert found is not None
        return found[1]

    def _ask(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        jar = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        try:
            connection.request(method, path, body, {"cookie": jar, **self.headers, **headers})
            answer = connection.getresponse()
            for line in answer.headers.get_all("set-cookie") or ():
                name, _, value = line.partition(";")[0].partition("=")
                self.cookies[name] = value.strip('"')
            return Answer(answer.status, dict(answer.headers), answer.read().decode())
        finally:
            connection.close()


class Console:
    """The console as operators run it."""

    def __init__(self, database_url: str, amqp_url: str, **settings: str) -> None:
        ports = choose_ports(["pages", "admin"], random.Random())
        self.port, self.admin_port = ports["pages"], ports["admin"]
        lines = [f"{NAMES[role]} {role} {digest_of(token)}" for role, token in TOKENS.items()]
        environment = {
            **os.environ,
            "GATEMESH_DATABASE_URL": database_url,
            "GATEMESH_AMQP_URL": amqp_url,
            "GATEMESH_CONSOLE_PORT": str(self.port),
            "GATEMESH_CONSOLE_ADMIN_PORT": str(self.admin_port),
            "GATEMESH_CONSOLE_TOKENS": ";".join(lines),
            "GATEMESH_CONSOLE_WATCH_EVERY_S": "0.5",
            # A busy machine is slow, and that is no fault of what is tested.
            "GATEMESH_CONSOLE_DATABASE_DEADLINE_S": "30",
            **settings,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gatemesh_console"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def url(self) -> str:
        """Where the pages are."""
        return f"http://127.0.0.1:{self.port}"

    def client(self) -> Client:
        """Return a browser that has been nowhere."""
        return Client(self.port)

    def admin(self, path: str) -> str:
        """Return a page of the admin port."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}{path}", timeout=5) as it:
            return str(it.read().decode())

    def await_ready(self) -> None:
        """Return once the console has reached the database."""
        deadline = time.monotonic() + START_DEADLINE_S
        while True:
            try:
                self.admin("/readyz")
            except (urllib.error.URLError, OSError):
                assert self.process.poll() is None, "the console has ended"
                assert time.monotonic() < deadline, "the console is not ready"
                time.sleep(0.05)
            else:
                return

    def stop(self) -> str:
        """End it and return its log."""
        self.process.terminate()
        log, _ = self.process.communicate(timeout=30)
        return log
