"""The answers of day 8."""
