"""The answers of day 1."""
