"""A chain, a token and a facilitator to pay on without real money, for development and tests."""
