"""`centgate doctor`: checks of this deployment's settings against its environment."""
