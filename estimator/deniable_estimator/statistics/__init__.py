"""Intervals, tails, significance of lists, normalization, and who may have reported twice."""
