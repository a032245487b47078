"""The `course` command: a thin skin over the rooms of this package, each loaded when its command runs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Attention, from pencil to kernel: build, check and grade the notebooks of the course.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Root = Annotated[Path, typer.Option(help="The course's folder, which holds sources/.", show_default="this folder")]


@app.command()
def build(
    days: Annotated[list[str] | None, typer.Argument(metavar="DAY", help="A number or a name; all if none.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Execute unchanged sources; replace solved exercises, keeping a copy.")
    ] = False,
    fix: Annotated[bool, typer.Option("--fix", help="First rewrite the sources in Jupytext's form.")] = False,
    root: Root = Path(),
) -> None:
    """Execute the sources that changed; write notebooks/, solutions/ and exercises/."""
    from rich.console import Console

    from course_utils.grading import build as building

    console = Console(highlight=False)
    if fix:
        for name in building.fix(root, days or ()):
            console.print(f"rewrote {name}")
    with Console(stderr=True).status("reading the sources") as status:

        def show(name: str, cell: int, cells: int) -> None:
            status.update(f"{name}: cell {cell} of {cells}")

        report = building.build(root, days or (), force, show)
    for name in report.written:
        console.print(f"wrote {name}")
    console.print(f"{len(report.written)} written, {len(report.unchanged)} unchanged")


@app.command()
def check(root: Root = Path()) -> None:
    """Verify, without executing, that sources, notebooks, solutions and exercises agree."""
    from course_utils.grading import build as building

    disagreements = building.check(root)
    for line in disagreements:
        print(line)
    if disagreements:
        raise typer.Exit(1)
    print("sources, notebooks, solutions and exercises agree")


@app.command()
def grade(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Notebooks, folders or zips of them; they are only read."),
    ] = None,
    day: Annotated[
        int | None, typer.Option(help="The day they belong to.", show_default="as their names or cells say")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for grades, reports and feedback; a run that was stopped goes on there.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Processes that grade.", min=1, show_default="one a processor")
    ] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Grade on a Dask cluster: tcp://… of its scheduler.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Grade also what did not change since the last time.")] = False,
    fail_under: Annotated[
        float | None, typer.Option(help="Exit with status 1 below this percentage of all points.", min=0, max=100)
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that a cell may work.", min=0.5)] = 10.0,
    deadline: Annotated[float, typer.Option(help="Seconds that a notebook may work.", min=5)] = 300.0,
    bundle: Annotated[Path | None, typer.Option(help="A grader's bundle, as `course release` wrote it.")] = None,
    gradebook: Annotated[
        Path | None, typer.Option(metavar="CSV", help="A gradebook that Canvas or Moodle exported, to be filled in.")
    ] = None,
    require_confinement: Annotated[
        bool, typer.Option("--require-confinement", help="Grade only where student code can be confined fully.")
    ] = False,
    cold: Annotated[bool, typer.Option("--cold", help="Start each kernel afresh; slower, same grades.")] = False,
    reset: Annotated[
        int | None, typer.Option(metavar="DAY", help="Grade nothing: give fresh exercises, keep the old ones.")
    ] = None,
) -> None:
    """Grade notebooks with nbval: scores, and what each answer that fails should look at."""
    if reset is not None:
        _reset(reset, paths)
        return
    if not paths:
        raise typer.BadParameter("give the notebooks to grade")
    from rich.console import Console
    from rich.markup import escape

    from course_utils.grading import progress as own_progress
    from course_utils.grading.classroom import cores
    from course_utils.grading.collect import collect
    from course_utils.grading.confinement import open_kernels
    from course_utils.grading.errors import CourseError
    from course_utils.grading.grade import Settings
    from course_utils.grading.kernel import Limits, Start
    from course_utils.grading.official import COURSE, Official
    from course_utils.grading.report import open_folder, write_gradebook, write_reports
    from course_utils.grading.watch import MOST_TABLES, watch_class

    official = Official(bundle) if bundle else COURSE
    if bundle and not official.days():
        raise CourseError(f"{bundle}: not a grader's bundle; give the folder `grader` that `course release` wrote")
    if gradebook and not out:
        raise typer.BadParameter("--gradebook needs --out, the folder for the one that is filled in")
    for path in [*(path for path in paths if path.suffix.lower() == ".zip"), *([gradebook] if gradebook else [])]:
        if not path.exists():
            raise CourseError(f"{path}: no such file")
    start = Start("full" if require_confinement else "best", warm=not cold)
    if require_confinement and cold and not dask:
        open_kernels("full", warm=False).close()  # raises here, not for each kernel
    settings = Settings(official, Limits(cell_seconds=timeout), deadline, start)
    if day is not None:
        official.path(day)  # raises where there is no such day
    if out:
        open_folder(out)
    with Console(stderr=True).status("reading the submissions") as status:
        submissions = collect(paths, day, lambda student: status.update(f"reading what {escape(student)} handed in"))
    places = [each.path for each in submissions]
    own = own_progress.own_exercises(places, out) if out else {}
    alone = out is not None and not bundle and not gradebook and own_progress.is_alone(places, out)
    for note in submissions.notes:
        print(f"course: {note}", file=sys.stderr)
    if not submissions:
        raise CourseError(f"{' '.join(map(str, paths))}: no notebooks there")
    one_by_one = all(path.suffix.lower() != ".zip" and not path.is_dir() for path in paths)
    tables = one_by_one and len(submissions) <= MOST_TABLES
    try:
        result = watch_class(submissions, settings, tables, out=out, jobs=jobs or cores(), dask=dask, again=again)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    graded = result.graded
    if result.confinement and not result.confinement.full:
        print(f"course: {result.confinement}", file=sys.stderr)
    if out:
        write_reports(graded, out, notes=result.notes, official=official, alone=alone)
        print(f"reports are in {out}")
        if gradebook:
            _tell_filled(write_gradebook(gradebook, graded, out, official=official), out)
        if said := own_progress.note_progress(graded, own, out):
            print(f"course: {said}", file=sys.stderr)
        if alone:
            own_progress.show_outcome(graded, out, Console(highlight=False))
    unreadable = [submission for submission in graded if submission.status == "unreadable"]
    if one_by_one and unreadable:  # in a class it is a result like others
        for submission in unreadable:
            print(f"course: {submission.message}", file=sys.stderr)
        raise typer.Exit(2)
    full = sum(submission.max_score for submission in graded)
    reached = sum(submission.score for submission in graded)
    if fail_under is not None and not 100 * reached >= fail_under * full:
        print(f"course: {reached:g} of {full:g} points, below {fail_under:g} %", file=sys.stderr)
        raise typer.Exit(1)


@app.command()
def progress(root: Root = Path()) -> None:
    """Show what of the exercises is done, as the last grading of each notebook in exercises/ says."""
    from rich.console import Console

    from course_utils.grading.progress import show_progress

    show_progress(root, Console(highlight=False))


@app.command()
def update(root: Root = Path()) -> None:
    """Bring the newest edition of the course with git; what you wrote is kept, and your answers go into it."""
    from course_utils.grading.update import update as bring

    done = bring(root)
    if not done.files:
        print("this is the newest edition")
        return
    for each in done.merged:
        _tell_merged(each)
    print(f"the newest edition is here: {done.files} {'file is' if done.files == 1 else 'files are'} new or changed")
    if done.packages:
        print("the packages may be others too: the next make sets them up")
    print("If JupyterLab is open, stop it and start it again.")


@app.command()
def release(
    out: Annotated[Path, typer.Option(help="Folder for the student's edition and the grader's bundle.")],
    days: Annotated[str, typer.Option(metavar="1,2,…", help="The days to release.", show_default="all")] = "",
    secret_file: Annotated[
        Path | None, typer.Option(help="A file with 16 bytes or more: a class's hidden inputs come from it.")
    ] = None,
) -> None:
    """Write the edition that a class gets, without answers, and the bundle that grades it."""
    from rich.console import Console

    from course_utils.grading import class_release

    numbers = [part.strip() for part in days.split(",") if part.strip()]
    if not all(part.isdecimal() for part in numbers):
        raise typer.BadParameter(f"--days is {days!r}; give numbers, as in --days 1,2")
    secret, warning = class_release.read_secret(secret_file) if secret_file else (None, "")
    with Console(stderr=True).status("reading") as status:
        done = class_release.release(out, map(int, numbers), secret, status.update)
    print(f"days {', '.join(map(str, done.days))}: {out}/student.zip is for students, {out}/grader.zip for you alone")
    print(f"no answer is in the student's edition; {done.shared} lines of answers are also lines of lessons")
    if warning:
        print(f"course: {warning}", file=sys.stderr)
    if not done.keyed:
        print("course: hidden inputs are those of the public course; --secret-file makes others", file=sys.stderr)


def _tell_filled(filled, out: Path) -> None:
    """What became of an exported gradebook."""
    print(f"{out}/gradebook.csv: {filled.matched} students filled in")
    for student in filled.unmatched:
        print(f"course: {student} is not in the gradebook", file=sys.stderr)
    for note in filled.notes:
        print(f"course: {note}", file=sys.stderr)


def _tell_merged(merged) -> None:
    """What became of a file that the learner and the new edition changed."""
    if merged.kept:
        now = "no longer in the course" if merged.gone else "the new edition's"
        answers = f" with {merged.answers} of your answers" if merged.answers else ""
        print(f"{merged.name} is {now}{answers}; yours is {merged.kept}")
    if merged.lost:
        print(f"course: {merged.name} no longer asks {', '.join(merged.lost)}", file=sys.stderr)


def _reset(day: int, paths: list[Path] | None) -> None:
    """`course grade --reset DAY`."""
    if paths:
        raise typer.BadParameter("--reset grades nothing: leave the notebooks out")
    from course_utils.grading.reset import reset_exercise

    fresh, kept = reset_exercise(Path(), day)
    where = f"the one you had is {kept}" if kept else "nothing of yours was in it"
    print(f"{fresh} is fresh; {where}. If it is open in JupyterLab, choose File > Reload Notebook from Disk.")


def main() -> None:
    """The console script: expected errors are one line on stderr and exit status 2."""
    from course_utils.grading.errors import CourseError

    try:
        sys.exit(app(prog_name="course", standalone_mode=False))
    except (CourseError, OSError) as error:
        print(f"course: {error}", file=sys.stderr)
    except typer.Abort:
        print("course: stopped", file=sys.stderr)
    except Exception as error:
        if not hasattr(error, "format_message"):  # what typer says of a wrong option or argument
            raise
        print(f"course: {error.format_message()}", file=sys.stderr)
    sys.exit(2)
