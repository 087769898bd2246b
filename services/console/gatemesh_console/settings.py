"""What the console reads from its environment."""

from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from gatemesh_common.settings import DatabaseSettings


class ConsoleSettings(DatabaseSettings):
    """Where the pages are, who may see them, and what they read."""

    model_config = SettingsConfigDict(env_prefix="GATEMESH_CONSOLE_")

    database_role: str = Field(default="gatemesh_reader", pattern=r"^([a-z_][a-z0-9_]{0,62})?$")
    """Role that the session takes; `gatemesh_evidence` shows texts, too; empty: the login's."""

    database_deadline_s: float = Field(default=5.0, gt=0, le=60)
    """Longest wait for the database, of any query, in seconds."""

    host: str = "127.0.0.1"
    """Address of the pages."""

    port: int = Field(default=8090, ge=0, le=65535)
    """Port of the pages; 0 takes a free one."""

    admin_port: int = Field(default=9106, ge=0, le=65535)
    """Port of metrics, liveness and readiness; 0 takes a free one."""

    tokens: SecretStr = SecretStr("")
    """Who may sign in: `NAME ROLE SHA256` each, with `;` or lines between them."""

    tokens_file: Path | None = None
    """File with the same, one per line; goes before `tokens`."""

    origin: str = Field(default="", pattern=r"^(https?://[^/\s]+)?$")
    """Address that browsers know the pages by, behind a proxy; empty takes `Host`."""

    session_h: float = Field(default=12.0, gt=0, le=720)
    """Time after which one has to sign in again, in hours."""

    idle_min: float = Field(default=60.0, gt=0, le=43_200)
    """Time without any request after which a session ends, in minutes."""

    watch_every_s: float = Field(default=2.0, ge=0.2, le=60)
    """Time between two looks at the database for scores and the live timeline, in seconds."""

    most_streams: int = Field(default=100, ge=1, le=10_000)
    """Live timelines that are open at once."""

    @property
    def is_https(self) -> bool:
        """True when browsers come by HTTPS, and cookies must not travel without."""
        return self.origin.startswith("https://")
