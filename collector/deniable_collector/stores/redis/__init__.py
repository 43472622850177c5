"""Tallies in Redis, one server or a cluster."""
