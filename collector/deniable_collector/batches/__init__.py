"""Batches: decoding their bytes, validating each report, and adding them up."""
