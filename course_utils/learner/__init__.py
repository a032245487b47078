"""What a learner alone may want of the course: fresh exercises, and its newest edition."""
