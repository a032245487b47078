"""The answers of day 5."""
