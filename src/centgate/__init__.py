"""Centgate: facts for software agents at one cent a call, paid by x402."""
