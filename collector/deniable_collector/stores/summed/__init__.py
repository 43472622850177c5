"""Sums of windows over weeks, months and quarters."""
