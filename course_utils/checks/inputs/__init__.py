"""Where notebooks of editions up to 0.2.1 import what has moved to `course_utils.days`."""
