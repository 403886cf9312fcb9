"""`make demo`: a buyer's first calls, for real, on a development chain; each step is checked."""
