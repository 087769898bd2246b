"""Settings of the stand-in engine, from flags and `GATEMESH_SIM_*` variables."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, Json, ValidationError
from pydantic.fields import FieldInfo

from gatemesh_engine_sim.fault_plan import ScheduledFault

PREFIX = "GATEMESH_SIM_"


class SimSettings(BaseModel):
    """One simulated engine; read once at start."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=0, le=65_535, description="port to listen on; 0 picks a free one")
    model: str = Field("sim", min_length=1, description="name the model is served under")
    name: str = Field("engine-0", min_length=1, description="name of this instance, for the log")
    max_model_len: int = Field(8_192, ge=1, description="longest prompt plus answer, tokens")
    default_max_tokens: int = Field(
        256, ge=1, description="longest answer where the request sets no max_tokens, tokens"
    )
    tokens_per_s: float = Field(0.0, ge=0, description="speed of one answer, tokens/s; 0: at once")
    time_to_first_token_s: float = Field(0.0, ge=0, description="wait before the first token, s")
    slow_tokens_per_s: float = Field(2.0, gt=0, description="speed under the fault slow, tokens/s")
    events_per_write: int = Field(1, ge=1, description="streamed events per network write")
    max_num_seqs: int = Field(256, ge=1, description="requests that run at once; others wait")
    max_num_queued_reqs: int | None = Field(
        None, ge=0, description="requests that may wait before 503; none: any number"
    )
    shutdown_timeout: float = Field(
        0.0, ge=0, description="seconds that running requests get after SIGTERM; 0: none"
    )
    teardown_s: float = Field(0.0, ge=0, description="time between the last answer and exit, s")
    start_delay_s: float = Field(0.0, ge=0, description="time before connections are accepted, s")
    ignore_sigterm: bool = Field(default=False, description="do not react to SIGTERM")
    spawn_worker: bool = Field(
        default=False, description="start a worker process that outlives a SIGKILL of this one"
    )
    schedule: Json[tuple[ScheduledFault, ...]] = Field(
        (), description='faults as JSON: [{"fault": "nan", "from_s": 10, "to_s": 20}]'
    )
    chaos_file: Path | None = Field(
        None, description="drill file to obey; also from GATEMESH_CHAOS_FILE"
    )
    plugin_out: str = Field(
        "", description="where exact figures go: unix:/path or udp:HOST:PORT; none: nowhere"
    )
    plugin_every: int = Field(8, ge=1, le=10_000, description="figures of each nth step")
    weights: Path | None = Field(
        None, description="folder with a model.safetensors; damaged weights spoil every answer"
    )
    dev_mode: bool = Field(
        default=False,
        description="offer checksums, reload and cache reset, as vLLM's developer mode",
    )
    seed: int = Field(0, description="seed of the fault probabilities and request ids")
    uvloop: bool = Field(default=True, description="use the faster event loop")


class SettingsError(Exception):
    """A setting is wrong; the text names it and what it accepts."""


def read_settings(arguments: Sequence[str], environ: Mapping[str, str]) -> SimSettings:
    """Flags win over variables.

    Raises:
        SettingsError: a value is out of bounds or of the wrong type.
    """
    values = {
        name: environ[PREFIX + name.upper()]
        for name in SimSettings.model_fields
        if environ.get(PREFIX + name.upper())
    }
    if environ.get("GATEMESH_CHAOS_FILE"):
        values.setdefault("chaos_file", environ["GATEMESH_CHAOS_FILE"])
    if environ.get("GATEMESH_PLUGIN_OUT"):
        values.setdefault("plugin_out", environ["GATEMESH_PLUGIN_OUT"])
    flags = vars(_parser().parse_args(arguments))
    try:
        return SimSettings.model_validate(values | flags)
    except ValidationError as error:
        raise SettingsError(_worded(error)) from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m gatemesh_engine_sim",
        description="A stand-in for vLLM that emits every kind of garbage on request.",
        argument_default=argparse.SUPPRESS,
    )
    for name, field in SimSettings.model_fields.items():
        parser.add_argument(_flag(name), help=field.description, **_options(field))
    return parser


def _options(field: FieldInfo) -> dict[str, Any]:
    if field.annotation is bool:
        return {"action": argparse.BooleanOptionalAction}
    return {"metavar": "VALUE"}


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _worded(error: ValidationError) -> str:
    lines = []
    for problem in error.errors():
        name = str(problem["loc"][0])
        lines.append(f"{_flag(name)} ({PREFIX}{name.upper()}): {problem['msg']}")
    return "\n".join(dict.fromkeys(lines))
