"""All looks together, where nothing answers; a real stack is looked at in another test."""

from datetime import UTC, datetime

import pytest

from gatemesh_ctl.addresses import Addresses
from gatemesh_ctl.doctor import Patient, admin_urls, diagnose
from gatemesh_ctl.errors import CtlError, UnreachableError
from gatemesh_ctl.findings import Finding, Level


def away(url: str) -> list[Finding]:
    """Be a broker that does not answer."""
    raise UnreachableError("the broker does not answer", "check that it runs")


def test_everything_that_does_not_answer_is_told() -> None:
    """The first fault hides no other."""
    nowhere = Addresses("amqp://127.0.0.1:1/", "postgresql://u:secret@127.0.0.1:1/d")
    found = diagnose(Patient(nowhere, lambda: datetime.now(UTC), away))
    faults = {one.check: one for one in found if one.level is Level.FAULT}
    assert set(faults) == {"broker", "database"}
    assert all(one.cure for one in faults.values())
    assert "secret" not in str(found)


def test_unknown_addresses_are_findings() -> None:
    """With the variables to set."""
    found = diagnose(Patient(Addresses(None, None), lambda: datetime.now(UTC), away))
    cures = " ".join(one.cure for one in found)
    assert "GATEMESH_AMQP_URL" in cures
    assert "GATEMESH_DATABASE_URL" in cures


def test_admin_ports_are_those_given_or_those_of_the_local_stack() -> None:
    """What is given goes before."""
    local = {"agent": "http://127.0.0.1:2", "executor": "http://127.0.0.1:3"}
    run = {"ports": {"agent": 1, "agent_admin": 2, "notifier_admin": 4}, "admin_urls": local}
    assert admin_urls((), run) == local
    assert admin_urls(["a=http://h:1"], run) == {"a": "http://h:1"}
    assert admin_urls((), {}) == {}
    with pytest.raises(CtlError, match="NAME=URL"):
        admin_urls(["http://h:1"], {})
