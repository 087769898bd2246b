"""Dashboards: the files are those of the table, and each panel shows what services really show."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy.grafana.dashboards import COLUMNS, FOLDER, SOURCE, files

from .expressions import faults
from .promtool import needs_promtool, promtool

REPOSITORY = Path(__file__).parents[3]
PROVISIONING = REPOSITORY / "deploy/grafana/provisioning"
NAMES = ("fleet", "gates", "pipeline", "engine")
VARIABLES = {"$__rate_interval": "5m", "$pool": ".*"}


def read(name: str) -> dict[str, Any]:
    """Return a dashboard as it is shipped."""
    return dict(json.loads((FOLDER / f"{name}.json").read_text()))


def panels(name: str) -> list[dict[str, Any]]:
    """Return the panels of a dashboard, headings left out."""
    return [panel for panel in read(name)["panels"] if panel["type"] != "row"]


def filled(expression: str) -> str:
    """Return an expression as Grafana sends it."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


EXPRESSIONS = [
    pytest.param(filled(target["expr"]), id=f"{name}: {panel['title']} {target['refId']}")
    for name in NAMES
    for panel in panels(name)
    for target in panel["targets"]
]


def test_the_files_are_those_of_the_table() -> None:
    """Else: python -m deploy.grafana.dashboards."""
    shipped = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    assert shipped == files()
    assert set(shipped) == {f"{name}.json" for name in NAMES}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_panel_shows_what_is_there(expression: str) -> None:
    """A wrong name shows an empty panel for ever."""
    assert faults(expression) == []
    assert "$" not in expression


@pytest.mark.parametrize("name", NAMES)
def test_panels_do_not_cover_each_other(name: str) -> None:
    """Every place of the grid is taken once, and every panel says what it shows."""
    taken: set[tuple[int, int]] = set()
    for panel in read(name)["panels"]:
        grid = panel["gridPos"]
        places = {
            (x, y)
            for x in range(grid["x"], grid["x"] + grid["w"])
            for y in range(grid["y"], grid["y"] + grid["h"])
        }
        assert taken.isdisjoint(places)
        assert max(x for x, _ in places) < COLUMNS
        taken |= places
    assert all(panel["description"].endswith(".") for panel in panels(name))
    assert len({panel["id"] for panel in read(name)["panels"]}) == len(read(name)["panels"])


def test_dashboards_read_the_provisioned_source() -> None:
    """By its uid, so that nobody has to choose one."""
    source = yaml.safe_load((PROVISIONING / "datasources/prometheus.yaml").read_text())
    [known] = source["datasources"]
    assert {"type": known["type"], "uid": known["uid"]} == SOURCE
    assert all(panel["datasource"] == SOURCE for name in NAMES for panel in panels(name))


def test_a_pool_can_be_chosen_where_panels_ask_for_it() -> None:
    """A variable that is not there would empty them."""
    for name in NAMES:
        asked = any("$pool" in t["expr"] for panel in panels(name) for t in panel["targets"])
        assert asked == bool(read(name)["templating"]["list"])


@needs_promtool
def test_promtool_reads_every_expression(tmp_path: Path) -> None:
    """As rules, since it reads nothing else."""
    rules = [
        {"record": f"panel:{number}", "expr": param.values[0]}
        for number, param in enumerate(EXPRESSIONS)
    ]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", str(file))
