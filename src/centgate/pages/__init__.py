"""Pages of the web: what is in them, in our words."""
