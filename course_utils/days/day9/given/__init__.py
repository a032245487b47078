"""The test inputs of day 9, the only part of it that a grading kernel imports; no answers."""
