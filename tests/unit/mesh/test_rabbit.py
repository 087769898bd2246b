"""The broker node keeps to itself."""

import json
import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from gatemesh_mesh import rabbit
from gatemesh_mesh.rabbit import PORT_NAMES, BrokerTls, RabbitNode


@pytest.fixture
def node(tmp_path: Path) -> RabbitNode:
    """Return a node that never runs."""
    return RabbitNode(
        sbin=Path("/opt/rabbit/sbin"),
        folder=tmp_path,
        log_file=tmp_path / "log.txt",
        ports={name: 21_000 + number for number, name in enumerate(PORT_NAMES)},
        user="gatemesh",
        password="secret",
        cookie="COOKIE",
    )


def test_everything_listens_on_loopback(node: RabbitNode) -> None:
    """Nobody else on the network reaches the node."""
    text = rabbit.configuration(node)
    assert "listeners.tcp.1 = 127.0.0.1:21000" in text
    assert "management.tcp.ip = 127.0.0.1" in text
    assert "prometheus.tcp.ip = 127.0.0.1" in text
    assert rabbit.environment(node)["ERL_EPMD_ADDRESS"] == "127.0.0.1"


def test_what_quorum_queues_keep_in_memory_stays_far_below_the_alarm(node: RabbitNode) -> None:
    """Else the broker stops every sender for a second each time the log has filled the memory."""
    facts = dict(line.split(" = ") for line in rabbit.configuration(node).splitlines() if line)
    most = int(facts["vm_memory_high_watermark.absolute"].removesuffix("MB")) * 1_000_000
    assert int(facts["raft.wal_max_size_bytes"]) * 3 < most


def test_nothing_is_shared_with_a_default_node(node: RabbitNode) -> None:
    """A broker on the standard port is neither seen nor disturbed."""
    environment = rabbit.environment(node)
    assert environment["ERL_EPMD_PORT"] == "21003"
    assert environment["RABBITMQ_DIST_PORT"] == "21004"
    own = ("HOME", "RABBITMQ_MNESIA_BASE", "RABBITMQ_LOG_BASE", "RABBITMQ_ENABLED_PLUGINS_FILE")
    assert all(environment[name].startswith(str(node.folder)) for name in own)


def test_one_administrator_and_no_guest(node: RabbitNode) -> None:
    """Definitions at boot mean that no default user is made."""
    found = json.loads(rabbit.imported(node))
    assert [user["name"] for user in found["users"]] == ["gatemesh"]
    assert found["permissions"][0]["configure"] == ".*"
    assert "secret" not in rabbit.imported(node)


def test_each_service_has_its_own_login(node: RabbitNode) -> None:
    """Its password is in its own address only."""
    shared = replace(node, service_passwords={"agent": "a-pass", "executor": "e-pass"})
    found = json.loads(rabbit.imported(shared))
    names = {user["name"] for user in found["users"]}
    assert names == {"gatemesh", "gatemesh_agent", "gatemesh_executor"}
    assert shared.service_urls["agent"] == "amqp://gatemesh_agent:a-pass@127.0.0.1:21000/"
    assert "pass" not in rabbit.imported(shared).replace("password", "")


def test_it_listens_encrypted_where_it_is_told_to(node: RabbitNode) -> None:
    """On the loopback address as well."""
    assert "ssl" not in rabbit.configuration(node)
    tls = BrokerTls(21_100, Path("ca.pem"), Path("cert.pem"), Path("key.pem"))
    lines = rabbit.configuration(replace(node, tls=tls)).splitlines()
    assert "listeners.ssl.1 = 127.0.0.1:21100" in lines
    assert "ssl_options.keyfile = key.pem" in lines


def test_files_are_private_and_the_cookie_stays(node: RabbitNode) -> None:
    """Passwords are readable by the owner alone; a second start keeps the cookie."""
    rabbit.prepare(node)
    cookie = node.folder / "home" / ".erlang.cookie"
    assert cookie.stat().st_mode & 0o777 == 0o400
    rabbit.prepare(node)
    assert cookie.read_text() == "COOKIE"
    assert (node.folder / "definitions.json").stat().st_mode & 0o077 == 0
    assert "consistent_hash" in (node.folder / "plugins").read_text()


def test_the_program_is_the_package_s_own_script(node: RabbitNode) -> None:
    """The wrapper on the path would switch user and folders."""
    program = rabbit.program(node)
    assert program.argv == ("/opt/rabbit/sbin/rabbitmq-server",)
    assert program.stop_wait_s >= 30


def answer_once(server: socket.socket, reply: bytes) -> None:
    """Answer one connection."""
    connection, _ = server.accept()
    with connection:
        connection.recv(8)
        connection.sendall(reply)


@pytest.mark.parametrize(
    ("reply", "accepted"),
    [(b"\x01\x00\x00\x00", True), (b"AMQP\x00\x00\x09\x01", False), (b"HTTP/1.1 400", False)],
)
def test_only_a_broker_counts(*, reply: bytes, accepted: bool) -> None:
    """Another server on the port is not taken for a broker."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        thread = threading.Thread(target=answer_once, args=(server, reply))
        thread.start()
        assert rabbit.accepts_amqp(f"amqp://u:p@127.0.0.1:{port}/") is accepted
        thread.join()


def test_nobody_there_is_no_broker() -> None:
    """A refused connection is an answer, not an error."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert not rabbit.accepts_amqp(f"amqp://u:p@127.0.0.1:{port}/")


def test_a_node_that_is_not_there_is_not_waited_for(node: RabbitNode) -> None:
    """Its stop goes on as ever."""
    assert not rabbit.hasten_stop(node.folder / "never")
    rabbit.prepare(node)
    assert (node.folder / "epmd.port").read_text() == "21003"
    assert not rabbit.hasten_stop(node.folder)
