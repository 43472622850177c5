"""What is done to a store besides folding: dropping, exporting, importing, merging tallies."""
