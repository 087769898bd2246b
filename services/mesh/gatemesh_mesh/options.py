"""What a person can choose about a stack and a demo."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from gatemesh_common.secured import secured_broker, secured_database
from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.reach import BROKER_SETTING, DATABASE_SETTING

BROKER_CA_SETTING = "GATEMESH_AMQP_CA_FILE"
DATABASE_CA_SETTING = "GATEMESH_DATABASE_CA_FILE"
NOTIFIER_URLS = "GATEMESH_NOTIFIER_URLS"
NOTIFIER_PATHS = ("GATEMESH_NOTIFIER_TARGETS_FILE", "GATEMESH_NOTIFIER_TEMPLATES_DIR")


def notifier_settings(environment: Mapping[str, str]) -> dict[str, str] | None:
    """Return what the notifier must be told beside what it inherits; None without a target.

    Addresses hold secrets: they are inherited and stand in no file of the stack.
    """
    if not environment.get(NOTIFIER_URLS) and not environment.get(NOTIFIER_PATHS[0]):
        return None
    # The service runs in another folder.
    return {
        name: str(Path(environment[name]).resolve())
        for name in NOTIFIER_PATHS
        if environment.get(name)
    }


@dataclass(frozen=True)
class StackOptions:
    """What a person can choose about a stack."""

    engine_count: int = 3
    agent_port: int | None = None
    """None: any free one."""
    amqp_url: str | None = None
    database_url: str | None = None
    """None: a private one is run."""
    policy_file: Path | None = None
    """None: the repository's."""
    notifier: Mapping[str, str] | None = None
    """What to tell the notifier; None where nobody is to be told."""
    guard: str | None = None
    """What the agent does about bad answers; None: what its own setting says."""

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], engine_count: int = 3, agent_port: int | None = None
    ) -> Self:
        """Take the addresses of existing servers from the environment.

        Raises:
            MeshError: a file of authorities is named that cannot be used.
        """
        return cls(
            engine_count=engine_count,
            agent_port=agent_port,
            amqp_url=existing(environment, BROKER_SETTING, BROKER_CA_SETTING, secured_broker),
            database_url=existing(
                environment, DATABASE_SETTING, DATABASE_CA_SETTING, secured_database
            ),
            notifier=notifier_settings(environment),
        )


def existing(
    environment: Mapping[str, str],
    setting: str,
    ca_setting: str,
    secure: Callable[[str, Path | None], str],
) -> str | None:
    """Return the address of an existing server, with its file of authorities; None without one.

    Raises:
        MeshError: the file cannot be used.
    """
    url, ca_file = environment.get(setting), environment.get(ca_setting)
    try:
        return secure(url, Path(ca_file) if ca_file else None) if url else None
    except ValueError as error:
        raise MeshError(str(error), f"correct {ca_setting}, or unset it") from None


@dataclass(frozen=True)
class DemoOptions:
    """What a person can choose about the demo."""

    sim: bool = False
    """Simulated engines only, even where the real one can run."""
    faults: tuple[str, ...] = ("nan",)
    """One drill each, in this order."""
    stack: StackOptions = field(default_factory=StackOptions)
