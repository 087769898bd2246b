"""Asking by HTTP, decided by a real manager over a real broker."""

import re
import time
from collections.abc import Callable

import pytest
from tests.integration.console.site import Client, Console

from gatemesh_console.tokens import Role

pytestmark = pytest.mark.integration
DEADLINE_S = 60.0


def until(true: Callable[[], bool], what: str) -> None:
    """Return as soon as something is so."""
    deadline = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def ask(client: Client, step: str, **fields: str) -> str:
    """Send a form and return the page that tells how it was decided."""
    form = {"form_key": client.form_key(), "pool": "chat", "step": step, **fields}
    answer = client.post("/actions", form)
    assert answer.status == 303, answer.text
    path = answer.headers["location"]
    until(lambda: "notice good" in shown(client, path) or "notice bad" in shown(client, path), path)
    return shown(client, path)


def shown(client: Client, path: str) -> str:
    """Return a page."""
    return client.get(path).text


def test_a_pool_is_paused_after_a_dry_run(deciding: Console) -> None:
    """The trial does nothing; the request does it, in the name of the token."""
    client = deciding.client()
    client.sign_in(Role.OPERATOR)
    tried = ask(client, "try", action="pause", reason="<b>looking</b>")
    assert "Nothing was done. It would:" in tried
    assert "badge paused" not in shown(client, "/policy")
    done = ask(client, "send", action="pause", reason="<b>really</b>")
    assert "Accepted." in done
    assert "&lt;b&gt;really&lt;/b&gt;" in done
    assert "ann" in done
    assert "badge paused" in shown(client, "/policy")
    ask(client, "send", action="resume")
    assert "badge paused" not in shown(client, "/policy")


def test_a_refusal_is_told_with_its_reason(deciding: Console) -> None:
    """A brake that is not on is not reset."""
    client = deciding.client()
    client.sign_in(Role.OPERATOR)
    refused = ask(client, "send", action="reset_brake", backlog="skip")
    assert "Refused:" in refused


def test_a_request_for_an_instance_opens_an_incident_with_a_page(deciding: Console) -> None:
    """From the button to the incident's commands, all in the browser."""
    client = deciding.client()
    client.sign_in(Role.OPERATOR)
    ask(client, "send", action="quarantine", instance_id="engine-1", reason="driver update")
    until(lambda: "driver update" in shown(client, "/incidents"), "incident")
    listed = shown(client, "/incidents?instance=engine-1")
    path = listed.partition('href="/incidents/')[2].partition('"')[0]
    page = shown(client, f"/incidents/{path}")
    assert re.search(r"quarantine asked by ann \(user \w+\): driver update", page)
    assert "badge quarantined" in page


def test_a_viewer_asks_for_nothing(deciding: Console) -> None:
    """Neither by page nor by form."""
    client = deciding.client()
    client.sign_in(Role.VIEWER)
    form = {"form_key": client.form_key(), "action": "pause", "pool": "chat", "step": "send"}
    assert client.post("/actions", form).status == 403
    assert client.get("/actions?action=pause").status == 403
