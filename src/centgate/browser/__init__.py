"""A browser for pages that are made by their scripts, which reaches only what may be fetched."""
