"""What a grading kernel gets of day 1: what its checks try. No answers."""
