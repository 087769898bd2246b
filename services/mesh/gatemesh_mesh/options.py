"""What a person can choose about a stack and a demo."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from gatemesh_mesh.reach import BROKER_SETTING, DATABASE_SETTING

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

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], engine_count: int = 3, agent_port: int | None = None
    ) -> Self:
        """Take the addresses of existing servers from the environment."""
        return cls(
            engine_count=engine_count,
            agent_port=agent_port,
            amqp_url=environment.get(BROKER_SETTING) or None,
            database_url=environment.get(DATABASE_SETTING) or None,
            notifier=notifier_settings(environment),
        )


@dataclass(frozen=True)
class DemoOptions:
    """What a person can choose about the demo."""

    sim: bool = False
    """Simulated engines only, even where the real one can run."""
    faults: tuple[str, ...] = ("nan",)
    """One drill each, in this order."""
    stack: StackOptions = field(default_factory=StackOptions)
