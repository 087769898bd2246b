"""Who may judge whom."""

from datetime import timedelta

from tests.unit.shadow.parts import instance, sample_of, table

from gatemesh_common.messages import InstanceState
from gatemesh_shadow.fleet import Fleet, least_busy


def names(found: tuple[object, ...]) -> list[str]:
    """Instance names."""
    return [str(getattr(one, "instance_id", "")) for one in found]


def test_the_accused_never_judges() -> None:
    """Nor one that is doubted, out of rotation, or of another model version."""
    fleet = Fleet()
    fleet.hear(
        table(
            instance("engine-1"),
            instance("engine-2"),
            instance("engine-3", state=InstanceState.SUSPECT),
            instance("engine-4", state=InstanceState.PROBATION),
            instance("engine-5", weight=0.0),
            instance("engine-6", model_version="m2"),
        )
    )
    assert names(fleet.judges(sample_of())) == ["engine-2"]
    assert names(fleet.judges(sample_of(), ["engine-2"])) == []
    assert names(fleet.judges(sample_of(model_version="m2"))) == ["engine-6"]


def test_an_unknown_pool_has_no_judges() -> None:
    """Before the first table, or of another pool."""
    fleet = Fleet()
    assert fleet.judges(sample_of()) == ()
    fleet.hear(table(instance("engine-2")))
    assert fleet.judges(sample_of(pool="other")) == ()


def test_older_tables_are_ignored() -> None:
    """Messages may overtake each other."""
    fleet = Fleet()
    assert fleet.heard_s == float("-inf")
    assert fleet.hear(table(instance("engine-2"), version=5), 7.0)
    assert not fleet.hear(table(version=4), 9.0)
    assert fleet.heard_s == 9.0
    assert names(fleet.healthy("default")) == ["engine-2"]
    assert fleet.pools == ("default",)


def test_a_database_that_began_anew_is_followed() -> None:
    """Its versions are lower, and younger by more than messages overtake each other."""
    fleet = Fleet()
    first = table(instance("engine-2"), version=2**62)
    anew = {"version": 1, "timestamp": first.timestamp + timedelta(seconds=11)}
    assert fleet.hear(first)
    assert fleet.hear(table(instance("engine-3")).model_copy(update=anew))
    assert names(fleet.healthy("default")) == ["engine-3"]


def test_healthy_means_the_same_life() -> None:
    """A sample of an earlier life teaches nothing about this one."""
    fleet = Fleet()
    fleet.hear(table(instance("engine-1")))
    assert fleet.is_healthy(sample_of())
    assert fleet.is_healthy(sample_of(incarnation=None))
    assert not fleet.is_healthy(sample_of(incarnation=2))


def test_the_life_of_a_sample() -> None:
    """While clients are sent there; doubted or not."""
    fleet = Fleet()
    assert fleet.life_of(sample_of()) is None
    fleet.hear(table(instance("engine-1", state=InstanceState.SUSPECT)))
    found = fleet.life_of(sample_of(incarnation=None))
    assert found is not None
    assert found.instance_id == "engine-1"
    assert fleet.life_of(sample_of()) is found
    assert fleet.life_of(sample_of(incarnation=2)) is None
    assert fleet.life_of(sample_of(instance_id="engine-2")) is None
    fleet.hear(table(instance("engine-1", weight=0.0), version=2))
    assert fleet.life_of(sample_of()) is None


def test_model_version_of_a_sample() -> None:
    """Its own word counts, then the table's."""
    fleet = Fleet()
    assert fleet.model_version(sample_of()) is None
    fleet.hear(table(instance("engine-1", model_version="m7")))
    assert fleet.model_version(sample_of()) == "m7"
    assert fleet.model_version(sample_of(model_version="m8")) == "m8"


def test_versions() -> None:
    """Groups that can be compared."""
    fleet = Fleet()
    fleet.hear(table(instance("a"), instance("b", model_version="m2"), instance("c")))
    assert {one: names(found) for one, found in fleet.versions("default").items()} == {
        "m1": ["a", "c"],
        "m2": ["b"],
    }


def test_least_busy() -> None:
    """Of equals the one longest not asked; none of none."""
    one, other = instance("a"), instance("b")
    assert least_busy([one, other], {"a": 1}, {}) is other
    assert least_busy([one, other], {}, {"a": 5, "b": 4}) is other
    assert least_busy([], {}, {}) is None
