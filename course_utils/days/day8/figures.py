"""The drawings of day 8."""
