"""Is this address a known trap: a list read once, then verdicts without a network."""
