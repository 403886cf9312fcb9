"""JSON-RPC client over several nodes of a chain, and the classification of their errors."""
