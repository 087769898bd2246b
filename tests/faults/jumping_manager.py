"""The real manager, but its clock is ahead by as many seconds as the named file says."""

import sys
from datetime import datetime, timedelta
from pathlib import Path

from gatemesh_common.clock import utc_now
from gatemesh_health_manager import __main__ as service


class JumpingClock:
    """Tells the time of a machine whose clock is set while it runs."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __call__(self) -> datetime:
        """Return the moment that this clock takes for the present."""
        return utc_now() + timedelta(seconds=float(self._file.read_text()))


def main() -> int:
    """Change the clock that everything is built with, then run the service."""
    vars(service)["utc_now"] = JumpingClock(Path(sys.argv[1]))
    return service.main([])


if __name__ == "__main__":
    sys.exit(main())
