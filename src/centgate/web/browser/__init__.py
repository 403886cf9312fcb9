"""Browser for pages that are built by their scripts, restricted to the URLs that may be fetched."""
