"""Only what must talk to each other may, in the manifests as a cluster reads them."""

import pytest

from .conftest import Render
from .policies import Way, named_ports, ways
from .rendered import DEV, PRODUCTION, SIDECAR, Object, covers, name_of, of_kind, pods, ports

BROKER, DATABASE, ENGINE = ("rabbitmq", 5672), ("postgres", 5432), ("engine", 8000)
PARTNERS = {
    "agent": (BROKER, ENGINE),
    "executor": (BROKER, ENGINE),
    "health_manager": (BROKER, DATABASE),
    "migrate": (DATABASE,),
    "shadow": (BROKER, ENGINE),
    # A sidecar asks its engine by the address of a Service.
    "engine": (ENGINE,),
}


def test_only_these_ways_are_open(rendering: Render) -> None:
    """The agent, which clients reach, has no way into the database; and so on for each part."""
    wanted = {Way(source, *target) for source, all_ in PARTNERS.items() for target in all_}
    assert ways(rendering(DEV)) == wanted


def test_every_pod_of_ours_is_closed_first(rendering: Render) -> None:
    """What no policy is about may do anything."""
    items = rendering(PRODUCTION)
    [closed] = [one for one in of_kind(items, "NetworkPolicy") if name_of(one) == "gatemesh-closed"]
    assert closed["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in closed["spec"]
    assert "egress" not in closed["spec"]
    for pod in pods(items):
        assert covers(closed["spec"]["podSelector"], pod.labels), pod.name


def test_broker_and_database_can_be_narrowed_to_addresses(rendering: Render) -> None:
    """The example of production shows how, and for which ports."""
    found = {name_of(one): one["spec"] for one in of_kind(rendering(PRODUCTION), "NetworkPolicy")}
    for name, wanted in (("broker", {5671, 5672}), ("database", {5432})):
        [rule] = found[f"gatemesh-to-{name}"]["egress"]
        assert [list(one) for one in rule["to"]] == [["ipBlock"]]
        assert {port["port"] for port in rule["ports"]} == wanted


@pytest.mark.parametrize("name", [PRODUCTION, SIDECAR])
def test_clients_come_from_named_namespaces_and_to_the_agents_port_only(
    name: str, rendering: Render
) -> None:
    """Neither metrics nor engines are for them."""
    opened = [
        (rule, one["spec"]["podSelector"])
        for one in of_kind(rendering(name), "NetworkPolicy")
        for rule in one["spec"].get("ingress", [])
        for peer in rule["from"]
        if peer.get("namespaceSelector", {}).get("matchLabels") == {"gatemesh.io/clients": "true"}
    ]
    [(rule, selector)] = opened
    [port] = rule["ports"]
    for pod in pods(rendering(name)):
        if covers(selector, pod.labels):
            [agent] = [one for one in pod.containers if one["name"] == "agent"]
            assert ports(agent)[port["port"]] == 8080


def test_names_of_ports_are_known_to_the_pods(items: list[Object]) -> None:
    """A name that no container has opens nothing, without a word."""
    for pod, name in named_ports(items):
        assert name in {port for one in pod.containers for port in ports(one)}, pod.name
