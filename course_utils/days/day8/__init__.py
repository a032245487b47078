"""What belongs to day 8."""
