"""Asking where operators are named: what the command line tells of roles and weights."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from .conftest import CommandLine, ObedientExecutor
from .test_ctl import until_known

pytestmark = pytest.mark.integration

POLICY = """
[roles.weigher]
actions = ["set_weight", "roll_back"]
[operators]
"{user}" = ["weigher"]
"""


@pytest.fixture
def policy_file(tmp_path: Path, vhost_url: str) -> Path:
    """Return rules by which the user of this test may lower weights, and roll back."""
    path = tmp_path / "policy.toml"
    path.write_text(POLICY.format(user=unquote(str(urlsplit(vhost_url).username))))
    return path


async def test_requests_are_followed_within_the_role(
    ctl: CommandLine, executor: ObedientExecutor, vhost_url: str
) -> None:
    """The command line proves who asks; what is refused is told, with or without waiting."""
    await until_known(ctl, 2)
    tried = await ctl.call("request", "set_weight", "engine-0", "--weight", "0.2", "--dry-run")
    assert tried.code == 0
    assert "it would: engine-0: weight 0 -> 0, at most 0.2" in tried.out
    done = await ctl.call("request", "set_weight", "engine-0", "--weight", "0.2", "--wait")
    assert done.code == 0, done.out
    assert "done: weight at most 0.2" in done.out
    [row, _] = (await ctl.call("instances", "--json")).json
    assert row["weight_ceiling"] == 0.2

    for words in (("--wait",), ("--dry-run",)):
        refused = await ctl.call("request", "drain", "engine-0", *words)
        assert refused.code == 1
        assert "refused: not authorised: " in refused.out
        assert "has the roles weigher, none for drain in pool 'chat'" in refused.out
    rows = (await ctl.call("requests", "--instance", "engine-0", "--json")).json
    asked = [(one["action"], one["outcome"], one["dry_run"]) for one in rows]
    assert asked == [
        ("set_weight", "accepted", True),
        ("set_weight", "accepted", False),
        ("drain", "refused", False),
        ("drain", "refused", True),
    ]
    assert {one["user_id"] for one in rows} == {unquote(str(urlsplit(vhost_url).username))}
    assert (await ctl.call("commands", "--json")).json == []


async def test_a_pool_without_a_new_version_is_not_rolled_back(
    ctl: CommandLine, executor: ObedientExecutor
) -> None:
    """The refusal says what may be named."""
    await until_known(ctl, 2)
    refused = await ctl.call("request", "roll_back", "--pool", "chat", "--wait", "--wait-s", "20")
    assert refused.code == 1
    assert "no change of the model version was seen here; name the one to leave" in refused.out
