"""Writes the Grafana dashboards from the table of their panels.

python -m deploy.grafana.dashboards
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from deploy.grafana.engine import ENGINE
from deploy.grafana.fleet import FLEET
from deploy.grafana.gates import GATES
from deploy.grafana.panel import Dashboard, Panel
from deploy.grafana.pipeline import PIPELINE

FOLDER = Path(__file__).with_name("dashboards")
DASHBOARDS = (FLEET, GATES, PIPELINE, ENGINE)
SOURCE = {"type": "prometheus", "uid": "gatemesh-prometheus"}
SCHEMA = 39
"""Of Grafana 11; a later one reads it, too."""
COLUMNS = 24
HEIGHT = 8
WIDTHS = {"stat": 6, "timeseries": 12}
POOL = {
    "name": "pool",
    "label": "Pool",
    "type": "query",
    "datasource": SOURCE,
    "query": {"query": "label_values(gatemesh_instances, pool)", "refId": "pool"},
    "definition": "label_values(gatemesh_instances, pool)",
    "refresh": 2,
    "includeAll": True,
    "multi": True,
    "allValue": ".*",
    "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
}


@dataclass(frozen=True)
class Place:
    """Where the next panel goes, in columns and rows of the grid."""

    x: int = 0
    y: int = 0

    def of(self, panel: Panel) -> "Place":
        """Return the place of a panel: here, or at the beginning of the next line."""
        return self if self.x + WIDTHS[panel.kind] <= COLUMNS else Place(0, self.y + HEIGHT)

    def after(self, panel: Panel) -> "Place":
        """Return the place right of a panel that stands here."""
        return Place(self.x + WIDTHS[panel.kind], self.y)


def panel_json(number: int, panel: Panel, place: Place) -> dict[str, Any]:
    """Return a panel as Grafana reads it."""
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.says,
        "datasource": SOURCE,
        "gridPos": {"x": place.x, "y": place.y, "w": WIDTHS[panel.kind], "h": HEIGHT},
        "fieldConfig": {"defaults": field_defaults(panel), "overrides": []},
        "options": options(panel),
        "targets": [
            {
                "refId": chr(ord("A") + place_),
                "datasource": SOURCE,
                "expr": query.expression,
                "legendFormat": query.legend,
            }
            for place_, query in enumerate(panel.queries)
        ],
    }


def field_defaults(panel: Panel) -> dict[str, Any]:
    """Return unit, floor and colours."""
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.red_from is not None:
        steps.append({"color": "red", "value": panel.red_from})
    custom: dict[str, Any] = {"fillOpacity": 30 if panel.stacked else 10, "showPoints": "never"}
    if panel.stacked:
        custom["stacking"] = {"mode": "normal", "group": "A"}
    return {
        "unit": panel.unit,
        "min": 0,
        "thresholds": {"mode": "absolute", "steps": steps},
        **({"custom": custom} if panel.kind == "timeseries" else {}),
    }


def options(panel: Panel) -> dict[str, Any]:
    """Return how a panel is drawn."""
    if panel.kind == "stat":
        return {
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "colorMode": "background" if panel.red_from is not None else "value",
            "graphMode": "area",
            "textMode": "value_and_name",
        }
    return {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }


def row_json(number: int, title: str, y: int) -> dict[str, Any]:
    """Return the heading of some panels."""
    where = {"x": 0, "y": y, "w": COLUMNS, "h": 1}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": where}


def laid_out(panels: Iterable[Panel]) -> list[dict[str, Any]]:
    """Return panels in lines under the headings of their groups."""
    found: list[dict[str, Any]] = []
    y = 0
    for group, members in groupby(panels, key=lambda panel: panel.group):
        found.append(row_json(len(found) + 1, group, y))
        place = Place(0, y + 1)
        for panel in members:
            place = place.of(panel)
            found.append(panel_json(len(found) + 1, panel, place))
            place = place.after(panel)
        y = place.y + HEIGHT
    return found


def dashboard_json(dashboard: Dashboard) -> dict[str, Any]:
    """Return a dashboard as Grafana reads it."""
    return {
        "uid": f"gatemesh-{dashboard.name}",
        "title": f"gatemesh: {dashboard.name}",
        "description": dashboard.says,
        "tags": ["gatemesh"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "links": [
            {
                "type": "dashboards",
                "title": "gatemesh",
                "tags": ["gatemesh"],
                "asDropdown": False,
                "keepTime": True,
                "includeVars": True,
            }
        ],
        "templating": {"list": [POOL] if dashboard.by_pool else []},
        "panels": laid_out(dashboard.panels),
    }


def files() -> dict[str, str]:
    """Return the text of every dashboard's file by its name."""
    return {
        f"{dashboard.name}.json": json.dumps(dashboard_json(dashboard), indent=2) + "\n"
        for dashboard in DASHBOARDS
    }


if __name__ == "__main__":
    for name, text in files().items():
        (FOLDER / name).write_text(text)
    sys.stdout.write(f"{len(DASHBOARDS)} dashboards written\n")
