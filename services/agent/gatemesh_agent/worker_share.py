"""What one of several workers of an agent is: its name, and its part of what is limited. Pure."""

import math
from dataclasses import dataclass, replace

from gatemesh_agent.keys import ApiKey, Limits
from gatemesh_agent.settings import AgentSettings


@dataclass(frozen=True, slots=True)
class Worker:
    """One of several processes behind one port."""

    index: int
    listen_fd: int
    """The listening socket, opened by the supervisor."""
    link_fd: int
    """Where the supervisor is told, and whose end says that it is gone."""


def worker_id(agent_id: str, index: int) -> str:
    """Return the name of a worker: to the mesh it is an agent of its own."""
    return f"{agent_id}-w{index}"


def part_of(whole: float, workers: int) -> float:
    """Return the part of a limit that one worker keeps to; nothing stays nothing."""
    return whole / workers


def whole_part_of(whole: int, workers: int, least: int = 0) -> int:
    """Return the same of a count, rounded up: what is allowed at all is allowed to each."""
    return max(math.ceil(whole / workers), least)


def settings_of(settings: AgentSettings, index: int) -> AgentSettings:
    """Return the settings that one worker goes by."""
    workers = settings.worker_count
    return settings.model_copy(
        update={
            "id": worker_id(settings.id, index),
            "admin_host": "127.0.0.1",
            "admin_port": 0,
            "spool_max_messages": whole_part_of(settings.spool_max_messages, workers, 100),
            "attribution_parallel": whole_part_of(settings.attribution_parallel, workers),
            "attribution_per_minute": whole_part_of(settings.attribution_per_minute, workers),
            "rescue_per_minute": whole_part_of(settings.rescue_per_minute, workers),
            "shadow_per_s": part_of(settings.shadow_per_s, workers),
        }
    )


def keys_of(keys: dict[bytes, ApiKey], workers: int) -> dict[bytes, ApiKey]:
    """Return API keys with the part of their limits that one worker keeps to."""
    if workers == 1:
        return keys
    return {
        digest: replace(key, limits=limits_of(key.limits, workers)) for digest, key in keys.items()
    }


def limits_of(limits: Limits, workers: int) -> Limits:
    """Return the part of a key's limits that one worker keeps to."""
    return Limits(
        whole_part_of(limits.requests_per_min, workers),
        whole_part_of(limits.tokens_per_min, workers),
    )
