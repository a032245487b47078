"""What belongs to day 2."""
