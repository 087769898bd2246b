"""Settings, Secrets and ports of the manifests are those that the code knows."""

import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from gatemesh_common.settings import ServiceSettings, load_settings
from gatemesh_engine_sim.settings import SimSettings, read_settings

from .conftest import Render
from .rendered import (
    DEV,
    FOLDER,
    PRODUCTION,
    SECRETS,
    SIDECAR,
    Object,
    Pod,
    covers,
    name_of,
    of_kind,
    ours,
    pods,
    ports,
)

SERVICES = ("agent", "console", "executor", "health_manager", "notifier", "shadow")
EXAMPLE = FOLDER / PRODUCTION / "secrets.example.yaml"
POD_NAME = "vllm-a-7d9f"
SECRET_VALUES = {
    "GATEMESH_AMQP_URL": "amqps://user:password@broker.example.com:5671/",
    "GATEMESH_DATABASE_URL": "postgresql://user:password@database.example.com/gatemesh",
    "GATEMESH_AGENT_FINGERPRINT_KEY": "0123456789abcdef",
}


def settings_class(service: str) -> type[ServiceSettings]:
    """Return the settings of a service; the test is skipped where that is not written yet."""
    if importlib.util.find_spec(f"gatemesh_{service}") is None:
        pytest.skip(f"the service {service} is not in this repository yet")
    module = importlib.import_module(f"gatemesh_{service}.settings")
    own = [
        found
        for _, found in inspect.getmembers(module, inspect.isclass)
        if issubclass(found, ServiceSettings) and found.__module__ == module.__name__
    ]
    [only] = own
    return only


def known_names(found: type[ServiceSettings]) -> set[str]:
    """Return every variable that a settings class reads."""
    prefix = str(found.model_config.get("env_prefix", ""))
    return {
        str(field.validation_alias) if field.validation_alias else f"{prefix}{name}".upper()
        for name, field in found.model_fields.items()
    }


def variables(items: list[Object], pod: Pod, container: Object) -> dict[str, str]:
    """Return what a container finds in its environment, its Secret's files left out."""
    told: dict[str, str] = {}
    for source in container.get("envFrom", []):
        [found] = [
            item
            for item in of_kind(items, "ConfigMap")
            if name_of(item) == source["configMapRef"]["name"]
        ]
        told |= found["data"]
    for one in container.get("env", []):
        value = one["value"] if "value" in one else _from_pod(pod, one)
        told[one["name"]] = re.sub(r"\$\((\w+)\)", lambda match: told[match.group(1)], value)
    return told


def _from_pod(pod: Pod, variable: Object) -> str:
    path = variable["valueFrom"]["fieldRef"]["fieldPath"]
    label = re.fullmatch(r"metadata\.labels\['(.+)'\]", path)
    if label:
        return pod.labels[label.group(1)]
    assert path == "metadata.name"
    return POD_NAME


def secret_keys(items: list[Object]) -> dict[str, set[str]]:
    """Return the keys of each Secret: of those that are made, else of the example."""
    made = of_kind(items, "Secret") or list(yaml.safe_load_all(EXAMPLE.read_text()))
    return {
        name_of(item): set(item.get("data", {})) | set(item.get("stringData", {})) for item in made
    }


def mounted_keys(
    items: list[Object], pod: Pod, container: Object
) -> Iterator[tuple[str, set[str]]]:
    """Yield each folder of a container that a Secret or ConfigMap fills, and its files."""
    maps = {name_of(item): set(item.get("data", {})) for item in of_kind(items, "ConfigMap")}
    for mount in container.get("volumeMounts", []):
        volume = pod.volume(mount["name"])
        if "secret" in volume:
            keys = secret_keys(items)[volume["secret"]["secretName"]]
            chosen = {item["key"] for item in volume["secret"].get("items", [])}
            assert chosen <= keys, f"{pod.name}: no such key: {chosen - keys}"
            yield mount["mountPath"], chosen or keys
        elif "configMap" in volume:
            yield mount["mountPath"], maps[volume["configMap"]["name"]]


def containers_of(items: list[Object], service: str) -> list[tuple[Pod, Object]]:
    """Return the containers of a service that runs for good."""
    return [
        (pod, container)
        for pod, container, found in ours(items)
        if found == service and pod.owner["kind"] != "Job"
    ]


@pytest.mark.parametrize("service", SERVICES)
def test_every_variable_is_a_setting(service: str, items: list[Object]) -> None:
    """A misspelt name would be ignored, and the default would hold without a word."""
    known = known_names(settings_class(service))
    for pod, container in containers_of(items, service):
        told = {name for name in variables(items, pod, container) if "GATEMESH" in name}
        assert told - known == set(), pod.name


def test_production_runs_every_service(rendering: Render) -> None:
    """And the migration besides."""
    found = [(pod.owner["kind"], service) for pod, _, service in ours(rendering(PRODUCTION))]
    wanted = [("Deployment", service) for service in SERVICES]
    assert sorted(found) == sorted([*wanted, ("Job", "health_manager")])


@pytest.mark.parametrize("service", SERVICES)
def test_every_value_is_accepted_and_ports_are_those_of_the_code(
    service: str, items: list[Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No service ends with code 2 for what the manifests say, and probes find its port."""
    found = settings_class(service)
    for pod, container in containers_of(items, service):
        with monkeypatch.context() as patch:
            for name, value in (variables(items, pod, container) | SECRET_VALUES).items():
                patch.setenv(name, value)
            read: Any = load_settings(found)
        declared = ports(container)
        assert declared.pop("admin") == read.admin_port
        assert set(declared.values()) == ({read.port} if hasattr(read, "port") else set())
        assert read.admin_host == "0.0.0.0"  # noqa: S104


def test_the_simulated_engines_take_their_variables(rendering: Render) -> None:
    """They read theirs in their own way."""
    items = rendering(DEV)
    [(pod, container)] = containers_of(items, "engines")
    told = variables(items, pod, container)
    read = read_settings([], told)
    assert ports(container) == {"http": read.port}
    known = {f"GATEMESH_SIM_{name}".upper() for name in SimSettings.model_fields}
    assert set(told) - known == set()


def test_secrets_hold_what_their_services_read(items: list[Object]) -> None:
    """Each file is a setting of that service, or is named by one of its settings."""
    for pod, container, service in ours(items):
        told = variables(items, pod, container)
        for folder, keys in mounted_keys(items, pod, container):
            named = {value for value in told.values() if value.startswith(f"{folder}/")}
            assert named <= {f"{folder}/{key}" for key in keys}, pod.name
            if folder == SECRETS and importlib.util.find_spec(f"gatemesh_{service}"):
                unread = keys - known_names(settings_class(service))
                assert unread <= {PurePosixPath(value).name for value in named}, pod.name


def test_every_secret_and_key_of_the_example_is_used(rendering: Render) -> None:
    """A person who fills it in does nothing in vain."""
    items = rendering(PRODUCTION)
    mounted = {
        volume["secret"]["secretName"]
        for pod in pods(items)
        for volume in pod.spec["volumes"]
        if "secret" in volume
    }
    [authentication] = of_kind(items, "TriggerAuthentication")
    [reference] = authentication["spec"]["secretTargetRef"]
    example = secret_keys(items)
    assert mounted | {reference["name"]} == set(example)
    assert {reference["key"]} == example[reference["name"]]


def test_the_example_holds_no_password() -> None:
    """Whatever it says must be changed before it works."""
    for item in yaml.safe_load_all(EXAMPLE.read_text()):
        for value in item["stringData"].values():
            assert "CHANGE-ME" in value or ":PASSWORD@" in value


def test_probes_name_ports_of_their_containers(items: list[Object]) -> None:
    """A name that the container has not would leave the probe failing for ever."""
    for pod in pods(items):
        for container in pod.containers:
            for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
                probe = container.get(kind, {})
                check = probe.get("httpGet") or probe.get("tcpSocket")
                assert check is None or check["port"] in ports(container), pod.name


def test_services_lead_to_ports_of_their_pods(items: list[Object]) -> None:
    """A Service without pods, or with a port that they have not, is empty without a word."""
    for service in of_kind(items, "Service"):
        selector = {"matchLabels": _static(service["spec"]["selector"])}
        served = [pod for pod in pods(items) if covers(selector, pod.labels)]
        assert served, name_of(service)
        for pod in served:
            declared = [pair for one in pod.containers for pair in ports(one).items()]
            known = {known for pair in declared for known in pair}
            for port in service["spec"]["ports"]:
                assert port.get("targetPort", port["port"]) in known, name_of(service)


def _static(selector: dict[str, str]) -> dict[str, str]:
    """Leave out the label that the executor puts on running pods."""
    return {name: value for name, value in selector.items() if name != "gatemesh.io/serving"}


def test_a_sidecar_knows_its_engine_by_the_executors_name(
    rendering: Render,
) -> None:
    """Else it would wait for a routing table that never names it."""
    items = rendering(SIDECAR)
    found = containers_of(items, "agent")
    assert len(found) == 2
    for pod, container in found:
        told = variables(items, pod, container)
        assert told["GATEMESH_AGENT_INSTANCES"] == f"{name_of(pod.owner)}=http://127.0.0.1:8000"
