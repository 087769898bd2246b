"""The simulated engine keeps what the mesh relies on, as the real one does."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import test_utils
from tests.contract.engine.continuing import ContinuingContract
from tests.contract.engine.contract import EngineContract, Target

from gatemesh_engine_sim.application import build_application
from gatemesh_engine_sim.lifecycle import build_service
from gatemesh_engine_sim.settings import SimSettings


class TestSimulatedEngine(EngineContract, ContinuingContract):
    """The stand-in, in this process."""

    @pytest.fixture
    async def engine(self) -> AsyncIterator[Target]:
        """On a free port."""
        server = test_utils.TestServer(build_application(build_service(SimSettings())))
        await server.start_server()
        async with aiohttp.ClientSession() as session:
            yield Target(session, str(server.make_url("")).rstrip("/"), "sim")
        await server.close()
