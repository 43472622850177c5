"""What an operator sees of a running collector: its events, its log, its metrics."""
