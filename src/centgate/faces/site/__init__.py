"""The website: what an API says of itself, for people to read and for agents to find."""
