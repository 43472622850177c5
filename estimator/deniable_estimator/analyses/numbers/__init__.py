"""Numbers: means and distributions, one file for each mechanism."""
