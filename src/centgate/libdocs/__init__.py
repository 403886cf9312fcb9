"""Documentation out of released packages: files into snippets, snippets into an index that answers topics."""
