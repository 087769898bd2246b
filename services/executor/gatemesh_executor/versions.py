"""Which model version the instances file names, after something may have changed it."""

from collections.abc import MutableMapping
from pathlib import Path
from typing import Protocol

from gatemesh_common.errors import SettingsError
from gatemesh_executor.instances import Instance, load_instances


class Versions(Protocol):
    """Knows where model versions are named."""

    def read_again(self, instance: Instance) -> str:
        """Take over the model version of an instance; return what a report should say of it."""


class OwnVersions:
    """For backends that see the model version themselves."""

    def read_again(self, instance: Instance) -> str:
        """Change nothing."""
        return ""


class VersionsFromFile:
    """Model versions by the instances file; whoever holds the same mapping sees the new one."""

    def __init__(self, path: Path, instances: MutableMapping[str, Instance]) -> None:
        self._path = path
        self._instances = instances

    def read_again(self, instance: Instance) -> str:
        """Take over the version alone: other changes wait for the next start."""
        try:
            listed = load_instances(self._path).get(instance.instance_id)
        except SettingsError as error:
            return f"the model version was not read again: {error}"
        if listed is None or listed.model_version == instance.model_version:
            return f"the instances file still names model version {instance.model_version!r}"
        known = self._instances[instance.instance_id]
        self._instances[instance.instance_id] = known.model_copy(
            update={"model_version": listed.model_version}
        )
        return f"model version {listed.model_version!r} now"
