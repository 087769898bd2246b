"""What an explanation is made of: everything the views hold about one incident."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from gatemesh_ctl.store import Row, Store

LOOK_BACK = timedelta(minutes=15)
"""Evidence is no older, unless a rule has a longer window."""
SAME_MOMENT = timedelta(seconds=1)

SPAN = "received_at BETWEEN %(since)s AND coalesce(%(until)s, now())"
OF_LIFE = f"instance_id = %(instance)s AND incarnation = %(life)s AND {SPAN}"
VERDICTS = f"SELECT * FROM verdicts_v1 WHERE {OF_LIFE} ORDER BY received_at, id LIMIT 5000"  # noqa: S608
DECIDED = f"SELECT id, prompt_key, attribution, counted_at FROM decided_verdicts_v1 WHERE {OF_LIFE}"  # noqa: S608
TRANSITIONS = "SELECT * FROM transitions_v1 WHERE incident_id = %(incident)s ORDER BY at, id"
COMMANDS = "SELECT * FROM commands_v1 WHERE incident_id = %(incident)s ORDER BY issued_at, fence"
STATES_BEFORE = """
    SELECT DISTINCT ON (instance_id) instance_id, after_state FROM transitions_v1
    WHERE pool = %(pool)s AND at < %(opened)s ORDER BY instance_id, at DESC, id DESC"""
OTHERS = """
    SELECT incident_id, instance_id, condition, opened_at FROM incidents_v1
    WHERE pool = %(pool)s AND opened_at BETWEEN %(day)s AND %(opened)s ORDER BY opened_at"""
RESTARTS = """
    SELECT action, issued_at FROM commands_v1
    WHERE instance_id = %(instance)s AND action IN ('restart', 'replace', 'roll_back')
        AND issued_at BETWEEN %(day)s AND coalesce(%(until)s, now()) ORDER BY issued_at"""
ASKED = """
    SELECT * FROM requests_v1 WHERE pool = %(pool)s AND outcome = 'accepted' AND NOT dry_run
        AND decided_at BETWEEN %(before)s AND %(after)s
        AND (instance_id = %(instance)s OR instance_id IS NULL) ORDER BY decided_at"""


@dataclass(frozen=True)
class Facts:
    """Everything about one incident, as the views hold it."""

    incident: Row
    rules: Mapping[str, Any] = field(default_factory=dict)
    """The pool's rules in the version that the incident names."""
    pool: Row | None = None
    verdicts: tuple[Row, ...] = ()
    """Of the life that is accused, with `prompt_key` and `counted_at`, oldest first."""
    transitions: tuple[Row, ...] = ()
    commands: tuple[Row, ...] = ()
    states_before: Mapping[str, str] = field(default_factory=dict)
    """State of every instance of the pool just before the incident."""
    others: tuple[Row, ...] = ()
    """Incidents of the pool within the day before, this one too."""
    restarts: tuple[Row, ...] = ()
    """Starts of the instance that were ordered within the day before, and since."""
    requests: tuple[Row, ...] = ()

    @property
    def opened_at(self) -> datetime:
        """When it was opened."""
        opened: datetime = self.incident["opened_at"]
        return opened


def read_facts(store: Store, incident_id: str) -> Facts:
    """Return all that is known of an incident; the beginning of its id is enough."""
    incident = store.incident(incident_id)
    rules = rules_of(store, incident)
    opened, until = incident["opened_at"], incident["ended_at"]
    values = {
        "incident": incident["incident_id"],
        "instance": incident["instance_id"],
        "life": incident["incarnation"],
        "pool": incident["pool"],
        "opened": opened,
        "since": opened - max(LOOK_BACK, longest_window(rules)),
        "until": until + SAME_MOMENT if until else None,
        "day": opened - timedelta(days=1),
        "before": opened - SAME_MOMENT,
        "after": opened + SAME_MOMENT,
    }
    pools = [row for row in store.pools() if row["pool"] == incident["pool"]]
    return Facts(
        incident,
        rules,
        pools[0] if pools else None,
        tuple(with_decided(store.read(VERDICTS, values), store.read(DECIDED, values))),
        tuple(store.read(TRANSITIONS, values)),
        tuple(store.read(COMMANDS, values)),
        {row["instance_id"]: row["after_state"] for row in store.read(STATES_BEFORE, values)},
        tuple(store.read(OTHERS, values)),
        tuple(store.read(RESTARTS, values)),
        tuple(store.read(ASKED, values)),
    )


def rules_of(store: Store, incident: Row) -> Mapping[str, Any]:
    """Return the rules of the incident's pool in its version; none where they are not kept."""
    query = "SELECT body FROM policy_versions_v1 WHERE version = %(version)s"
    rows = store.read(query, {"version": incident["policy_version"]})
    return pool_rules(rows[0]["body"], incident["pool"]) if rows else {}


def pool_rules(body: Mapping[str, Any], pool: str) -> Mapping[str, Any]:
    """Return the rules of one pool out of a stored version."""
    rules: Mapping[str, Any] = body.get("pools", {}).get(pool) or body.get("defaults", {})
    return rules


def longest_window(rules: Mapping[str, Any]) -> timedelta:
    """Return the longest window in which a rule counts."""
    sections = [rules.get("condition_a", {}), *rules.get("own_conditions", ())]
    return timedelta(seconds=max((one.get("window_s", 0) for one in sections), default=0))


def with_decided(verdicts: list[Row], decided: list[Row]) -> list[Row]:
    """Return verdicts together with what deciding adds to them."""
    known = {row["id"]: row for row in decided}
    return [{**row, **known.get(row["id"], {})} for row in verdicts]
