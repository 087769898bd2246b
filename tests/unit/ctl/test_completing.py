"""What the shell offers."""

from pathlib import Path

import pytest

from gatemesh_ctl import completing
from gatemesh_ctl.actions import ACTIONS


def test_actions_are_known_without_a_database() -> None:
    """In the order of the manual."""
    assert completing.action_names("re") == [it for it in ACTIONS if it.startswith("re")]
    assert completing.action_names("x") == []


@pytest.mark.parametrize(
    "offer", [completing.instance_names, completing.pool_names, completing.incident_ids]
)
def test_a_database_that_is_away_offers_nothing(
    offer: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An error on the command line being typed would help nobody."""
    assert callable(offer)
    monkeypatch.setenv("GATEMESH_STATE", str(tmp_path))
    monkeypatch.delenv("GATEMESH_DATABASE_URL", raising=False)
    assert offer("e") == []
    monkeypatch.setenv("GATEMESH_DATABASE_URL", "postgresql://u:p@127.0.0.1:1/d")
    assert offer("e") == []
