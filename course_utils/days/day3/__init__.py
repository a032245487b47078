"""What belongs to day 3."""
