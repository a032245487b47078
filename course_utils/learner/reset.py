"""A fresh exercise notebook in place of one that somebody worked in, which is kept."""

from __future__ import annotations

from pathlib import Path

from course_utils.authoring.notebooks import dump, read_notebook
from course_utils.authoring.strip_answers import release_exercise
from course_utils.course import where_it_is
from course_utils.errors import CourseError
from course_utils.files import keep_copy, write_all
from course_utils.progress import notebook_name


def reset_exercise(root: Path, day: int) -> tuple[Path, Path | None]:
    """Put the exercises of a day as they were given into exercises/, and what lay there into exercises/kept/.

    Gives the place of the fresh notebook and of the old one: None when there was none, or nothing was written in it.
    Raises CourseError when there is nothing to make it from, or something cannot be written; the notebook is then as it
    was.
    """
    name = notebook_name(root, day)
    if not name:
        raise CourseError(f"no exercises for day {day}: there is none in {root.resolve()}; {where_it_is()}")
    target = root / "exercises" / f"{name}.ipynb"
    fresh = _fresh(root, name)
    for path in (target, target.parent / "kept"):
        if path.is_symlink():
            raise CourseError(f"{path}: a symbolic link, which --reset leaves alone; move it away")
    kept = None
    if target.exists():
        if target.read_bytes() == fresh.encode():
            return target, None
        kept = keep_copy(target)
    write_all({target: fresh})
    return target, kept


def _fresh(root: Path, name: str) -> str:
    """The text of a day's exercises as they were given, cut from the solution."""
    solution, trouble = read_notebook(root / "solutions" / f"{name}.ipynb")
    if solution is None:
        raise CourseError(
            f"solutions/{name}.ipynb: {trouble}, and fresh exercises are cut from it; take it from where the course "
            "came from"
        )
    return dump(release_exercise(solution))
