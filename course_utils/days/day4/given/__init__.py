"""What a grading kernel gets of day 4: what its checks try. No answers."""
