"""Day 10: points, references and known mistakes."""

from course_utils.checks.judge.exercise import Exercise, Mistake

DOUBLE_MISTAKES = (
    Mistake("squared", lambda number: number**2, "This is the square. Twice a number is 2 * number."),
    Mistake("half", lambda number: number / 2, "This is half of it. Multiply by 2."),
    Mistake("unchanged", lambda number: number, "This is the number itself. Add it once more."),
    Mistake("two_more", lambda number: number + 2, "This is the number and 2. Multiply by 2."),
    Mistake("three_times", lambda number: 3 * number, "This is three times the number. Add it to itself once."),
)
EXERCISES = {"double": Exercise(2, {"double": lambda number: 2 * number}, DOUBLE_MISTAKES)}
