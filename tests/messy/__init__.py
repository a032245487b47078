"""Notebooks as messy as students hand them in, and what they deserve."""
