"""The operator's console: revenue, payments, providers and findings of a deployment, in a browser."""
