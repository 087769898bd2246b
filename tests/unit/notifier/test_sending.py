"""Through apprise, to a real local web server; addresses stay out of every log."""

import io
import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from pydantic import SecretStr

from gatemesh_common.errors import SettingsError
from gatemesh_common.log import configure_logging
from gatemesh_notifier.facts import Level
from gatemesh_notifier.sending import (
    TYPES,
    OursOnly,
    keep_addresses_out_of_logs,
    open_target,
    sender,
)
from gatemesh_notifier.targets import Target
from gatemesh_notifier.wording import Text

# apprise's part for encrypted mail looks for a module that Python 3.13 no longer has.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")

TEXT = Text("title", "one\ntwo", Level.PAGE)
SECRET = "s3cret-path"


def target_at(url: str) -> Target:
    """Return a target."""
    return Target(name="room", url=SecretStr(url))


@pytest.fixture
def quiet_logs() -> Iterator[io.StringIO]:
    """What the process logs, set up as the service does, at the most talkative level."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    configure_logging("notifier", "DEBUG")
    stream = io.StringIO()
    handler = root.handlers[0]
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(stream)
    keep_addresses_out_of_logs()
    yield stream
    root.handlers[:] = before
    root.setLevel(level)


@pytest.mark.parametrize("status", [200, 500])
async def test_a_webhook_gets_it(status: int, quiet_logs: io.StringIO) -> None:
    """True only when the other side took it; no log names the address."""
    bodies: list[dict[str, Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Keep what comes."""
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        target = target_at(f"json://u:{SECRET}@127.0.0.1:{server.server_port}/{SECRET}?x={SECRET}")
        taken = await sender(target, open_target(target))(TEXT)
    finally:
        server.shutdown()
        server.server_close()
    assert taken is (status == 200)
    assert [(body["title"], body["message"], body["type"]) for body in bodies] == [
        ("title", "one\ntwo", "failure")
    ]
    assert SECRET not in quiet_logs.getvalue()


async def test_nobody_there_is_no_delivery(quiet_logs: io.StringIO) -> None:
    """And no exception, and no address in a log."""
    target = target_at(f"json://u:{SECRET}@127.0.0.1:1/{SECRET}")
    assert not await sender(target, open_target(target))(TEXT)
    logging.getLogger("urllib3.connectionpool").warning("retrying /%s", SECRET)
    assert SECRET not in quiet_logs.getvalue()


class Breaking:
    """A plugin with a fault."""

    def notify(self, *_: object, **__: object) -> bool:
        """Raise what names the address."""
        raise RuntimeError(SECRET)


class Hanging:
    """A plugin that nobody answers."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def notify(self, *_: object, **__: object) -> bool:
        """Wait until released."""
        return self.released.wait(30)


async def test_a_plugin_that_breaks_is_no_delivery(quiet_logs: io.StringIO) -> None:
    """What it raises may name the address: only its kind is logged."""
    assert not await sender(target_at("json://h"), Breaking())(TEXT)
    assert "RuntimeError" in quiet_logs.getvalue()
    assert SECRET not in quiet_logs.getvalue()


async def test_a_plugin_that_hangs_is_given_up() -> None:
    """The deadline is ours."""
    plugin = Hanging()
    assert not await sender(target_at("json://h"), plugin, deadline_s=0.01)(TEXT)
    plugin.released.set()


@pytest.mark.parametrize(
    "url",
    [
        "dingtalk://secret@abcdefgh",
        "wecombot://0d5b2ba1-8b9c-4b8e-9b1d-3c4d5e6f7a8b",
        "feishu://4f7a2b1c-abc1-4ef9-9c3a-c3f1e6b1a2d3",
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#alarm",
        "pagerduty://A0123456789012345678901234567890@A01234567890123456?action=map&dedup=x",
        "mailtos://user:pass@example.org?from=a@example.org&to=b@example.org",
        "json://127.0.0.1",
    ],
)
def test_the_kinds_that_people_use_are_known(url: str) -> None:
    """The names in the documentation are apprise's."""
    assert open_target(target_at(url)) is not None


@pytest.mark.parametrize("url", [f"slack://{SECRET}", f"nonsense://{SECRET}", SECRET])
def test_an_address_that_cannot_be_used_is_told_by_name(url: str) -> None:
    """At start; the address itself is not repeated."""
    with pytest.raises(SettingsError, match="target 'room'") as raised:
        open_target(target_at(url))
    assert SECRET not in str(raised.value)


def test_every_level_has_a_kind() -> None:
    """Services show and resolve by it."""
    assert set(TYPES) == set(Level)


@pytest.mark.parametrize(
    ("name", "passes"),
    [
        ("gatemesh_notifier.courier", True),
        ("__main__", True),
        ("apprise", False),
        ("urllib3", False),
    ],
)
def test_only_our_own_records_pass(name: str, passes: bool) -> None:  # noqa: FBT001
    """Whatever their level."""
    record = logging.LogRecord(name, logging.CRITICAL, "", 0, "x", None, None)
    assert OursOnly().filter(record) is passes
