"""The overview: what needs attention, and a card or a line for each metric.

`filters.py` says which metrics are asked for, `listing.py` in which order; `summary.py` what is
said of one and why it needs somebody, with its change and its findings in `week.py`. `cache.py`
keeps the summaries, and `page.py` writes the page.
"""
