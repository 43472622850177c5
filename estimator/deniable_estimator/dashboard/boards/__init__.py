"""Boards: pages of chosen charts, each declared in a TOML file of one folder.

`board.py` is a board as data, `file.py` reads and checks its file, `folder.py` keeps those of a
folder, `drawing.py` calculates the charts, and `pages.py` shows them.
"""
