"""The part of the checks that a grading kernel imports: it gathers evidence and holds no answers."""
