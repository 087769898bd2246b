"""The doctor's look at services' admin ports and at engines."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import chain

from gatemesh_ctl.doctor_database import judge_skew
from gatemesh_ctl.findings import Finding, fault, unknown, warning, well
from gatemesh_ctl.store import Row
from gatemesh_ctl.web import Page, fetch, side_by_side

OK = 200
HALF_S = 0.5
"""A page's date is cut to whole seconds."""
PROGRESS_S = (2.0, 10.0)
"""How long a running engine has to make a token; only those that made none are looked at longer."""
RUNNING = re.compile(r"^vllm:num_requests_running(?:\{[^}]*\})? (\S+)", re.MULTILINE)
TOKENS = re.compile(r"^vllm:generation_tokens_total(?:\{[^}]*\})? (\S+)", re.MULTILINE)

Fetch = Callable[[str], Page]


def look_at_services(
    admin_urls: Mapping[str, str], clock: Callable[[], datetime], get: Fetch = fetch
) -> list[Finding]:
    """Return what each service's admin port says."""
    if not admin_urls:
        cure = "give --admin NAME=URL for each, as in --admin agent=http://host:9101"
        return [unknown("admin ports", "none is known; services are judged by their queues", cure)]
    pages = side_by_side(
        lambda url: (get(f"{url.rstrip('/')}/readyz"), clock()), admin_urls.values()
    )
    found = [
        judge_service(name, page, now) for name, (page, now) in zip(admin_urls, pages, strict=True)
    ]
    return list(chain.from_iterable(found))


def judge_service(name: str, page: Page, now: datetime) -> list[Finding]:
    """Say whether a service is ready, and whether its clock agrees."""
    if page.status == 0:
        cure = f"start it: ./mesh up, docker compose up -d {name}, or its Deployment"
        return [fault(name, f"its admin port does not answer: {page.text}", cure)]
    found = [well(name, "is ready")]
    if page.status != OK:
        what = f"is not ready, it lacks: {page.text[:200].strip() or page.status}"
        found = [fault(name, what, f"see the {name}'s log; what it lacks may be a finding here")]
    if page.date is not None:
        skew_s = (now - page.date).total_seconds() - HALF_S
        found.append(judge_skew("clock", f"this machine and the {name}", skew_s, HALF_S))
    return found


def look_at_engines(
    instances: Sequence[Row], get: Fetch = fetch, sleep: Callable[[float], None] = time.sleep
) -> list[Finding]:
    """Return which engines answer, and which run requests and make no token."""
    running = [row for row in instances if row["running"] and row["base_url"]]
    if not running:
        return [unknown("engines", "none runs, as far as is known", "none needed")]
    pages = side_by_side(lambda row: get(f"{row['base_url']}/health"), running)
    found = [
        judge_health(row, page)
        for row, page in zip(running, pages, strict=True)
        if page.status != OK
    ]
    answering = [row for row, page in zip(running, pages, strict=True) if page.status == OK]
    if answering:
        found.append(well("engines", f"{len(answering)} of {len(running)} answer /health"))
    return [*found, *look_at_progress(answering, get, sleep)]


def judge_health(row: Row, page: Page) -> Finding:
    """Say that an engine does not answer, the louder while it is sent requests."""
    said = f"status {page.status}" if page.status else page.text
    what = f"{row['instance_id']} at {row['base_url']} does not answer /health: {said}"
    cure = f"see its log; gatemesh-ctl request restart {row['instance_id']}"
    if row["in_rotation"]:
        return fault("engines", what, cure, instance_id=row["instance_id"])
    return warning(
        "engines", f"{what} (it is {row['state']})", cure, instance_id=row["instance_id"]
    )


def look_at_progress(
    rows: Sequence[Row], get: Fetch, sleep: Callable[[float], None]
) -> list[Finding]:
    """Return the engines that run requests and make no token, after a longer look at those."""
    before = {row["instance_id"]: (row, progress(row, get)) for row in rows}
    suspects = {name: it for name, it in before.items() if it[1] is not None and it[1][0] > 0}
    busy = len(suspects)
    for wait_s in PROGRESS_S:
        if not suspects:
            break
        sleep(wait_s)
        after = {name: progress(row, get) for name, (row, _) in suspects.items()}
        suspects = {name: it for name, it in suspects.items() if is_stuck(it[1], after[name])}
    if suspects:
        return [stuck(name) for name in suspects]
    return [well("engines", f"{busy} run requests, and all of those make tokens")] if busy else []


def progress(row: Row, get: Fetch) -> tuple[float, float] | None:
    """Return how many requests an engine runs and how many tokens it has made; None untold."""
    page = get(f"{row['base_url']}/metrics")
    running, tokens = RUNNING.findall(page.text), TOKENS.findall(page.text)
    if page.status != OK or not running or not tokens:
        return None
    return sum(map(float, running)), sum(map(float, tokens))


def is_stuck(before: tuple[float, float] | None, after: tuple[float, float] | None) -> bool:
    """True when requests ran at both looks and no token was made between."""
    if before is None or after is None:
        return False
    return before[0] > 0 and after[0] > 0 and after[1] == before[1]


def stuck(name: str) -> Finding:
    """Word an engine that makes no token."""
    what = f"{name} runs requests and made no token in {sum(PROGRESS_S):g} s"
    cure = f"long prompts may take so long; if it stays so: gatemesh-ctl request restart {name}"
    return warning("engines", what, cure, instance_id=name)
