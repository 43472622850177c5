"""Two closed lists at once: what a tally over the cells of their joint table says of both."""
