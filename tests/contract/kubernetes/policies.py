"""Who may talk to whom, as a cluster would read the network policies of one namespace."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from .rendered import Object, Pod, covers, of_kind, pods, ports

NAMESPACE_LABELS = "namespaceSelector"


@dataclass(frozen=True, order=True)
class Way:
    """From one part to a port of another."""

    source: str
    target: str
    port: int


def ways(items: list[Object]) -> set[Way]:
    """Return every way between different pods of the namespace that policies leave open."""
    policies = of_kind(items, "NetworkPolicy")
    found = pods(items)
    return {
        Way(source.part, target.part, port)
        for source in found
        for target in found
        for container in target.containers
        for port in ports(container).values()
        if _allows(policies, "Egress", source, target, port)
        if _allows(policies, "Ingress", target, source, port)
    }


def _allows(policies: list[Object], direction: str, of: Pod, partner: Pod, port: int) -> bool:
    """Return whether a pod may be reached, or may reach: all may where no policy is about it."""
    about = [one["spec"] for one in policies if _is_about(one["spec"], direction, of)]
    if not about:
        return True
    receiver = of if direction == "Ingress" else partner
    return any(
        _takes_partner(rule, direction, partner) and _takes_port(rule, receiver, port)
        for spec in about
        for rule in spec.get(direction.lower(), [])
    )


def _is_about(spec: Object, direction: str, pod: Pod) -> bool:
    return direction in spec["policyTypes"] and covers(spec["podSelector"], pod.labels)


def _takes_partner(rule: Object, direction: str, partner: Pod) -> bool:
    selectors = rule.get("from" if direction == "Ingress" else "to")
    if selectors is None:
        return True
    # Selectors of other namespaces, and addresses, are about nobody in this one.
    return any(
        covers(one["podSelector"], partner.labels)
        for one in selectors
        if "podSelector" in one and NAMESPACE_LABELS not in one
    )


def _takes_port(rule: Object, receiver: Pod, port: int) -> bool:
    if "ports" not in rule:
        return True
    named = {name: number for one in receiver.containers for name, number in ports(one).items()}
    return any(named.get(one["port"], one["port"]) == port for one in rule["ports"])


def named_ports(items: list[Object]) -> Iterator[tuple[Pod, str]]:
    """Yield every port name that a policy uses, with each pod that it is about."""
    for policy in of_kind(items, "NetworkPolicy"):
        rules = policy["spec"].get("ingress", [])
        used = {port["port"] for rule in rules for port in rule.get("ports", [])}
        about = [pod for pod in pods(items) if covers(policy["spec"]["podSelector"], pod.labels)]
        yield from product(about, (port for port in used if isinstance(port, str)))
