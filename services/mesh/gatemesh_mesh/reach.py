"""Whether a broker and a database can be used, and what to do when they cannot."""

import asyncio
from collections.abc import Sequence
from urllib.parse import urlsplit

import aio_pika
import psycopg
from aio_pika.exceptions import AMQPError, ProbableAuthenticationError
from aiormq.exceptions import InvalidFrameError

from gatemesh_common.declaring import declare_topology
from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.postgres import plain_url

BROKER_SETTING = "GATEMESH_AMQP_URL"
DATABASE_SETTING = "GATEMESH_DATABASE_URL"
DEADLINE_S = 30.0


def prepare_broker(amqp_url: str) -> None:
    """Log in and declare the exchanges and queues that services meet at.

    Raises:
        MeshError: the broker cannot be reached, or refuses.
    """
    require_scheme(BROKER_SETTING, amqp_url, ("amqp", "amqps"))
    asyncio.run(_declare(amqp_url))


async def _declare(amqp_url: str) -> None:
    try:
        async with asyncio.timeout(DEADLINE_S):
            async with await aio_pika.connect(amqp_url) as connection:
                await declare_topology(await connection.channel())
    except (AMQPError, InvalidFrameError, OSError, TimeoutError, ValueError) as error:
        raise explain_broker(amqp_url, error) from error


def explain_broker(amqp_url: str, error: BaseException) -> MeshError:
    """Say why a broker cannot be used; never repeats the password."""
    where = place_of(amqp_url)
    if isinstance(error, ProbableAuthenticationError):
        reason, cure = "refuses this user and password", "correct them"
    elif isinstance(error, InvalidFrameError):
        # What the client makes of a virtual host that is not there.
        reason, cure = "does not let this user into the virtual host", "create it or correct it"
    elif isinstance(error, AMQPError) and not isinstance(error, OSError):
        reason, cure = f"refuses ({error})", "give the user rights to configure, write and read"
    else:
        words = without_password(amqp_url, str(error) or type(error).__name__)
        reason, cure = f"cannot be reached ({words})", "start it or correct the address"
    return MeshError(
        f"{BROKER_SETTING}: the broker at {where} {reason}",
        f"{cure}, or unset {BROKER_SETTING} to run a private broker",
    )


def check_database(database_url: str) -> None:
    """Log in once.

    Raises:
        MeshError: the database cannot be reached, or refuses.
    """
    require_scheme(DATABASE_SETTING, database_url, ("postgresql+psycopg", "postgresql", "postgres"))
    try:
        with psycopg.connect(plain_url(database_url), connect_timeout=int(DEADLINE_S)):
            return
    except psycopg.Error as error:
        words = without_password(database_url, " ".join(str(error).split()))
        raise MeshError(
            f"{DATABASE_SETTING}: the database at {place_of(database_url)} cannot be used: {words}",
            f"start it or correct the address, or unset {DATABASE_SETTING} to run a private one",
        ) from error


def require_scheme(setting: str, url: str, schemes: Sequence[str]) -> None:
    """Check how an address begins.

    Raises:
        MeshError: it begins otherwise.
    """
    if urlsplit(url).scheme not in schemes:
        raise MeshError(
            f"{setting}: the address must begin with {' or '.join(f'{one}://' for one in schemes)}",
            f"correct it, or unset {setting} to run a private server",
        )


def without_password(url: str, words: str) -> str:
    """Return the words with the password of the address blacked out."""
    password = urlsplit(url).password
    return words.replace(password, "***") if password else words


def place_of(url: str) -> str:
    """Return host, port and path of an address, without user and password."""
    parts = urlsplit(url)
    return f"{parts.hostname or '?'}{f':{parts.port}' if parts.port else ''}{parts.path}"
