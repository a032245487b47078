"""The exercises of each day that are answered on its page, because they need no PyTorch: {day: [grade_id, …]}."""

from course_utils.course import DAYS, SOLUTIONS
from course_utils.notebooks import read_notebook
from course_utils.site.exercise_pages import answers_of

BOOKS = {day.number: read_notebook(path)[0] for day in DAYS if (path := day.notebook(SOLUTIONS))}
WITHOUT_TORCH = {day: [answer.grade_id for answer in answers_of(day, book)] for day, book in BOOKS.items()}
