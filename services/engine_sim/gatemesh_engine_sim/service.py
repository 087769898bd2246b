"""What every handler of the engine works with."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from gatemesh_engine_sim.engine import Engine
from gatemesh_engine_sim.fault_plan import FaultPlan
from gatemesh_engine_sim.faults import Fault
from gatemesh_engine_sim.library import Library
from gatemesh_engine_sim.metrics import EngineMetrics
from gatemesh_engine_sim.scoring import Scorer
from gatemesh_engine_sim.settings import SimSettings
from gatemesh_engine_sim.weights import Weights


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of one engine; `clock` rises evenly, `wall_clock` counts from 1970, in seconds."""

    settings: SimSettings
    library: Library
    scorer: Scorer
    faults: dict[str, Fault]
    plan: FaultPlan
    engine: Engine
    metrics: EngineMetrics
    clock: Callable[[], float]
    wall_clock: Callable[[], float]
    rng: random.Random
    begun_s: float
    weights: Weights = field(default_factory=Weights)

    def age_s(self) -> float:
        """Seconds since the server began."""
        return self.clock() - self.begun_s

    def new_id(self) -> str:
        """A request id like vLLM's own: 16 hexadecimal digits."""
        return f"{self.rng.getrandbits(64):016x}"


def json_response(body: bytes, status: int = 200) -> web.Response:
    """A response of ready JSON."""
    return web.Response(body=body, status=status, content_type="application/json")
