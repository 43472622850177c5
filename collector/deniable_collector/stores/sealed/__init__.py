"""Sealed windows: what a block is, and how its counters are coded."""
