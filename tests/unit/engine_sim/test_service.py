"""The parts handlers share."""

from collections.abc import Callable

from gatemesh_engine_sim.service import Service, json_response


def test_age_counts_from_the_begin(make_service: Callable[..., Service]) -> None:
    """By the even clock."""
    assert make_service().age_s() == 10.0


def test_ids_look_like_vllms(make_service: Callable[..., Service]) -> None:
    """16 digits, no two alike."""
    service = make_service()
    ids = {service.new_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(len(one) == 16 and int(one, 16) >= 0 for one in ids)


def test_json_response_has_the_bare_type() -> None:
    """No charset, as FastAPI sends it."""
    response = json_response(b"{}", 404)
    assert (response.status, response.headers["Content-Type"]) == (404, "application/json")
