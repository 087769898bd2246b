"""Every page over a large fleet, by HTTP: whole, escaped, paged, and only for who is signed in."""

import http.client
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from tests.integration.console.conftest import Fleet
from tests.integration.console.rows import (
    CAPTURED,
    HOSTILE,
    INCIDENT,
    INSTANCES,
    VERDICTS,
    has_captures,
    run,
)
from tests.integration.console.site import Client

from gatemesh_common.database import DataRefusedError
from gatemesh_console.guarding import HEADERS
from gatemesh_console.paging import read_key
from gatemesh_console.store import EVENT_KEY, open_store

pytestmark = pytest.mark.integration

MOST_CHARS = 100_000
PAGES = (
    "/",
    "/?pool=code&state=quarantined",
    "/instances/engine-003",
    "/incidents",
    "/incidents?status=open&pool=chat",
    f"/incidents/{INCIDENT}",
    "/timeline",
    "/requests",
    "/actions?action=drain&instance_id=engine-001",
    "/policy",
    "/policy?version=v-old",
)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_whole_and_lets_no_markup_of_engines_through(operator: Client, path: str) -> None:
    """Whatever an engine or a client wrote is text, in both languages."""
    for language in ("en", "zh-CN,zh;q=0.9"):
        answer = operator.get(path, **{"accept-language": language})
        assert answer.status == 200, answer.text
        assert "<script>alert" not in answer.text
        assert "<img" not in answer.text
        assert f'lang="{"zh-Hans" if "zh" in language else "en"}"' in answer.text
        for name, value in HEADERS.items():
            assert answer.headers[name] == value


@pytest.mark.parametrize("path", [*PAGES, "/gates.json", "/timeline/stream"])
def test_a_stranger_sees_nothing(fleet: Fleet, path: str) -> None:
    """Every page but the sign-in needs a session."""
    answer = fleet.console.client().get(path)
    assert answer.status in (303, 401)
    assert "engine-" not in answer.text


def test_an_incident_shows_its_evidence_and_says_that_no_capture_is_kept(operator: Client) -> None:
    """Verdict, span, threshold, transition, command and rules stand on one page."""
    text = operator.get(f"/incidents/{INCIDENT}").text
    for part in ("No capture kept.", "char_start 10", "0.93", "0.4", "v-1", "draining", "fence 6"):
        assert part in text
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text


def test_a_capture_shows_tokens_and_answers_where_captures_are_kept(
    fleet: Fleet, operator: Client
) -> None:
    """Figures for readers; texts only for the role that may read them."""
    with psycopg.connect(fleet.database_url) as connection:
        if not has_captures(connection):
            pytest.skip("this database has no view captures_v1")
    text = operator.get(f"/incidents/{CAPTURED}").text
    assert 'class="token heat-9 fault"' in text
    assert "No capture kept." not in text
    assert "zq" not in text
    assert "<script>alert" not in text


def test_all_instances_are_reached_page_by_page(operator: Client) -> None:
    """Pages follow each other by key; none is missed, none comes twice."""
    names: list[str] = []
    path = "/"
    while path:
        text = operator.get(path, **{"hx-request": "true"}).text
        names += [part.partition('"')[0] for part in text.split('id="instance-')[1:]]
        _, found, rest = text.partition('id="next-page" rel="next" href="')
        path = rest.partition('"')[0].replace("&amp;", "&") if found else ""
    assert len(names) == INSTANCES
    assert len(set(names)) == INSTANCES


async def test_the_timeline_is_whole_page_by_page(fleet: Fleet) -> None:
    """Each event once, those of one moment, too."""
    store = open_store(fleet.database_url, "gatemesh_reader", 10)
    seen: list[tuple[object, ...]] = []
    after, more = None, True
    try:
        while more:
            found = await store.timeline(datetime.now(UTC) - timedelta(hours=24), None, after)
            seen += [tuple(row[name] for name in EVENT_KEY) for row in found.rows]
            after, more = read_key(found.after or "", EVENT_KEY), found.after is not None
    finally:
        await store.close()
    assert len(seen) == len(set(seen))
    assert sum(row[2] == "verdict" for row in seen) == VERDICTS


@pytest.mark.parametrize("path", PAGES)
def test_a_page_stays_small_at_ten_thousand_verdicts(operator: Client, path: str) -> None:
    """Whatever the history, a page has its rows and no more."""
    assert len(operator.get(path).text) < MOST_CHARS


def test_a_new_event_arrives_on_the_open_stream(fleet: Fleet, operator: Client) -> None:
    """Whoever watches needs no reload, and gets text and no markup."""
    connection = http.client.HTTPConnection("127.0.0.1", fleet.console.port, timeout=30)
    jar = "; ".join(f"{name}={value}" for name, value in operator.cookies.items())
    connection.request("GET", "/timeline/stream", headers={"cookie": jar})
    stream = connection.getresponse()
    assert stream.status == 200
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert stream.readline().startswith(b"retry:")
    run(
        fleet.database_url,
        """INSERT INTO transitions (instance_id, pool, incarnation, before_state, trigger,
            after_state, score, policy_version, at)
        VALUES ('engine-002', 'chat', 1, 'healthy', %(why)s, 'suspect', 50, 'v-1', now())""",
        why="<b>doubted-live</b>",
    )
    seen = ""
    while "doubted-live" not in seen:
        seen = stream.readline().decode()
    assert "&lt;b&gt;doubted-live&lt;/b&gt;" in seen
    connection.close()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        pytest.param("/incidents/none", 404, id="incident"),
        pytest.param("/instances/none", 404, id="instance"),
        pytest.param("/policy?version=none", 404, id="policy"),
        pytest.param("/nowhere", 404, id="page"),
        pytest.param("/?after=nonsense", 400, id="key"),
        pytest.param("/timeline?before=yesterday", 400, id="moment"),
        pytest.param("/actions?action=explode", 400, id="action"),
        pytest.param("/incidents?after=WyJ4IiwgInkiXQ", 400, id="key-of-no-moment"),
    ],
)
def test_a_wrong_address_is_a_page_that_says_so(operator: Client, path: str, status: int) -> None:
    """Never a stack trace, always the site's own page."""
    answer = operator.get(path)
    assert answer.status == status
    assert 'role="alert"' in answer.text


async def test_a_session_of_the_console_can_change_nothing(fleet: Fleet) -> None:
    """Not even as the owner of the tables: role and mode are the session's."""
    store = open_store(fleet.database_url, "gatemesh_reader", 5)
    try:
        [row] = await store._rows(
            "SELECT current_user AS role, current_setting('transaction_read_only') AS locked"
        )
        assert row == {"role": "gatemesh_reader", "locked": "on"}
        with pytest.raises(DataRefusedError, match="42501"):
            await store._rows("SELECT * FROM instances")
    finally:
        await store.close()


def test_metrics_and_readiness_are_on_the_admin_port_only(fleet: Fleet, viewer: Client) -> None:
    """Scrapes need no token, and people find no metrics among the pages."""
    viewer.get("/policy")
    metrics = fleet.console.admin("/metrics")
    assert 'gatemesh_console_requests_total{route="/policy",status="200"}' in metrics
    assert fleet.console.admin("/readyz") == "ready"
    assert viewer.get("/metrics").status == 404
