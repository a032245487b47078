"""The answers of day 9."""
