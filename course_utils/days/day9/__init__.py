"""What belongs to day 9."""
