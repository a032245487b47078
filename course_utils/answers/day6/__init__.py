"""The answers of day 6."""
