"""Runs one simulated engine: `python -m gatemesh_engine_sim --port 8001`."""

import asyncio
import logging
import os
import sys

from gatemesh_engine_sim.lifecycle import run
from gatemesh_engine_sim.settings import SettingsError, SimSettings, read_settings
from gatemesh_engine_sim.weights import WeightsError

LOG_FORMAT = (
    "(APIServer pid=%(process)d) %(levelname)s %(asctime)s [%(filename)s:%(lineno)d] %(message)s"
)


def main() -> int:
    """The exit code: 0 after any end of the engine, 1 for a taken port, 2 for wrong settings."""
    try:
        settings = read_settings(sys.argv[1:], os.environ)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    logging.basicConfig(
        stream=sys.stdout, level=logging.INFO, format=LOG_FORMAT, datefmt="%m-%d %H:%M:%S"
    )
    try:
        _run(settings)
    except WeightsError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"--port {settings.port} on {settings.host}: {error.strerror}\n")
        return 1
    return 0


def _run(settings: SimSettings) -> None:
    if settings.uvloop:
        import uvloop  # noqa: PLC0415 - the plain loop stays usable where uvloop is missing

        uvloop.run(run(settings))
    else:
        asyncio.run(run(settings))


if __name__ == "__main__":
    sys.exit(main())
