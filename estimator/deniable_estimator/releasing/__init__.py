"""Releases: numbers for the world, exact or with noise, with a manifest, a ledger and a budget."""
