"""HTTP client for untrusted URLs; all of them are fetched here."""
