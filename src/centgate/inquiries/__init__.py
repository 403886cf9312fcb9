"""Questions that take several calls or providers: who is asked, in which order, and what stands in."""
