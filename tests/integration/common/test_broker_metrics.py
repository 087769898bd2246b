"""The broker shows what alerts and dashboards read of it."""

import base64
import json
import re
import urllib.request
from urllib.parse import urlsplit

import pytest
import yaml
from tests.conftest import Bench
from tests.unit.deploy.expressions import OTHERS
from tests.unit.deploy.test_alerts import FOLDER

from gatemesh_common.broker import VERDICTS
from gatemesh_common.publisher import Publisher
from gatemesh_mesh.waiting import wait_until

pytestmark = pytest.mark.integration

DEADLINE_S = 60.0


def metrics_port(bench: Bench) -> int | None:
    """Return where the broker shows its metrics; None where its plugin is off."""
    if bench.metrics_port:
        return bench.metrics_port
    address = urlsplit(bench.amqp_url)
    login = base64.b64encode(f"{address.username}:{address.password}".encode()).decode()
    request = urllib.request.Request(  # noqa: S310 (the broker's own address)
        f"{bench.management_url}/api/overview", headers={"Authorization": f"Basic {login}"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
        listeners = json.load(answer)["listeners"]
    ports = [one["port"] for one in listeners if one["protocol"] == "http/prometheus"]
    return ports[0] if ports else None


def read(url: str) -> str:
    """Return a page."""
    with urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310 (the broker's own page)
        return str(answer.read().decode())


async def test_every_queue_is_shown_by_name(bench: Bench, publisher: Publisher) -> None:
    """With the path and the families of `prometheus.yml`, and the labels that we group by."""
    port = metrics_port(bench)
    if port is None:
        pytest.skip("the plugin rabbitmq_prometheus of this broker is off")
    [job] = [
        one
        for one in yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]
        if one["job_name"] == "rabbitmq"
    ]
    families = "&".join(f"family={family}" for family in job["params"]["family"])
    host = urlsplit(bench.amqp_url).hostname
    url = f"http://{host}:{port}{job['metrics_path']}?{families}"
    wanted = {name: OTHERS[name] for name in OTHERS if name.startswith("rabbitmq_")}
    # A queue tells of itself every few seconds.
    wait_until(lambda: set(labels_by_metric(read(url))) >= set(wanted), DEADLINE_S)
    shown = labels_by_metric(read(url))
    assert {name: shown.get(name) for name in wanted} == wanted


def labels_by_metric(page: str) -> dict[str, set[str]]:
    """Return the labels of what is shown of the queue of verdicts."""
    found = re.findall(r"^(\w+)\{(.+?)\} \d+", page, re.MULTILINE)
    return {
        metric: set(re.findall(r'(\w+)="', labels))
        for metric, labels in found
        if f'queue="{VERDICTS.name}"' in labels
    }
