"""Rows for people and for programs."""

import io
import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from rich.console import Console

from gatemesh_ctl.output import as_json, cell, print_rows, printable


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("x", None, "-"),
        ("x", True, "yes"),
        ("x", 3, "3"),
        ("x", 3.0, "3"),
        ("x", 0.125, "0.12"),
        ("x", Decimal("12.50"), "12.5"),
        ("incident_id", "0123456789", "01234567"),
        ("reason", "a[red]b", "a\\[red]b"),
    ],
)
def test_cells(name: str, value: object, text: str) -> None:
    """Short, and never taken for markup."""
    assert cell(name, value) == text


def test_json_holds_every_field() -> None:
    """Also those that a table leaves out, with moments in ISO form."""
    row = {"id": "0123456789", "at": datetime(2026, 1, 1, tzinfo=UTC), "n": Decimal("1.5")}
    shown = {"id": "0123456789", "at": "2026-01-01T00:00:00+00:00", "n": 1.5}
    assert json.loads(as_json([row])) == [shown]


def test_no_rows_are_said_in_words() -> None:
    """An empty table tells nothing."""
    console = Console(file=io.StringIO())
    print_rows(console, [], ["id"])
    assert console.file.getvalue() == "nothing to show\n"  # type: ignore[attr-defined]


def test_a_table_has_its_columns() -> None:
    """Names without their ids' suffix."""
    console = Console(file=io.StringIO(), width=80)
    print_rows(console, [{"instance_id": "e-0", "x": 1}], ["instance_id"])
    assert console.file.getvalue().split() == ["instance", "e-0"]  # type: ignore[attr-defined]


def test_other_values_become_text() -> None:
    """An identifier of the database's own kind, say."""
    assert json.loads(as_json({"a": {1}.__class__})) == {"a": "<class 'set'>"}


def test_nothing_steers_the_terminal() -> None:
    """Clients, engines and publishers by hand write what they like."""
    assert printable("a\x1b[2Jb\x9b1m\n\tc") == "a\ufffd[2Jb\ufffd1m\n\tc"
    assert cell("reason", "\x1b]0;owned\x07") == "\ufffd]0;owned\ufffd"
