"""Read-only links: each opens one view until its last day, or until somebody revokes it.

`links.py` keeps them, `opening.py` says what can be shared and lets a link in, and `share_pages.py`
makes, lists and revokes links. Templates leave out what leads elsewhere.
"""
