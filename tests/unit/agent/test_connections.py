"""Where plain connections lead, as far as no network is needed."""

import pytest

from gatemesh_agent.connections import Target, target_of


@pytest.mark.parametrize(
    ("base_url", "target"),
    [
        ("http://engine-0:8000", Target("engine-0", 8000, "", "engine-0:8000")),
        ("http://engine-0", Target("engine-0", 80, "", "engine-0")),
        ("http://h:1/gpu/0/", Target("h", 1, "/gpu/0", "h:1")),
        ("http://[::1]:8000", Target("::1", 8000, "", "[::1]:8000")),
    ],
)
def test_a_base_url_is_host_port_and_prefix(base_url: str, target: Target) -> None:
    """Named in the `Host` header as HTTP wants it."""
    assert target_of(base_url) == target


@pytest.mark.parametrize(
    "base_url",
    ["https://h:1", "http://user:word@h:1", "http://h:x", "http://", "http://h?a=1", "http://h/ä"],
)
def test_what_takes_more_goes_another_way(base_url: str) -> None:
    """Encryption, credentials, and what is no address."""
    assert target_of(base_url) is None
