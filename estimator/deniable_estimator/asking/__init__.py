"""What is asked of a store: estimates, comparisons, trends, the history of windows."""
