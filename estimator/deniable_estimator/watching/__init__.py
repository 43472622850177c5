"""Tells people what changed in a store: `deniable watch` at once, its digest each week."""
