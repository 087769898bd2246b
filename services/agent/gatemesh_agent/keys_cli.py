"""`gatemesh-ctl agent-keys`: API keys of an agent's clients: made, listed and taken away."""

import argparse
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from gatemesh_agent.keys import (
    PREFIX,
    SECRET_BYTES,
    Entry,
    KeysUnreadableError,
    Limits,
    digest_of,
    parse,
    read_keys,
    text_in,
    written,
)

EXIT_OK, EXIT_WRONG = 0, 2
LIMITS = ("requests_per_min", "tokens_per_min")
DESCRIPTION = """\
Make, list and take away the API keys that an agent with GATEMESH_AGENT_KEYS_FILE asks its clients
for. The file holds hashes; a key is shown once, when it is made. A running agent follows the file
within a second."""


def main(argv: Sequence[str], prog: str = "gatemesh-ctl agent-keys") -> int:
    """Do what the command line says; return the exit code."""
    options = arguments(argv, prog)
    try:
        entries = entries_in(options.file)
        told = ACTIONS[options.action](options, entries)
    except (KeysUnreadableError, OSError) as error:
        sys.stderr.write(f"error: {options.file}: {error}\n")
        return EXIT_WRONG
    sys.stdout.write(told)
    return EXIT_OK


def arguments(argv: Sequence[str], prog: str) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog=prog, description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="the file of keys, made where it is missing")
    actions = parser.add_subparsers(dest="action", required=True)
    new = actions.add_parser("new", help="make a key and show it, once")
    new.add_argument("name", help="whose it is; stands in metrics")
    for limit in LIMITS:
        flag = f"--{limit.replace('_', '-')}"
        new.add_argument(flag, type=int, help="left out: as the agent's settings say; 0: no limit")
    actions.add_parser("list", help="show whose keys there are, with their limits")
    drop = actions.add_parser("drop", help="take a key away")
    drop.add_argument("name")
    return parser.parse_args(argv)


def entries_in(path: Path) -> list[Entry]:
    """Return the entries of a file; none where there is no file.

    Raises:
        KeysUnreadableError: it is no file of keys, and stays as it is.
    """
    if not path.exists():
        return []
    text = text_in(path)
    read_keys(text, Limits())
    return parse(text).keys


def make(options: argparse.Namespace, entries: list[Entry]) -> str:
    """Add a key and return it."""
    secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    given = {limit: getattr(options, limit) for limit in LIMITS}
    limits = {limit: value for limit, value in given.items() if value is not None}
    rewrite(
        options.file, [*map(text_of, entries), written(options.name, digest_of(secret), limits)]
    )
    return f"{secret}\n"


def show(_options: argparse.Namespace, entries: list[Entry]) -> str:
    """Return a line for each key; there is nothing secret in it."""
    lines = []
    for entry in entries:
        limits = [f"{limit}={value}" for limit, value in limits_in(entry).items()]
        lines.append("  ".join([entry.name, *limits]))
    return "".join(f"{line}\n" for line in lines)


def drop(options: argparse.Namespace, entries: list[Entry]) -> str:
    """Take a key away.

    Raises:
        KeysUnreadableError: there is none of that name.
    """
    kept = [entry for entry in entries if entry.name != options.name]
    if len(kept) == len(entries):
        raise KeysUnreadableError(f"there is no key {options.name!r}; `list` shows all")
    rewrite(options.file, [text_of(entry) for entry in kept])
    return ""


ACTIONS = {"new": make, "list": show, "drop": drop}


def limits_in(entry: Entry) -> dict[str, int]:
    """Return the limits that an entry names."""
    return {k: v for k in LIMITS if (v := entry.model_dump()[k]) is not None}


def text_of(entry: Entry) -> str:
    """Return an entry as the file holds it."""
    return written(entry.name, bytes.fromhex(entry.sha256), limits_in(entry))


def rewrite(path: Path, texts: list[str]) -> None:
    """Replace the file at once, after a check that an agent will read it.

    Raises:
        KeysUnreadableError: a name or a limit is not allowed, or the name is there already.
    """
    text = "\n".join(texts)
    read_keys(text, Limits())
    # An agent may run as another user of the file's group: an old file's rights stay.
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o640
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.chmod(mode)
    draft.replace(path)
