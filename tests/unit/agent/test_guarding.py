"""The settings reach what guards traffic."""

from gatemesh_agent.guarding import attribution_terms, guard_bounds, rescue_terms
from gatemesh_agent.rescue.hold import HoldBounds
from gatemesh_agent.rescue.terms import RescueTerms
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
            "rescue_hold_tokens": 9,
            "rescue_hold_ms": 250,
            "rescue_continuations": 1,
            "rescue_per_minute": 30,
            "rescue_tenant_share": 0.2,
            "rescue_stall_s": 4,
            "rescue_media": True,
            "stall_first_s": 50,
            "idle_s": 70,
            "total_s": 900,
        }
    )
    terms = attribution_terms(settings)
    assert (terms.wait_s, terms.soft_wait_s, terms.at_once, terms.per_minute) == (0.5, 3, 2, 7)
    assert rescue_terms(settings) == RescueTerms(
        severity="hard",
        hold=HoldBounds(9, 0.25),
        continuations=1,
        per_minute=30,
        tenant_share=0.2,
        stall_s=4,
        first_s=50,
        idle_s=70,
        total_s=900,
        takes_media=True,
    )
    assert guard_bounds(settings).shield == Shield("shield", "hard")
