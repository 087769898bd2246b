"""How often an instance is probed."""

from gatemesh_agent.probe_brake import Brake


def test_so_many_per_minute_and_no_more() -> None:
    """At the limit it waits for the oldest to be a minute old; each instance has its own."""
    brake = Brake(per_min=2)
    assert brake.wait_s("e0", 0.0) == 0
    assert brake.wait_s("e0", 10.0) == 0
    assert brake.wait_s("e0", 20.0) == 40.0
    assert brake.wait_s("e1", 20.0) == 0
    assert brake.wait_s("e0", 60.0) == 0
    assert brake.wait_s("e0", 61.0) == 9.0


def test_a_wait_counts_for_nothing() -> None:
    """Only what begins uses up the budget."""
    brake = Brake(per_min=1)
    brake.wait_s("e0", 0.0)
    for second in range(1, 60):
        assert brake.wait_s("e0", float(second)) > 0
    assert brake.wait_s("e0", 60.0) == 0


def test_instances_that_are_gone_are_forgotten() -> None:
    """Names come and go for months."""
    brake = Brake(per_min=1)
    brake.wait_s("e0", 0.0)
    brake.wait_s("e1", 0.0)
    brake.forget_others({"e1"})
    assert brake.wait_s("e0", 1.0) == 0
    assert brake.wait_s("e1", 1.0) > 0
