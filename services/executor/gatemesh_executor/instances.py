"""The instances this executor acts on, read from a TOML file."""

import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gatemesh_common.errors import SettingsError

Name = Annotated[str, Field(min_length=1, max_length=200)]


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


Instances = Mapping[str, Instance]
"""Instances by their id."""


class InstancesFile(BaseModel):
    """The whole file: one `[[instances]]` table each."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    instances: tuple[Instance, ...] = Field(min_length=1)


def load_instances(path: Path) -> Instances:
    """Read the file.

    Raises:
        SettingsError: it is missing, not TOML, or a field is wrong; the text names it.
    """
    try:
        return parse_instances(path.read_text(encoding="utf-8"), path.name)
    except OSError as error:
        raise SettingsError(
            f"GATEMESH_EXECUTOR_INSTANCES_FILE: {path} cannot be read ({error.strerror})"
        ) from error


def parse_instances(text: str, file_name: str) -> Instances:
    """Return the instances by id; raises as `load_instances` does."""
    try:
        listed = InstancesFile.model_validate(tomllib.loads(text)).instances
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file_name}: not valid TOML: {error}") from error
    except ValidationError as error:
        raise SettingsError(f"{file_name}: {describe_faults(error)}") from None
    for field in ("instance_id", "program"):
        refuse_repeats(file_name, field, [str(getattr(instance, field)) for instance in listed])
    return {instance.instance_id: instance for instance in listed}


def describe_faults(error: ValidationError) -> str:
    """Name each faulty field as it is written in the file."""
    return "; ".join(
        f"{field_path(fault['loc'])}: {fault['msg']}" for fault in error.errors(include_url=False)
    )


def field_path(location: tuple[int | str, ...]) -> str:
    """Return `instances[1].base_url` for its parts."""
    words = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return "".join(words).lstrip(".")


def refuse_repeats(file_name: str, field: str, values: list[str]) -> None:
    """Raise SettingsError when two instances share a value that must be their own."""
    repeated = sorted(value for value, count in Counter(values).items() if count > 1)
    if repeated:
        raise SettingsError(f"{file_name}: {field}: used twice: {', '.join(repeated)}")
