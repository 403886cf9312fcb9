"""The services as MCP tools: over HTTP on the API server, over stdio on the buyer's machine."""
