"""Who may see what: tokens, people with roles, sessions, and the scopes of the read API.

The dashboard's token opens everything. People (`people.py`) sign in with tokens of their own, or a
reverse proxy names them (`proxy.py`); `roles.py` says what each role may do. Tokens of the read API
(`tokens.py`) open what their scopes name, and no page.
"""

from deniable_estimator.dashboard.access.caller import (
    allows,
    caller,
    may_read,
    reader_of,
    reads_settled,
    require,
    require_all,
    require_role,
)
from deniable_estimator.dashboard.access.door import guard
from deniable_estimator.dashboard.access.requests import API, for_people, over_tls

__all__ = [
    "API",
    "allows",
    "caller",
    "for_people",
    "guard",
    "may_read",
    "over_tls",
    "reader_of",
    "reads_settled",
    "require",
    "require_all",
    "require_role",
]
