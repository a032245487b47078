"""Commands for a learner who works alone: fresh exercises, and the newest edition of the course."""
