"""Judges what is new in a metric: for `deniable watch`, the digest and the overview."""
