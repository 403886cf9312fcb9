"""`centgate doctor`: this deployment's settings, held against the world."""
