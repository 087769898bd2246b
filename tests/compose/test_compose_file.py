"""compose.yaml and the Dockerfile fit together, and every service of ours is hardened alike."""

import configparser
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.compose.dockerfile import STAGES, inherited, lineage, shipped

from gatemesh_mesh.real_engine import ENGINE_VERSION

REPOSITORY = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((REPOSITORY / "compose.yaml").read_text())
DOCKER = REPOSITORY / "deploy" / "docker"
JOBS = {"secrets", "migrate"}
"""What ends by itself."""
OURS = {
    name: service
    for name, service in COMPOSE["services"].items()
    if service["image"].startswith("gatemesh/")
}


def target_of(name: str) -> str:
    """Return the stage that a service of ours is built from, the default where it can be chosen."""
    return re.sub(r"\$\{\w+:-(.*)\}", r"\1", OURS[name]["build"]["target"])


@pytest.mark.parametrize("name", OURS)
def test_a_service_of_ours_is_hardened(name: str) -> None:
    """Whoever adds one begins with the same fences."""
    service = OURS[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"mem_limit", "pids_limit", "logging"} <= set(service)
    ports = service.get("ports", [])
    assert all(port.startswith("127.0.0.1:") for port in ports)


@pytest.mark.parametrize("name", OURS)
def test_it_has_a_target_and_secrets_of_its_own(name: str) -> None:
    """Only the job that makes them sees those of others."""
    assert target_of(name) in STAGES
    volumes = [str(volume).split(":")[0] for volume in OURS[name]["volumes"]]
    secrets = {volume for volume in volumes if volume.endswith("_secrets")}
    made = {str(one).split(":")[0] for one in OURS["secrets"]["volumes"]}
    assert secrets <= made
    assert name == "secrets" or len(secrets) == 1


def test_nobody_is_told_unless_somebody_is_named() -> None:
    """A stack without addresses has no notifier that fails to start."""
    assert COMPOSE["services"]["notifier"]["profiles"] == ["notify"]
    example = REPOSITORY / "deploy" / "docker" / "targets.toml"
    assert all(line.startswith("#") for line in example.read_text().splitlines())


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_every_service_is_limited_watched_and_started_anew(name: str) -> None:
    """Also those of others: none takes the whole machine, and none is taken for well unasked."""
    service = COMPOSE["services"][name]
    assert {"mem_limit", "pids_limit", "logging"} <= set(service)
    if name in JOBS:
        assert service["restart"] == "no"
        return
    assert service["restart"] == "unless-stopped"
    assert "healthcheck" in service or inherited(target_of(name), "HEALTHCHECK")


def test_the_broker_s_queues_keep_less_than_a_third_of_what_stops_senders() -> None:
    """RabbitMQ 4 stops them at 0.6 of its container's memory."""
    lines = (DOCKER / "rabbitmq.conf").read_text().splitlines()
    facts = dict(line.split(" = ") for line in lines if " = " in line)
    assert COMPOSE["services"]["rabbitmq"]["mem_limit"] == "1g"
    assert int(facts["raft.wal_max_size_bytes"]) * 3 < 0.6 * 2**30


@pytest.mark.parametrize("name", OURS)
def test_nothing_of_ours_runs_as_root(name: str) -> None:
    """Neither the file nor a stage that it begins with leaves root behind."""
    assert "user" not in OURS[name]
    assert inherited(target_of(name), "USER") == "gatemesh"


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_no_password_is_written_down(name: str) -> None:
    """Secrets come from files that the first start makes, or from whoever starts it."""
    environment = COMPOSE["services"][name].get("environment", {})
    told = {
        variable: value
        for variable, value in environment.items()
        if re.search(r"PASS|SECRET|TOKEN|_KEY(_|$)|AMQP_URL|DATABASE_URL", variable)
    }
    assert all(re.fullmatch(r"/run/gatemesh/\S+|\$\{\w+:-\}", value) for value in told.values())


@pytest.mark.parametrize("name", OURS)
def test_a_shipped_environment_has_a_bill_of_materials(name: str) -> None:
    """It is written where the packages are installed, and so lists what is shipped."""
    for stage in shipped(target_of(name)):
        words = STAGES[stage].last("RUN") or ""
        assert words.startswith("install-extra ") or words.split("&& ")[-1].startswith("write-sbom")
    assert shipped(target_of(name)) or name == "vllm-gpu"


def test_the_shadow_with_models_is_made_alike() -> None:
    """It is chosen by a variable."""
    assert inherited("shadow-models", "USER") == "gatemesh"
    assert "&& write-sbom" in (STAGES["build-shadow-models"].last("RUN") or "")


def test_real_engines_start_only_when_they_are_asked_for() -> None:
    """One GPU for one, none for the other, and clients reach neither but through the agent."""
    gpu, cpu = COMPOSE["services"]["vllm-gpu"], COMPOSE["services"]["vllm-cpu"]
    assert (gpu["profiles"], cpu["profiles"]) == (["gpu"], ["cpu"])
    assert gpu["deploy"]["resources"]["reservations"]["devices"] == [
        {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    ]
    assert "deploy" not in cpu
    for service in (gpu, cpu):
        assert "ports" not in service
        assert service["networks"] == {"default": {"aliases": ["vllm"]}}


def has_compose() -> bool:
    """Tell whether compose is installed; it needs no Docker engine to read a file."""
    command = ("docker", "compose", "version")
    return (
        shutil.which("docker") is not None
        and not subprocess.run(command, capture_output=True, check=False).returncode
    )


@pytest.mark.skipif(not has_compose(), reason="docker compose is not installed")
@pytest.mark.parametrize(("profile", "other"), [("gpu", "cpu"), ("cpu", "gpu")])
def test_compose_reads_the_profile_with_its_variables(profile: str, other: str) -> None:
    """One real engine, no simulated one, and all who must know are told: also where no GPU is."""
    options = ("--env-file", "deploy/docker/vllm.env", "--profile", profile)
    result = subprocess.run(
        ("docker", "compose", "-f", "compose.yaml", *options, "config", "--format", "json"),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    services = json.loads(result.stdout)["services"]
    assert f"vllm-{other}" not in services
    assert services["engines"]["environment"]["GATEMESH_SIMULATED"] == "0"
    devices = services[f"vllm-{profile}"].get("deploy", {}).get("resources", {})
    assert ("nvidia" in str(devices)) is (profile == "gpu")
    executor = services["executor"]["environment"]
    assert executor["GATEMESH_EXECUTOR_SUPERVISOR_URL"] == "http://vllm:9001"


def test_an_image_without_a_compiler_compiles_nothing() -> None:
    """Eager mode alone does not keep vLLM from it: its engine died with the first request."""
    assert COMPOSE["services"]["vllm-cpu"]["environment"]["TORCHDYNAMO_DISABLE"] == "1"
    installed = " ".join(words for stage in lineage("vllm_cpu") for words in stage.all("RUN"))
    assert "g++" not in installed


def test_both_builds_are_of_the_version_that_is_tested() -> None:
    """Upstream's image takes the place of an empty stage, which alone cannot be used."""
    context = COMPOSE["services"]["vllm-gpu"]["build"]["additional_contexts"]["vllm"]
    assert context == f"docker-image://vllm/vllm-openai:${{GATEMESH_VLLM_TAG:-v{ENGINE_VERSION}}}"
    assert (STAGES["vllm"].base, STAGES["vllm"].instructions) == ("scratch", [])
    assert STAGES["vllm_gpu"].base == "vllm"
    assert f" vllm-cpu=={ENGINE_VERSION} " in (STAGES["build-vllm_cpu"].last("RUN") or "")


def test_gigabytes_are_not_installed_anew_for_a_changed_line_of_ours() -> None:
    """What the real engine's stages are built on holds no source of ours."""
    for target in ("build-vllm_cpu", "build-supervisor"):
        copied = [words for stage in lineage(target) for words in stage.all("COPY")]
        assert not any(words.split()[0] in ("libs", "services", "README.md") for words in copied)


def test_the_real_engine_has_one_name_everywhere() -> None:
    """In the file of variables, in the executor's list, and as the program of supervisord."""
    lines = [line for line in (DOCKER / "vllm.env").read_text().splitlines() if line[0] != "#"]
    chosen = dict(line.split("=", 1) for line in lines)
    text = (REPOSITORY / "compose.yaml").read_text()
    assert all(f"${{{variable}:-" in text for variable in chosen)
    [engine] = tomllib.loads((REPOSITORY / chosen["GATEMESH_INSTANCES_FILE"]).read_text())[
        "instances"
    ]
    assert chosen["GATEMESH_INSTANCES"] == f"{engine['instance_id']}={engine['base_url']}"
    assert engine["program"] == f"vllm:{engine['instance_id']}"
    assert chosen["GATEMESH_SUPERVISOR_URL"] == "http://vllm:9001"


@pytest.mark.parametrize("name", ["vllm-gpu", "vllm-cpu"])
def test_the_real_engine_is_stopped_as_the_executor_expects(name: str) -> None:
    """It lets requests end within the grace; what its command names is set."""
    conf = configparser.RawConfigParser()
    conf.read(DOCKER / "supervisord-vllm.conf")
    program = conf["program:vllm"]
    assert (program["stopwaitsecs"], program["autorestart"]) == ("60", "false")
    assert "--shutdown-timeout 50" in program["command"]
    named = set(re.findall(r"%\(ENV_(\w+)\)s", program["command"]))
    assert named == {"GATEMESH_VLLM_MODEL", "GATEMESH_VLLM_FLAGS"}
    assert named <= set(COMPOSE["services"][name]["environment"])
