"""What tallies of numbers say: means, distributions, quantiles, and how far to trust them.

Numbers are positions here, from 0 (`low`) to 2**30 (`high`), or the same stretch as -1 to 1 where
a mean is estimated; a mechanism's `range.value(position)` turns them into units.
"""
