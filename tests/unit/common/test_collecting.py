"""A service's start leaves the collector little to do."""

import gc

from gatemesh_common.collecting import COLLECT_AFTER, collect_rarely


def test_what_is_there_is_left_out() -> None:
    """And what comes is looked at less often."""
    before = gc.get_threshold()
    try:
        collect_rarely()
        assert gc.get_threshold() == COLLECT_AFTER
        assert gc.get_freeze_count() > len(gc.get_objects(generation=2))
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
