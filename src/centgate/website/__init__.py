"""The website: an API's documentation and discovery files, generated from what the API publishes."""
