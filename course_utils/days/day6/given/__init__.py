"""What a grading kernel gets of day 6: what its checks try. No answers."""
