"""Which headers pass."""

import pytest
from multidict import CIMultiDict

from gatemesh_agent.headers import dropped_by, passing, usable_request_id


def test_end_to_end_headers_pass_in_order_and_number() -> None:
    """Repeated ones too, as they were spelled."""
    headers = CIMultiDict([("X-B", "1"), ("x-a", "2"), ("X-B", "3")])
    assert list(passing(headers).items()) == [("X-B", "1"), ("x-a", "2"), ("X-B", "3")]


def test_hop_by_hop_headers_end_here() -> None:
    """Those that Connection names, too."""
    headers = CIMultiDict(
        [
            ("Connection", "keep-alive, X-Hop"),
            ("Keep-Alive", "timeout=5"),
            ("Transfer-Encoding", "chunked"),
            ("TE", "trailers"),
            ("x-hop", "1"),
            ("X-End", "2"),
        ]
    )
    assert list(passing(headers).items()) == [("X-End", "2")]


def test_more_can_be_left_out() -> None:
    """Without regard to case."""
    assert list(passing(CIMultiDict([("Host", "a"), ("B", "c")]), "HOST").items()) == [("B", "c")]


@pytest.mark.parametrize(
    ("value", "usable"),
    [
        ("abc-1", True),
        ("x" * 200, True),
        ("x" * 201, False),
        ("", False),
        (None, False),
        ("a b", False),
        ("a\x07", False),
        ("ü", False),
    ],
)
def test_request_ids(value: str | None, usable: bool) -> None:  # noqa: FBT001
    """What cannot be a name elsewhere is replaced in our records."""
    assert usable_request_id(value) == (value if usable else None)


def test_one_spelling_of_a_repeated_name() -> None:
    """aiohttp would send only the last of two."""
    headers = CIMultiDict([("X-A", "1"), ("x-a", "2")])
    assert list(passing(headers).items()) == [("X-A", "1"), ("X-A", "2")]


def test_only_usual_connection_headers_are_remembered() -> None:
    """A client's invention passes as few headers, and is forgotten."""
    named = ", ".join(f"X-{number}" for number in range(100))
    before = dropped_by.cache_info().currsize
    kept = passing({"Connection": named, "X-7": "1", "X-100": "2"}, "X-Odd")
    assert dict(kept) == {"X-100": "2"}
    assert dropped_by.cache_info().currsize == before
