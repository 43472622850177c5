"""Who may see what: tokens, people with roles, sessions, and the scopes of the read API.

The dashboard's token opens everything. People sign in with tokens of their own, or a reverse proxy
names them (`trust.py`); `people.py` says who they are and what each role may do. Tokens of the read
API (`tokens.py`) open what their scopes name, and no page.
"""
