"""Processes that are killed at a chosen line of the code under test."""

import os
import signal
import sys

SECONDS = 30
"""After these a child is ended, so that no test waits for it for ever."""


def in_a_child(work):
    """Runs `work` in a process of its own; how it ended."""
    child = os.fork()
    if not child:
        signal.alarm(SECONDS)
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_at(line, files):
    """This process is killed when it comes to the `line`th line of these files' code."""
    left = [line]

    def trace(frame, event, argument):
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
