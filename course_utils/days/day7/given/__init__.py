"""What a grading kernel gets of day 7: what its checks try. No answers."""
