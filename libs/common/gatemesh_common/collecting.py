"""Collecting garbage less often: a whole collection stops everything for 50 to 250 ms."""

import gc

COLLECT_AFTER = (50_000, 20, 20)


def collect_rarely() -> None:
    """Leave out what is there for good, and look at the rest less often.

    Messages and JSON make hundreds of objects each, and no cycles. Call it once everything is
    imported.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
