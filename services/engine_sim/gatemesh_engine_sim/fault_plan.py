"""Which fault strikes which request: by request, by control call, by drill file, by schedule."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class FaultSpec(BaseModel):
    """An order to go wrong."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    fault: str
    """A name of the fault table."""
    probability: Annotated[float, Field(ge=0, le=1)] = 1.0
    after_tokens: Annotated[int, Field(ge=0)] = 0
    requests: Annotated[int, Field(ge=1)] | None = None
    """How many requests it strikes before it ends; without: until it is taken back."""


class DrillFile(FaultSpec):
    """A fault for one life of one process: its process group is named."""

    pgid: int


class ScheduledFault(FaultSpec):
    """A fault that begins and ends by itself."""

    from_s: Annotated[float, Field(ge=0)] = 0.0
    """Seconds since the server became ready."""
    to_s: float = float("inf")
    from_request: Annotated[int, Field(ge=0)] = 0
    to_request: float = float("inf")

    def covers(self, age_s: float, request_number: int) -> bool:
        """True while the window is open, in time and in requests."""
        in_time = self.from_s <= age_s < self.to_s
        return in_time and self.from_request <= request_number < self.to_request


class Weights(Protocol):
    """Weights in memory, which may be damaged."""

    def strike(self, *, salted: bool) -> FaultSpec | None:
        """The fault of the next request."""


class FaultPlan:
    """Decides for each request; what the request itself asks for comes first."""

    def __init__(
        self,
        *,
        schedule: Sequence[ScheduledFault],
        drill: Callable[[], FaultSpec | None],
        rng: random.Random,
        weights: Weights | None = None,
    ) -> None:
        self._weights = weights
        self._schedule = schedule
        self._drill = drill
        self._rng = rng
        self._control: FaultSpec | None = None
        self._control_left: int | None = None
        self._seen = 0
        self.struck = 0
        """Requests that the control fault has struck since it was set."""

    @property
    def control(self) -> FaultSpec | None:
        """The fault set by the control endpoint, while it lasts."""
        return self._control

    def set_control(self, spec: FaultSpec | None) -> None:
        """Replace or take back the control fault."""
        self._control = spec
        self._control_left = spec.requests if spec else None
        if spec is not None:
            self.struck = 0

    def choose(
        self, own: FaultSpec | None, age_s: float, *, salted: bool = False
    ) -> FaultSpec | None:
        """The fault for the next request; damaged weights come last."""
        self._seen += 1
        if own is not None:
            return own
        for spec in (self._control, self._drill(), self._scheduled(age_s)):
            if spec is not None:
                return self._strike(spec)
        return self._weights.strike(salted=salted) if self._weights else None

    def _scheduled(self, age_s: float) -> FaultSpec | None:
        return next((one for one in self._schedule if one.covers(age_s, self._seen - 1)), None)

    def _strike(self, spec: FaultSpec) -> FaultSpec | None:
        if self._rng.random() >= spec.probability:
            return None
        if spec is self._control:
            self._count_strike()
        return spec

    def _count_strike(self) -> None:
        self.struck += 1
        if self._control_left is not None:
            self._control_left -= 1
            if not self._control_left:
                self.set_control(None)


def spec_of_header(value: str) -> FaultSpec:
    """`nan` or `nan;after_tokens=8`, as written in `X-Sim-Fault`."""
    name, *rest = value.split(";")
    options = dict(part.strip().split("=", 1) for part in rest if "=" in part)
    return FaultSpec.model_validate({**options, "fault": name.strip()})


def spec_of_xargs(xargs: dict[str, Any]) -> FaultSpec | None:
    """`{"sim_fault": "nan", "sim_after_tokens": 8}`, as written in `vllm_xargs`."""
    if "sim_fault" not in xargs:
        return None
    return FaultSpec(fault=xargs["sim_fault"], after_tokens=int(xargs.get("sim_after_tokens", 0)))


class DrillReader:
    """Reads the drill file again whenever it changed; a broken or foreign one is no fault."""

    def __init__(self, path: Path | None, pgid: int, known: frozenset[str]) -> None:
        self._path = path
        self._pgid = pgid
        self._known = known
        self._stamp: tuple[int, int] | None = None
        self._spec: FaultSpec | None = None

    def __call__(self) -> FaultSpec | None:
        """The fault ordered for this process group, if any."""
        if self._path is None:
            return None
        try:
            found = self._path.stat()
        except OSError:
            return None
        stamp = (found.st_mtime_ns, found.st_ino)
        if stamp != self._stamp:
            self._stamp, self._spec = stamp, self._read(self._path)
        return self._spec

    def _read(self, path: Path) -> FaultSpec | None:
        try:
            drill = DrillFile.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return None
        return drill if drill.pgid == self._pgid and drill.fault in self._known else None
