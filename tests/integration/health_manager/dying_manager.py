"""A manager made of the real parts that kills itself after a commit, before the acknowledgement."""

import asyncio
import os
import signal
from functools import partial

from gatemesh_common.broker import VERDICTS
from gatemesh_common.clock import utc_now
from gatemesh_common.database import open_database
from gatemesh_common.publisher import Publisher
from gatemesh_common.settings import load_settings
from gatemesh_health_manager.intake import Intake
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.settings import HealthManagerSettings
from gatemesh_health_manager.signatures import command_signer, load_signing_key
from gatemesh_health_manager.store import Store
from gatemesh_health_manager.store_work import APP_ID


def die(_rows: object) -> None:
    """Leave no time for anything."""
    os.kill(os.getpid(), signal.SIGKILL)


async def main() -> None:
    """Read verdicts until a decision about them is committed."""
    amqp_url = os.environ["GATEMESH_AMQP_URL"]
    engine = open_database(os.environ["GATEMESH_DATABASE_URL"])
    async with Publisher(amqp_url, APP_ID) as publisher:
        sign = command_signer(load_signing_key(load_settings(HealthManagerSettings)))
        store = Store(engine, Policy(), utc_now, hand_over=die, sign=sign)
        await store.register_policy()
        apply = partial(store.apply_verdicts, VERDICTS.name)
        await Intake(amqp_url, VERDICTS.name, apply, publisher).run()


asyncio.run(main())
