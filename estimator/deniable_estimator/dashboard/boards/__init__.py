"""Boards: pages of chosen charts, each declared in a TOML file of one folder.

`definition.py` reads and checks them, and `pages.py` calculates the charts and shows them.
"""
