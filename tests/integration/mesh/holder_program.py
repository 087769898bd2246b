"""A starter that runs two programs and waits to be killed: one is polite, one is not."""

import signal
import sys
from pathlib import Path

from gatemesh_mesh.programs import ProgramSpec
from gatemesh_mesh.state import StateFolder
from gatemesh_mesh.supervision import Supervision

POLITE = ("/bin/sleep", "600")
# Ignores SIGTERM, and so does the child that it leaves when it is killed alone.
STUBBORN = ("/bin/sh", "-c", "trap '' TERM; sleep 600 & wait; wait")


def programs(folder: StateFolder) -> list[ProgramSpec]:
    """Return the two programs."""
    return [
        ProgramSpec("polite", POLITE, folder.logs / "polite.log"),
        ProgramSpec("stubborn", STUBBORN, folder.logs / "stubborn.log", stop_wait_s=1),
    ]


def main(root: Path) -> None:
    """Hold the folder, run the programs, say so, and wait."""
    folder = StateFolder(root)
    folder.create()
    with folder.hold():
        supervision = Supervision(folder)
        supervision.start()
        supervision.add(programs(folder))
        for program in programs(folder):
            supervision.start_program(program.name)
        print("running", flush=True)  # noqa: T201 (the test waits for it)
        signal.pause()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
