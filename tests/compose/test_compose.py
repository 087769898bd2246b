"""`docker compose up` for real: healthy, a fault found and repaired, steered from outside."""

import itertools
import os
import urllib.request
import uuid
from collections.abc import Iterator
from datetime import datetime

import pytest
from tests.compose.composed import (
    BUILD_DEADLINE_S,
    ENGINES,
    LASTING,
    OURS,
    Composed,
    now,
    published_addresses,
    until,
)
from tests.unit.deploy.expressions import OTHERS

from gatemesh_mesh.suite import COMPOSE_VARIABLE

pytestmark = [
    pytest.mark.compose,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(
        os.environ.get(COMPOSE_VARIABLE) != "1",
        reason="needs a Docker engine; run ./mesh test --compose",
    ),
]

LISTED_AND_INSTALLED = """
import importlib.metadata, json
listed = json.load(open("/opt/gatemesh/sbom.cdx.json"))["components"]
print(sorted(f"{one['name']}=={one['version']}" for one in listed))
print(sorted(f"{one.name}=={one.version}" for one in importlib.metadata.distributions()))
"""
VICTIM = "engine-1"
FROZEN = "engine-2"
DOUBTED = "engine-0"
REARMED_AFTER = 20
"""Questions; the shadow may have had the one answer that was to be spoilt."""
KILL_DEADLINE_S = 240.0
"""A kill across containers comes after stopwaitsecs, 60 s; then start and probation."""


@pytest.fixture(scope="module")
def stack() -> Iterator[Composed]:
    """Build and start the stack once; nothing of it is left afterwards but the images."""
    stack = Composed(f"gatemesh-test-{uuid.uuid4().hex[:8]}")
    try:
        stack.compose("build", deadline_s=BUILD_DEADLINE_S)
        stack.up()
        yield stack
        # Shown by pytest when a test has failed.
        print(stack.compose("logs", "--no-color", "--tail", "60"))  # noqa: T201
    finally:
        stack.compose("down", "--volumes", "--remove-orphans")


@pytest.fixture(autouse=True)
def at_rest(stack: Composed) -> None:
    """Begin each test with every engine in rotation."""
    stack.settled()


def test_everything_is_healthy(stack: Composed) -> None:
    """`--wait` returns when all can be used: the two jobs ended well, the rest is healthy."""
    found = stack.containers()
    assert set(found) == {*LASTING, "secrets", "migrate"}
    assert {found[name]["Health"] for name in LASTING} == {"healthy"}
    assert [found[name]["ExitCode"] for name in ("secrets", "migrate")] == [0, 0]


@pytest.mark.parametrize("service", OURS)
def test_an_image_lists_what_it_holds(stack: Composed, service: str) -> None:
    """The bill of materials is of the very packages that the service can load."""
    listed, installed = stack.python(service, LISTED_AND_INSTALLED).splitlines()
    assert listed == installed
    assert "gatemesh==" in listed


def test_a_chat_request_is_answered(stack: Composed) -> None:
    """A client needs the agent's address and nothing else."""
    status, answer = stack.ask("What is 2+2?")
    assert status == 200
    assert answer["choices"][0]["message"]["content"]


def test_the_console_asks_for_its_token(stack: Composed) -> None:
    """Its pages are reached, and nobody is let in by default."""
    with urllib.request.urlopen(f"http://127.0.0.1:{stack.console_port}/", timeout=10) as answer:
        assert answer.url.endswith("/sign-in?next=%2F")
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_only_this_machine_can_connect(stack: Composed) -> None:
    """Agent, broker and database are published on the loopback address alone."""
    containers = list(stack.containers().values())
    assert published_addresses(containers) == {"127.0.0.1"}


@pytest.mark.parametrize("service", LASTING)
def test_nothing_runs_as_root(stack: Composed, service: str) -> None:
    """Whoever breaks in is nobody."""
    status = stack.execute(service, "cat", "/proc/1/status").splitlines()
    [users] = [line.split()[1:] for line in status if line.startswith("Uid:")]
    assert "0" not in users


@pytest.mark.parametrize("service", OURS)
def test_our_containers_are_closed(stack: Composed, service: str) -> None:
    """Files cannot be changed, no capability is left, and memory has an end."""
    limits = stack.inspected(service)["HostConfig"]
    assert limits["ReadonlyRootfs"]
    assert limits["CapDrop"] == ["ALL"]
    assert limits["Memory"] > 0
    assert limits["RestartPolicy"]["Name"] == "unless-stopped"


@pytest.mark.parametrize("service", OURS)
def test_an_image_holds_no_tests(stack: Composed, service: str) -> None:
    """Neither our tests nor the tools that run them."""
    names = ("tests", "pytest", "hypothesis", "mypy", "ruff", "testcontainers")
    code = f"from importlib.util import find_spec; print([n for n in {names} if find_spec(n)])"
    assert stack.python(service, code).strip() == "[]"


def test_passwords_are_told_to_nobody_else(stack: Composed) -> None:
    """Not to logs, not to the engine's records, and to a service only its own."""
    logs = stack.compose("logs", "--no-color")
    records = "".join(str(stack.inspected(service)) for service in LASTING)
    for name, secret in stack.secrets().items():
        assert secret not in logs, name
        assert secret not in records, name
    given = stack.execute("agent", "ls", "/run/gatemesh").split()
    assert given == ["GATEMESH_AGENT_FINGERPRINT_KEY", "GATEMESH_AMQP_URL"]


def test_people_are_told_their_logins(stack: Composed) -> None:
    """Broker's pages, readers and Grafana; the superuser's login is nobody's business."""
    shown, made = stack.compose("run", "--rm", "-T", "secrets", "show"), stack.secrets()
    told = {name for name in made if made[name] in shown}
    assert told == {"broker", "broker_operator", "console_token", "database_reader", "grafana"}


def test_another_up_changes_nothing(stack: Composed) -> None:
    """Passwords stay, and nothing is started anew."""
    made, before = stack.secrets(), {name: stack.inspected(name)["Id"] for name in LASTING}
    stack.up()
    assert stack.secrets() == made
    assert {name: stack.inspected(name)["Id"] for name in LASTING} == before


def test_readers_read_views_and_nothing_else(stack: Composed) -> None:
    """The login for people and dashboards can change nothing."""
    rows = stack.psql("SELECT instance_id, state FROM instance_health_v1 ORDER BY 1")
    assert rows == [f"{engine}|healthy" for engine in ENGINES]
    for query in ("SELECT * FROM instances", "DELETE FROM incidents_v1", "CREATE TABLE mine ()"):
        with pytest.raises(AssertionError, match="permission denied"):
            stack.psql(query)


def test_the_schemas_owner_is_no_superuser(stack: Composed) -> None:
    """The manager's login cannot leave its database."""
    assert stack.psql("SELECT rolsuper FROM pg_roles WHERE rolname = 'gatemesh'") == ["f"]


def test_a_broken_engine_is_repaired(stack: Composed) -> None:
    """Ejected, confirmed, restarted by the supervisord of another container, proven, put back.

    It comes before the refuted one: a second proof against the same life needs no confirmation.
    """
    since = now()
    life = stack.life_of(VICTIM)
    stack.spoil(VICTIM, "nan")
    statuses: list[int] = []

    def repaired() -> bool:
        statuses.extend(stack.ask(f"question number {len(statuses)}")[0] for _ in range(5))
        return len(stack.commands(since)) == 2 and stack.is_settled()

    until(repaired, f"{VICTIM} repaired")
    expected = [f"eject|{VICTIM}|succeeded|f", f"restart|{VICTIM}|succeeded|f"]
    assert stack.commands(since) == expected
    assert stack.incidents(since) == ["B|resolved|repaired"]
    assert stack.life_of(VICTIM) != life
    assert set(statuses) == {200}


def test_one_bad_answer_is_refuted(stack: Composed) -> None:
    """What does not come back under probes costs seconds of rotation and no restart."""
    since = now()
    spoil_once(stack, DOUBTED, since)
    stack.settled()
    assert stack.commands(since) == [f"eject|{DOUBTED}|succeeded|f"]
    assert stack.incidents(since) == ["B|resolved|refuted"]


def test_a_poisonous_prompt_takes_nobody_out(stack: Composed) -> None:
    """It makes any engine emit NaN, so the failure is the request's and not the instance's."""
    since = now()
    assert stack.ask("poisonous", {"X-Sim-Fault": "nan"})[0] == 200

    def blamed() -> list[str]:
        return stack.psql(
            "SELECT DISTINCT attribution FROM verdicts_v1 WHERE hard AND received_at >= :'since'",
            since=since.isoformat(),
        )

    until(lambda: blamed() != [], "the failure in SQL")
    assert blamed() == ["request"]
    stack.settled()
    assert stack.commands(since) == []


def spoil_once(stack: Composed, engine: str, since: datetime) -> None:
    """Have an engine spoil one answer, and ask until something is done about it."""
    asked = itertools.count()

    def is_noticed() -> bool:
        if next(asked) % REARMED_AFTER == 0:
            stack.spoil(engine, "nan", requests=1)
        assert stack.ask(f"question {uuid.uuid4().hex}")[0] == 200
        return len(stack.commands(since)) > 0

    until(is_noticed, f"{engine} ejected")


def test_an_alert_by_hand_is_accepted(stack: Composed) -> None:
    """Anyone with the broker's login may report a bad answer; one alone takes nobody out."""
    request_id, since = f"by-hand-{uuid.uuid4().hex[:8]}", now()
    alert = {
        "instance_id": VICTIM,
        "request_id": request_id,
        "timestamp": since.isoformat(),
        "check_level": "L1",
        "type": "reported by hand",
        "details": "the answer was nonsense",
    }
    stack.publish("vllm_health_alert", f"verdict.v1.l1.default.{VICTIM}", alert)

    def stored() -> list[str]:
        return stack.psql(
            "SELECT instance_id, outcome, reason, details->>'text' FROM verdicts_v1"
            " WHERE request_id = :'request'",
            request=request_id,
        )

    until(lambda: len(stored()) > 0, "the alert in SQL")
    assert stored() == [f"{VICTIM}|failed|reported|the answer was nonsense"]
    assert stack.commands(since) == []


def test_a_frozen_engine_is_killed_across_containers(stack: Composed) -> None:
    """A request by hand restarts an engine that ignores SIGTERM: supervisord kills its group."""
    since = now()
    life = stack.life_of(FROZEN)
    stack.python("engines", f"import os, signal; os.kill({life.split('@')[0]}, signal.SIGSTOP)")
    request = {
        "timestamp": since.isoformat(),
        "action": "restart",
        "instance_id": FROZEN,
        "requested_by": "compose test",
    }
    stack.publish("vllm_control", "request.v1.restart.default", request)

    def restarted() -> bool:
        return len(stack.commands(since)) == 2 and stack.is_settled()

    until(restarted, f"{FROZEN} restarted", KILL_DEADLINE_S)
    expected = [f"drain|{FROZEN}|succeeded|t", f"restart|{FROZEN}|succeeded|f"]
    assert stack.commands(since) == expected
    assert stack.psql(
        "SELECT requested_by, action, outcome FROM requests_v1 WHERE requested_at >= :'since'",
        since=since.isoformat(),
    ) == ["compose test|restart|accepted"]
    assert stack.life_of(FROZEN) != life


def test_prometheus_reads_every_service(stack: Composed) -> None:
    """All targets answer, the broker's queues among them, and no rule fails."""

    def targets() -> dict[str, str]:
        found = stack.page("prometheus", 9090, "/api/v1/targets")["data"]["activeTargets"]
        return {f"{one['labels']['job']} {one['scrapeUrl']}": one["health"] for one in found}

    until(lambda: set(targets().values()) == {"up"}, f"every target up: {targets()}")
    assert len(targets()) == 9
    rules = stack.page("prometheus", 9090, "/api/v1/rules")["data"]["groups"]
    assert {rule["health"] for group in rules for rule in group["rules"]} == {"ok"}
    for metric in OTHERS:
        path = f"/api/v1/query?query=count({metric})"
        assert stack.page("prometheus", 9090, path)["data"]["result"], metric


def test_grafana_has_the_dashboards(stack: Composed) -> None:
    """Behind the password that was made; the stand-in of Grafana reads the same files."""
    password = stack.secrets()["grafana"]
    found = stack.page("grafana", 3000, "/api/search?type=dash-db", password)
    assert {one["title"] for one in found} == {
        f"gatemesh: {name}" for name in ("engine", "fleet", "gates", "pipeline")
    }


def test_a_lost_consumer_comes_back(stack: Composed) -> None:
    """A service that lost its queue reads it again: by itself, or started anew by the engine.

    Its client asks again when its channel comes back; where the queue is not back by then, the
    service ends with code 70.
    """
    stack.broker("DELETE", "queues/%2F/executor.commands")

    def is_back() -> bool:
        queues = {one["name"]: one for one in stack.broker("GET", "queues/%2F")}
        health = stack.inspected("executor")["State"]["Health"]["Status"]
        is_read = bool(queues.get("executor.commands", {}).get("consumers"))
        return is_read and bool(health == "healthy")

    until(is_back, "the executor is back")
    assert stack.broker("GET", "queues/%2F/executor.commands")["durable"]


def test_everything_survives_its_servers(stack: Composed) -> None:
    """Broker and database are started anew, and keep what they held; so does the loop."""
    [verdicts] = stack.psql("SELECT count(*) FROM verdicts_v1")
    stack.compose("restart", "rabbitmq", "postgres")
    until(stack.is_healthy, "every container healthy")
    stack.settled()
    assert int(stack.psql("SELECT count(*) FROM verdicts_v1")[0]) >= int(verdicts)
    spoil_once(stack, DOUBTED, now())
