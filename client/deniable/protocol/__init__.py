"""What devices and servers agree on: registry, mechanisms, windows and the wire format."""
