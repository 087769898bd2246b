"""The page about security follows the table of rights."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from gatemesh_common.broker_definitions import Site
from gatemesh_common.broker_users import ANY_KEY, USERS, BrokerUser

PAGE = (Path(__file__).parents[3] / "docs" / "security.md").read_text(encoding="utf-8")
COLUMNS = ("user", "what for", "publishes", "binds own queues to", "own queues", "reads")
HEAD = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}\n"


def test_the_page_holds_the_table_of_rights() -> None:
    """Whoever sets up a broker by hand has only this page; the failure shows what it must hold."""
    table = HEAD + "".join(map(row, USERS))
    assert table in PAGE, f"docs/security.md must hold this table:\n{table}"


def row(user: BrokerUser) -> str:
    """Return a user's line."""
    cells = (
        f"`{Site().user(user.service)}`",
        user.purpose,
        by_exchange(user.sends),
        by_exchange(user.hears),
        listed(user.owns),
        listed(user.reads),
    )
    escaped = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |\n"


def by_exchange(keys: Mapping[str, str]) -> str:
    """Return what may be sent or heard, by exchange."""
    return "; ".join(f"`{name}`: {worded(pattern)}" for name, pattern in keys.items())


def worded(pattern: str) -> str:
    """Return a pattern of keys as people read it."""
    if pattern == ANY_KEY:
        return "any key"
    plain = pattern.removeprefix("^").removesuffix(r"(\.|$)").removesuffix(r"\.")
    return f"`{unescaped(plain)}.…`"


def listed(patterns: Iterable[str]) -> str:
    """Return patterns of names as people read them."""
    return ", ".join(f"`{unescaped(pattern)}`" for pattern in patterns)


def unescaped(pattern: str) -> str:
    """Return a pattern without what only machines need."""
    return pattern.replace(r"\.", ".").replace(r"\-", "-").replace(r"\d+", "N").replace(".*", "…")
