"""The exercises that are answered on a page: their cells, and the verdicts on their known mistakes, printed as JSON.

python tests/helpers/page_verdicts.py [--without-torch] [--days 1,2]
"""

import argparse
import json
import sys
from importlib.machinery import PathFinder
from pathlib import Path


def hide_torch():
    """Make Python find no PyTorch from now on, as on a page."""
    find_spec = PathFinder.find_spec

    def without(name, path=None, target=None):
        return None if name.partition(".")[0] == "torch" else find_spec(name, path, target)

    PathFinder.find_spec = staticmethod(without)


def cells_of(day):
    """What everybody is given, the stubs and the answers of a day."""
    from course_utils.answer_key.strip_answers import is_answer
    from course_utils.course import EXERCISES, SOLUTIONS, day_numbered
    from course_utils.notebooks import read_notebook
    from course_utils.site.exercise_pages import given_cells

    books = [read_notebook(day_numbered(day).notebook(folder))[0] for folder in (EXERCISES, SOLUTIONS)]
    stubs, answers = ({cell.id: cell.source for cell in filter(is_answer, book.cells)} for book in books)
    return given_cells(books[0]), stubs, answers


def verdicts(days):
    """{exercise: {mistake: [status, name, message]}}"""
    from without_torch import WITHOUT_TORCH

    from course_utils.checks.judge.exercise_tables import all_exercises
    from course_utils.checks.judge.judge import judge_of
    from course_utils.checks.judge.rungs import evidence_for

    found = {}
    for day in days or WITHOUT_TORCH:
        for grade_id in WITHOUT_TORCH[day]:
            exercise = all_exercises(day)[grade_id]
            answers = {"": exercise.reference}
            for mistake in exercise.mistakes:
                (name, *others) = exercise.reference
                is_mapping = isinstance(mistake.answer, dict)
                if others and not is_mapping:
                    continue
                answers[mistake.name] = mistake.answer if is_mapping else {name: mistake.answer}
            found[f"day{day}/{grade_id}"] = {
                name: verdict_on(judge_of(day, grade_id), evidence_for(day, grade_id, answer))
                for name, answer in answers.items()
            }
    return found


def verdict_on(judge, evidence):
    verdict = judge.judge(evidence)
    return [verdict.status, verdict.mistake, verdict.message]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    parser = argparse.ArgumentParser()
    parser.add_argument("--without-torch", action="store_true")
    parser.add_argument("--days", type=lambda text: [int(day) for day in text.split(",")])
    options = parser.parse_args()
    if options.without_torch:
        hide_torch()
    json.dump(verdicts(options.days), sys.stdout)
