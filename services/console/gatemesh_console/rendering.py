"""From rows to pages: everything that comes from outside is escaped, always."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from gatemesh_console.scores import polyline

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400


def make_environment() -> Environment:
    """Return the templates; escaping has no exception by a file's name."""
    environment = Environment(
        loader=PackageLoader("gatemesh_console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "moment": moment,
        "age": age,
        "number": number,
        "percent": percent,
        "pretty": pretty,
        "polyline": polyline,
    }
    return environment


def moment(at: datetime | None) -> str:
    """Return a moment to the millisecond, in UTC."""
    if at is None:
        return ""
    return at.astimezone(UTC).isoformat(" ", timespec="milliseconds").removesuffix("+00:00")


def age(seconds: float | None) -> str:
    """Return a length of time in its two largest units."""
    if seconds is None:
        return ""
    whole = int(seconds)
    if whole < MINUTE_S:
        return f"{seconds:.1f} s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S} min {whole % MINUTE_S} s"
    if whole < DAY_S:
        return f"{whole // HOUR_S} h {whole % HOUR_S // MINUTE_S} min"
    return f"{whole // DAY_S} d {whole % DAY_S // HOUR_S} h"


def number(value: float | None, digits: int = 3) -> str:
    """Return a figure without needless digits; nothing for none."""
    return "" if value is None else f"{float(value):.{digits}f}".rstrip("0").rstrip(".")


def percent(part: float, whole: float) -> str:
    """Return a share in per cent; a hyphen when there is nothing to be a share of."""
    return f"{100 * part / whole:.2f} %" if whole else "-"


def pretty(value: object) -> str:
    """Return JSON for people."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def render(environment: Environment, template: str, values: Mapping[str, Any]) -> str:
    """Return a page."""
    return environment.get_template(template).render(**values)
