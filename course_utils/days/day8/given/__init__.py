"""The test inputs of day 8, the only part of it that a grading kernel imports; no answers."""
