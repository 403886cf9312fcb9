"""Development chain, token and facilitator for payments without real money, for development and tests."""
