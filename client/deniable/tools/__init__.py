"""What developers run: the `deniable` command of this package."""
