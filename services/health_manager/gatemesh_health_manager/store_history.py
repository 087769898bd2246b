"""History in the database: read through the views, in the order of deciding."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Self

from pydantic import ValidationError
from sqlalchemy import Connection, Engine, RowMapping, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from gatemesh_common.database import as_ours, with_driver
from gatemesh_common.invalid import place_words, places_in
from gatemesh_common.messages import Verdict
from gatemesh_health_manager.history import (
    Given,
    History,
    HistoryError,
    NothingKeptError,
    StoredIncident,
)
from gatemesh_health_manager.inputs import Input, InputKind
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.replaying import Received, Step

Query = Callable[..., Sequence[RowMapping]]

CHUNK = 500
"""Inputs that are read at once, with their verdicts."""
SKEW = timedelta(days=1)
"""How far clocks may be apart, or be set back; so far back a later input is looked for.

It leaves out days of a divided table and nothing else: a day more costs little.
"""

BEGIN = text("""
    SELECT id, at, kind, policy_version, pools, body, seen FROM decision_inputs_v1
    WHERE kind = 'fleet' AND at <= :since ORDER BY at DESC LIMIT 1""")
FIRST = text("""
    SELECT id, at, kind, policy_version, pools, body, seen FROM decision_inputs_v1
    WHERE kind = 'fleet' AND at <= :until ORDER BY id LIMIT 1""")
INPUTS = text("""
    SELECT id, at, kind, policy_version, pools, body, seen FROM decision_inputs_v1
    WHERE id > :after AND at >= :since AND at <= :until ORDER BY id LIMIT :count""")
VERDICTS = text("""
    SELECT * FROM decided_verdicts_v1
    WHERE received_at >= :first AND received_at <= :last ORDER BY id""")
EARLIER = text("""
    SELECT v.* FROM unnest(CAST(:names AS text[]), CAST(:lives AS int[])) AS w (name, life)
    JOIN decided_verdicts_v1 v ON v.instance_id = w.name AND v.incarnation = w.life
    WHERE v.outcome = 'failed' AND v.attribution <> 'request' AND v.received_at < :at
    ORDER BY v.id""")
STEPS = text("""
    SELECT at, instance_id, incarnation, before_state, trigger, after_state, incident_id, score
    FROM transitions_v1 WHERE at > :at AND at <= :until ORDER BY id""")
INCIDENTS = text("""
    SELECT incident_id, instance_id, pool, condition, opened_at, ended_at, status
    FROM incidents_v1 WHERE opened_at > :at AND opened_at <= :until ORDER BY opened_at""")
POLICIES = text("""
    SELECT version, body FROM policy_versions_v1 WHERE version = :first OR version IN (
        SELECT policy_version FROM decision_inputs_v1 WHERE at >= :at AND at <= :until)""")


class StoredInputs:
    """The inputs after one, up to a moment; read anew each time they are gone through."""

    def __init__(self, read: Query, after: int, since: datetime, until: datetime) -> None:
        self._read = read
        self._after = after
        self._since = since
        self._until = until

    def __iter__(self) -> Iterator[Given]:
        after, since = self._after, self._since
        while rows := self._chunk(after, since):
            # The earliest: one moment of a clock that was ahead says nothing of what follows.
            after, since = rows[-1]["id"], min(row["at"] for row in rows)
            inputs = [input_of(row) for row in rows]
            verdicts = self._verdicts([one for one in inputs if one.kind is InputKind.VERDICTS])
            for one in inputs:
                yield Given(one, batch_of(one, verdicts))

    def _chunk(self, after: int, since: datetime) -> Sequence[RowMapping]:
        span = {"since": since - SKEW, "until": self._until}
        return self._read(INPUTS, after=after, count=CHUNK, **span)

    def _verdicts(self, batches: Sequence[Input]) -> dict[datetime, list[RowMapping]]:
        found: dict[datetime, list[RowMapping]] = defaultdict(list)
        if batches:
            moments = [batch.at for batch in batches]
            for row in self._read(VERDICTS, first=min(moments), last=max(moments)):
                found[row["received_at"]].append(row)
        return found


class HistoryStore:
    """Reads history at one moment, for as long as it is open; says clearly why it could not."""

    def __init__(self, url: str) -> None:
        self._engine: Engine = create_engine(
            with_driver(url),
            poolclass=NullPool,
            connect_args={"connect_timeout": 5, "options": "-c timezone=UTC"},
        )
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()

    def read(self, since: datetime, until: datetime) -> History:
        """Return what a replay of that time needs; it begins with the last kept fleet before.

        Its inputs are read while they are gone through, so the store must still be open then.

        Raises:
            NothingKeptError: no fleet was kept before `until`.
            HistoryError: the database cannot be read, or holds rules that are none today.
        """
        number, begin = self._begin(since, until)
        span = {"at": begin.at, "until": until}
        return History(
            policies=self._policies(begin, span),
            begin=begin,
            earlier=self._earlier(begin),
            inputs=StoredInputs(self._all, number, begin.at, until),
            steps=[Step(*row.values()) for row in self._all(STEPS, **span)],
            incidents=[StoredIncident(*row.values()) for row in self._all(INCIDENTS, **span)],
        )

    def _policies(self, begin: Input, span: Mapping[str, datetime]) -> dict[str, Policy]:
        found = {}
        for row in self._all(POLICIES, first=begin.policy_version, **span):
            fields: dict[str, Any] = dict(row)
            try:
                found[fields["version"]] = Policy.model_validate(fields["body"])
            except ValidationError as error:
                keys = ", ".join(map(place_words, places_in(error)))
                raise HistoryError(
                    f"the rules of version {fields['version']} are none of this release ({keys}); "
                    "replay a time that did not use them"
                ) from None
        return found

    def _begin(self, since: datetime, until: datetime) -> tuple[int, Input]:
        found = self._all(BEGIN, since=since) or self._all(FIRST, until=until)
        if not found:
            raise NothingKeptError(
                f"nothing before {until.isoformat()} can be replayed: no fleet was kept; managers "
                "keep one at each start and every hour"
            )
        return found[0]["id"], input_of(found[0])

    def _earlier(self, begin: Input) -> list[Received]:
        lives = [(one["instance_id"], one["incarnation"]) for one in begin.body["instances"]]
        names, numbers = [name for name, _ in lives], [number for _, number in lives]
        rows = self._all(EARLIER, names=names, lives=numbers, at=begin.at)
        return [(row["received_at"], verdict_of(row)) for row in rows]

    def _all(self, query: Any, **values: Any) -> Sequence[RowMapping]:
        try:
            if self._connection is None:
                self._connection = self._engine.connect().execution_options(
                    isolation_level="REPEATABLE READ", postgresql_readonly=True
                )
            return self._connection.execute(query, values).mappings().all()
        except DBAPIError as error:
            fault = as_ours(error)
            raise HistoryError(f"{fault}; is the schema there, and may you read it?") from error


def input_of(row: RowMapping) -> Input:
    """Return the input of a row."""
    names = ("at", "policy_version", "body", "seen")
    same = {name: row[name] for name in names}
    return Input(kind=InputKind(row["kind"]), pools=tuple(row["pools"]), **same)


def batch_of(given: Input, verdicts: Mapping[datetime, Sequence[RowMapping]]) -> list[Verdict]:
    """Return the verdicts of a batch.

    Raises:
        HistoryError: some of them are not stored any more.
    """
    if given.kind is not InputKind.VERDICTS:
        return []
    found = [verdict_of(row) for row in verdicts.get(given.at, ()) if row["pool"] in given.pools]
    if len(found) != given.body["count"]:
        raise HistoryError(
            f"of a batch of {given.body['count']} verdicts at {given.at.isoformat()} "
            f"{len(found)} are stored; replay a later time"
        )
    return found


def verdict_of(row: RowMapping) -> Verdict:
    """Return the verdict of a row, as far as deciding needs it."""
    own_prompt = row["prompt_key"] != f"request:{row['request_id']}"
    names = (
        "message_id",
        "timestamp",
        "instance_id",
        "pool",
        "incarnation",
        "request_id",
        "tenant",
        "traceparent",
    )
    kinds = ("check_level", "outcome", "reason", "hard", "attribution", "details")
    fields = {name: row[name] for name in (*names, *kinds)}
    return Verdict(**fields, prompt_fingerprint=row["prompt_key"] if own_prompt else None)
