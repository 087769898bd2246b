"""The settings reach what guards traffic."""

from gatemesh_agent.guarding import attribution_terms, guard_bounds
from gatemesh_agent.settings import AgentSettings
from gatemesh_agent.shield import Shield


def test_settings_reach_their_places() -> None:
    """Each one its own."""
    settings = AgentSettings.model_validate(
        {
            "fingerprint_key": "0123456789abcdef",
            "guard": "shield",
            "shield_on": "hard",
            "attribution_wait_s": 0.5,
            "attribution_soft_wait_s": 3,
            "attribution_parallel": 2,
            "attribution_per_minute": 7,
        }
    )
    terms = attribution_terms(settings)
    assert (terms.wait_s, terms.soft_wait_s, terms.at_once, terms.per_minute) == (0.5, 3, 2, 7)
    assert guard_bounds(settings).shield == Shield("shield", "hard")
