"""The real engine keeps what the mesh relies on, by the tests that the simulated one passes too."""

import os
from collections.abc import AsyncIterator

import aiohttp
import pytest
from tests.contract.engine.continuing import ContinuingContract
from tests.contract.engine.contract import EngineContract, Target

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]

ADDRESS_VARIABLE = "GATEMESH_REAL_ENGINE_URL"
"""Address of a vLLM server of one's own to run against, with a small chat model."""


@pytest.fixture
def address(request: pytest.FixtureRequest) -> str:
    """Of the named server, else of one of this session's engines."""
    named = os.environ.get(ADDRESS_VARIABLE, "").rstrip("/")
    return named or f"http://127.0.0.1:{request.getfixturevalue('engine_port')}"


class TestRealEngine(EngineContract, ContinuingContract):
    """A vLLM server."""

    @pytest.fixture
    async def engine(self, address: str) -> AsyncIterator[Target]:
        """Its first model."""
        async with aiohttp.ClientSession() as session:
            listed = await Target(session, address, "").get("/v1/models")
            yield Target(session, address, listed.json["data"][0]["id"])
