"""Implementations, right and wrong, on which a learner's own test is tried: what a duel is fought with.

The test is a function that gets one of them, calls it as often as it likes, and tells whether it is right. These are
those that a learner meets in the notebook. Grading adds others, `course_utils.checks.answers.unseen`, which lie with
the answers. All derive from what the lessons show, so they give no exercise away.
"""
