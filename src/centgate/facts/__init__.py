"""Values that providers return and rules evaluate, independent of any vendor."""
