"""Python's garbage collector in the processes of servers."""

import gc

from deniable_collector.serving.worker import collect_seldom


def test_what_there_is_is_not_scanned_again():
    """What was made before is never scanned again, and what is new after more than Python's own
    number of objects."""
    frozen, usual = gc.get_freeze_count(), gc.get_threshold()
    try:
        collect_seldom()
        assert gc.get_freeze_count() > frozen
        assert gc.get_threshold()[0] > usual[0]
        ring = []
        ring.append(ring)
        del ring
        assert gc.collect() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*usual)
