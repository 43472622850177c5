"""The commands that plan metrics, estimate them and publish them."""
