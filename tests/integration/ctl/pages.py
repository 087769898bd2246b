"""Pages whose queries have their real output below them, and whose columns are the real ones."""

import re
from collections.abc import Callable
from pathlib import Path

import psycopg

from gatemesh_mesh.postgres import plain_url

QUERY = re.compile(r"```sql\n(?P<query>[^`]+?)```\n(?:```text\n[^`]*?```\n)?")
TABLE = re.compile(
    r"(?P<head>^### `(?P<view>\w+_v\d+)`\n(?:(?!^###? ).*\n)*?)"
    r"\| column \| type \| meaning \|\n\|---\|---\|---\|\n(?P<rows>(?:\|.*\n)*)",
    re.MULTILINE,
)
MISSING = "(to be written)"
RIGHT = {20, 21, 23, 700, 701, 1700}
"""Types whose values stand to the right: numbers."""
COLUMNS = """
    SELECT table_name, column_name,
        CASE WHEN data_type = 'ARRAY' THEN ltrim(udt_name, '_') || '[]' ELSE data_type END
    FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name ~ '_v[0-9]+$'
    ORDER BY table_name, ordinal_position"""

Catalogue = dict[str, list[tuple[str, str]]]
"""Columns and their types by view."""


def read_catalogue(url: str) -> Catalogue:
    """Return every versioned view of a database."""
    found: Catalogue = {}
    with psycopg.connect(plain_url(url)) as connection:
        for view, column, kind in connection.execute(COLUMNS.encode()).fetchall():
            short = kind.replace("timestamp with time zone", "timestamptz")
            found.setdefault(view, []).append((column, short))
    return found


def answer(connection: psycopg.Connection[object], query: str) -> str:
    """Return what psql shows for one or more statements."""
    cursor = connection.cursor()
    shown = []
    for statement in filter(str.strip, query.split(";")):
        cursor.execute(statement.encode())
        shown.append(aligned(cursor))
    return "\n".join(shown)


def aligned(cursor: psycopg.Cursor[object]) -> str:
    """Return a result as psql aligns it."""
    result = cursor.pgresult
    assert result is not None
    names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
    rows = [
        [(result.get_value(row, column) or b"").decode() for column in range(result.nfields)]
        for row in range(result.ntuples)
    ]
    widths = [max(map(len, values)) for values in zip(names, *rows, strict=True)]
    right = [result.ftype(column) in RIGHT for column in range(result.nfields)]
    lines = [" | ".join(map(centred, names, widths))]
    lines.append("-+-".join("-" * width for width in widths))
    lines += [
        " | ".join(
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(row, widths, right, strict=True)
        )
        for row in rows
    ]
    rule = f"-{lines[1]}-"
    counted = f"({len(rows)} row{'' if len(rows) == 1 else 's'})"
    told = [f" {line}".rstrip() for line in (lines[0], *lines[2:])]
    return "\n".join((told[0], rule, *told[1:], counted)) + "\n"


def centred(name: str, width: int) -> str:
    """Return a heading in the middle of its column."""
    room = width - len(name)
    return " " * (room // 2) + name + " " * (room - room // 2)


def rewritten(page: str, ask: Callable[[str], str], catalogue: Catalogue) -> str:
    """Return a page with every query's output, and every view's columns, as they are."""

    def with_output(found: re.Match[str]) -> str:
        query = found["query"]
        return f"```sql\n{query}```\n```text\n{ask(query)}```\n"

    def with_columns(found: re.Match[str]) -> str:
        known = dict(meanings(found["rows"]))
        rows = "".join(
            f"| `{name}` | {kind} | {known.get(name, MISSING)} |\n"
            for name, kind in catalogue.get(found["view"], [])
        )
        return f"{found['head']}| column | type | meaning |\n|---|---|---|\n{rows}"

    return QUERY.sub(with_output, TABLE.sub(with_columns, page))


def meanings(rows: str) -> list[tuple[str, str]]:
    """Return what a page says of each column."""
    cells = (line.strip("|").split(" | ", 2) for line in rows.splitlines())
    return [(name.strip(" `"), meaning.strip(" |")) for name, _, meaning in cells]


def views_of(page: str) -> set[str]:
    """Return the views whose columns a page tells."""
    return {found["view"] for found in TABLE.finditer(page)}


def queried(page: Path) -> str:
    """Return all queries of a page."""
    return "\n".join(found["query"] for found in QUERY.finditer(page.read_text()))
