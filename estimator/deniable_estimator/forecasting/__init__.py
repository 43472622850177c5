"""What a crowd will tell of a metric, computed before the first report, without numpy."""
