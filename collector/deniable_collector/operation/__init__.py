"""What an operator sees of a collector at work: its events, its log, its metrics."""
