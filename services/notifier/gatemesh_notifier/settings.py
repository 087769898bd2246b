"""What the notifier reads from its environment."""

from pathlib import Path

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import SettingsConfigDict

from gatemesh_common.settings import ServiceSettings
from gatemesh_notifier.facts import AlertChoice
from gatemesh_notifier.grouping import Pace
from gatemesh_notifier.targets import Language


class NotifierSettings(ServiceSettings):
    """Who is told, of what, in which words, and how often."""

    model_config = SettingsConfigDict(env_prefix="GATEMESH_NOTIFIER_")

    urls: SecretStr = SecretStr("")
    """Addresses of apprise with spaces between them; each is told everything."""

    targets_file: Path | None = None
    """Secret file of targets with their own language, levels and pools, besides `urls`."""

    language: Language = "en"
    """Language of the targets in `urls`: `en` or `zh`."""

    templates_dir: Path | None = None
    """Folder with `en.toml` or `zh.toml` whose lines replace the packaged ones."""

    incident_link: str = Field(default="", max_length=500, pattern=r"^(https?://.*)?$")
    """Address put behind each incident, with `$incident` in it; empty puts none."""

    alerts: AlertChoice = AlertChoice.HARD
    """Verdicts told besides incidents: `off`, `hard` (proof) or `failed` (every failure)."""

    state_dir: Path = Path("notifier-state")
    """Folder for what was told to whom; survives restarts."""

    keep_days: int = Field(default=14, ge=1, le=365)
    """Days for which that is kept."""

    gather_s: float = Field(default=5.0, ge=0, le=300)
    """Time for which events of a pool are gathered into one message, in seconds."""

    quiet_gather_s: float = Field(default=60.0, ge=0, le=600)
    """The same for what is over, and for alerts that were told before."""

    per_min: float = Field(default=6.0, ge=0.5, le=600)
    """Messages to one target in a minute; what is more waits, its events not yet acknowledged."""

    burst: int = Field(default=3, ge=1, le=100)
    """Messages to one target at once."""

    give_up_after_s: float = Field(default=600.0, ge=0, le=1200)
    """Time for which one message is tried again; then its events become dead letters."""

    admin_port: int = Field(default=9105, ge=0, le=65535)
    """Port of metrics, liveness and readiness; 0 takes a free one."""

    @field_validator("targets_file", "templates_dir", mode="before")
    @classmethod
    def take_empty_as_none(cls, value: object) -> object:
        """Read a path that is set to nothing as not set, as compose files write it."""
        return value or None

    @property
    def pace(self) -> Pace:
        """How often a target is told."""
        return Pace(self.gather_s, self.quiet_gather_s, self.per_min, self.burst)
