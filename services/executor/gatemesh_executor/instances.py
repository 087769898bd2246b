"""The instances this executor acts on, read from a TOML file."""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gatemesh_common.errors import SettingsError
from gatemesh_common.invalid import words_of
from gatemesh_executor.balancers.config import (
    BalancerSettings,
    Listing,
    is_server_name,
    listed,
    listing_fault,
)

Name = Annotated[str, Field(min_length=1, max_length=200)]


class Weights(BaseModel):
    """Where an engine's weight files lie, what they must be, and how to get them anew."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: Path
    """The folder that the engine loads; its parent must take a second copy beside it."""
    manifest: Path | None = None
    """SHA-256 of every file: `sha256sum` output or JSON. Inside of `folder` it is pulled along."""
    pull: tuple[str, ...] = ()
    """Command that fetches the files into `{folder}`, its working directory; no shell."""
    environment: tuple[str, ...] = ()
    """Names of variables that the command gets besides the usual ones, such as a token."""
    timeout_s: float = Field(default=1800.0, gt=0, le=86_400)
    """Longest time for one pull, in seconds."""
    ignored: tuple[str, ...] = ()
    """Patterns of files that need not be in the manifest, such as `.cache/*`."""
    least_free_bytes: int = Field(default=0, ge=0)
    """Room that a pull needs at least; never less than the size of what is there."""

    @model_validator(mode="after")
    def _verify_what_is_pulled(self) -> "Weights":
        if self.pull and self.manifest is None:
            raise ValueError(
                "pull needs manifest: nothing unverified is ever served; make one "
                "with `sha256sum` over the files of a good copy"
            )
        return self

    def under(self, base: Path) -> "Weights":
        """Return it with its paths seen from the folder of the instances file."""
        manifest = None if self.manifest is None else base / self.manifest
        return self.model_copy(update={"folder": base / self.folder, "manifest": manifest})

    def manifest_in(self, folder: Path) -> Path | None:
        """Return the manifest for files that lie in this folder."""
        if self.manifest is not None and self.manifest.is_relative_to(self.folder):
            return folder / self.manifest.relative_to(self.folder)
        return self.manifest


class CoreDump(BaseModel):
    """Whether and how the memory of a proven sick engine is kept before it is ended."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    how: Literal["gcore", "abort", "off"] = "off"
    """`gcore`: gdb copies every process; `abort`: SIGABRT to the largest, the kernel writes it."""
    folder: Path = Path("core-dumps")
    """Where dumps are put, one folder each."""
    most_bytes: int = Field(default=20_000_000_000, ge=1_000_000)
    """The most that one dump may take."""
    timeout_s: float = Field(default=60.0, gt=0, le=3600)
    """The longest that one dump may take, in seconds."""
    keep: int = Field(default=3, ge=1, le=1000)
    """Dumps of one instance that are kept; older ones are removed."""

    def under(self, base: Path) -> "CoreDump":
        """Return it with its folder seen from that of the instances file."""
        return self.model_copy(update={"folder": base / self.folder})


class RollBack(BaseModel):
    """How an engine gets back to the model version before the present one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: tuple[str, ...] = Field(min_length=1)
    """Makes the next life run the former version; harmless when it is run again; no shell."""
    folder: Path = Path()
    """Its working directory, where its log is put."""
    environment: tuple[str, ...] = ()
    """Names of variables that the command gets besides the usual ones."""
    timeout_s: float = Field(default=600.0, gt=0, le=86_400)
    """Longest time that it may take, in seconds."""

    def under(self, base: Path) -> "RollBack":
        """Return it with its folder seen from that of the instances file."""
        return self.model_copy(update={"folder": base / self.folder})


class Instance(BaseModel):
    """One addressable engine and the program that runs it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    instance_id: Name
    pool: Name = "default"
    base_url: str = Field(pattern=r"^https?://[^/]+$")
    """Scheme, host and port, without a path."""
    program: Name
    """Name at the backend; for supervisor `name` or `group:name`."""
    model_version: str = Field(default="unknown", max_length=200)
    weights: Weights | None = None
    """Its weight files; absent means those of its pool, if any."""
    roll_back: RollBack | None = None
    """The way back to the model version before; absent means that of its pool, if any."""
    core_dump: CoreDump | None = None
    """Its core dumps; absent means those of its pool, if any."""
    balancers: tuple[Listing, ...] | None = None
    """Load balancers that route to it beside the agents; absent means those of its pool."""


Instances = Mapping[str, Instance]
"""Instances by their id."""


class Pool(BaseModel):
    """What the instances of one pool share."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weights: Weights | None = None
    roll_back: RollBack | None = None
    core_dump: CoreDump | None = None
    balancers: tuple[Listing, ...] = ()


WITH_PATHS = ("weights", "roll_back", "core_dump")
"""Tables of an instance, or of its pool, that name files."""


class InstancesFile(BaseModel):
    """The whole file: an `[[instances]]` table each, `[pools.NAME]` and `[balancers.NAME]`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    instances: tuple[Instance, ...] = Field(min_length=1)
    pools: Mapping[Name, Pool] = Field(default_factory=dict)
    balancers: Mapping[Name, BalancerSettings] = Field(default_factory=dict)

    def complete(self, base: Path) -> tuple[Instance, ...]:
        """Return the instances with what their pools share, seen from a folder."""
        return tuple(self._completed(instance, base) for instance in self.instances)

    def _completed(self, instance: Instance, base: Path) -> Instance:
        shared = self.pools.get(instance.pool, Pool())
        found = {name: getattr(instance, name) or getattr(shared, name) for name in WITH_PATHS}
        listings = shared.balancers if instance.balancers is None else instance.balancers
        balancers = tuple(
            listed(one, self.balancers[one.name], instance.instance_id, instance.base_url)
            for one in listings
        )
        seen = {name: value and value.under(base) for name, value in found.items()}
        return instance.model_copy(update={**seen, "balancers": balancers})

    @model_validator(mode="after")
    def _know_the_pools(self) -> "InstancesFile":
        unknown = self.pools.keys() - {instance.pool for instance in self.instances}
        if unknown:
            raise ValueError(f"pools.{min(unknown)}: no instance is in this pool; correct the name")
        return self

    @model_validator(mode="after")
    def _know_the_balancers(self) -> "InstancesFile":
        for place, listing in self._listings():
            fault = listing_fault(listing, self.balancers)
            if fault is not None:
                raise ValueError(f"{place}.{fault}")
        for number, instance in enumerate(self.complete(Path())):
            for name in (listing.server or "" for listing in instance.balancers or ()):
                if not is_server_name(name):
                    raise ValueError(
                        f"instances[{number}].balancers: set `server`: {name!r} cannot stand in a "
                        "balancer's configuration"
                    )
        return self

    def _listings(self) -> Iterator[tuple[str, Listing]]:
        for pool_name, pool in self.pools.items():
            for at, listing in enumerate(pool.balancers):
                yield f"pools.{pool_name}.balancers[{at}]", listing
        for number, instance in enumerate(self.instances):
            for at, listing in enumerate(instance.balancers or ()):
                yield f"instances[{number}].balancers[{at}]", listing


@dataclass(frozen=True)
class Fleet:
    """What the file describes, complete."""

    instances: dict[str, Instance]
    balancers: Mapping[str, BalancerSettings]


def load_fleet(path: Path) -> Fleet:
    """Read the file.

    Raises:
        SettingsError: it is missing, not TOML, or a field is wrong; the text names it.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return parse_fleet(text, path.name, path.absolute().parent)
    except OSError as error:
        raise SettingsError(
            f"GATEMESH_EXECUTOR_INSTANCES_FILE: {path} cannot be read ({error.strerror})"
        ) from error


def load_instances(path: Path) -> dict[str, Instance]:
    """Return the instances of the file by id. Raises as `load_fleet` does."""
    return load_fleet(path).instances


def parse_instances(text: str, file_name: str, base: Path = Path()) -> dict[str, Instance]:
    """Return the instances by id; paths are seen from `base`. Raises as `load_fleet` does."""
    return parse_fleet(text, file_name, base).instances


def parse_fleet(text: str, file_name: str, base: Path = Path()) -> Fleet:
    """Return all that the text describes; paths are seen from `base`. Raises as `load_fleet`."""
    try:
        file = InstancesFile.model_validate(tomllib.loads(text))
        complete = file.complete(base)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file_name}: not valid TOML: {error}") from error
    except ValidationError as error:
        raise SettingsError(f"{file_name}: {words_of(error)}") from None
    for field in ("instance_id", "program"):
        refuse_repeats(file_name, field, [str(getattr(instance, field)) for instance in complete])
    places = [place for instance in complete for place in server_places(instance)]
    refuse_repeats(file_name, "balancers.server", places)
    return Fleet(
        {instance.instance_id: instance for instance in complete},
        {name: settings.under(base) for name, settings in file.balancers.items()},
    )


def server_places(instance: Instance) -> list[str]:
    """Return each server that is the instance, with its balancer."""
    listings = instance.balancers or ()
    return [f"{one.server} of {one.backend or 'all'} at {one.name}" for one in listings]


def refuse_repeats(file_name: str, field: str, values: list[str]) -> None:
    """Raise SettingsError when two instances share a value that must be their own."""
    repeated = sorted(value for value, count in Counter(values).items() if count > 1)
    if repeated:
        raise SettingsError(f"{file_name}: {field}: used twice: {', '.join(repeated)}")
