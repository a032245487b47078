"""What a grading kernel gets of day 2: what its checks try. No answers."""
