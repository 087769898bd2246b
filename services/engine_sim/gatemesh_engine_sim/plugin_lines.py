"""What vLLM's figures plugin would tell of an answer, sent to the same places in the same form."""

import math
import socket
from collections.abc import Mapping, Sequence

import orjson

from gatemesh_engine_sim.answering import Plan
from gatemesh_engine_sim.settings import SimSettings
from gatemesh_engine_sim.steps import Step
from gatemesh_engine_sim.vocabulary import VOCABULARY_SIZE

UNIX = "unix:"
UDP = "udp:"


def tell(body: Mapping[str, object], plan: Plan, settings: SimSettings, at: float) -> None:
    """Send the figures of every choice where the request names a probe; nobody is waited for."""
    probe_id = probe_id_of(body)
    if not settings.plugin_out or probe_id is None:
        return
    lines = [
        line
        for choice in plan.choices
        for line in lines_of(probe_id, [one.step for one in choice], settings.plugin_every, at)
    ]
    try:
        send(settings.plugin_out, lines)
    except OSError:
        # Like the plugin: figures that nobody takes are lost, and the engine goes on.
        return


def probe_id_of(body: Mapping[str, object]) -> str | None:
    """The id among the request's extra arguments."""
    extra = body.get("vllm_xargs")
    found = extra.get("probe_id") if isinstance(extra, dict) else None
    return found if isinstance(found, str) and found else None


def lines_of(probe_id: str, steps: Sequence[Step], every: int, at: float) -> list[bytes]:
    """Two lines for each measured step: its figures, and the token it took."""
    lines = []
    for number in range(0, len(steps), every):
        named = {"probe_id": probe_id, "step": number}
        lines.append(orjson.dumps(named | figures_of(steps[number]) | {"at": at}) + b"\n")
        if steps[number].is_finite:
            lines.append(orjson.dumps(named | choice_of(steps[number])) + b"\n")
    return lines


def figures_of(step: Step) -> dict[str, object]:
    """The figures of one distribution; what lies beyond is as likely as the last of them."""
    shares = sorted((math.exp(one.logprob) for one in step.top), reverse=True)
    if not step.is_finite:
        none = dict.fromkeys(("entropy_nats", "top1_p", "variance"))
        return none | {"nan": VOCABULARY_SIZE, "pos_inf": 0, "vocab": VOCABULARY_SIZE}
    rest = max(1.0 - sum(shares), 0.0)
    pairs = [(share, math.log(share)) for share in shares if share > 0.0]
    if rest > 0.0 and pairs:
        pairs.append((rest, pairs[-1][1]))
    entropy = -sum(share * nats for share, nats in pairs)
    square = sum(share * nats * nats for share, nats in pairs)
    return {
        "entropy_nats": entropy,
        "top1_p": shares[0],
        "variance": max(square - entropy * entropy, 0.0),
        "nan": 0,
        "pos_inf": 0,
        "vocab": VOCABULARY_SIZE,
    }


def choice_of(step: Step) -> dict[str, object]:
    """The token that a step took."""
    rank = sum(one.logprob > step.logprob for one in step.top)
    return {"chosen_logprob": step.logprob, "rank": rank}


def send(out: str, lines: Sequence[bytes]) -> None:
    """Send the lines as datagrams of one line each to `unix:/path` or `udp:HOST:PORT`."""
    family = socket.AF_INET if out.startswith(UDP) else socket.AF_UNIX
    host, _, port = out.removeprefix(UDP).rpartition(":")
    address = (host, int(port)) if family == socket.AF_INET else out.removeprefix(UNIX)
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.settimeout(0)
        for line in lines:
            sender.sendto(line, address)
