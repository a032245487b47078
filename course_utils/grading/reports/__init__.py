"""Write and print grades, for programs, gradebooks, students and teachers."""
