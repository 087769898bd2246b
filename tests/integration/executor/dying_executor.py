"""The real executor, but it kills itself with SIGKILL at one named point of one playbook.

Arguments: action and the number of steps to finish before; `acked` instead of a number dies after
the report is published and before the command is acknowledged.
"""

import os
import signal
import sys
from typing import Any, cast

from gatemesh_common.messages import Action
from gatemesh_executor import __main__ as service
from gatemesh_executor.jobs import Step
from gatemesh_executor.obeying import Executor
from gatemesh_executor.playbooks import PLAYBOOKS


async def die(*_: Any) -> None:
    """End this process as a crash would."""
    os.kill(os.getpid(), signal.SIGKILL)


class UnacknowledgingExecutor(Executor):
    """Dies once the report is published."""

    async def obey(self, command: Any) -> None:
        """Obey, then die."""
        await super().obey(command)
        await die()


def main() -> int:
    """Arrange the death, then run the service."""
    action, point = sys.argv[1:]
    if point == "acked":
        vars(service)["Executor"] = UnacknowledgingExecutor
    else:
        steps = PLAYBOOKS[Action(action)]
        cut = int(point)
        table = cast("dict[Action, tuple[Step, ...]]", PLAYBOOKS)
        table[Action(action)] = (*steps[:cut], die, *steps[cut:])
    return service.main()


if __name__ == "__main__":
    sys.exit(main())
