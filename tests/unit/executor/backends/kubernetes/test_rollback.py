"""Which revision is the one before."""

from typing import Any

import pytest
from tests.unit.executor.conftest import Time

from gatemesh_executor.backends.base import BackendUnavailableError, RollBackNotOfferedError
from gatemesh_executor.backends.kubernetes.api import DEPLOYMENTS, STATEFUL_SETS
from gatemesh_executor.backends.kubernetes.owners import slots
from gatemesh_executor.backends.kubernetes.rollback import (
    Revision,
    of_replica_set,
    present,
    previous,
    roll_back,
)

from .conftest import FakeAnswer, Script, owner_of, status

OWNED = [{"uid": "o1"}]
SLOT = slots(owner_of(), STATEFUL_SETS)[0]


FOUND = [Revision("c", 3, {}), Revision("a", 1, {}), Revision("b", 2, {})]


@pytest.mark.parametrize(("now", "name"), [(0, "b"), (2, "a")])
def test_the_highest_below_the_present_one(now: int, name: str) -> None:
    """In whatever order they are listed."""
    assert previous(FOUND, FOUND[now]).name == name


def test_there_may_be_none() -> None:
    """Nothing is guessed."""
    with pytest.raises(RollBackNotOfferedError, match="earliest"):
        previous(FOUND, FOUND[1])


def test_an_owner_may_not_tell_its_present_revision() -> None:
    """Its history may be shorter than its roll-out."""
    with pytest.raises(RollBackNotOfferedError, match="does not tell"):
        present(FOUND, SLOT, owner_of())


def test_the_deployments_own_label_is_left_out() -> None:
    """It belongs to the ReplicaSet."""
    template = {"metadata": {"labels": {"a": "b", "pod-template-hash": "5"}}, "spec": {"x": 1}}
    item = {
        "metadata": {"name": "r", "annotations": {"deployment.kubernetes.io/revision": "4"}},
        "spec": {"template": template},
    }
    assert of_replica_set(item) == Revision(
        "r", 4, {"$patch": "replace", "metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}
    )


def stateful(**status_: Any) -> dict[str, Any]:
    """Return a StatefulSet whose present revision is the second."""
    owner = owner_of()
    owner["status"] |= {"updateRevision": "r2", **status_}
    return owner


def history() -> FakeAnswer:
    """Return the revisions of it, and one of a stranger."""
    items = [
        {
            "metadata": {"name": f"r{number}", "ownerReferences": references},
            "revision": number,
            "data": {"spec": {"template": {"version": number}}},
        }
        for number, references in ((1, OWNED), (2, OWNED), (3, [{"uid": "other"}]))
    ]
    return FakeAnswer(200, {"items": items, "metadata": {"resourceVersion": "9"}})


async def test_a_conflict_is_read_again() -> None:
    """The patch names the version it is about."""
    owner = FakeAnswer(200, stateful())
    script = Script([owner, history(), status(409), owner, history(), FakeAnswer(200, {})])
    assert await roll_back(script.api, SLOT, Time().pace) == "r1"
    assert script.calls[-1].body == {
        "metadata": {
            "resourceVersion": "3",
            "annotations": {"gatemesh.io/rolled-back-to": "r1"},
        },
        "spec": {"template": {"version": 1, "$patch": "replace"}},
    }


async def test_an_owner_that_is_about_to_change_is_waited_for() -> None:
    """Its status still tells the revision before."""
    old, new = stateful(observedGeneration=0), stateful()
    answers = [FakeAnswer(200, old), FakeAnswer(200, new), history(), FakeAnswer(200, {})]
    assert await roll_back(Script(list(answers)).api, SLOT, Time().pace) == "r1"


async def test_but_not_for_ever() -> None:
    """Its controller may be down; the command is tried again."""
    script = Script([FakeAnswer(200, stateful(observedGeneration=0)) for _ in range(1000)])
    with pytest.raises(BackendUnavailableError, match="about to change"):
        await roll_back(script.api, SLOT, Time().pace)


async def test_an_owner_that_is_gone_has_no_past() -> None:
    """No retry would mend it."""
    slot = slots(owner_of(replicas=1), DEPLOYMENTS)[0]
    with pytest.raises(RollBackNotOfferedError, match="gone"):
        await roll_back(Script([status(404)]).api, slot, Time().pace)


async def test_asked_again_it_goes_no_further_back() -> None:
    """Neither for the same instance nor for another one of the owner."""
    owner = stateful()
    owner["metadata"]["annotations"] = {"gatemesh.io/rolled-back-to": "r2"}
    script = Script([FakeAnswer(200, owner), history()])
    assert await roll_back(script.api, SLOT, Time().pace) == "r2"
    assert [call.verb for call in script.calls] == ["get", "list"]
