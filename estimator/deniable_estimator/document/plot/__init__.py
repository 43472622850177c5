"""The one place that draws: a chart is described as data, and the same function draws it on a page
and as a picture of its own.

`marks.py` has the data of bars, lines with bands, columns, cells and dots; `scales.py` says where
numbers and dates lie; `lines.py` makes paths; `drawing.py` draws with one of the two of `pens.py`;
`parts.py` has small drawings and the frame of a picture.
"""
