"""`deniable init` and `deniable add`: a first metrics.toml, and one more metric in it."""
