"""The broker's `definitions.json`: users with their rights, and the topology (pure)."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gatemesh_common.broker_users import USERS, BrokerUser, rights_of
from gatemesh_common.exchanges import DEAD
from gatemesh_common.topology import (
    DEAD_LETTER_ARGUMENTS,
    DEAD_LETTERS,
    EXCHANGE_KINDS,
    PROOFS,
    SHARDING,
    UNSHARDED,
    VERDICTS,
    WORK_QUEUES,
    ExchangeKind,
    queue_arguments,
)

PREFIX = "gatemesh"
HASHING = "rabbit_password_hashing_sha256"
SALT_BYTES = 4
EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}
Facts = dict[str, Any]


@dataclass(frozen=True)
class Site:
    """Where users and topology belong: two stacks on one broker differ in both."""

    vhost: str = "/"
    prefix: str = PREFIX
    """How the names of the users begin."""

    def user(self, service: str) -> str:
        """Return the name of a service's user."""
        return f"{self.prefix}_{service}"


def definitions(
    passwords: Mapping[str, str], site: Site, administrator: tuple[str, str] | None = None
) -> Facts:
    """Return all that a broker is to import: users of those services that have a password.

    The administrator, name and password, may do everything. Passwords become hashes.
    """
    users = [user for user in USERS if user.service in passwords]
    found = {
        "vhosts": [{"name": site.vhost}],
        "users": [
            login(site.user(user.service), passwords[user.service], user.tags) for user in users
        ],
        "permissions": [permission(user, site) for user in users],
        "topic_permissions": [each for user in users for each in topic_permissions(user, site)],
        **topology(site.vhost),
    }
    if administrator is not None:
        name, password = administrator
        found["users"].append(login(name, password, ("administrator",)))
        found["permissions"].append({"user": name, "vhost": site.vhost, **EVERYTHING})
    return found


def login(name: str, password: str, tags: tuple[str, ...]) -> Facts:
    """Return a user as the broker imports it."""
    return {
        "name": name,
        "password_hash": password_hash(name, password),
        "hashing_algorithm": HASHING,
        "tags": ",".join(tags),
    }


def password_hash(name: str, password: str) -> str:
    """Return the broker's hash of a password; the same each time, so that a file does not change.

    Source: RabbitMQ, "Credentials and Passwords": base64 of salt and SHA-256 of salt and password.
    """
    # The passwords are long and random; the salt need only differ from user to user.
    salt = hashlib.sha256(f"{name}:{password}".encode()).digest()[:SALT_BYTES]
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


def permission(user: BrokerUser, site: Site) -> Facts:
    """Return a user's rights to exchanges and queues."""
    rights = rights_of(user)
    return {
        "user": site.user(user.service),
        "vhost": site.vhost,
        "configure": rights.configure,
        "write": rights.write,
        "read": rights.read,
    }


def topic_permissions(user: BrokerUser, site: Site) -> list[Facts]:
    """Return a user's rights to routing keys, by exchange."""
    return [
        {
            "user": site.user(user.service),
            "vhost": site.vhost,
            "exchange": exchange,
            "write": write,
            "read": read,
        }
        for exchange, (write, read) in rights_of(user).topics.items()
    ]


def topology(vhost: str) -> Facts:
    """Return what `declare_topology` declares, as the broker imports it."""
    return {
        "exchanges": [exchange(name, kind, vhost) for name, kind in EXCHANGE_KINDS.items()],
        "queues": [
            queue(DEAD_LETTERS, DEAD_LETTER_ARGUMENTS, vhost),
            *(queue(one.name, queue_arguments(one), vhost) for one in WORK_QUEUES),
        ],
        "bindings": [
            binding(DEAD, DEAD_LETTERS, "#", vhost),
            binding(VERDICTS.exchange, SHARDING, VERDICTS.routing_key, vhost, "exchange"),
            binding(UNSHARDED, VERDICTS.name, VERDICTS.name, vhost),
            *(
                binding(one.exchange, one.name, one.routing_key, vhost)
                for one in WORK_QUEUES
                if one not in (VERDICTS, PROOFS)
            ),
        ],
    }


def exchange(name: str, kind: ExchangeKind, vhost: str) -> Facts:
    """Return a durable exchange."""
    facts: Facts = {"name": name, "vhost": vhost, "type": kind.kind, "durable": True}
    return facts | {"auto_delete": False, "internal": False, "arguments": dict(kind.arguments)}


def queue(name: str, arguments: Mapping[str, Any], vhost: str) -> Facts:
    """Return a durable queue."""
    facts: Facts = {"name": name, "vhost": vhost, "durable": True, "auto_delete": False}
    return facts | {"arguments": dict(arguments)}


def binding(source: str, destination: str, key: str, vhost: str, kind: str = "queue") -> Facts:
    """Return the way from an exchange to a queue, or to another exchange."""
    return {
        "source": source,
        "vhost": vhost,
        "destination": destination,
        "destination_type": kind,
        "routing_key": key,
        "arguments": {},
    }
