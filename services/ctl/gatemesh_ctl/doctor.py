"""All looks of the doctor, one after the other; what fails becomes a finding."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from gatemesh_ctl.addresses import Addresses
from gatemesh_ctl.doctor_database import look_at_database, policy_in_force, store_clock
from gatemesh_ctl.doctor_pages import look_at_engines, look_at_services
from gatemesh_ctl.doctor_policy import Check, judge_file, judge_in_force
from gatemesh_ctl.errors import CtlError
from gatemesh_ctl.findings import Finding, fault_of
from gatemesh_ctl.store import Row, Store


@dataclass(frozen=True)
class Patient:
    """What is to be looked at, and with what."""

    addresses: Addresses
    clock: Callable[[], datetime]
    broker: Callable[[str], list[Finding]]
    """Looks at the broker; apart, since its libraries take long to load."""
    policy_file: Path | None = None
    policy_check: Check | None = None
    admin_urls: Mapping[str, str] = field(default_factory=dict)


def diagnose(patient: Patient) -> list[Finding]:
    """Return everything that was found, in the order in which things depend on each other."""
    found = with_broker(patient)
    try:
        with Store(patient.addresses.database()) as store:
            of_database, instances = with_store(store, patient)
    except CtlError as error:
        of_database, instances = [fault_of("database", error)], []
    found += of_database
    found += look_at_services(patient.admin_urls, patient.clock)
    return [*found, *look_at_engines(instances)]


def with_broker(patient: Patient) -> list[Finding]:
    """Return what there is to say of the broker."""
    try:
        return patient.broker(patient.addresses.broker())
    except CtlError as error:
        return [fault_of("broker", error)]


def with_store(store: Store, patient: Patient) -> tuple[list[Finding], list[Row]]:
    """Return what the database tells, and the instances that it knows."""
    found = look_at_database(store, patient.clock)
    try:
        row = policy_in_force(store)
        found.append(judge_in_force(row, store_clock(store)))
        version = row["policy_version"] if row else None
        found.append(judge_file(patient.policy_file, version, patient.policy_check))
        return found, store.instances()
    except CtlError as error:
        # An empty or unreachable database is a finding already.
        known = any(one.cure == error.way_out or one.check == "migrations" for one in found)
        return found if known else [*found, fault_of("database", error)], []


def admin_urls(given: Iterable[str], run: Mapping[str, Any]) -> dict[str, str]:
    """Return where services' admin ports are: as given, else as the local stack recorded them.

    Raises:
        CtlError: one was not given as NAME=URL.
    """
    named = {}
    for word in given:
        name, equals, url = word.partition("=")
        if not equals or not url.startswith(("http://", "https://")):
            raise CtlError(f"--admin {word!r} is no NAME=URL", "as in agent=http://host:9101")
        named[name] = url
    # Not its ports: some are kept for services that do not run.
    recorded = run.get("admin_urls")
    return named or (recorded if isinstance(recorded, dict) else {})
