"""compose.yaml and the Dockerfile fit together, and every service of ours is hardened alike."""

from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((REPOSITORY / "compose.yaml").read_text())
DOCKERFILE = (REPOSITORY / "deploy" / "docker" / "Dockerfile").read_text()
OURS = {
    name: service
    for name, service in COMPOSE["services"].items()
    if service["image"].startswith("gatemesh/")
}


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
    target = str(OURS[name]["build"]["target"])
    assert target.startswith("${") or f" AS {target}\n" in DOCKERFILE
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
