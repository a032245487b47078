"""What a grading kernel gets of day 5: what its checks try. No answers."""
