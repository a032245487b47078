"""The answers of day 4."""
