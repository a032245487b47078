"""The answers of day 7."""
