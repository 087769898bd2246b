"""One command under way, and what its steps work with."""

import asyncio
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from gatemesh_common.messages import (
    AnyCommand,
    InstanceCommand,
    StepName,
)
from gatemesh_executor.backends.base import EngineBackend, Observation, WeightPuller
from gatemesh_executor.balancers.base import Rotation
from gatemesh_executor.dumping import Dumper, NoDumper
from gatemesh_executor.health import EngineHealth
from gatemesh_executor.instances import Instance
from gatemesh_executor.pace import Pace
from gatemesh_executor.repairing import EngineRepair, NoRepair
from gatemesh_executor.versions import OwnVersions, Versions
from gatemesh_executor.weights.checking import ProcessCheck, WeightCheck
from gatemesh_executor.weights.checksums import Checksums


@dataclass(frozen=True)
class Limits:
    """How long steps wait, in seconds."""

    confirm_deadline_s: float = 3.0
    refused_grace_s: float = 5.0
    cache_reset_s: float = 30.0


@dataclass(frozen=True)
class WeightTools:
    """What steps about weight files work with."""

    check: WeightCheck = field(default_factory=ProcessCheck)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """What pull commands get a part of."""
    locks: dict[Path, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    """One folder may serve several instances; it is replaced by one command at a time."""


@dataclass(frozen=True)
class Tools:
    """What steps act through."""

    backend: EngineBackend
    rotation: Rotation
    health: EngineHealth
    limits: Limits = field(default_factory=Limits)
    pace: Pace = field(default_factory=Pace)
    weights: WeightTools = field(default_factory=WeightTools)
    repair: EngineRepair = field(default_factory=NoRepair)
    checksums: Checksums = field(default_factory=Checksums)
    versions: Versions = field(default_factory=OwnVersions)
    dumper: Dumper = field(default_factory=NoDumper)
    puller: WeightPuller | None = None
    """Set where the platform itself gives a new life its weights."""


@dataclass
class Job:
    """A command, its instance, and what has been learnt while carrying it out."""

    command: AnyCommand
    instance: Instance
    killed: bool = False
    core_dump: str = ""
    """Where a core dump of the life was put."""
    emptying_since: float | None = None
    """When it was first waited for running requests to end; a repeated step waits no longer."""
    serves_nobody: bool = False
    """It accepted no connection when it was not told to stop yet; a repeated step goes by that."""
    notes: list[str] = field(default_factory=list)
    """What a report of success should still say."""
    sums: Mapping[str, str] | None = None
    """Checksums as they were before the repair; None when a repair begins."""


Step = Callable[[Tools, Job], Awaitable[StepName | None]]
"""Does one thing, safely more than once; returns what there is to tell, if anything."""


async def observe(tools: Tools, instance: Instance) -> Observation:
    """Return what the backend says of one instance now."""
    return (await tools.backend.observe_all())[instance.instance_id]


def is_other_life(command: InstanceCommand, found: Observation) -> bool:
    """Return True when the life that runs is not the one the command is about.

    A command that names none is about a life that began before it was given, in whole seconds.
    """
    if found.life_id is None:
        return False
    if command.life_id is not None:
        return found.life_id != command.life_id
    return began_after(found.started_at, command.timestamp)


def began_after(started_at: datetime | None, given_at: datetime) -> bool:
    """Return True when a life began in the second of the command or later."""
    return started_at is not None and started_at >= given_at.replace(microsecond=0)
