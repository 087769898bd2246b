"""Rows for people and for programs."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from gatemesh_ctl.store import Row

SHORT_ID = 8


def as_json(value: object) -> str:
    """Return JSON that any program reads; moments are in ISO form."""
    return json.dumps(value, indent=1, default=plain, ensure_ascii=False)


def plain(value: object) -> object:
    """Return a value that JSON has no word for as one that it has."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    return str(value)


def print_rows(console: "Console", rows: "Sequence[Row]", columns: Sequence[str]) -> None:
    """Print these columns as a table."""
    if rows:
        console.print(table_of(rows, columns))
    else:
        console.print("nothing to show")


def table_of(rows: "Iterable[Row]", columns: Sequence[str]) -> "Table":
    """Return a table of these columns."""
    # A tenth of a second that programs, who take JSON, do not wait for.
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        table.add_column(name.removesuffix("_id").replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(cell(name, row.get(name)) for name in columns))
    return table


def cell(name: str, value: Any) -> str:
    """Return a value as a person wants it: short ids, local times, no markup."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.astimezone().strftime("%m-%d %H:%M:%S.%f")[:-3]
    if isinstance(value, float | Decimal):
        return f"{float(value):.2f}".rstrip("0").rstrip(".")
    text = str(value)
    if name in ("incident_id", "command_id", "message_id"):
        text = text[:SHORT_ID]
    return printable(text).replace("[", "\\[")


def printable(text: str) -> str:
    """Return a text without what would steer a terminal; line ends and tabs stay.

    Names, reasons and answers come from outside, and the screen is an operator's.
    """
    return "".join(one if one.isprintable() or one in "\n\t" else "\ufffd" for one in text)
