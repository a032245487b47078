"""Hostile submissions, each with the grade that it deserves."""
