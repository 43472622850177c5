"""A load for a collector of one's own."""
