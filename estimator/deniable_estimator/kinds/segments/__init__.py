"""Segments: an answer for each part of the crowd."""
