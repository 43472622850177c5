"""Tallies in one SQLite file."""
