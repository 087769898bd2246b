"""Pages without a network: a store that keeps rows in memory, and a client that keeps cookies."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette

from gatemesh_common.errors import DatabaseUnavailableError
from gatemesh_common.messages import ActionRequest
from gatemesh_console.absence import Absence
from gatemesh_console.application import make_application
from gatemesh_console.desk import Desk
from gatemesh_console.live import Feed
from gatemesh_console.paging import Row
from gatemesh_console.sessions import Sessions
from gatemesh_console.settings import ConsoleSettings
from gatemesh_console.store import Store
from gatemesh_console.tokens import Role, parse_tokens, token_line

DATABASE = "postgresql://127.0.0.1/none"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOSTILE = "<script>alert('x')</script>\"'&"
OPERATOR, VIEWER = "token-of-ann", "token-of-bob"
FORM_KEY = re.compile(r'name="form_key" value="([^"]+)"')

POOL = {
    "pool": "chat",
    "instances": 2,
    "in_rotation": 1,
    "held_incidents": 0,
    "paused": False,
    "braked": True,
    "braked_at": NOW,
    "brake_reason": HOSTILE,
    "brake_reset_at": NOW,
    "brake_reset": "skip",
    "mode": "act",
    "observed_incidents": 0,
    "told_incidents": 0,
    "suspect_version": HOSTILE,
}
INSTANCE = {
    "instance_id": "engine/<0>",
    "pool": "chat",
    "state": "healthy",
    "state_since": NOW,
    "in_rotation": True,
    "weight": 0.5,
    "score": 92.0,
    "incarnation": 3,
    "model_version": HOSTILE,
    "incident_id": "i-1",
    "condition": "B",
    "incident_status": "open",
    "incident_cause": HOSTILE,
    "paused": False,
    "mode": "act",
    "would": "",
    "base_url": HOSTILE,
    "observed_at": NOW,
    "command_in_flight": None,
    "due_at": None,
    "recent_restarts": 1,
}
INCIDENT = {
    "incident_id": "i-1",
    "instance_id": "engine/<0>",
    "pool": "chat",
    "incarnation": 3,
    "condition": "B",
    "status": "open",
    "cause": HOSTILE,
    "reason": HOSTILE,
    "playbook": "confirm",
    "opened_at": NOW,
    "ended_at": None,
    "duration_s": 12.5,
    "policy_version": "v-1",
    "mode": "observe",
    "would": HOSTILE,
    "core_dump": HOSTILE,
    "steps": ["eject", HOSTILE],
}
VERDICT = {
    "id": 1,
    "timestamp": NOW,
    "received_at": NOW,
    "check_level": "L3",
    "outcome": "failed",
    "reason": HOSTILE,
    "hard": True,
    "score": 0.93,
    "threshold": 0.4,
    "span": {"char_start": 3, "char_end": 9, "token_start": None},
    "request_id": HOSTILE,
    "details": {"text": HOSTILE},
}
TRANSITION = {
    "id": 1,
    "at": NOW,
    "before_state": "healthy",
    "after_state": "ejected",
    "trigger": HOSTILE,
    "score": 41.25,
    "policy_version": "v-1",
}
COMMAND = {
    "issued_at": NOW,
    "action": "eject",
    "fence": 7,
    "status": "succeeded",
    "killed": True,
    "reason": HOSTILE,
    "steps": [{"step": "taken_out", "at": "x", "duration_s": 0.5}],
    "ended_at": NOW,
}
EVENT = {
    "at": NOW,
    "instance_id": "engine/<0>",
    "incident_id": "i-1",
    "kind": "state",
    "what": HOSTILE,
    "detail": HOSTILE,
}
CAPTURE = {
    "capture_id": "c-1",
    "at": NOW,
    "request_id": HOSTILE,
    "check_level": "L3",
    "reason": HOSTILE,
    "score": 1.5,
    "threshold": 1.0,
    "model_version": HOSTILE,
    "engine_version": "1",
    "instance_id": "engine/<0>",
    "second_instance_id": "engine-1",
    "steps": [
        {"n": 4, "logprob": -0.5, "entropy": 2.5, "fault": False},
        {"n": 5, "logprob": None, "entropy": None, "fault": True},
    ],
    "has_text": True,
}
TEXTS = {
    "capture_id": "c-1",
    "tokens": ["good", HOSTILE],
    "prompt": HOSTILE,
    "answer": HOSTILE,
    "second_answer": "fine",
}


class MemoryStore(Store):
    """Answers every query from lists; a query it does not know is a fault of the test."""

    def __init__(self) -> None:
        super().__init__(create_async_engine("postgresql+psycopg://nowhere/none"), Absence(0.0))
        self.tables: dict[str, list[Row]] = {
            "pools_v1": [dict(POOL)],
            "instance_health_v1": [dict(INSTANCE)],
            "incidents_v1": [dict(INCIDENT)],
            "verdicts_v1": [dict(VERDICT)],
            "transitions_v1": [dict(TRANSITION)],
            "commands_v1": [dict(COMMAND)],
            "arrivals_v1": [dict(EVENT)],
            "requests_v1": [],
            "captures_v1": [],
            "capture_texts_v1": [],
            "traffic_v1": [{"pool": "chat", "gate": "L1", "passed": 99, "failed": 1}],
            "policy_versions_v1": [
                {"version": "v-1", "first_used_at": NOW, "body": {"note": HOSTILE}}
            ],
        }
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.is_away = False

    async def _read(self, query: str, values: Mapping[str, Any]) -> list[Row]:
        if self.is_away:
            raise DatabaseUnavailableError("database: OperationalError")
        self.asked.append((query, dict(values)))
        view = re.findall(r"FROM (\w+_v1)\b", query)[0]
        if "count(*) AS instances" in query:
            return [{"pool": "chat", "state": "healthy", "instances": 2}]
        if "date_bin" in query:
            return [{"at": NOW, "check_level": "L1", "failed": 4}]
        keys = ("instance_id", "incident_id", "message_id", "version")
        wanted = {key: values[key] for key in keys if values.get(key) is not None}
        by_key = {key: value for key, value in wanted.items() if f"WHERE {key} = " in query}
        found = [
            row
            for row in self.tables[view]
            if all(row.get(key, value) == value for key, value in by_key.items())
        ]
        if view == "arrivals_v1" and (after := values.get("after_0")) is not None:
            # Newest first, as the view is asked; no two at one moment.
            found = [row for row in found if row["at"].isoformat() < after]
        return found[: values.get("limit", 1)]


@dataclass
class Answer:
    """What the application answered."""

    status: int
    headers: list[tuple[str, str]]
    text: str

    def header(self, name: str) -> str:
        """Return one header; nothing without it."""
        return next((value for key, value in self.headers if key == name), "")


@dataclass
class Client:
    """Calls the application as a server would."""

    application: Starlette
    cookies: dict[str, str] = field(default_factory=dict)
    host: str = "console.test"

    async def get(self, path: str, **headers: str) -> Answer:
        """Ask for a page."""
        return await self._ask("GET", path, b"", headers)

    async def post(self, path: str, form: Mapping[str, str], **headers: str) -> Answer:
        """Send a form from a page of this very site."""
        told = {"origin": f"http://{self.host}"} | headers
        return await self._ask("POST", path, urlencode(form).encode(), told)

    async def sign_in(self, token: str) -> Answer:
        """Begin a session."""
        return await self.post("/sign-in", {"token": token, "next": "/"})

    async def form_key(self) -> str:
        """Return the key that forms of this session carry."""
        found = FORM_KEY.search((await self.get("/policy")).text)
        assert found is not None
        return found[1]

    async def _ask(self, method: str, path: str, body: bytes, told: Mapping[str, str]) -> Answer:
        jar = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"host": self.host, "cookie": jar, **told}
        bare, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "method": method,
            "scheme": "http",
            "path": bare,
            "raw_path": bare.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
            "server": (self.host, 80),
        }
        sent: list[dict[str, Any]] = []

        asked = 0

        async def receive() -> dict[str, Any]:
            nonlocal asked
            asked += 1
            if asked > 1:
                # A browser that waits for its answer tells nothing more.
                await asyncio.Event().wait()
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)
            await asyncio.sleep(0)

        await self.application(scope, receive, send)
        return self._read(sent)

    def _read(self, sent: list[dict[str, Any]]) -> Answer:
        headers = [(key.decode(), value.decode()) for key, value in sent[0]["headers"]]
        for key, value in headers:
            if key == "set-cookie":
                name, _, kept = value.partition(";")[0].partition("=")
                self.cookies[name] = kept.strip('"')
        text = b"".join(part.get("body", b"") for part in sent[1:]).decode()
        return Answer(sent[0]["status"], headers, text)


@dataclass
class Office:
    """An application and what it works with."""

    store: MemoryStore
    published: list[ActionRequest]
    desk: Desk
    client: Client


def make_office(**settings: Any) -> Office:
    """Return an application over rows in memory."""
    store, published = MemoryStore(), list[ActionRequest]()

    async def publish(request: ActionRequest) -> None:
        published.append(request)

    lines = [token_line("ann", Role.OPERATOR, OPERATOR), token_line("bob", Role.VIEWER, VIEWER)]
    desk = Desk(
        ConsoleSettings(**{"database_url": DATABASE} | settings),
        store,
        parse_tokens("\n".join(lines)),
        Sessions(lambda: 0.0, 3600, 600),
        publish,
        Feed(NOW),
        clock=lambda: NOW,
    )
    return Office(store, published, desk, Client(make_application(desk)))


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    """Return an application where ann, an operator, is signed in."""
    made = make_office()
    await made.client.sign_in(OPERATOR)
    yield made
    await made.store.close()
