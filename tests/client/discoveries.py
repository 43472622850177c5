"""A registry with one discovery."""

from deniable import Registry


def declaration(*lines, lifetime=6.0):
    """The registry's text; `lines` stand at the end of its only metric."""
    return f"""
schema = 1
app = "editor"
[metrics.search]
type = "discovery"
description = "What people search for."
owner = "growth@acme.example"
expires = 2030-06-30
epsilon = 2.0
lifetime_epsilon = {lifetime}
""" + "\n".join(lines)


def declared(*lines, lifetime=6.0):
    """The same, read."""
    return Registry.parse(declaration(*lines, lifetime=lifetime))
