"""Composition root of the console: `python -m gatemesh_console`."""

import asyncio
import logging
import sys
import time
from collections.abc import Sequence

from gatemesh_common.admin import Readiness, start_admin_server
from gatemesh_common.clock import utc_now
from gatemesh_common.errors import SettingsError
from gatemesh_common.log import configure_logging
from gatemesh_common.publisher import Publisher
from gatemesh_common.running import EXIT_PART_LOST, EXIT_SETTINGS, first_to_end, stop_requested
from gatemesh_common.settings import load_settings
from gatemesh_console.application import make_application
from gatemesh_console.desk import Desk
from gatemesh_console.live import Feed
from gatemesh_console.serving import Server, listen, make_server
from gatemesh_console.sessions import Sessions
from gatemesh_console.settings import ConsoleSettings
from gatemesh_console.store import open_store
from gatemesh_console.tokens import Role, Tokens, make_token, parse_tokens, token_line
from gatemesh_console.watching import watch

log = logging.getLogger(__name__)
APP_ID = "console"


def read_tokens(settings: ConsoleSettings) -> Tokens:
    """Return who may sign in.

    Raises:
        SettingsError: the file cannot be read, or names nobody.
    """
    if settings.tokens_file is None:
        return parse_tokens(settings.tokens.get_secret_value())
    try:
        return parse_tokens(settings.tokens_file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(
            f"GATEMESH_CONSOLE_TOKENS_FILE: cannot be read ({error.strerror}); check its rights"
        ) from error
    except UnicodeDecodeError:
        raise SettingsError("GATEMESH_CONSOLE_TOKENS_FILE: must be UTF-8 text") from None


async def serve(settings: ConsoleSettings) -> int:
    """Run until told to stop; return the exit code."""
    stop = stop_requested()
    readiness = Readiness("database")
    tokens = read_tokens(settings)
    listening = listen(settings.host, settings.port)
    start_admin_server(settings.admin_host, settings.admin_port, readiness)
    store = open_store(settings.database_url, settings.database_role, settings.database_deadline_s)
    async with Publisher(settings.amqp_url, APP_ID, settings.publish_deadline_s) as publisher:
        sessions = Sessions(time.monotonic, settings.session_h * 3600, settings.idle_min * 60)
        desk = Desk(settings, store, tokens, sessions, publisher.publish, Feed(utc_now()))
        server = make_server(make_application(desk))
        log.info("console_started", extra={"address": listening.getsockname()[:2]})
        try:
            await first_to_end(
                server.serve([listening]),
                watch(desk, lambda up: readiness.set("database", met=up)),
                stop_in_order(stop, server, desk.feed),
            )
        finally:
            await store.close()
    log.info("console_stopped", extra={"asked": stop.is_set()})
    return 0 if stop.is_set() else EXIT_PART_LOST


async def stop_in_order(stop: asyncio.Event, server: Server, feed: Feed) -> None:
    """Let the server end by itself once that is asked for, and what would go on for ever first."""
    await stop.wait()
    feed.close()
    server.stop()
    await asyncio.Event().wait()


def print_token(arguments: Sequence[str]) -> int:
    """Print a new token and the line by which a console knows it; return the exit code."""
    name, role = arguments[0], arguments[1] if arguments[1:] else Role.OPERATOR
    if role not in set(Role) or any(sign.isspace() or sign == ";" for sign in name):
        return usage()
    token = make_token()
    sys.stdout.write(f"token: {token}\nline:  {token_line(name, Role(role), token)}\n")
    return 0


def usage() -> int:
    """Say how the program is called; return the exit code."""
    roles = "|".join(Role)
    sys.stderr.write(f"usage: python -m gatemesh_console [token NAME [{roles}]]\n")
    return EXIT_SETTINGS


def main(arguments: Sequence[str]) -> int:
    """Make a token, or read the settings and run; return the exit code."""
    if arguments:
        known = arguments[0] == "token" and len(arguments) in (2, 3)
        return print_token(arguments[1:]) if known else usage()
    try:
        settings = load_settings(ConsoleSettings)
        configure_logging(APP_ID, settings.log_level)
        return asyncio.run(serve(settings))
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
