"""Tells people what changed in a store: `deniable watch` at once, `deniable digest` each week."""
