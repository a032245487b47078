"""Import paths that notebooks of editions up to 0.2.1 use for what now lies in `course_utils.days`."""
