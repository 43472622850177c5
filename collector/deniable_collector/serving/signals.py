"""The signals that end a worker of gunicorn, from its fork on.

Until a new worker listens to signals, it has the master's handler for them, which would swallow
one. So they are held back from the fork until then.
"""

from __future__ import annotations

import os
from signal import SIG_BLOCK, SIG_UNBLOCK, SIGINT, SIGQUIT, SIGTERM, pthread_sigmask
from typing import Any

ENDING = (SIGTERM, SIGINT, SIGQUIT)


def pre_fork(server: Any, worker: Any) -> None:
    """gunicorn's hook: hold them back."""
    pthread_sigmask(SIG_BLOCK, ENDING)


def release() -> None:
    """Let those come that were held back."""
    pthread_sigmask(SIG_UNBLOCK, ENDING)


os.register_at_fork(after_in_parent=release)
