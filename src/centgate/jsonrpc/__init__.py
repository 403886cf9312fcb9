"""JSON-RPC as nodes speak it: several nodes of a chain as one, and what their refusals mean."""
