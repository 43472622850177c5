"""RAPPOR's own files: decoding them, and making them for simulations."""
