"""What is known, in our words: what providers tell and verdicts judge, whichever upstream it came from."""
