"""The private broker node: its files, its program, and when it is ready."""

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from gatemesh_mesh.ports import LOOPBACK
from gatemesh_mesh.programs import ProgramSpec
from gatemesh_mesh.state import write_private

PROGRAM = "rabbitmq"
PORT_NAMES = ("amqp", "management", "prometheus", "epmd", "distribution")
PLUGINS = "[rabbitmq_management,rabbitmq_prometheus,rabbitmq_consistent_hash_exchange].\n"
READY_DEADLINE_S = 120.0
"""A start takes 3 s on a quiet machine and up to 60 s on a busy one."""


@dataclass(frozen=True)
class RabbitNode:
    """One broker node with its own folders, ports and user."""

    sbin: Path
    folder: Path
    log_file: Path
    ports: Mapping[str, int]
    user: str
    password: str
    cookie: str

    @property
    def amqp_url(self) -> str:
        """The address that services use; ends in the default virtual host."""
        return f"amqp://{self.user}:{self.password}@{LOOPBACK}:{self.ports['amqp']}/"

    @property
    def management_url(self) -> str:
        """The management page and HTTP API, without user and password."""
        return f"http://{LOOPBACK}:{self.ports['management']}"


def configuration(node: RabbitNode) -> str:
    """Return rabbitmq.conf: loopback only, definitions at boot, small limits."""
    return "\n".join(
        [
            f"listeners.tcp.1 = {LOOPBACK}:{node.ports['amqp']}",
            f"management.tcp.ip = {LOOPBACK}",
            f"management.tcp.port = {node.ports['management']}",
            f"prometheus.tcp.ip = {LOOPBACK}",
            f"prometheus.tcp.port = {node.ports['prometheus']}",
            "loopback_users = none",
            "log.console = true",
            "log.file = false",
            "disk_free_limit.absolute = 50MB",
            "vm_memory_high_watermark.absolute = 512MB",
            # The executor holds a command while it pulls weights; the default is half an hour.
            "consumer_timeout = 14400000",
            f"load_definitions = {node.folder / 'definitions.json'}",
            "",
        ]
    )


def definitions(node: RabbitNode) -> str:
    """Return what the node imports at each boot: one administrator, no guest."""
    user = {"name": node.user, "password": node.password, "tags": "administrator"}
    rights = {
        "user": node.user,
        "vhost": "/",
        "configure": ".*",
        "write": ".*",
        "read": ".*",
    }
    return json.dumps({"users": [user], "vhosts": [{"name": "/"}], "permissions": [rights]})


def environment(node: RabbitNode) -> dict[str, str]:
    """Return what the server and each of its command line tools need to find this node."""
    folder = node.folder
    return {
        "HOME": str(folder / "home"),
        "ERL_EPMD_ADDRESS": LOOPBACK,
        "ERL_EPMD_PORT": str(node.ports["epmd"]),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "env.conf"),
        # Data lie in a folder of this name; the port mapper is private, so no other node has it.
        "RABBITMQ_NODENAME": "gatemesh@localhost",
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_DIST_PORT": str(node.ports["distribution"]),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
    }


def prepare(node: RabbitNode) -> None:
    """Write the node's files; its data stays."""
    for name in ("home", "mnesia", "log"):
        (node.folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, text in (
        ("env.conf", ""),
        ("plugins", PLUGINS),
        ("rabbitmq.conf", configuration(node)),
        ("definitions.json", definitions(node)),
    ):
        write_private(node.folder / name, text)
    cookie = node.folder / "home" / ".erlang.cookie"
    if not cookie.exists():
        write_private(cookie, node.cookie)
        cookie.chmod(0o400)
    (node.folder / "pid").unlink(missing_ok=True)


def program(node: RabbitNode) -> ProgramSpec:
    """Return the broker as a program."""
    return ProgramSpec(
        name=PROGRAM,
        argv=(str(node.sbin / "rabbitmq-server"),),
        log_file=node.log_file,
        environment=environment(node),
        cwd=node.folder,
        stop_wait_s=30,
    )


def is_ready(node: RabbitNode) -> bool:
    """Tell whether clients can connect: definitions are imported before the port opens."""
    return (node.folder / "pid").exists() and accepts_amqp(node.amqp_url)


def accepts_amqp(amqp_url: str, timeout_s: float = 5.0) -> bool:
    """Tell whether an AMQP 0-9-1 broker answers at the address; no login is tried."""
    address = urlsplit(amqp_url)
    default_port = 5671 if address.scheme == "amqps" else 5672
    try:
        with socket.create_connection(
            (address.hostname or LOOPBACK, address.port or default_port), timeout=timeout_s
        ) as connection:
            if address.scheme == "amqps":
                return True
            connection.sendall(b"AMQP\x00\x00\x09\x01")
            # A method frame on channel 0: connection.start.
            return connection.recv(3) == b"\x01\x00\x00"
    except OSError:
        return False
