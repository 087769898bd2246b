"""What a person can choose about a stack and a demo."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from gatemesh_mesh.reach import BROKER_SETTING, DATABASE_SETTING


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
        )


@dataclass(frozen=True)
class DemoOptions:
    """What a person can choose about the demo."""

    sim: bool = False
    """Simulated engines only, even where the real one can run."""
    faults: tuple[str, ...] = ("nan",)
    """One drill each, in this order."""
    stack: StackOptions = field(default_factory=StackOptions)
