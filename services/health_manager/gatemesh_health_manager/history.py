"""A stretch of history as a replay reads it, from the database or from a file of JSON Lines."""

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pydantic
from pydantic import TypeAdapter

from gatemesh_common.errors import GatemeshError
from gatemesh_common.messages import Verdict
from gatemesh_health_manager.inputs import Input
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.replaying import Received, Step


class HistoryError(GatemeshError):
    """There is no history that can be replayed; says what is missing."""


class NothingKeptError(HistoryError):
    """No fleet was kept from which a replay could begin."""


@dataclass(frozen=True)
class StoredIncident:
    """One incident as it is stored."""

    incident_id: str
    instance_id: str
    pool: str
    condition: str
    opened_at: datetime
    ended_at: datetime | None
    status: str


class Given(NamedTuple):
    """One input, and the verdicts of it if it is a batch."""

    input: Input
    verdicts: Sequence[Verdict]


@dataclass(frozen=True)
class History:
    """What was decided about, and what was decided."""

    policies: Mapping[str, Policy]
    begin: Input
    """The fleet as it was at first."""
    earlier: Sequence[Received]
    """Failures before that on the lives of then."""
    inputs: Iterable[Given]
    """All that came after it, in the order of deciding."""
    steps: Sequence[Step]
    incidents: Sequence[StoredIncident]


INPUT = TypeAdapter(Input)
STEP = TypeAdapter(Step)
INCIDENT = TypeAdapter(StoredIncident)
EARLIER = TypeAdapter(Received)
VERDICTS = TypeAdapter(tuple[Verdict, ...])


def lines_of(history: History) -> Iterator[bytes]:
    """Yield a history as JSON Lines: each an object with one key that says what it is."""
    for version, policy in sorted(history.policies.items()):
        yield b'{"policy":{"version":"%b","body":%b}}' % (
            version.encode(),
            policy.model_dump_json().encode(),
        )
    yield b'{"begin":%b}' % INPUT.dump_json(history.begin)
    for received in history.earlier:
        yield b'{"earlier":%b}' % EARLIER.dump_json(received)
    for step in history.steps:
        yield b'{"step":%b}' % STEP.dump_json(step)
    for incident in history.incidents:
        yield b'{"incident":%b}' % INCIDENT.dump_json(incident)
    for given in history.inputs:
        verdicts = VERDICTS.dump_json(tuple(given.verdicts), exclude_defaults=True)
        yield b'{"input":%b,"verdicts":%b}' % (INPUT.dump_json(given.input), verdicts)


def write_history(path: Path, history: History) -> None:
    """Write a history into a file, packed.

    Raises:
        HistoryError: it cannot be written.
    """
    try:
        with gzip.open(path, "wb") as file:
            file.writelines(line + b"\n" for line in lines_of(history))
    except OSError as error:
        raise HistoryError(f"{path}: cannot be written ({error.strerror})") from error


def read_history(path: Path) -> History:
    """Read a file that `write_history` made.

    Raises:
        HistoryError: it cannot be read, or a line of it holds no history.
    """
    found: dict[str, list[Any]] = {name: [] for name in READERS}
    try:
        with gzip.open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                _take(found, line, f"{path}, line {number}")
    except (OSError, EOFError, zlib.error) as error:
        raise HistoryError(f"{path}: cannot be read ({error})") from error
    if not found["begin"]:
        raise HistoryError(f"{path}: holds no fleet to begin with")
    return History(
        policies=dict(found["policy"]),
        begin=found["begin"][0],
        earlier=found["earlier"],
        inputs=found["input"],
        steps=found["step"],
        incidents=found["incident"],
    )


def _take(found: dict[str, list[Any]], line: bytes, place: str) -> None:
    try:
        fields = OBJECT.validate_json(line)
        name = next(iter(fields), "")
        found[name].append(READERS[name](fields))
    except (pydantic.ValidationError, KeyError, TypeError) as error:
        raise HistoryError(f"{place}: no part of a history ({type(error).__name__})") from error


OBJECT = TypeAdapter(dict[str, Any])
READERS: Mapping[str, Any] = {
    "policy": lambda fields: (
        fields["policy"]["version"],
        Policy.model_validate(fields["policy"]["body"]),
    ),
    "begin": lambda fields: INPUT.validate_python(fields["begin"]),
    "earlier": lambda fields: EARLIER.validate_python(fields["earlier"]),
    "step": lambda fields: STEP.validate_python(fields["step"]),
    "incident": lambda fields: INCIDENT.validate_python(fields["incident"]),
    "input": lambda fields: Given(
        INPUT.validate_python(fields["input"]), VERDICTS.validate_python(fields["verdicts"])
    ),
}
