"""Maintenance of a store: dropping, exporting, importing and merging tallies."""
