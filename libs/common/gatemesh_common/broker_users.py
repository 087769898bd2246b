"""Who may do what at the broker: one table, from which users and documents are made (pure)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gatemesh_common.exchanges import ALERTS, CONTROL, DEAD, EVENTS, SHADOW
from gatemesh_common.topology import (
    DEAD_LETTERS,
    EXCHANGES,
    SHARDING,
    UNSHARDED,
    WORK_QUEUES,
)

NOTHING = "^$"
"""Matches no name of an exchange or a queue."""
NO_KEY = "^(?!)"
"""Matches no routing key, not even the empty one, which `^$` would."""
ANY_KEY = "^"

OWN_SHARDS = r"health_manager\.verdicts\.\d+"
TOPOLOGY = (*EXCHANGES, SHARDING, UNSHARDED, DEAD_LETTERS, *(queue.name for queue in WORK_QUEUES))
"""Every exchange and queue that all services share, by name."""


@dataclass(frozen=True)
class BrokerUser:
    """One service's login at the broker: all that it may do, and nothing else."""

    service: str
    purpose: str
    owns: tuple[str, ...] = ()
    """Patterns of the queues that it declares, binds, reads and deletes."""
    reads: tuple[str, ...] = ()
    """Queues that others declare and it reads."""
    sends: Mapping[str, str] = field(default_factory=dict)
    """By exchange: a pattern of the routing keys that it may publish."""
    hears: Mapping[str, str] = field(default_factory=dict)
    """By exchange: a pattern of the keys by which it may bind its own queues."""
    declares: tuple[str, ...] = ()
    """Exchanges and queues of the shared topology that it may declare, bind and delete."""
    tags: tuple[str, ...] = ()
    """The broker's own roles: what it may see on the broker's pages."""


@dataclass(frozen=True)
class Rights:
    """The broker's own words for what a user may do in a virtual host."""

    configure: str
    write: str
    read: str
    topics: Mapping[str, tuple[str, str]]
    """By exchange: the keys that it may write, and those by which it may read."""


def keys(*words: str) -> str:
    """Return the pattern of keys of version 1 that begin with one of the words."""
    first = words[0] if len(words) == 1 else f"({'|'.join(words)})"
    return rf"^{first}\.v1(\.|$)"


def own_letters(service: str) -> str:
    """Return the pattern of dead letters of a service's own queues."""
    return rf"^{service}\."


USERS = (
    BrokerUser(
        "health_manager",
        "declares the topology, decides, and alone writes commands",
        owns=(OWN_SHARDS,),
        sends={
            CONTROL: keys("command"),
            EVENTS: keys("routing", "baseline", "state", "incident", "brake", "capture_terms"),
            DEAD: own_letters("health_manager"),
        },
        hears=dict.fromkeys(EXCHANGES, ANY_KEY),
        declares=TOPOLOGY,
    ),
    BrokerUser(
        "agent",
        "reports what engines emit",
        owns=(r"amq\.gen-.*",),
        sends={
            ALERTS: r"^verdict\.v1\.(l1|l2|l3|l5|lx)\.",
            SHADOW: keys("sample"),
            EVENTS: keys("telemetry", "rejected", "applied", "capture"),
        },
        hears={EVENTS: keys("routing", "baseline", "capture_terms")},
    ),
    BrokerUser(
        "executor",
        "obeys commands and reports",
        owns=(r"executor\.(applied|routing)\..*",),
        reads=("executor.commands",),
        sends={EVENTS: keys("report", "step", "observed"), DEAD: own_letters("executor")},
        hears={EVENTS: keys("applied", "routing")},
    ),
    BrokerUser(
        "shadow",
        "compares answers",
        owns=(r"shadow\.(routing|capture_terms)\..*",),
        reads=("shadow.samples",),
        sends={
            ALERTS: r"^verdict\.v1\.(l2|l4)\.",
            EVENTS: keys("capture"),
            DEAD: own_letters("shadow"),
        },
        hears={EVENTS: keys("routing", "capture_terms")},
    ),
    BrokerUser(
        "notifier",
        "tells people of incidents",
        owns=(r"notifier\..*",),
        sends={DEAD: own_letters("notifier")},
        hears={EVENTS: keys("incident", "state", "brake"), ALERTS: ANY_KEY},
    ),
    BrokerUser(
        "console",
        "shows what happens and asks in the name of people",
        owns=(r"amq\.gen-.*", r"console\..*"),
        sends={CONTROL: keys("request", "trial")},
        hears={EVENTS: ANY_KEY, ALERTS: ANY_KEY},
    ),
    BrokerUser(
        "operator",
        "asks for actions and looks at dead letters, by gatemesh-ctl",
        reads=(DEAD_LETTERS,),
        sends={CONTROL: keys("request", "trial"), DEAD: ANY_KEY},
    ),
    BrokerUser(
        "alerter",
        "publishes verdicts of programs that are not ours",
        sends={ALERTS: keys("verdict")},
    ),
    BrokerUser(
        "monitoring",
        "reads the broker's figures",
        tags=("monitoring",),
    ),
)
SERVICES = tuple(user.service for user in USERS)


def rights_of(user: BrokerUser) -> Rights:
    """Return what the broker has to be told of a user."""
    owned = (*user.owns, *exact(user.declares))
    exchanges = [name for name in EXCHANGES if name in user.sends or name in user.hears]
    return Rights(
        configure=any_of(owned),
        write=any_of((*exact(user.sends), *user.owns, *exact(bound_to(user.declares)))),
        read=any_of((*exact((*user.reads, *user.hears)), *owned)),
        topics={
            name: (user.sends.get(name, NO_KEY), user.hears.get(name, NO_KEY)) for name in exchanges
        },
    )


def bound_to(names: Iterable[str]) -> tuple[str, ...]:
    """Return what is bound to another exchange: binding is writing to it."""
    # Nobody publishes to an exchange of topics because he may declare it.
    return tuple(name for name in names if name not in EXCHANGES)


def exact(names: Iterable[str]) -> tuple[str, ...]:
    """Return patterns that match the names as they are."""
    return tuple(re.escape(name) for name in names)


def any_of(patterns: Iterable[str]) -> str:
    """Return one pattern that matches a whole name."""
    known = tuple(dict.fromkeys(patterns))
    return f"^({'|'.join(known)})$" if known else NOTHING
