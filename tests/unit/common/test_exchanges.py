"""The exchanges' names are what people publish to by hand."""

from gatemesh_common import exchanges, messages


def test_names_stay_as_people_know_them() -> None:
    """Scripts and broker permissions name them."""
    assert (exchanges.ALERTS, exchanges.SHADOW) == ("vllm_health_alert", "vllm_shadow")
    assert (exchanges.CONTROL, exchanges.EVENTS) == ("vllm_control", "vllm_health_event")
    assert exchanges.DEAD == "gatemesh.dead"
    assert messages.ALERTS is exchanges.ALERTS
