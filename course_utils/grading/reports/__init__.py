"""Grades as files and on the screen, for programs, gradebooks, students and teachers."""
