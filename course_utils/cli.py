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
    paths: Annotated[list[Path], typer.Argument(metavar="NOTEBOOK", help="Notebooks to grade; they are only read.")],
    day: Annotated[
        int | None, typer.Option(help="The day they belong to.", show_default="as their names or cells say")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for grades.json, .csv, junit.xml and summary.md.")] = None,
    fail_under: Annotated[
        float | None, typer.Option(help="Exit with status 1 below this percentage of all points.", min=0, max=100)
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds for a cell.", min=0.5)] = 10.0,
    deadline: Annotated[float, typer.Option(help="Seconds for a notebook.", min=5)] = 300.0,
) -> None:
    """Grade notebooks with nbval: scores, and what each answer that fails should look at."""
    from rich.console import Console

    from course_utils.grading.grade import Settings, grade_notebook
    from course_utils.grading.kernel import Limits
    from course_utils.grading.report import open_folder, print_table, write_reports

    if out:
        open_folder(out)
    console, graded = Console(), []
    with Console(stderr=True).status("reading") as status:
        for path in paths:
            status.update(f"{path.name}: starting")
            graded.append(
                grade_notebook(
                    path,
                    day=day,
                    settings=Settings(limits=Limits(cell_seconds=timeout), seconds=deadline),
                    on_result=lambda result, name=path.name: status.update(f"{name}: {result.id} {result.status}"),
                )
            )
            if graded[-1].status != "unreadable":
                print_table(graded[-1], console)
    if out:
        write_reports(graded, out)
        console.print(f"reports are in {out}")
    unreadable = [submission for submission in graded if submission.status == "unreadable"]
    for submission in unreadable:
        print(f"course: {submission.message}", file=sys.stderr)
    if unreadable:
        raise typer.Exit(2)
    full = sum(submission.max_score for submission in graded)
    reached = sum(submission.score for submission in graded)
    if fail_under is not None and not 100 * reached >= fail_under * full:
        raise typer.Exit(1)


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
