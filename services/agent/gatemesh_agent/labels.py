"""What captures say of the engines' places, such as host and GPU. Pure."""

from collections.abc import Mapping

from gatemesh_common.captures import MOST_LABELS

Labels = Mapping[str, Mapping[str, str]]
"""By instance; those of all instances under an empty name."""


def labels_of(pairs: Mapping[str, str]) -> Labels:
    """Read labels: `host` is of all instances, `engine-0.gpu` of one.

    Raises:
        ValueError: an instance has more than a capture carries.
    """
    found: dict[str, dict[str, str]] = {}
    for name, value in pairs.items():
        instance_id, _, label = name.rpartition(".")
        found.setdefault(instance_id, {})[label] = value
    for instance_id in found:
        count = len(labels_at(found, instance_id))
        if count > MOST_LABELS:
            where = f"{instance_id} has" if instance_id else "all instances have"
            raise ValueError(f"{where} {count} labels; a capture carries {MOST_LABELS} at most")
    return found


def labels_at(labels: Labels, instance_id: str) -> dict[str, str]:
    """Return the labels of an instance, its own before those of all."""
    return {**labels.get("", {}), **labels.get(instance_id, {})}
