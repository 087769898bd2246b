"""What the executor reads from its environment."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import SettingsConfigDict

from gatemesh_common.settings import ServiceSettings


class ExecutorSettings(ServiceSettings):
    """What runs the engines, which instances there are, and how often they are looked at."""

    model_config = SettingsConfigDict(env_prefix="GATEMESH_EXECUTOR_")

    backend: Literal["supervisor", "kubernetes"] = "supervisor"
    """What runs the engines."""

    instances_file: Path | None = None
    """TOML file that lists supervisor's instances; those of Kubernetes are discovered."""

    namespace: str = Field(default="", max_length=63)
    """Namespace of the engines' pods; empty is the one that the executor's own pod is in."""

    kubeconfig: Path | None = None
    """How to reach the cluster; unset, the service account of the executor's own pod is used."""

    kubernetes_deadline_s: float = Field(default=10.0, gt=0, le=60)
    """Longest wait for one answer of the Kubernetes API, in seconds."""

    delete_after_s: float | None = Field(default=None, ge=0, le=3600)
    """A pod that a disruption budget keeps is deleted after so many seconds; unset, never."""

    trusted_keys_file: Path | None = None
    """PEM file with the public keys whose commands are obeyed; unset, every command is obeyed."""

    trusted_keys: str = Field(default="", repr=False)
    """The keys themselves instead of their file."""

    supervisor_url: str = Field(
        default="unix:///var/run/supervisor.sock", pattern=r"^(unix:///.+|https?://.+)$"
    )
    """XML-RPC address of supervisord: `unix:///path/to.sock` or `http://host:port`."""

    supervisor_user: str = ""
    """User name of supervisord's XML-RPC server; empty when it asks for none."""

    supervisor_password: SecretStr = SecretStr("")
    """Password that goes with the user name."""

    supervisor_deadline_s: float = Field(default=5.0, gt=0, le=60)
    """Longest wait for one answer of supervisord, in seconds."""

    admin_port: int = Field(default=9103, ge=0, le=65535)
    """Port of metrics, liveness and readiness; 0 takes a free one."""

    prefetch: int = Field(default=32, ge=1, le=1000)
    """Commands handled at once; those of one instance wait for each other."""

    grace_s: float = Field(default=60.0, ge=0, le=3600)
    """Grace that commands ask for, in seconds; a program's stopwaitsecs must not be below it."""

    poll_s: float = Field(default=0.25, gt=0, le=0.5)
    """Time between two looks at the processes, in seconds."""

    repeat_s: float = Field(default=5.0, gt=0, le=60)
    """Time after which an unchanged observation is published again, in seconds."""

    confirm_deadline_s: float = Field(default=3.0, gt=0, le=60)
    """Longest wait until every agent has applied a routing table, in seconds."""

    agent_silence_s: float = Field(default=6.0, gt=0, le=600)
    """An agent not heard from for so many seconds is not waited for."""

    state_dir: Path | None = None
    """Folder for checksums of proven engines, by which a repair tells damage; unset keeps none."""

    cache_reset_s: float = Field(default=30.0, ge=0, le=600)
    """Longest wait, in seconds, until an engine can empty its prefix cache."""

    refused_grace_s: float = Field(default=5.0, ge=0, le=60)
    """Longest grace, in seconds, of an engine that refuses connections though not told to stop."""

    @model_validator(mode="after")
    def _need_a_list(self) -> Self:
        if self.backend == "supervisor" and self.instances_file is None:
            raise ValueError(
                "GATEMESH_EXECUTOR_INSTANCES_FILE: must name the list of supervisor's instances"
            )
        return self
