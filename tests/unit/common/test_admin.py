"""The admin pages: alive, ready or what is missing, metrics."""

from prometheus_client import REGISTRY, CollectorRegistry, Counter

from gatemesh_common.admin import Readiness, admin_pages


def test_readiness_names_what_is_missing() -> None:
    """A person sees why no work comes."""
    readiness = Readiness("database", "broker")
    pages = admin_pages(readiness, CollectorRegistry())
    status, _, body = pages["/readyz"]()
    assert (status[:3], body) == ("503", b"broker, database")
    readiness.set("database", met=True)
    readiness.set("broker", met=True)
    assert pages["/readyz"]()[0] == "200 OK"
    readiness.set("broker", met=False)
    assert readiness.missing() == ("broker",)
    value = REGISTRY.get_sample_value
    assert value("gatemesh_need_missing", {"need": "broker"}) == 1
    assert value("gatemesh_need_missing", {"need": "database"}) == 0


def test_metrics_come_from_the_registry() -> None:
    """In the text format that Prometheus reads."""
    registry = CollectorRegistry()
    Counter("things_total", "Things.", registry=registry).inc(3)
    status, kind, body = admin_pages(Readiness(), registry)["/metrics"]()
    assert (status, kind) == ("200 OK", "text/plain; version=0.0.4")
    assert b"things_total 3.0" in body
