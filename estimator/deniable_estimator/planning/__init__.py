"""What a metric will detect, before it is declared, and the crowds that simulation draws."""
