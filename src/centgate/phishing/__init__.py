"""Phishing detection with a list in memory; verdicts need no network."""
