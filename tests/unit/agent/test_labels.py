"""Labels of an instance are those of all, and its own."""

import pytest

from gatemesh_agent.labels import labels_at, labels_of
from gatemesh_common.captures import MOST_LABELS


def test_an_instance_s_own_labels_go_before_those_of_all() -> None:
    """A name may have dots."""
    labels = labels_of({"host": "h1", "a.b.gpu": "7", "a.b.host": "h2", "c.gpu": "8"})
    assert labels_at(labels, "a.b") == {"host": "h2", "gpu": "7"}
    assert labels_at(labels, "c") == {"host": "h1", "gpu": "8"}
    assert labels_at(labels, "other") == {"host": "h1"}


def test_more_than_a_capture_carries_is_refused_at_the_start() -> None:
    """And not at each fault, which would leave no capture at all."""
    of_all = {f"l{n}": "x" for n in range(MOST_LABELS - 1)}
    assert len(labels_at(labels_of(of_all | {"e.gpu": "1"}), "e")) == MOST_LABELS
    with pytest.raises(ValueError, match=f"e has {MOST_LABELS + 1} labels; a capture carries"):
        labels_of(of_all | {"e.gpu": "1", "e.rack": "2"})
    with pytest.raises(ValueError, match=f"all instances have {MOST_LABELS + 1} labels"):
        labels_of(of_all | {"more": "1", "most": "2"})
