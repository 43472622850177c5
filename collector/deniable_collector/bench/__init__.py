"""Load tests for your own collector."""
