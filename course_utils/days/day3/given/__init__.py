"""What a grading kernel gets of day 3: what its checks try. No answers."""
