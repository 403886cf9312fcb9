"""Search index of sites that the operator chooses: words, passages, pages, and the state of its crawl."""
