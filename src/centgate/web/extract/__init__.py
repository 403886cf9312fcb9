"""Content extraction: web documents as Markdown with metadata."""
