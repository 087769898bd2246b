"""The private broker node: its files, its program, and when it is ready."""

import json
import os
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from gatemesh_common.broker_definitions import Site, definitions
from gatemesh_mesh.ports import LOOPBACK
from gatemesh_mesh.programs import ProgramSpec
from gatemesh_mesh.state import write_private

PROGRAM = "rabbitmq"
PORT_NAMES = ("amqp", "management", "prometheus", "epmd", "distribution")
PLUGINS = "[rabbitmq_management,rabbitmq_prometheus,rabbitmq_consistent_hash_exchange].\n"
READY_DEADLINE_S = 120.0
"""A start takes 3 s on a quiet machine and up to 60 s on a busy one."""

NODE_NAME = "gatemesh@localhost"
"""Data lie in a folder of this name; the port mapper is private, so no other node has it."""

STATISTICS_OFF = "gen_event delete_handler [rabbit_event,rabbit_mgmt_db_handler,[]]"
"""What `erl_call` has a node do before its stop.

The handler sets a variable of the node when it ends, through the process that is just ending the
node: each waits for the other for 5 s (seen with 3.10.8). Without it a stop takes 1 s.
"""
CALL_DEADLINE_S = 3.0


@dataclass(frozen=True)
class BrokerTls:
    """Where a node also listens encrypted, and by what it proves itself."""

    port: int
    ca_file: Path
    certificate_file: Path
    key_file: Path


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
    service_passwords: Mapping[str, str] = field(default_factory=dict)
    """By service: the password of the user that has its rights alone."""
    tls: BrokerTls | None = None
    """None: it listens unencrypted only, on this machine."""

    @property
    def amqp_url(self) -> str:
        """The address of whoever may do everything; ends in the default virtual host."""
        return self._url(self.user, self.password)

    @property
    def service_urls(self) -> dict[str, str]:
        """By service: the address with its own login."""
        return {
            service: self._url(Site().user(service), password)
            for service, password in self.service_passwords.items()
        }

    def _url(self, user: str, password: str) -> str:
        return f"amqp://{user}:{password}@{LOOPBACK}:{self.ports['amqp']}/"

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
            # What quorum queues hold in memory until it is rolled over; 512 MiB would be too much.
            "raft.wal_max_size_bytes = 67108864",
            # The executor holds a command while it pulls weights; the default is half an hour.
            "consumer_timeout = 14400000",
            f"load_definitions = {node.folder / 'definitions.json'}",
            *(encrypted(node.tls) if node.tls else ()),
            "",
        ]
    )


def encrypted(tls: BrokerTls) -> tuple[str, ...]:
    """Return the lines of rabbitmq.conf for listening encrypted; clients need no certificate."""
    return (
        f"listeners.ssl.1 = {LOOPBACK}:{tls.port}",
        f"ssl_options.cacertfile = {tls.ca_file}",
        f"ssl_options.certfile = {tls.certificate_file}",
        f"ssl_options.keyfile = {tls.key_file}",
        "ssl_options.verify = verify_none",
        "ssl_options.versions.1 = tlsv1.2",
    )


def imported(node: RabbitNode) -> str:
    """Return what the node imports at each boot: an administrator, services' users, no guest."""
    return json.dumps(definitions(node.service_passwords, Site(), (node.user, node.password)))


def environment(node: RabbitNode) -> dict[str, str]:
    """Return what the server and each of its command line tools need to find this node."""
    folder = node.folder
    return {
        "HOME": str(folder / "home"),
        "ERL_EPMD_ADDRESS": LOOPBACK,
        "ERL_EPMD_PORT": str(node.ports["epmd"]),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "env.conf"),
        "RABBITMQ_NODENAME": NODE_NAME,
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
        ("definitions.json", imported(node)),
        ("epmd.port", str(node.ports["epmd"])),
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


def hasten_stop(folder: Path) -> bool:
    """Have the node of a folder leave out what only delays its stop; False when that failed.

    What the node keeps is not touched: it loses its statistics, which end with it anyway.
    """
    try:
        called = subprocess.run(
            ("erl_call", "-sname", NODE_NAME, "-a", STATISTICS_OFF),
            env={
                **os.environ,
                "HOME": str(folder / "home"),
                "ERL_EPMD_PORT": (folder / "epmd.port").read_text(),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=CALL_DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return called.returncode == 0


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
