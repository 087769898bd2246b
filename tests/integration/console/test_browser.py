"""Every page and action in headless Chromium: no error, nobody kept out, keyboard enough."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.integration.console import rows
from tests.integration.console.browser import CHROMIUM_VARIABLE, Visit, chromium, find_chromium
from tests.integration.console.conftest import Fleet
from tests.integration.console.rows import CAPTURED, INCIDENT, run
from tests.integration.console.site import Console

from gatemesh_console.asking import ACTIONS, WHOLE_POOL
from gatemesh_console.tokens import Role

PROGRAM = find_chromium()
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        PROGRAM is None,
        reason=f"no Chromium: install the package chromium, or set {CHROMIUM_VARIABLE}",
    ),
]
IMAGES = Path(__file__).parents[3] / "docs" / "images"
WRITES_IMAGES = "GATEMESH_WRITE_SCREENSHOTS"
"""Set to 1, the pictures of the documentation are made anew."""
PICTURES = (
    ("console-fleet", "/?state=suspect", "Light"),
    ("console-incident", f"/incidents/{rows.CAPTURED}", "Dark"),
)
DECIDED = re.compile(r"Accepted\.|Refused:")
PAGES = (
    "/",
    "/instances/engine-003",
    "/timeline",
    "/incidents",
    f"/incidents/{INCIDENT}",
    "/requests",
    "/actions?action=set_weight&instance_id=engine-001&pool=chat",
    "/policy",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Run one browser for all tests."""
    with chromium(str(PROGRAM)) as running:
        yield running


@pytest.fixture
def visit(browser: Any, fleet: Fleet) -> Iterator[Visit]:
    """Return a signed-in window on the large fleet; at its end nothing went wrong in it."""
    context = browser.new_context(locale="en-GB", viewport={"width": 1280, "height": 800})
    visit = Visit(context.new_page(), fleet.console.url)
    visit.sign_in(Role.OPERATOR)
    yield visit
    context.close()
    assert visit.faults == []


def test_no_page_has_a_fault(visit: Visit) -> None:
    """Neither in the browser's console nor for people who see or move little."""
    for path in PAGES:
        visit.go(path)
        assert visit.serious_faults() == [], path


def test_dark_pages_can_be_read(visit: Visit) -> None:
    """Colours are chosen by a button, without a script, and stay chosen."""
    visit.page.get_by_role("button", name="Dark", exact=True).click()
    for path in ("/", f"/incidents/{CAPTURED}"):
        visit.go(path)
        assert visit.page.locator("html").get_attribute("data-theme") == "dark"
        assert visit.serious_faults() == [], path


def test_the_sign_in_has_no_fault(browser: Any, fleet: Fleet) -> None:
    """In Chinese, as the browser wishes."""
    context = browser.new_context(locale="zh-CN", color_scheme="dark")
    visit = Visit(context.new_page(), fleet.console.url)
    visit.go("/")
    assert visit.page.locator("html").get_attribute("lang") == "zh-Hans"
    assert visit.page.get_by_role("heading", name="登录").is_visible()
    assert visit.serious_faults() == []
    assert visit.faults == []
    context.close()


def test_the_system_s_dark_colours_are_followed(browser: Any, fleet: Fleet) -> None:
    """Unless somebody chooses."""
    colours = []
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto(f"{fleet.console.url}/sign-in")
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        context.close()
    assert colours == ["rgb(255, 255, 255)", "rgb(13, 17, 23)"]


def test_the_fleet_page_draws_its_chart_and_refreshes(visit: Visit, fleet: Fleet) -> None:
    """The chart is uPlot's; a new state appears without a reload, and the focus stays."""
    visit.page.locator("#chart canvas").wait_for()
    link = visit.page.locator("#instance-engine-001")
    link.focus()
    run(
        fleet.database_url,
        "UPDATE instances SET model_version = 'model-2-live' WHERE instance_id = 'engine-001'",
    )
    visit.page.get_by_text("model-2-live").wait_for()
    assert visit.page.evaluate("document.activeElement.id") == "instance-engine-001"
    visit.page.locator("svg.line polyline").first.wait_for(state="attached")


def test_the_timeline_is_live_and_can_be_paused(visit: Visit, fleet: Fleet) -> None:
    """New rows come by themselves; while paused they wait."""
    visit.go("/timeline")
    visit.page.get_by_text("Live", exact=True).wait_for()
    doubt = """INSERT INTO transitions (instance_id, pool, incarnation, before_state, trigger,
            after_state, score, policy_version, at)
        VALUES ('engine-004', 'chat', 1, 'healthy', %(why)s, 'suspect', 50, 'v-1', now())"""
    run(fleet.database_url, doubt, why="<i>first-live</i>")
    visit.page.get_by_text("<i>first-live</i>").wait_for()
    visit.page.get_by_role("button", name="Pause").press("Enter")
    run(fleet.database_url, doubt, why="second-live")
    visit.page.get_by_text("Paused", exact=True).wait_for()
    assert visit.page.get_by_text("second-live").count() == 0
    visit.page.get_by_role("button", name="Pause").press("Enter")
    visit.page.get_by_text("second-live").wait_for()


def test_pages_are_reached_by_keyboard_alone(visit: Visit) -> None:
    """The first stop skips to the content, and each stop is seen."""
    visit.go("/policy")
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.className") == "skip"
    visit.page.keyboard.press("Enter")
    assert visit.page.evaluate("location.hash") == "#main"
    visit.go("/policy")
    for _ in range(4):
        visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.getAttribute('href')") == "/incidents"
    outline = visit.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    visit.page.keyboard.press("Enter")
    visit.page.get_by_role("heading", name="Incidents", level=1).wait_for()


def test_no_script_of_an_engine_runs(visit: Visit) -> None:
    """Markup in causes, reasons and details stays text; a dialogue would be an error."""
    dialogues: list[str] = []
    visit.page.on("dialog", lambda one: dialogues.append(one.message))
    visit.go(f"/incidents/{INCIDENT}")
    visit.page.locator("details summary").first.click()
    assert visit.page.locator("main img").count() == 0
    assert dialogues == []


def test_signing_out_ends_the_session(visit: Visit) -> None:
    """Going back shows nothing."""
    visit.page.get_by_role("button", name="Sign out").click()
    visit.page.get_by_role("heading", name="Sign in").wait_for()
    visit.go("/incidents")
    assert visit.page.get_by_role("heading", name="Sign in").is_visible()


def test_an_action_is_tried_confirmed_and_done(browser: Any, deciding: Console) -> None:
    """From the form to the manager's answer, by keyboard where it counts."""
    context = browser.new_context(locale="en-GB")
    visit = Visit(context.new_page(), deciding.url)
    visit.sign_in(Role.OPERATOR)
    page = visit.page
    visit.go("/actions?action=pause")
    page.get_by_label("Reason").fill("<b>by hand</b>")
    page.get_by_role("button", name="Dry run").press("Enter")
    page.get_by_text("Nothing was done. It would:").wait_for()
    assert visit.serious_faults() == []
    page.get_by_role("link", name="Ask for it").click()
    page.get_by_role("button", name="Continue to confirm").click()
    page.get_by_role("heading", name="Are you sure?").wait_for()
    assert page.get_by_text("<b>by hand</b>").is_visible()
    assert visit.serious_faults() == []
    page.get_by_role("button", name="Yes, Pause: chat").press("Enter")
    page.get_by_text("Accepted.").wait_for()
    visit.go("/policy")
    assert page.locator(".badge.paused").is_visible()
    context.close()
    assert visit.faults == []


@pytest.fixture(scope="module")
def asking(browser: Any, deciding: Console) -> Iterator[Visit]:
    """Return an operator's window on a console whose requests are decided."""
    context = browser.new_context(locale="en-GB")
    visit = Visit(context.new_page(), deciding.url)
    visit.sign_in(Role.OPERATOR)
    yield visit
    context.close()
    assert visit.faults == []


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_every_action_is_tried_confirmed_and_decided(asking: Visit, action: str) -> None:
    """Form, confirmation and answer have no fault, whatever the manager says to it."""
    page = asking.page
    place = "" if action in WHOLE_POOL else "&instance_id=engine-0"
    asking.go(f"/actions?action={action}&pool=chat{place}")
    if action == "set_weight":
        page.get_by_label("Weight").fill("0.5")
    page.get_by_label("Reason").fill("trying every action")
    assert asking.serious_faults() == []
    page.get_by_role("button", name="Dry run").press("Enter")
    page.get_by_text("Nothing was done.").wait_for()
    assert asking.serious_faults() == []
    page.go_back()
    page.get_by_role("button", name="Continue to confirm").press("Enter")
    page.get_by_role("heading", name="Are you sure?").wait_for()
    assert asking.serious_faults() == []
    page.get_by_role("button", name="Yes,").press("Enter")
    page.get_by_text(DECIDED).wait_for()
    assert asking.serious_faults() == []


def test_pages_that_are_not_there_can_be_read(browser: Any, fleet: Fleet) -> None:
    """A wrong address, and an instance that is gone."""
    context = browser.new_context(locale="en-GB")
    visit = Visit(context.new_page(), fleet.console.url)
    visit.sign_in(Role.OPERATOR)
    for path in ("/nowhere", "/instances/gone", "/incidents/gone"):
        visit.go(path)
        assert visit.serious_faults() == [], path
    context.close()
    # The browser itself notes the status of such a page, and nothing else.
    assert all("404" in fault for fault in visit.faults)


def test_a_burst_leaves_no_hole_in_the_live_timeline(visit: Visit, fleet: Fleet) -> None:
    """More events at once than the page shows: the newest are there, and older ones a page away."""
    visit.go("/timeline")
    visit.page.get_by_text("Live", exact=True).wait_for()
    burst = """INSERT INTO transitions (instance_id, pool, incarnation, before_state, trigger,
            after_state, score, policy_version, at)
        SELECT 'engine-005', 'chat', 1, 'healthy', 'burst-' || to_char(n, 'FM0000'), 'suspect', 50,
            'v-1', now() + make_interval(secs => n * 0.001)
        FROM generate_series(1, 1200) AS n"""
    run(fleet.database_url, burst)
    visit.page.get_by_text("burst-1200").wait_for()
    shown = visit.page.locator("#live tr td:last-child").all_inner_texts()
    assert [text for text in shown if text.startswith("burst-")] == [
        f"burst-{n:04}" for n in range(1200, 700, -1)
    ]
    visit.page.get_by_role("link", name="Older events").click()
    visit.page.get_by_text("burst-0700").wait_for()


@pytest.fixture
def tidy(browser: Any, fleet: Fleet, broker_url: str) -> Iterator[Visit]:
    """Return a window on the same fleet, without the markup that other tests need."""
    for statement in rows.TIDY:
        rows.run(fleet.database_url, statement)
    with psycopg.connect(fleet.database_url) as connection:
        role = "gatemesh_evidence" if rows.tidy_captures(connection) else "gatemesh_reader"
    console = Console(fleet.database_url, broker_url, GATEMESH_CONSOLE_DATABASE_ROLE=role)
    console.await_ready()
    context = browser.new_context(locale="en-GB", viewport={"width": 1100, "height": 860})
    visit = Visit(context.new_page(), console.url)
    visit.sign_in(Role.OPERATOR)
    yield visit
    context.close()
    console.stop()


@pytest.mark.skipif(
    not os.environ.get(WRITES_IMAGES), reason=f"set {WRITES_IMAGES}=1 to make the pictures anew"
)
def test_pictures_of_the_documentation(tidy: Visit) -> None:
    """Made from what the tests see; last, since they tidy the fleet."""
    IMAGES.mkdir(exist_ok=True)
    for name, path, theme in PICTURES:
        tidy.go(path)
        tidy.page.get_by_role("button", name=theme, exact=True).click()
        tidy.page.wait_for_load_state("load")
        if name == "console-fleet":
            tidy.page.locator("#chart canvas").wait_for()
            tidy.page.locator("svg.line polyline").first.wait_for(state="attached")
        tidy.page.screenshot(path=IMAGES / f"{name}.png", scale="css")
