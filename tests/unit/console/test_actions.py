"""Asking for actions: tried, confirmed, sent; never by another site, never by a viewer."""

from uuid import uuid4

import pytest

from gatemesh_common.errors import BrokerUnavailableError
from gatemesh_common.messages import ActionRequest, TrialRequest
from gatemesh_console.asking import ACTIONS
from gatemesh_console.desk import Desk

from .conftest import HOSTILE, NOW, Office

DRAIN = {"action": "drain", "pool": "chat", "instance_id": "engine-0", "reason": HOSTILE}
ROW = {
    "message_id": "",
    "requested_at": NOW,
    "requested_by": HOSTILE,
    "user_id": "broker-user",
    "action": "drain",
    "pool": "chat",
    "instance_id": "engine-0",
    "reason": HOSTILE,
    "outcome": "refused",
    "why": HOSTILE,
    "decided_at": NOW,
    "dry_run": True,
}


async def ask(office: Office, step: str, **more: str) -> tuple[int, str]:
    """Send the form of a drain; return the status and where it leads or what it shows."""
    form = {"form_key": await office.client.form_key(), **DRAIN, "step": step, **more}
    answer = await office.client.post("/actions", form)
    return answer.status, answer.header("location") or answer.text


@pytest.mark.parametrize("action", ACTIONS)
async def test_every_action_has_its_form(office: Office, action: str) -> None:
    """With the pool chosen where there is only one."""
    answer = await office.client.get(f"/actions?action={action}")
    assert answer.status == 200
    assert "<option selected>chat</option>" in answer.text
    assert ('name="instance_id"' in answer.text) is (
        action not in ("pause", "resume", "reset_brake")
    )


async def test_a_trial_is_sent_at_once_and_leads_to_its_answer(office: Office) -> None:
    """It does nothing, so it needs no confirmation."""
    status, target = await ask(office, "try")
    [sent] = office.published
    assert isinstance(sent, TrialRequest)
    assert (status, target) == (303, f"/requests/{sent.message_id}?action=drain&dry_run=true")


async def test_an_action_is_confirmed_before_it_is_sent(office: Office) -> None:
    """The page between shows what is asked, escaped, and publishes nothing."""
    status, text = await ask(office, "confirm")
    assert status == 200
    assert "Are you sure?" in text
    assert HOSTILE not in text
    assert office.published == []
    made = text.partition('name="message_id" value="')[2].partition('"')[0]
    for _ in range(2):
        status, target = await ask(office, "send", message_id=made)
        assert target.startswith(f"/requests/{made}?")
    first, second = office.published
    assert type(first) is ActionRequest
    assert first.message_id == second.message_id == made
    assert (first.requested_by, first.reason) == ("ann", HOSTILE)


async def test_a_fault_comes_back_with_the_form(office: Office) -> None:
    """Nothing that was typed is lost."""
    status, text = await ask(office, "confirm", instance_id="")
    assert status == 422
    assert "instance_id: drain needs an instance" in text
    assert "&lt;script&gt;" in text
    assert office.published == []


@pytest.mark.parametrize(
    ("change", "status"),
    [({"form_key": "x"}, 403), ({"step": "now"}, 400), ({"action": "explode"}, 400)],
)
async def test_what_is_no_form_of_ours_is_refused(
    office: Office, change: dict[str, str], status: int
) -> None:
    """And nothing is sent."""
    form = {"form_key": await office.client.form_key(), **DRAIN, "step": "send", **change}
    assert (await office.client.post("/actions", form)).status == status
    assert office.published == []


async def test_a_form_of_another_site_is_refused(office: Office) -> None:
    """Even with the right key."""
    form = {"form_key": await office.client.form_key(), **DRAIN, "step": "send"}
    answer = await office.client.post("/actions", form, origin="http://evil.test")
    assert answer.status == 403
    assert office.published == []


async def test_a_broker_that_is_away_is_told(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sending again is harmless: it is the same message."""

    async def fail(request: ActionRequest) -> None:
        raise BrokerUnavailableError("no confirmation")

    assert isinstance(office.desk, Desk)
    object.__setattr__(office.desk, "publish", fail)
    status, text = await ask(office, "send")
    assert status == 503
    assert "The broker did not confirm" in text


async def test_a_request_waits_for_its_answer(office: Office) -> None:
    """The page asks again until the manager has decided; then it says how."""
    name = str(uuid4())
    waiting = await office.client.get(f"/requests/{name}?action=drain&dry_run=true")
    assert 'hx-trigger="every 1s"' in waiting.text
    office.store.tables["requests_v1"] = [ROW | {"message_id": name}]
    part = await office.client.get(f"/requests/{name}?action=drain", **{"hx-request": "true"})
    assert "It would be refused" in part.text
    assert "hx-trigger" not in part.text
    assert HOSTILE not in part.text
    office.store.tables["requests_v1"] = [ROW | {"message_id": name, "outcome": "accepted"}]
    accepted = await office.client.get(f"/requests/{name}")
    assert "Ask for it" in accepted.text


async def test_an_unknown_request_is_told(office: Office) -> None:
    """Unless it was sent a moment ago."""
    assert (await office.client.get(f"/requests/{uuid4()}")).status == 404
    assert (await office.client.get("/requests/nonsense")).status == 400


async def test_requests_are_listed(office: Office) -> None:
    """With the proven user beside the written name."""
    office.store.tables["requests_v1"] = [ROW | {"message_id": str(uuid4())}]
    text = (await office.client.get("/requests")).text
    assert "(broker-user)" in text
    assert HOSTILE not in text
    assert "dry run" in text
