"""Commands as they leave the manager: proven by the very bytes that lie in the queue."""

from pathlib import Path

import pytest

from gatemesh_common.broker import COMMANDS
from gatemesh_common.messages import COMMAND
from gatemesh_common.signing import SigningKey, TrustedKeys

from .conftest import Site

pytestmark = pytest.mark.integration
KEY = SigningKey.from_seed(bytes(32))


async def test_commands_are_proven_by_what_the_queue_holds(site: Site, tmp_path: Path) -> None:
    """Through outbox, database and broker not a byte changes."""
    file = tmp_path / "signing.pem"
    file.write_text(KEY.private_pem())
    await site.start_ready(GATEMESH_HEALTH_MANAGER_SIGNING_KEY_FILE=str(file))
    await site.bring_up("engine-0", "engin\u00e9-1")

    async def all_there() -> bool:
        return await site.depth(COMMANDS.name) == 2

    await site.until(all_there)
    trusted = TrustedKeys.from_pem(KEY.public_pem())
    messages = await site._drain(COMMANDS.name)
    assert [trusted.distrust(it.body, it.headers) for it in messages] == [None, None]
    ordered = {COMMAND.validate_json(it.body).instance_id for it in messages}
    assert ordered == {"engine-0", "engin\u00e9-1"}


async def test_a_manager_does_not_start_with_a_key_that_it_cannot_use(site: Site) -> None:
    """Every command would be refused."""
    process = site.start(GATEMESH_HEALTH_MANAGER_SIGNING_KEY="open sesame")
    assert process.wait(30) == 2
