"""Who may sign in: names, roles and hashes; never the tokens themselves."""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum

from gatemesh_common.errors import SettingsError

LINE = re.compile(r"(?P<name>\S{1,100})\s+(?P<role>\S+)\s+(?P<digest>[0-9a-fA-F]{64})")
TOKEN_BYTES = 32


class Role(StrEnum):
    """What a person may do."""

    VIEWER = "viewer"
    """Reads every page."""
    OPERATOR = "operator"
    """Also asks for actions."""


@dataclass(frozen=True)
class Person:
    """Somebody with a token."""

    name: str
    role: Role

    @property
    def may_act(self) -> bool:
        """True when actions may be asked for."""
        return self.role is Role.OPERATOR


@dataclass(frozen=True)
class Tokens:
    """Persons by the hash of their token."""

    known: tuple[tuple[bytes, Person], ...]

    def person(self, token: str) -> Person | None:
        """Return whose token it is; takes as long for a wrong one as for a right one."""
        digest = digest_of(token).encode()
        found = None
        for known, person in self.known:
            if hmac.compare_digest(known, digest):
                found = person
        return found


def digest_of(token: str) -> str:
    """Return the hash by which a token is known; plain SHA-256 is enough for 256 random bits."""
    return hashlib.sha256(token.encode()).hexdigest()


def make_token() -> str:
    """Return a token that nobody can guess."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def token_line(name: str, role: Role, token: str) -> str:
    """Return the line by which a console knows a token."""
    return f"{name} {role} {digest_of(token)}"


def parse_tokens(text: str) -> Tokens:
    """Read lines of name, role and hash; empty ones and those that begin with # are skipped.

    Raises:
        SettingsError: a line is none, or nobody is named; names the line's number, not its text.
    """
    lines = [line.strip() for line in re.split(r"[;\n]", text)]
    known = [
        _read_line(number, line)
        for number, line in enumerate(lines, start=1)
        if line and not line.startswith("#")
    ]
    if not known:
        raise SettingsError(
            "GATEMESH_CONSOLE_TOKENS or GATEMESH_CONSOLE_TOKENS_FILE: names nobody; "
            "make a line with: python -m gatemesh_console token NAME"
        )
    return Tokens(tuple(known))


def _read_line(number: int, line: str) -> tuple[bytes, Person]:
    match = LINE.fullmatch(line)
    if match is None or match["role"] not in set(Role):
        raise SettingsError(
            f"GATEMESH_CONSOLE_TOKENS, line {number}: must be NAME ROLE SHA256, ROLE one of "
            f"{', '.join(Role)}; make one with: python -m gatemesh_console token NAME"
        )
    return match["digest"].lower().encode(), Person(match["name"], Role(match["role"]))
