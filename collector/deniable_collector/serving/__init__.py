"""Serving one request: who may send, size and time limits, and responses."""
