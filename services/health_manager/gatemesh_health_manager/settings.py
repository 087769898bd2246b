"""What the health manager reads from its environment."""

from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from gatemesh_common.settings import DatabaseSettings
from gatemesh_common.topology import MOST_SHARDS


class HealthManagerSettings(DatabaseSettings):
    """Settings of the health manager; its rules are in the policy file."""

    model_config = SettingsConfigDict(env_prefix="GATEMESH_HEALTH_MANAGER_")

    policy_file: Path | None = None
    """The rules, `policy.toml`; without it the defaults hold."""

    migrations_dir: Path | None = None
    """Folder of the migrations; without it the one beside the package."""

    signing_key_file: Path | None = None
    """PEM file with the private key that signs commands; unset, they are sent unsigned."""

    signing_key: SecretStr | None = None
    """The key itself instead of its file."""

    admin_port: int = Field(default=9102, ge=0, le=65535)
    """Port of metrics, liveness and readiness; 0 takes any free one."""

    prefetch: int = Field(default=500, ge=1, le=10_000)
    """Messages that one queue may have under way here; of verdicts, see below."""

    verdict_prefetch: int = Field(default=2500, ge=1, le=50_000)
    """Verdicts that one queue may have under way here: some arrive while others are committed."""

    verdict_shards: int = Field(default=1, ge=1, le=MOST_SHARDS)
    """Queues that verdicts are spread over by instance; the same for all managers of a broker."""

    tick_s: float = Field(default=1.0, gt=0, le=60)
    """Seconds between two looks at what is overdue."""

    heartbeat_s: float = Field(default=2.0, gt=0, le=60)
    """Seconds between two repetitions of the routing tables."""

    baseline_s: float = Field(default=10.0, gt=0, le=600)
    """Seconds between two looks at waiting sketches, and two repetitions of the baselines."""

    inbox_keep_h: float = Field(default=72.0, ge=1, le=8760)
    """Hours for which ids of handled messages are kept; longer than any redelivery takes."""

    replay_keep_days: float = Field(default=30.0, gt=0, le=3650)
    """Days for which inputs of decisions and refused commands are kept."""

    verdicts_keep_days: float = Field(default=90.0, ge=2, le=3650)
    """Days for which verdicts and telemetry windows are kept; they are dropped by whole days."""

    captures_keep_days: float = Field(default=14.0, gt=0, le=3650)
    """Days for which captures are kept, text and figures; they are dropped by whole days."""

    database_deadline_s: float = Field(default=10.0, gt=0, le=120)
    """Longest wait for one answer of the database, in seconds."""
