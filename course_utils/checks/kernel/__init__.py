"""What a grading kernel gets of the checks: evidence, and no answers."""
