"""Balancers as the instances file describes them."""

from pathlib import Path

import pytest

from gatemesh_executor.balancers.config import (
    HaproxySettings,
    Listing,
    NginxSettings,
    is_server_name,
    listed,
    listing_fault,
)

FRONT = HaproxySettings(kind="haproxy", socket="tcp://127.0.0.1:9999", backend="chat")
EDGE = NginxSettings(kind="nginx", upstream_file=Path("chat.servers"), pid_file=Path("run/n.pid"))


def test_a_listing_is_completed_from_what_is_known() -> None:
    """Most files name the balancer only."""
    url = "http://127.0.0.1:8000"
    assert listed(Listing(name="front"), FRONT, "engine-0", url) == Listing(
        name="front", backend="chat", server="engine-0"
    )
    assert listed(Listing(name="edge"), EDGE, "engine-0", url) == Listing(
        name="edge", server="127.0.0.1:8000"
    )
    own = Listing(name="front", backend="b", server="s")
    assert listed(own, FRONT, "engine-0", url) == own


def test_paths_are_seen_from_the_files_folder() -> None:
    """Absolute ones stay."""
    seen = EDGE.under(Path("/etc/mesh"))
    assert (seen.upstream_file, seen.pid_file) == (
        Path("/etc/mesh/chat.servers"),
        Path("/etc/mesh/run/n.pid"),
    )
    assert NginxSettings(kind="nginx", upstream_file=Path("/a")).under(
        Path("/etc")
    ).pid_file == Path("/run/nginx.pid")
    assert FRONT.under(Path("/etc")) == FRONT


@pytest.mark.parametrize(
    ("name", "fits"),
    [("engine-0", True), ("[::1]:80", True), ("a;b", False), ("a b", False), ("a\n", False)],
)
def test_nothing_of_a_name_is_read_as_an_order(name: str, fits: bool) -> None:  # noqa: FBT001
    """A semicolon would end HAProxy's command and nginx's line."""
    assert is_server_name(name) is fits


def test_a_right_listing_has_no_fault() -> None:
    """A backend of its own does where the balancer names none."""
    bare = FRONT.model_copy(update={"backend": None})
    assert listing_fault(Listing(name="f", backend="b"), {"f": bare}) is None
    assert listing_fault(Listing(name="f"), {"f": FRONT}) is None
    assert listing_fault(Listing(name="e"), {"e": EDGE}) is None
