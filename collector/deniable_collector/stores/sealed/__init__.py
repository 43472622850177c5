"""Sealed windows: how a block is coded, and where it is kept."""
