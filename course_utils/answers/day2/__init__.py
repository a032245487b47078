"""The answers of day 2."""
