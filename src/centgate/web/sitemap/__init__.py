"""Discovery of a site's pages: robots.txt, sitemaps, and the links of one page."""
