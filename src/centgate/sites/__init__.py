"""What a site says of its own pages: robots.txt, sitemaps, and the links of one page."""
