"""The rules and the brakes on one page."""

from .conftest import HOSTILE, Office


async def test_brakes_and_rules_are_shown(office: Office) -> None:
    """The newest rules, and the way to take the brake off."""
    text = (await office.client.get("/policy")).text
    for part in ("fleet brake", "action=reset_brake", "v-1", "Suspected model version"):
        assert part in text
    assert HOSTILE not in text


async def test_a_version_that_is_none_is_told(office: Office) -> None:
    """And an empty database is no fault."""
    assert (await office.client.get("/policy?version=v-9")).status == 404
    office.store.tables["policy_versions_v1"] = []
    assert (await office.client.get("/policy")).status == 200


async def test_a_viewer_gets_no_buttons(office: Office) -> None:
    """They would lead nowhere."""
    await office.client.sign_in("token-of-bob")
    assert "/actions?" not in (await office.client.get("/policy")).text
