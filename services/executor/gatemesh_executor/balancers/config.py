"""Balancers as the instances file describes them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

SERVER_NAME = r"^[A-Za-z0-9_.:\[\]-]+$"
ServerName = Annotated[str, Field(pattern=SERVER_NAME, max_length=200)]
"""What may stand in a balancer's command or file without a quote."""


class HaproxySettings(BaseModel):
    """A running HAProxy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["haproxy"]
    socket: str = Field(pattern=r"^(unix:///.+|tcp://[^/:]+:\d+)$")
    """Its runtime socket of level admin: `unix:///run/haproxy/admin.sock` or `tcp://host:port`."""
    backend: ServerName | None = None
    """Backend of all servers that name none themselves."""
    deadline_s: float = Field(default=2.0, gt=0, le=60)
    """Longest wait for one answer, in seconds."""

    def under(self, _base: Path) -> "HaproxySettings":
        """Return it as it is: it holds no relative paths."""
        return self


class NginxSettings(BaseModel):
    """A running nginx on this machine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["nginx"]
    upstream_file: Path
    """File with the `server ADDRESS;` lines, included by the `upstream` block."""
    pid_file: Path = Path("/run/nginx.pid")
    """Where nginx keeps the number of its master process."""
    test: tuple[str, ...] = Field(default=("nginx", "-t", "-q"), min_length=1)
    """Command that tests the whole configuration; add `-c FILE` if it is not the usual one."""
    full_weight: int = Field(default=100, ge=1, le=65_535)
    """`weight` of a server that gets an equal part of the traffic."""
    deadline_s: float = Field(default=10.0, gt=0, le=600)
    """Longest test of the configuration, and longest wait for new workers, in seconds."""
    weight_pause_s: float = Field(default=10.0, ge=0, le=3600)
    """Weights alone are changed no more often: each reload keeps old workers for their streams."""

    def under(self, base: Path) -> "NginxSettings":
        """Return it with its paths seen from the folder of the instances file."""
        paths = {"upstream_file": base / self.upstream_file, "pid_file": base / self.pid_file}
        return self.model_copy(update=paths)


BalancerSettings = Annotated[HaproxySettings | NginxSettings, Field(discriminator="kind")]


class Listing(BaseModel):
    """Where a balancer lists an instance."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=200)
    """A table `[balancers.NAME]` of the file."""
    backend: ServerName | None = None
    """HAProxy's backend; absent means the balancer's own."""
    server: ServerName | None = None
    """Its name there; absent means the instance's id, or for nginx its host and port."""


def is_server_name(name: str) -> bool:
    """Return True for what may stand there; an instance's id may hold more."""
    return re.fullmatch(SERVER_NAME, name) is not None


def listed(
    listing: Listing, settings: BalancerSettings, instance_id: str, base_url: str
) -> Listing:
    """Return a listing with everything that it leaves out."""
    if isinstance(settings, NginxSettings):
        return listing.model_copy(update={"server": listing.server or urlsplit(base_url).netloc})
    backend = listing.backend or settings.backend
    return listing.model_copy(update={"server": listing.server or instance_id, "backend": backend})


def listing_fault(listing: Listing, balancers: Mapping[str, BalancerSettings]) -> str | None:
    """Return what is wrong with a listing and the way out; None when it is right."""
    found = balancers.get(listing.name)
    if found is None:
        known = ", ".join(sorted(balancers)) or "none"
        return (
            f"name: no [balancers.{listing.name}] in this file (there are: {known}); add that table"
        )
    if isinstance(found, NginxSettings):
        return None if listing.backend is None else "backend: nginx has none; leave it out"
    if listing.backend is None and found.backend is None:
        return f"backend: missing; set it here or in [balancers.{listing.name}]"
    return None
