"""The services as MCP tools: over HTTP on the API, over stdio on the buyer's machine."""
