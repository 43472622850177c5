"""Boards: pages of chosen charts, each declared in a TOML file of one folder.

`file.py` reads and checks them, `drawing.py` calculates the charts, and `pages.py` shows them.
"""
