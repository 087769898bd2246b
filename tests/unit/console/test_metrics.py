"""Names follow the convention, and labels are few."""

from gatemesh_console.metrics import ASKED, PAGES, SIGN_INS

from .conftest import Office


async def test_pages_are_counted_by_route_and_not_by_address(office: Office) -> None:
    """An id in a label would make a series of each incident."""
    before = PAGES.labels(route="/incidents/{incident_id}", status="200")._value.get()
    await office.client.get("/incidents/i-1")
    after = PAGES.labels(route="/incidents/{incident_id}", status="200")._value.get()
    assert after == before + 1


def test_counters_are_called_as_prometheus_wants() -> None:
    """The library adds `_total`."""
    assert {told.name for one in (PAGES, SIGN_INS, ASKED) for told in one.describe()} == {
        "gatemesh_console_requests",
        "gatemesh_console_sign_ins",
        "gatemesh_console_asked",
    }
