"""nbgrader and otter-grader beside the course's own grader: how fast they are, and what a submission can do to them."""
