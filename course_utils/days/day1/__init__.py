"""What belongs to day 1."""
