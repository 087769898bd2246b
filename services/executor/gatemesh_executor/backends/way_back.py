"""The configured command that puts the former model version in place."""

import os
from collections.abc import Mapping

from gatemesh_executor.backends.base import RollBackFailedError, RollBackNotOfferedError
from gatemesh_executor.instances import Instance
from gatemesh_executor.weights.pull import (
    PullFailedError,
    PullOrder,
    fill_in,
    pull_environment,
    run_pull,
)


async def run_way_back(instance: Instance, variables: Mapping[str, str] = os.environ) -> None:
    """Run the command of an instance to its end.

    Raises:
        RollBackNotOfferedError: none is configured.
        RollBackFailedError: it did not end with code 0 in time. Nothing of it runs any more.
    """
    way, version = instance.roll_back, instance.model_version
    if way is None:
        raise RollBackNotOfferedError(
            f"instance {instance.instance_id!r} has no roll_back.command in the instances file"
        )
    environment = pull_environment(variables, way.environment, way.folder, version)
    environment["GATEMESH_INSTANCE_ID"] = instance.instance_id
    argv = tuple(
        part.replace("{instance_id}", instance.instance_id)
        for part in fill_in(way.command, way.folder, version)
    )
    log = way.folder / f".{instance.instance_id.replace(os.sep, '_')}.roll_back.log"
    try:
        await run_pull(PullOrder(argv, way.folder, log, environment, way.timeout_s))
    except PullFailedError as error:
        raise RollBackFailedError(str(error)) from error
