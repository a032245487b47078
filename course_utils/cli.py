"""The `course` command line: each command imports the subpackage that does the work only when the command runs."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from course_utils.errors import CourseError, one_line
from course_utils.sandbox.limits import Limits, Start, cores
from course_utils.time_limits import NOTEBOOK_SECONDS

if TYPE_CHECKING:
    from course_utils.doctor import Finding
    from course_utils.learner.update import Merged

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# Panels of the help, by who needs a command.
LEARN = "Learn"
TEACH = "Teach"
CONTRIBUTE = "Contribute"
OURS = (  # what typer says to a typing error, and what we say
    (r"Input should be a valid (?:integer|number), unable to .*", "give it in digits"),
    (r"^No such command '[^']*'\.$", r"\g<0> `course --help` lists the commands."),
)
LONGEST = 4000  # characters of an error message that are printed
Root = Annotated[Path, typer.Option(help="The course's folder, which holds sources/.", show_default="this folder")]


def _examples(*lines: str) -> str:
    """Return the end of a command's help, one example a line."""
    return "\n\n".join(["For example:", *lines])


def _print_version(requested: bool) -> None:
    from course_utils.course import version

    if requested:
        print(f"course {version()}")
        raise typer.Exit


@app.callback()
def course(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Attention, from pencil to kernel: build, check and grade the notebooks of the course."""


@app.command(
    rich_help_panel=LEARN,
    epilog=_examples(
        "course grade exercises/day1_attention_by_hand.ipynb",
        "course grade submissions.zip --bundle release/grader --gradebook canvas.csv --out grades",
    ),
)
def grade(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Notebooks, folders or zips of them; they are only read."),
    ] = None,
    day: Annotated[
        int | None,
        typer.Option(
            metavar="DAY", help="The day that the notebooks belong to.", show_default="from their names or cells"
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for grades, reports and feedback; an interrupted run continues there.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Processes that grade.", min=1, show_default="one a processor")
    ] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Grade on a Dask cluster: tcp://… of its scheduler.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Grade unchanged submissions again, too.")] = False,
    fail_under: Annotated[
        float | None,
        typer.Option(metavar="PERCENT", help="Exit with status 1 below this percentage of all points.", min=0, max=100),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Seconds of CPU time each cell may use.", min=0.5)
    ] = Limits.cell_seconds,
    deadline: Annotated[
        float, typer.Option(metavar="SECONDS", help="Seconds of CPU time a whole notebook may use.", min=5)
    ] = NOTEBOOK_SECONDS,
    bundle: Annotated[Path | None, typer.Option(help="A grader's bundle, as `course release` wrote it.")] = None,
    gradebook: Annotated[
        Path | None, typer.Option(metavar="CSV", help="A gradebook exported from Canvas or Moodle, to fill in.")
    ] = None,
    require_confinement: Annotated[
        bool, typer.Option("--require-confinement", help="Grade only where student code can be confined fully.")
    ] = False,
    cold: Annotated[bool, typer.Option("--cold", help="Start each kernel afresh; slower, same grades.")] = False,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Log what each kernel was asked and how it ended.")
    ] = None,
) -> None:
    """Grade notebooks with nbval: show the scores, and what to look at for each answer that fails."""
    if not paths:
        raise typer.BadParameter("give the notebooks to grade")
    if strange := [path for path in paths if path.is_file() and path.suffix.lower() not in (".ipynb", ".zip")]:
        raise typer.BadParameter(
            f"{strange[0]} is not a notebook: give files that end in .ipynb, or folders or zips of them"
        )
    if gradebook and not out:
        raise typer.BadParameter("--gradebook needs --out, the folder for the one that is filled in")
    if log and dask:
        raise typer.BadParameter(
            "the kernels of a cluster run elsewhere and write no log here; leave out --log or --dask"
        )
    from course_utils.answer_key.key import COURSE, AnswerKey
    from course_utils.grading.results import Settings
    from course_utils.grading.run import run

    settings = Settings(
        AnswerKey(bundle) if bundle else COURSE,
        Limits(cell_seconds=timeout),
        deadline,
        Start("full" if require_confinement else Start.confinement, warm=not cold),
        str(log) if log else "",
        out=out,
        jobs=jobs or cores(),
        dask=dask,
        ignore_stored=again,
    )
    try:
        run(paths, settings, day=day, gradebook=gradebook, fail_under=fail_under)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


@app.command(rich_help_panel=LEARN)
def progress(root: Root = Path()) -> None:
    """Show which exercises are done, according to the last grading of each notebook in exercises/."""
    from rich.console import Console

    from course_utils.grading.reports.learner_record import show_progress

    show_progress(root, Console(highlight=False))


@app.command(rich_help_panel=LEARN, epilog=_examples("course practice", "course practice attention --number 17"))
def practice(
    kind: Annotated[
        str | None, typer.Argument(metavar="KIND", help="Kind of problem; without it, the kinds are listed.")
    ] = None,
    number: Annotated[
        int | None, typer.Option(metavar="N", help="Number of the problem: the same number gives the same problem.")
    ] = None,
) -> None:
    """Pose a problem for pencil and paper, ask for each of its steps, and say which step was the first wrong one."""
    from course_utils.practice import session

    if kind is None:
        print(session.describe_kinds())
    else:
        session.practise(kind, number)


@app.command(rich_help_panel=LEARN, epilog=_examples("course cards --out cards"))
def cards(
    out: Annotated[Path, typer.Option(help="Folder for the deck and the table.")],
    root: Root = Path(),
) -> None:
    """Write flash cards: attention.apkg for Anki, and attention.csv for other programs."""
    from course_utils.cards import make_cards

    made = make_cards(out, root)
    print(f"{made.cards} cards: {made.deck} for Anki, {made.table} for other programs")


@app.command("lab-report", rich_help_panel=LEARN, epilog=_examples('course lab-report --name "Ada Lovelace"'))
def lab_report(
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("lab-report.html"),
    name: Annotated[str, typer.Option(help="Your name on the page.", show_default="a line to write it on")] = "",
    root: Root = Path(),
) -> None:
    """Write your lab report, a page to print: your parts, your training, and your answers to three questions."""
    from course_utils.parts.lab_report import write_lab_report

    print(f"your lab report: {write_lab_report(root, out, name)}")


@app.command(rich_help_panel=LEARN, epilog=_examples("course reset 1"))
def reset(
    day: Annotated[int, typer.Argument(metavar="DAY", help="The number of the day.")],
    root: Root = Path(),
) -> None:
    """Replace a day's exercise notebook with a fresh one, and keep a copy of yours beside it."""
    from course_utils.learner.reset import reset_exercise

    fresh, copy = reset_exercise(root, day)
    where = f"your old one is {copy}" if copy else "it had none of your work in it"
    print(f"{fresh} is fresh; {where}. If it is open in JupyterLab, choose File > Reload Notebook from Disk.")


@app.command(rich_help_panel=LEARN)
def update(root: Root = Path()) -> None:
    """Fetch the newest edition of the course with git, keep what you wrote, and put your answers into the new files."""
    from course_utils.learner.update import update as bring

    done = bring(root)
    if not done.files:
        print("you have the newest edition")
        return
    for each in done.merged:
        _print_merged(each)
    print(
        f"you now have the newest edition: {done.files} {'file is' if done.files == 1 else 'files are'} new or changed"
    )
    if done.packages:
        print("packages may have changed, too: the next make installs them")
    print("If JupyterLab is open, stop it and start it again.")


@app.command(rich_help_panel=LEARN)
def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON, for a program.")] = False) -> None:
    """Report what this machine can do and what to install for the rest; exit with status 1 if a learner needs that."""
    import json
    from dataclasses import asdict

    from course_utils import doctor as examining
    from course_utils.course import version

    findings = examining.examine()
    ready = examining.ready(findings)
    if as_json:
        report = {"schema": 1, "version": version(), "ready": ready, "findings": [asdict(each) for each in findings]}
        print(json.dumps(report, indent=1, ensure_ascii=False))
    else:
        _print_findings(findings, ready)
    if not ready:
        raise typer.Exit(1)


@app.command(
    rich_help_panel=TEACH, epilog=_examples("course release --days 1,2 --secret-file secret.txt --out release")
)
def release(
    out: Annotated[Path, typer.Option(help="Folder for the student's edition and the grader's bundle.")],
    days: Annotated[str, typer.Option(metavar="1,2,…", help="The days to release.", show_default="all")] = "",
    secret_file: Annotated[
        Path | None, typer.Option(help="A file of 16 bytes or more, from which the class's hidden inputs are drawn.")
    ] = None,
    note: Annotated[Path | None, typer.Option(help="A file with a note for the top of the students' README.")] = None,
) -> None:
    """Write the students' edition of the course, which has no answers, and the bundle that grades it."""
    from rich.console import Console

    from course_utils.authoring import release as class_release

    numbers = [part.strip() for part in days.split(",") if part.strip()]
    if not all(part.isdecimal() for part in numbers):
        raise typer.BadParameter(f"--days is {days!r}; give numbers, as in --days 1,2")
    secret, warning = class_release.read_secret(secret_file) if secret_file else (None, "")
    with Console(stderr=True).status("reading") as status:
        done = class_release.release(out, map(int, numbers), secret, status.update, note=note)
    print(f"days {', '.join(map(str, done.days))}: {out}/student.zip is for students, {out}/grader.zip for you alone")
    print(f"no answer is in the student's edition; {done.shared} lines of answers are also lines of lessons")
    if warning:
        print(f"course: {warning}", file=sys.stderr)
    if not done.seeded:
        print(
            "course: the hidden inputs are those of the public course; pass --secret-file for your own", file=sys.stderr
        )


def _print_findings(findings: list[Finding], ready: bool) -> None:
    """Print a line or two for each finding, then whether everything that a learner needs is here."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    for each in findings:
        mark = {"good": "✓", "optional": "–", "needed": "✗"}[each.state]
        text = f"{each.found}\nTo have it: {each.todo}" if each.todo else each.found
        table.add_row(mark, each.part, escape(text))
    console = Console(highlight=False)
    console.print(table)
    if ready:
        console.print("Everything a learner needs is here. A – marks what is missing but only sometimes needed.")
    else:
        console.print("A ✗ marks what a learner needs and is missing.")


def _print_merged(merged: Merged) -> None:
    """Print what happened to a file that both the learner and the new edition changed."""
    if merged.copy:
        now = "no longer in the course" if merged.gone else "the new edition's"
        answers = f" with {merged.answers} of your answers" if merged.answers else ""
        print(f"{merged.name} is {now}{answers}; yours is {merged.copy}")
    if merged.lost:
        print(f"course: {merged.name} no longer contains {', '.join(merged.lost)}", file=sys.stderr)


@app.command(
    rich_help_panel=TEACH, epilog=_examples("course worksheet --kind attention --seed-file class.txt --out sheets")
)
def worksheet(
    kind: Annotated[str | None, typer.Option(help="Kind of problem; `course practice` lists the kinds.")] = None,
    seed_file: Annotated[
        Path | None, typer.Option(help="A file with any text, which decides the problems; keep it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the sheets and the key.")] = None,
    copies: Annotated[int, typer.Option(metavar="N", help="Students.")] = 30,
) -> None:
    """Write PDF worksheets, one for each student with a problem of their own, and an answer key for the teacher."""
    from course_utils.practice import KINDS
    from course_utils.practice.worksheet import make_worksheets

    if kind is None or seed_file is None or out is None:
        options = {"--kind": kind, "--seed-file": seed_file, "--out": out}
        missing = ", ".join(name for name, value in options.items() if value is None)
        raise typer.BadParameter(f"also give {missing}; the kinds are {', '.join(KINDS)}")
    *sheets, all_of_them, key = make_worksheets(kind, copies, seed_file, out)
    print(
        f"{len(sheets)} {'sheet' if len(sheets) == 1 else 'sheets'} in {out}; to print them: {all_of_them}, key: {key}"
    )


@app.command(rich_help_panel=TEACH, epilog=_examples("course site --out build/site"))
def site(
    out: Annotated[Path, typer.Option(help="Folder for the pages; an earlier site in it is replaced.")] = Path(
        "build/site"
    ),
    python: Annotated[
        bool,
        typer.Option(
            "--python", help="Put Python beside the pages, so that exercises can be answered and checked there."
        ),
    ] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the pages on this machine afterwards, until Ctrl+C.")
    ] = False,
    as_zip: Annotated[
        bool, typer.Option("--zip", help="Write the pages as one zip as well, for a server; it lies beside the folder.")
    ] = False,
    root: Root = Path(),
) -> None:
    """Make the course's web pages from the built notebooks, without executing anything."""
    from rich.console import Console

    from course_utils.site import verify_installed

    verify_installed()
    from course_utils.site.build import build_site, zip_site

    with Console(stderr=True).status("starting") as status:
        made = build_site(root, out, status.update, python)
    print(f"{made.pages} pages with {made.widgets} widgets in {made.out}; open {made.out / 'index.html'}")
    if as_zip:
        print(f"the same for a server: {zip_site(made)}")
    if serve:
        import threading

        from course_utils.site.serve import serving

        with serving(made.out) as address:
            print(f"they are at {address}/ until you press Ctrl+C")
            threading.Event().wait()


@app.command(rich_help_panel=CONTRIBUTE, epilog=_examples("course build 3", "course build 3 --force"))
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

    from course_utils.authoring import build as building

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


@app.command(rich_help_panel=CONTRIBUTE)
def check(root: Root = Path()) -> None:
    """Verify, without executing, that sources, notebooks, solutions and exercises agree."""
    from course_utils.authoring import build as building

    disagreements = building.check(root)
    for line in disagreements:
        print(line)
    if disagreements:
        raise typer.Exit(1)
    print("sources, notebooks, solutions and exercises agree")


def main() -> None:
    """Run the `course` command, and raise SystemExit.

    An expected error is printed as one line on stderr, and the process exits with the error's exit code, mostly 2. If
    the environment variable COURSE_DEBUG is set, the traceback is printed above that line.
    """
    try:
        sys.exit(app(prog_name="course", standalone_mode=False))
    except Exception as error:
        if isinstance(error, CourseError):
            message = str(error)
        elif isinstance(error, OSError):  # the machine's fault, or a bug in the course
            path = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            message = f"{path}; set COURSE_DEBUG=1 to see where it happened"
        elif isinstance(error, typer.Abort):
            message = "stopped"
        elif hasattr(error, "format_message"):  # typer's errors about a wrong option or argument
            message = error.format_message()
            if not message:  # the help was shown, since nothing was asked for
                sys.exit(2)
            for theirs, ours in OURS:
                message = re.sub(theirs, ours, message)
        else:
            raise
        if os.environ.get("COURSE_DEBUG"):
            traceback.print_exc()
        print(f"course: {one_line(message, LONGEST)}", file=sys.stderr)
        sys.exit(error.exit_code if isinstance(error, CourseError) else 2)


def run() -> None:
    """Run `main` as a program, and leave when it is done; this is the package's console script.

    Python would take all libraries and all that was recorded apart, object by object, for seconds after the last line.
    """
    try:
        main()
    except SystemExit as end:
        _leave(end.code)
        raise


def _leave(status: object) -> None:
    """End this process with an exit status, unless a thread, a child or a text as status is still to be dealt with."""
    alone = threading.active_count() == 1 and not _children()
    if not alone or not (status is None or isinstance(status, int)):
        return
    with contextlib.suppress(OSError, ValueError):  # a reader that has gone away
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status or 0)


def _children() -> bool:
    """Return whether this thread may have started processes that still run: what ends with Python has to stop them."""
    try:
        return bool(Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text())
    except OSError:  # not on Linux
        return True
