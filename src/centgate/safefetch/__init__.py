"""The one place from which addresses that strangers give are fetched."""
