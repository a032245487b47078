"""What belongs to day 7."""
