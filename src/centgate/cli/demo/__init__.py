"""`make demo`: a buyer's first calls with real requests on a development chain; each step is verified."""
