"""Kinds of answers and of plans: a folder for each, and here what all of them have."""
