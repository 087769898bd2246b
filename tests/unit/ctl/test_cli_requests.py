"""Asking from the command line; the asking itself is tested on a real stack."""

import json
from datetime import UTC, datetime
from typing import cast

import pytest
import typer

from gatemesh_common.messages import ActionRequest
from gatemesh_ctl import cli_requests
from gatemesh_ctl.following import Ending, Followed
from gatemesh_ctl.store import Row, Store

REQUEST = ActionRequest(timestamp=datetime.now(UTC), action="pause", pool="p", requested_by="ann")


class Decided:
    """A history in which the request was decided."""

    def __init__(self, outcome: str, why: str) -> None:
        self._row = {"outcome": outcome, "why": why, "decided_at": datetime.now(UTC)}

    def request(self, message_id: str) -> Row:
        """Return the decision."""
        return self._row


def follow(outcome: str, why: str = "", *, json_form: bool = False) -> None:
    """Follow the request to its end."""
    store = cast(Store, Decided(outcome, why))
    cli_requests.follow(store, REQUEST, 5, json_form=json_form)


def test_an_end_as_asked_is_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    """With the id first, for those who end it early."""
    follow("accepted")
    assert capsys.readouterr().out.splitlines() == [REQUEST.message_id, "done: accepted"]


def test_a_refusal_is_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    """And programs get the reason as a field."""
    with pytest.raises(typer.Exit) as ended:
        follow("refused", "because", json_form=True)
    assert ended.value.exit_code == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["ending"], told["why"], told["timeline"]) == ("refused", "because", [])


def test_facts_of_an_end_name_the_incident() -> None:
    """So that a script can explain it."""
    ended = Followed(Ending.FAILED, "why", "i-1")
    assert cli_requests.followed_facts(REQUEST, ended, [])["incident_id"] == "i-1"


def test_somebody_asks() -> None:
    """The history names a person and a machine."""
    assert "@" in cli_requests.me()
