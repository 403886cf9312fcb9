"""Lookups that need several calls or providers, with their order and fallbacks."""
