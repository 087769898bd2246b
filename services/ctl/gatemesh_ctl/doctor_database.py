"""The doctor's look at the database: version, schema, the manager's last decision, the executor."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from gatemesh_common.schema import SCHEMA_VERSION
from gatemesh_ctl.errors import CtlError
from gatemesh_ctl.findings import Finding, fault, fault_of, unknown, warning, well
from gatemesh_ctl.store import Row, Store

OLDEST_TESTED = 15
MIGRATE = "run: python -m gatemesh_health_manager migrate"
SILENT_AFTER = timedelta(seconds=60)
"""Executors tell of each instance every few seconds."""

SERVER = """
    SELECT current_setting('server_version') AS version,
        (SELECT pg_has_role(oid, 'USAGE') FROM pg_roles WHERE rolname = 'gatemesh_reader')
            AS may_read"""
IN_FORCE = """
    SELECT policy_version, at FROM decision_inputs_v1
    WHERE at > now() - interval '3 hours' ORDER BY at DESC, id DESC LIMIT 1"""
FIRST_USED = """
    SELECT version AS policy_version, first_used_at AS at FROM policy_versions_v1
    ORDER BY first_used_at DESC LIMIT 1"""
CLOCK = "SELECT clock_timestamp() AS now"
AHEAD = """
    SELECT extract(epoch FROM max("timestamp" - received_at))::double precision AS ahead_s
    FROM verdicts_v1 WHERE received_at > now() - interval '1 hour'"""


def look_at_database(store: Store, clock: Callable[[], datetime]) -> list[Finding]:
    """Return what there is to say of the server and its schema."""
    try:
        [server] = store.read(SERVER)
        found = [judge_server(server["version"]), judge_role(server["may_read"])]
    except CtlError as error:
        return [fault_of("database", error)]
    found.append(judge_schema(schema_version(store)))
    if found[-1].facts.get("empty"):
        return found
    found.append(judge_executor(store.instances(), store_clock(store)))
    return [*found, *look_at_clock(store, clock)]


def judge_server(version: str) -> Finding:
    """Say whether it is a version that is tested."""
    number = re.match(r"\d+", version)
    if number is None or int(number[0]) < OLDEST_TESTED:
        what = f"PostgreSQL {version} is older than any that is tested"
        return warning("database", what, f"upgrade to {OLDEST_TESTED} or newer", version=version)
    return well("database", f"PostgreSQL {version} answers", version=version)


def judge_role(may_read: bool | None) -> Finding:  # noqa: FBT001 (the server's answer)
    """Say whether there is a role for readers, and whether this user has it."""
    if may_read is None:
        cure = "have an administrator run: CREATE ROLE gatemesh_reader NOLOGIN, then migrate again"
        return warning("reader role", "there is no role gatemesh_reader", cure)
    if not may_read:
        what = "this user has no part in the role gatemesh_reader"
        return unknown(
            "reader role", what, "GRANT gatemesh_reader TO the user, if views are closed"
        )
    return well("reader role", "this user may read the views")


def schema_version(store: Store) -> str | None:
    """Return the number of the last migration; empty before it could be asked, None without any."""
    views = "SELECT to_regclass('schema_v1') AS told, to_regclass('instance_health_v1') AS old"
    [row] = store.read(views)
    if row["told"] is not None:
        rows = store.read("SELECT version FROM schema_v1")
        return str(rows[0]["version"]) if rows else None
    return "" if row["old"] is not None else None


def judge_schema(version: str | None) -> Finding:
    """Say whether the migrations are behind, or ahead of this release."""
    facts = {"found": version or None, "needed": SCHEMA_VERSION}
    if version is None:
        return fault("migrations", "the database is empty", MIGRATE, empty=True, **facts)
    if version < SCHEMA_VERSION:
        what = f"behind: {version or 'older than 0023'}, this release needs {SCHEMA_VERSION}"
        return fault("migrations", what, MIGRATE, **facts)
    if version > SCHEMA_VERSION:
        what = f"ahead: {version}, this release knows {SCHEMA_VERSION}"
        return warning("migrations", what, "bring gatemesh-ctl to the managers' release", **facts)
    return well("migrations", f"at {version}, as this release needs", **facts)


def judge_executor(instances: list[Row], now: datetime) -> Finding:
    """Say whether the executor still tells of the instances."""
    if not instances:
        cure = "name the engines to the executor: docs/executor.md"
        return warning("instances", "no instance is known yet", cure)
    seen = [row["observed_at"] for row in instances if row["observed_at"] is not None]
    if not seen or now - max(seen) > SILENT_AFTER:
        age = f"for {(now - max(seen)).total_seconds():.0f} s" if seen else "ever"
        cure = "see that the executor runs and reaches its backend (its log)"
        return fault("instances", f"nobody has told of any instance {age}", cure)
    silent = [
        row["instance_id"]
        for row in instances
        if row["observed_at"] is None or now - row["observed_at"] > SILENT_AFTER
    ]
    if silent:
        what = f"nobody tells any more of {', '.join(silent[:10])}"
        cure = "are they still in the executor's list? retired ones stay in the history"
        return warning("instances", what, cure, silent=silent)
    return well("instances", f"the executor tells of all {len(instances)}")


def policy_in_force(store: Store) -> Row | None:
    """Return the version that decisions go by, and since when it is known; None before any."""
    rows = store.read(IN_FORCE) or store.read(FIRST_USED)
    return rows[0] if rows else None


def store_clock(store: Store) -> datetime:
    """Return the database's present moment."""
    now: datetime = store.read(CLOCK)[0]["now"]
    return now


def look_at_clock(store: Store, clock: Callable[[], datetime]) -> list[Finding]:
    """Return how far this machine, and the agents, are from the database's and manager's clocks."""
    before = clock()
    database = store_clock(store)
    after = clock()
    skew_s = (before + (after - before) / 2 - database).total_seconds()
    unsure_s = (after - before).total_seconds() / 2
    found = [judge_skew("clock", "this machine and the database", skew_s, unsure_s)]
    ahead: Any = store.read(AHEAD)[0]["ahead_s"]
    if ahead is not None:
        found.append(judge_skew("clock", "agents and the managers", max(0.0, ahead), 0.0))
    return found


SKEW_WARNING_S, SKEW_FAULT_S = 1.0, 10.0
"""Commands expire, and windows count, by seconds."""


def judge_skew(check: str, between: str, skew_s: float, unsure_s: float) -> Finding:
    """Say whether two clocks agree."""
    certain_s = max(0.0, abs(skew_s) - unsure_s)
    facts = {"skew_s": round(skew_s, 3), "unsure_s": round(unsure_s, 3)}
    if certain_s < SKEW_WARNING_S:
        return well(check, f"{between} agree within {max(abs(skew_s), unsure_s):.2f} s", **facts)
    what = f"{between} are {abs(skew_s):.1f} s apart"
    cure = "keep all machines' clocks together (chrony, systemd-timesyncd)"
    grave = fault if certain_s >= SKEW_FAULT_S else warning
    return grave(check, what, cure, **facts)
