"""The answers of day 3."""
