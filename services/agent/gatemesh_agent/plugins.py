"""Finds the gates that other distributions offer, and watches those that are switched on."""

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from gatemesh_agent.gates.plugged import Plug, Plugs
from gatemesh_agent.metrics import PLUGGED_FAULTS, PLUGGED_SECONDS
from gatemesh_common.errors import SettingsError
from gatemesh_common.gates import ENTRY_POINT_GROUP, GateRequest

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Source:
    """Where names and settings of gates were given, as errors call it."""

    names: str
    settings: str


ENVIRONMENT = Source("GATEMESH_AGENT_GATES", "GATEMESH_AGENT_GATE_SETTINGS")


class LoggingWatcher:
    """Counts and times plugged-in gates; each kind of fault is logged once, without its text."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()

    def clock(self) -> float:
        """Return seconds that only grow."""
        return time.perf_counter()

    def failed(self, name: str, error: Exception) -> None:
        """Count a fault; its message stays here, since it may hold a client's text."""
        kind = type(error).__name__
        PLUGGED_FAULTS.labels(gate=name, error=kind).inc()
        if (name, kind) not in self._told:
            self._told.add((name, kind))
            log.error("gate_failed", extra={"gate": name, "error": kind})

    def spent(self, name: str, seconds: float) -> None:
        """Count the time of one answer."""
        PLUGGED_SECONDS.labels(gate=name).observe(seconds)


def load_gates(
    names: Iterable[str], settings: Mapping[str, str], pool: str, source: Source = ENVIRONMENT
) -> Plugs:
    """Return the named gates, each with its settings.

    Raises:
        SettingsError: a name is not installed, cannot be loaded, or is only in the settings.
    """
    wanted = tuple(names)
    own = settings_by_gate(settings, wanted, source)
    offered = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    plugs = [load_gate(name, offered, own[name], pool, source) for name in wanted]
    return Plugs(plugs, pool, LoggingWatcher())


def load_gate(
    name: str,
    offered: Mapping[str, EntryPoint],
    settings: Mapping[str, str],
    pool: str,
    source: Source = ENVIRONMENT,
) -> Plug:
    """Return one gate.

    Raises:
        SettingsError: it is not installed, cannot be loaded, or does not start.
    """
    point = offered.get(name)
    if point is None:
        known = ", ".join(sorted(offered)) or "none"
        raise SettingsError(
            f"{source.names} names {name!r}, which is not installed here (installed: {known}); "
            "install its package or leave the name out"
        )
    try:
        opener = point.load()
    # Importing a stranger's module may raise anything; the agent must not start half guarded.
    except Exception as error:
        raise SettingsError(
            f"gate {name!r} ({point.value}) cannot be loaded: {type(error).__name__}: {error}; "
            f"repair its package or leave the name out of {source.names}"
        ) from error
    plug = Plug(name, opener, settings)
    try_once(plug, pool, source)
    return plug


def try_once(plug: Plug, pool: str, source: Source = ENVIRONMENT) -> None:
    """Open a gate on an empty request, so that wrong settings show before the first client.

    Raises:
        SettingsError: it raised.
    """
    try:
        plug.open_gate(GateRequest({}, "", pool, plug.settings))
    except Exception as error:
        raise SettingsError(
            f"gate {plug.name!r} does not start: {error}; correct its part of {source.settings}"
        ) from error


def settings_by_gate(
    settings: Mapping[str, str], names: Iterable[str], source: Source = ENVIRONMENT
) -> dict[str, dict[str, str]]:
    """Return the settings of each gate by their own keys.

    Raises:
        SettingsError: a setting names no gate that is switched on.
    """
    found: dict[str, dict[str, str]] = {name: {} for name in names}
    for key, value in settings.items():
        gate, dot, own = key.partition(".")
        if not dot or not own or gate not in found:
            raise SettingsError(
                f"{source.settings} holds {key!r}; write gate.key=value for a gate that "
                f"{source.names} names"
            )
        found[gate][own] = value
    return found
