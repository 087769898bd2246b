"""Lines that the engine's plugin sends, and the id by which it names a request. Pure."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from gatemesh_agent.gates.l3_exact import ExactChoice, ExactStep

FIELD = "vllm_xargs"
PROBE_KEY = "probe_id"


class ExactLine(NamedTuple):
    """One line, and the request that it is about."""

    probe_id: str
    figures: ExactStep | ExactChoice


def lines_of(packet: bytes) -> Iterator[ExactLine]:
    """Read the lines of a datagram; what cannot be read is left out."""
    for line in packet.splitlines():
        try:
            fields = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(fields, dict) and (read := line_of(fields)) is not None:
            yield read


def line_of(fields: Mapping[str, Any]) -> ExactLine | None:
    """Read one line; None where it is none."""
    probe_id, step = fields.get(PROBE_KEY), count_of(fields.get("step"))
    if not isinstance(probe_id, str) or step is None:
        return None
    figures = choice_of(fields, step) if "rank" in fields else step_of(fields, step)
    return None if figures is None else ExactLine(probe_id, figures)


def step_of(fields: Mapping[str, Any], step: int) -> ExactStep | None:
    """Read the figures of a step; both counts must be there."""
    nan, pos_inf = count_of(fields.get("nan")), count_of(fields.get("pos_inf"))
    if nan is None or pos_inf is None:
        return None
    return ExactStep(
        step,
        figure_of(fields.get("entropy_nats")),
        figure_of(fields.get("top1_p")),
        figure_of(fields.get("variance")),
        nan,
        pos_inf,
        count_of(fields.get("vocab")) or None,
    )


def choice_of(fields: Mapping[str, Any], step: int) -> ExactChoice | None:
    """Read the token of a step."""
    logprob, rank = figure_of(fields.get("chosen_logprob")), count_of(fields.get("rank"))
    if logprob is None or rank is None:
        return None
    return ExactChoice(step, logprob, rank)


def count_of(value: object) -> int | None:
    """Return a whole number from 0 on."""
    return value if type(value) is int and value >= 0 else None


def figure_of(value: object) -> float | None:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def may_name(body: Mapping[str, Any]) -> bool:
    """Return True where a probe id can be added without changing what the client asked."""
    own = body.get(FIELD)
    return own is None or (isinstance(own, dict) and PROBE_KEY not in own)


def with_probe_id(raw: bytes, body: Mapping[str, Any], probe_id: str) -> bytes:
    """Return the request that also carries a probe id; all else is the same bytes.

    The last of two equal keys counts, so the client's own arguments are written again.
    """
    own = body.get(FIELD) or {}
    wish = orjson.dumps({FIELD: {**own, PROBE_KEY: probe_id}})
    end = raw.rindex(b"}")
    comma = b"," if body else b""
    return raw[:end] + comma + wish[1:-1] + raw[end:]


def names_xargs(error: bytes) -> bool:
    """Return True for an error of an engine that does not know the field."""
    return FIELD.encode() in error
