"""Replace an exercise notebook that somebody worked in by a fresh one, and keep the old one."""

from __future__ import annotations

from pathlib import Path

from course_utils.answer_key.strip_answers import release_exercise
from course_utils.course import folder_advice
from course_utils.errors import CourseError
from course_utils.files import keep_copy, write_all
from course_utils.notebooks import dump, read_notebook
from course_utils.progress import notebook_name


def reset_exercise(root: Path, day: int) -> tuple[Path, Path | None]:
    """Write the fresh exercises of a day into exercises/, and keep the notebook that was there in exercises/kept/.

    Returns:
        the path of the fresh notebook, and that of the kept one, None when there was none or nothing was written in it.

    Raises:
        CourseError: there is no solution to make the exercises from, or a file cannot be written. The notebook is then
            as it was.
    """
    name = notebook_name(root, day)
    if not name:
        raise CourseError(f"no exercises for day {day}: there is none in {root.resolve()}; {folder_advice()}")
    target = root / "exercises" / f"{name}.ipynb"
    fresh = _fresh(root, name)
    for path in (target, target.parent / "kept"):
        if path.is_symlink():
            raise CourseError(f"{path}: a symbolic link, which a reset does not touch; move it away")
    copy = None
    if target.exists():
        if target.read_bytes() == fresh.encode():
            return target, None
        copy = keep_copy(target)
    write_all({target: fresh})
    return target, copy


def _fresh(root: Path, name: str) -> str:
    """Return the text of a day's fresh exercise notebook, cut from the solution."""
    solution, trouble = read_notebook(root / "solutions" / f"{name}.ipynb")
    if solution is None:
        raise CourseError(
            f"solutions/{name}.ipynb: {trouble}, and fresh exercises are cut from it; take it from where the course "
            "came from"
        )
    return dump(release_exercise(solution))
