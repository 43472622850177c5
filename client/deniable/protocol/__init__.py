"""What devices and servers agree on: registry, mechanisms, windows and the wire format."""

__version__ = "0.1.0"
