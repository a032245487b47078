"""A class graded: every submission gets its own result, once, whatever the others are and whatever is interrupted."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import nbformat
import pytest
from as_cells import POINTS
from in_process import course

from course_utils.answer_key.key import COURSE, AnswerKey
from course_utils.answer_key.strip_answers import release_exercise
from course_utils.course import version
from course_utils.files import make_zip
from course_utils.grading import classroom
from course_utils.grading.classroom import ClassResult, grade_class
from course_utils.grading.grade import grade_submission
from course_utils.grading.intake import collect
from course_utils.grading.intake.answers import longer_code
from course_utils.grading.intake.collect import Submission
from course_utils.grading.live_display import ClassDisplay, summary
from course_utils.grading.reports.report import write_reports
from course_utils.grading.result_cache import StoredResults, result_key
from course_utils.grading.results import Graded, Result, Settings
from course_utils.grading.workers import LABORIOUS, Callbacks, SharedKernelServer, Worker, grade_here
from course_utils.sandbox.limits import Limits, Start

ROOT = Path(__file__).parents[2]
COLD = Settings(start=Start(warm=False))  # where no kernel is needed, none need be warm
RIGHT = "def scale_scores(S, d_k):\n    return [[s / d_k**0.5 for s in row] for row in S]"
SLOW = "import time\ntime.sleep(600)\n" + RIGHT
ENDED = pytest.mark.thorough("a class goes on when the server of its kernels ends, and ends with its grader")
FORBIDDEN = "import torch\ndef softmax_row(row):\n    return torch.tensor(row).softmax(0)"


def notebook(answers=(), remark=""):
    """The bytes of a notebook in which nothing else is answered; without answers it needs no kernel."""
    book = release_exercise(COURSE.notebook(1))
    book.cells.append(nbformat.v4.new_markdown_cell(remark, id="remark"))
    for cell in book.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = dict(answers).get(grade_id, cell.source)
    return nbformat.writes(book).encode()


def handed_in(folder, **notebooks):
    """A submission of day 1 for each student."""
    folder.mkdir(exist_ok=True)
    for student, data in notebooks.items():
        (folder / f"{student}.ipynb").write_bytes(data)
    return [Submission(student, folder / f"{student}.ipynb", 1) for student in notebooks]


def records(graded):
    """Results as grades.json holds them, without seconds."""
    return [{**each.as_record(), "seconds": None} for each in graded]


def run_nothing(queue, kernels, processes, callbacks):
    """Takes the place of the worker processes where none may be needed."""
    assert next(queue, None) is None, "something is graded"
    yield from ()


# Each its own result ------------------------------------------------------------------------------------------------


def test_a_class_gets_the_results_that_its_notebooks_get_one_by_one_in_their_order(tmp_path):
    mine = handed_in(
        tmp_path,
        ada=notebook({"scale_scores": RIGHT}),
        bob=notebook(),
        cyd=b"{",
        eve=notebook({"softmax_row": FORBIDDEN}),
    )
    came = []
    result = grade_class(mine, Settings(out=tmp_path / "out", jobs=2), Callbacks(on_graded=came.append))
    assert records(result.graded) == records(map(grade_submission, mine))
    assert [each.score for each in result.graded] == [1, 0, 0, 0]
    names = [each.student for each in came]
    assert sorted(names) == ["ada", "bob", "cyd", "eve"]
    eve = came[names.index("eve")]  # results hold no code, but pages of feedback do
    assert (result.graded[-1].answers, eve.answers) == ({}, {"softmax_row": FORBIDDEN})
    assert "softmax" in (tmp_path / "out" / "feedback" / "eve" / "day1.html").read_text()


def test_a_broken_submission_says_why_and_touches_no_other(tmp_path):
    mine = handed_in(tmp_path, ada=b"", bob=notebook(), cyd=notebook(), dan=notebook())
    mine[2] = replace(mine[2], day=99)
    mine[3].path.unlink()
    broken = grade_class(mine, replace(COLD, out=tmp_path / "out", jobs=1)).graded
    assert [each.status for each in broken] == ["unreadable", "failed", "unreadable", "unreadable"]
    for each, why in zip(broken, ["ada.ipynb: empty file", "", "no exercises for day 99", "no such file"], strict=True):
        assert why in each.message
    assert len(list((tmp_path / "out" / "feedback").glob("*/*.html"))) == 4


# What goes back to students -----------------------------------------------------------------------------------------


def gives_back(out, name, members):
    """What feedback_NAME.zip holds by name, once a class of these members was graded, and graded again."""
    handed = out.with_name(f"{name}.zip")
    handed.write_bytes(make_zip(members))
    for _ in range(2):  # a result that was kept goes back too
        graded = grade_class(collect.collect([handed]), replace(COLD, out=out, jobs=1)).graded
        write_reports(graded, out)
    with zipfile.ZipFile(out / f"feedback_{name}.zip") as archive:
        return {each: archive.read(each) for each in archive.namelist()}


def test_feedback_goes_back_into_the_folders_that_moodle_reads(tmp_path):
    members = {
        "Ada_70_assignsubmission_file/day1.ipynb": notebook(),
        "Bob Boole_71_assignsubmission_file_work_day1.ipynb": notebook(),
        "Cyd_72_assignsubmission_file_/day1.ipynb": b"{",
        "Dan_assignsubmission_file_/day1.ipynb": notebook(),
    }
    files = gives_back(tmp_path / "out", "Week 1", members)
    assert {name.split("_", 4)[1]: name.split("_", 4)[2:] for name in files} == {
        number: ["assignsubmission", "file", "/day1.html"] for number in ("70", "71", "72")
    }
    for name, page in files.items():
        own = (tmp_path / "out" / "feedback" / name.partition("_")[0] / "day1.html").read_bytes()
        assert page == own and (b"not JSON" in page) == name.startswith("Cyd")


def test_feedback_goes_back_to_canvas_as_a_file_of_the_kind_that_was_handed_in(tmp_path):
    """Canvas gives it the name of the file handed in, so a page of HTML would be called .ipynb."""
    members = {
        "lovelaceada_LATE_5001_80001_day1.ipynb": notebook(),
        "boolegeorge_5002_80002_work.zip": make_zip(
            {"day1.ipynb": notebook({"scale_scores": RIGHT}), "day2.ipynb": b"{"}
        ),
        "anon_A1b2C_80003_day1.ipynb": notebook(),
        "perlmanradia_5004_80004_essay.pdf": b"%PDF",
    }
    files = gives_back(tmp_path / "out", "submissions", members)
    assert files.keys() == members.keys() - {"perlmanradia_5004_80004_essay.pdf"}
    book = nbformat.reads(files["lovelaceada_LATE_5001_80001_day1.ipynb"].decode(), as_version=4)
    nbformat.validate(book)
    page = (tmp_path / "out" / "feedback" / "lovelaceada" / "day1.html").read_text()
    assert [output.data["text/html"] for output in book.cells[0].outputs] == [page]
    with zipfile.ZipFile(io.BytesIO(files["boolegeorge_5002_80002_work.zip"])) as inner:
        assert inner.namelist() == ["day1.html", "day2.html"]


def test_no_students_page_goes_back_with_another_download(tmp_path):
    """Moodle numbers the students of each assignment anew: Bob's number there may be Ada's here."""
    for week, student in (("a", "Ada"), ("b", "Bob")):
        (tmp_path / week).mkdir()
        named = {f"{student}_70_assignsubmission_file_/day1.ipynb": notebook()}
        (tmp_path / week / "download.zip").write_bytes(make_zip(named))
    both = collect.collect([tmp_path / "a" / "download.zip", tmp_path / "b" / "download.zip"])
    write_reports(grade_class(both, replace(COLD, out=tmp_path / "out", jobs=1)).graded, tmp_path / "out")
    names = [zipfile.ZipFile(path).namelist() for path in sorted((tmp_path / "out").glob("feedback_*.zip"))]
    assert sorted(names) == [[f"{who}_70_assignsubmission_file_/day1.html"] for who in ("Ada", "Bob")]


# Equal answers ------------------------------------------------------------------------------------------------------

LONGER = {name: f"def {name}(x):\n    a = x\n    b = a\n    c = b\n    return c" for name in ("one", "two", "three")}


def test_longer_answers_are_equal_whatever_their_comments_and_short_ones_say_nothing():
    commented = {name: source.replace("a = x", "a  =  x  # mine\n\n") for name, source in LONGER.items()}
    assert longer_code(LONGER) == longer_code(commented | {"short": RIGHT}) != ""
    assert longer_code(LONGER) != longer_code(LONGER | {"two": LONGER["two"].replace("return c", "return b")})
    numbers = "\n".join(f"row_{number} = [1, 0]" for number in range(9))
    few = {name: LONGER[name] for name in ("one", "two")}
    assert longer_code(few | {"three": numbers, "four": RIGHT}) == ""


def test_each_result_says_what_its_longer_answers_are_also_when_it_was_kept(tmp_path, monkeypatch):
    def answered(queue, *others):
        return ((each, Graded(each.student, each.name, 1, "passed", 1.0, 1.0, 0.0, answers=LONGER)) for each in queue)

    monkeypatch.setattr(classroom, "grade_here", answered)
    mine = handed_in(tmp_path, ada=notebook(remark="a"), bob=notebook(remark="b"))
    for reused in (0, 2):
        result = grade_class(mine, replace(COLD, out=tmp_path / "out", jobs=1))
        assert (result.reused, {each.alike for each in result.graded}) == (reused, {longer_code(LONGER)})


# Nothing is graded twice --------------------------------------------------------------------------------------------


def test_an_unchanged_submission_is_not_graded_again_and_again_means_again(tmp_path, monkeypatch):
    mine = handed_in(tmp_path, ada=notebook(remark="a"), bob=notebook(remark="b"))
    first = grade_class(mine, replace(COLD, out=tmp_path / "out", jobs=1))
    again = grade_class(mine, replace(COLD, out=tmp_path / "out", jobs=1, ignore_stored=True))
    with monkeypatch.context() as patch:
        patch.setattr(classroom, "grade_here", run_nothing)
        stored = grade_class(mine, replace(COLD, out=tmp_path / "out", jobs=1))
    assert [first.reused, again.reused, stored.reused] == [0, 0, 2]
    assert records(first.graded) == records(again.graded) == records(stored.graded)
    mine[0].path.write_bytes(notebook(remark="c"))
    assert grade_class(mine, replace(COLD, out=tmp_path / "out", jobs=1)).reused == 1


def test_identical_submissions_are_run_once_and_keep_their_students(tmp_path):
    """Those that cannot be read say so under their own names."""
    mine = handed_in(tmp_path, ada=notebook(), bob=notebook(), cyd=b"{", dan=b"{")
    result = grade_class(mine, replace(COLD, out=tmp_path / "out", jobs=1, ignore_stored=True))
    names = ["ada", "bob", "cyd", "dan"]
    assert [(each.student, each.notebook) for each in result.graded] == [(name, f"{name}.ipynb") for name in names]
    assert result.reused == 1
    assert [each.message.split(":")[0] for each in result.graded[2:]] == ["cyd.ipynb", "dan.ipynb"]
    pages = [(tmp_path / "out" / "feedback" / each / "day1.html").read_text() for each in ("ada", "bob")]
    assert pages[0].replace("ada", "bob") == pages[1]


def test_a_copy_is_opened_once_unless_what_it_equals_cannot_be_graded(tmp_path, monkeypatch):
    mine = handed_in(tmp_path, ada=notebook(), bob=notebook(), cyd=b"{", dan=b"{")
    opened = []
    monkeypatch.setattr(collect, "read_file", lambda path: opened.append(path.stem) or path.read_bytes())
    assert grade_class(mine, COLD).reused == 1
    assert opened == ["ada", "bob", "cyd", "dan", "dan"]


def test_all_that_decides_over_a_result_is_in_its_key(tmp_path):
    (tmp_path / "solutions").symlink_to(COURSE.folder / "solutions")
    (tmp_path / "keys.json").write_text(json.dumps({"edition": version(), "1": {"scores": "00"}}))
    plain = Settings()
    keys = {
        result_key(b"a", 1, plain),
        result_key(b"b", 1, plain),
        result_key(b"a", 2, plain),
        result_key(b"a", None, plain),
        result_key(b"a", 1, replace(plain, seconds=1.0)),
        result_key(b"a", 1, replace(plain, limits=Limits(cell_seconds=1.0))),
        result_key(b"a", 1, replace(plain, answer_key=AnswerKey(tmp_path))),
    }
    assert len(keys) == 7
    assert result_key(b"a", 1, Settings()) in keys


# What is kept -------------------------------------------------------------------------------------------------------

DONE = Graded("ada", "a.ipynb", 1, "failed", 1.5, 3.0, 0.5, (Result("x", "failed", 1.5, 3.0, "no", None),))
ANSWERED = replace(DONE, answers={"x": "print('\ud800é')"})
NO_KERNEL = Result("x", "error", 0.0, 3.0, "Not graded: no kernel starts on this machine. OSError", machine_failed=True)


def test_a_result_comes_back_as_it_was_kept(tmp_path):
    StoredResults(tmp_path / "kept").put("a", ANSWERED)
    assert StoredResults(tmp_path / "kept").get("a") == ANSWERED
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["a.json"]


DAMAGES = {
    "nothing": lambda text: b"",
    "cut off": lambda text: text[:-9],
    "another score": lambda text: text.replace(b'"score": 1.5', b'"score": 3.0', 1),
    "a list": lambda text: b"[]",
    "an object": lambda text: b"{}",
    "deep": lambda text: b"[" * 100_000,
    "not text": lambda text: b"\xff\xfe",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_foreign_file_is_no_result(tmp_path, damage):
    stored = StoredResults(tmp_path)
    stored.put("a", ANSWERED)
    assert stored.get("a")
    (tmp_path / "a.json").write_bytes(DAMAGES[damage]((tmp_path / "a.json").read_bytes()))
    assert stored.get("a") is None


def test_the_result_of_one_submission_is_not_taken_for_that_of_another(tmp_path):
    stored = StoredResults(tmp_path)
    stored.put("a", ANSWERED)
    (tmp_path / "a.json").rename(tmp_path / "b.json")
    assert stored.get("a") is stored.get("b") is None


@pytest.mark.parametrize(
    "graded",
    [replace(DONE, status="unreadable", exercises=()), replace(DONE, exercises=(*DONE.exercises, NO_KERNEL))],
    ids=["unreadable", "no kernel"],
)
def test_what_may_come_out_otherwise_next_time_is_not_kept(tmp_path, graded):
    StoredResults(tmp_path).put("a", graded)
    assert list(tmp_path.iterdir()) == []


# Workers ------------------------------------------------------------------------------------------------------------


def submission_of(number, data, kind=Submission):
    """A submission of day 1 that was read."""
    return kind(f"s{number}", Path(f"s{number}.ipynb"), 1, data=data, place=number)


class Deadly(Submission):
    """Ends the process that receives it, as often as it says."""

    times: ClassVar = [9]

    def __reduce__(self):
        self.times[0] -= 1
        return (os._exit, (1,)) if self.times[0] >= 0 else (partial(Submission, **vars(self)), ())


class DeadlyOnce(Deadly):
    times: ClassVar = [1]


def queue(count, special=()):
    """Submissions that need no kernel, but for special ones by place."""
    return (submission_of(n, notebook(remark=f"{n}"), dict(special).get(n, Submission)) for n in range(count))


@pytest.fixture
def kernels():
    return SharedKernelServer(COLD)


def test_a_worker_that_dies_costs_no_result_and_what_kills_it_each_time_is_unreadable(kernels):
    results = {}
    taken = []
    for each, graded in grade_here((taken.append(p) or p for p in queue(6, {1: Deadly, 3: DeadlyOnce})), kernels, 2):
        assert len(taken) <= len(results) + 2  # no more are held than workers run
        results[each] = graded
    outcome = {submission.place: graded.status for submission, graded in results.items()}
    assert outcome == {0: "failed", 1: "unreadable", 2: "failed", 3: "failed", 4: "failed", 5: "failed"}
    message = next(graded.message for graded in results.values() if graded.status == "unreadable")
    assert message == "s1.ipynb: it ends the process that grades it, each time that it is tried"


def test_a_submission_that_takes_the_grader_too_long_to_read_is_unreadable_and_costs_no_other(tmp_path):
    cells = [nbformat.v4.new_code_cell(f"def softmax_row(row):\n    pass\na={i}\n" + "a=b\n" * 4900) for i in range(20)]
    slow = nbformat.writes(nbformat.v4.new_notebook(cells=cells)).encode()
    worker = Worker(tmp_path / "w")
    worker.start()
    try:
        worker.give(submission_of(0, slow), replace(COLD, worker_cpu_seconds=1))
        graded = worker.take()
        assert (graded.status, graded.student, graded.max_score) == ("unreadable", "s0", POINTS)
        assert graded.message == f"s0.ipynb: {LABORIOUS}"
        worker.give(submission_of(1, notebook()), COLD)
        assert worker.take().status == "failed"
    finally:
        worker.stop()


class Fragile(SharedKernelServer):
    """The server ends just when a worker was told for the first time to use it."""

    ended = 0

    def settings(self):
        settings = super().settings()
        if not self.ended:
            (self.server.folder / "server.sock").unlink()
            self.server.process.kill()
            self.ended = self.server.process.wait()
        return settings


@ENDED
def test_when_the_server_of_the_kernels_ends_no_result_shows_it_and_another_takes_its_place():
    with closing(Fragile(Settings())) as kernels:
        answered = (submission_of(n, notebook({"scale_scores": RIGHT}, f"{n}")) for n in range(2))
        results = list(grade_here(answered, kernels, processes=1))
        assert kernels.ended and kernels.alive
    assert [graded.score for _, graded in results] == [1, 1]


def test_a_worker_has_none_of_the_graders_open_files_and_looks_for_no_modules_where_it_stands(tmp_path, monkeypatch):
    secret = tmp_path / "grades.json"
    with secret.open("w") as open_file:
        os.set_inheritable(open_file.fileno(), True)
        (tmp_path / "nbformat.py").write_text("raise SystemExit")
        monkeypatch.chdir(tmp_path)
        worker = Worker(tmp_path / "worker")
        worker.start()
        worker.give(next(queue(1)), COLD)
        while isinstance(message := worker.take(), Result):
            pass
        assert message.status == "failed"
        held = [os.readlink(fd) for fd in Path(f"/proc/{worker.process.pid}/fd").iterdir()]
        worker.stop()
    assert held and str(secret) not in held
    assert not (tmp_path / "worker").exists()


def test_what_takes_long_is_put_off_until_the_others_are_graded_and_its_grade_is_the_same(tmp_path):
    hangs = {name: "while True: pass" for name in ("softmax_row", "scores")}
    slow = notebook(hangs | {"scale_scores": RIGHT})
    quick = notebook({"scale_scores": RIGHT})
    settings = Settings(limits=Limits(cell_seconds=0.3))
    events = []
    callbacks = Callbacks(
        lambda submission: events.append(("begin", submission.student)),
        lambda submission, result: None,
        lambda submission: events.append(("put off", submission.student)),
        lambda graded: events.append(("graded", graded.student)),
    )
    class_of_two = handed_in(tmp_path, ada=slow, bob=quick)
    result = grade_class(class_of_two, settings, callbacks)
    order = [("begin", "ada"), ("put off", "ada"), ("begin", "bob"), ("graded", "bob"), ("begin", "ada")]
    assert events == [*order, ("graded", "ada")]
    assert records(result.graded)[:1] == records([grade_submission(class_of_two[0], settings)])
    statuses = {each.id: each.status for each in result.graded[0].exercises}
    statuses = [statuses[name] for name in ("softmax_row", "scores", "scale_scores", "attention_lists")]
    assert statuses == ["timeout", "timeout", "passed", "missing"]


# The command --------------------------------------------------------------------------------------------------------


def start_command(*arguments, **options):
    # A job in the background of a shell ignores Ctrl-C, and so would all that it starts.
    setup = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    run = f"{setup}; from course_utils.cli import main; main()"
    command = [sys.executable, "-c", run, "grade", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_the_command_shows_a_line_a_submission_and_counts_them(tmp_path):
    names = ["ada", "[b]é\x1b[31m\nbob", "cyd"]
    handed_in(tmp_path / "class", **dict(zip(names, [notebook(), notebook(remark="b"), b"{"], strict=True)))
    arguments = [tmp_path / "class", "--day", "1", "--out", tmp_path / "out", "--cold"]
    code, output, complaint = course("grade", *arguments)
    lines = output.splitlines()
    assert (code, complaint, len(lines)) == (0, "", 5)
    assert lines[-2].startswith("3 submissions; 0 with all points; 0 % of the points on average; 1 unreadable")
    assert (
        sum(f"0 of {POINTS} points" in line for line in lines) == 2
        and sum("unreadable: " in line for line in lines) == 1
    )
    order = [each["student"] for each in json.loads((tmp_path / "out" / "grades.json").read_text())["submissions"]]
    assert len(order) == 3 and order[0] != order[1]


def test_a_folder_without_notebooks_is_an_error_in_one_line(tmp_path):
    code, output, complaint = course("grade", tmp_path)
    assert (code, output, complaint.count("\n")) == (2, "", 1)
    assert "no notebooks" in complaint


def test_a_terminal_shows_how_many_are_done(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with ClassDisplay(3) as watch:
        watch.on_graded(DONE)
        watch.bar.refresh()
    assert "1/3" in capsys.readouterr().out


def test_tables_are_shown_in_the_order_of_the_submissions_however_they_finish(capsys):
    names = ["one.ipynb", "two.ipynb", "three.ipynb"]
    with ClassDisplay(3, [("ada", name) for name in names]) as watch:
        for name, tables in (("three.ipynb", []), ("one.ipynb", names[:1]), ("two.ipynb", names[1:])):
            watch.on_graded(replace(DONE, notebook=name))
            assert re.findall(r"(?m)^Graded (\w+\.ipynb)", capsys.readouterr().out) == tables


def test_no_line_begins_with_a_students_text_or_is_a_command_to_a_workflow(capsys):
    evil = f"::add-mask::x ##[error]y {'a' * 70} ::error file=a::b"
    failed = Result("scores", "failed", 0.0, 1.0, evil, None)
    graded = replace(DONE, student=evil, notebook=f"{evil}.ipynb", exercises=(failed,))
    for order in ((), [(evil, graded.notebook)]):
        with ClassDisplay(1, order) as watch:
            watch.on_put_off(Submission(evil, Path(graded.notebook), 1))
            watch.on_graded(graded)
    lines = capsys.readouterr().out.splitlines()
    assert not [line for line in lines if re.match(r"\s*::", line) or "##[" in line]
    before = [line.split(": :add-mask")[0].split() for line in lines if ": :add-mask" in line]
    assert [words[0] for words in before] == ["put", "1/1", "put", "Graded", "scores"]


def running_in(folder):
    """The processes that have this folder for temporary files; they may take a while to end on a busy machine."""
    until = time.monotonic() + 300
    while processes := list(_processes_of(folder)):
        if time.monotonic() > until:
            break
        time.sleep(0.05)
    return processes


def _processes_of(folder):
    for each in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"={folder}".encode() in each.read_bytes():
                yield int(each.parent.name)


def begun(folder):
    """The command at work on a class of three, when two results are there and the third submission is under way."""
    scratch = folder / "scratch"
    out = folder / "out"
    log = folder / "log"
    scratch.mkdir()
    handed_in(folder / "class", ada=notebook(), bob=notebook(remark="b"), cyd=notebook({"scale_scores": SLOW}))
    how = ["--day", "1", "--jobs", "1", "--timeout", "900", "--cold"]
    arguments = [folder / "class", *how, "--out", out, "--log", log]
    running = start_command(*arguments, env=os.environ | {"TMPDIR": str(scratch)})
    while len(list(out.glob(".results/*.json"))) < 2 or "time.sleep(600)" not in log.read_text():
        assert running.poll() is None, running.communicate()
        time.sleep(0.05)
    return running, arguments, scratch, out


def test_a_run_that_was_stopped_leaves_nothing_running_and_is_taken_up_again(tmp_path):
    running, arguments, scratch, out = begun(tmp_path)
    running.send_signal(signal.SIGINT)
    _, complaint = running.communicate(timeout=600)
    message = "course: stopped; 2 of 3 are graded, run the same command to continue\n"
    assert (running.returncode, complaint) == (130, message)
    assert (running_in(scratch), list(scratch.iterdir())) == ([], [])
    (tmp_path / "class" / "cyd.ipynb").write_bytes(notebook(remark="c"))
    code, output, _ = course("grade", *arguments)
    assert code == 0 and "2 not run again" in output.splitlines()[-2]
    students = [each["student"] for each in json.loads((out / "grades.json").read_text())["submissions"]]
    assert students == ["ada", "bob", "cyd"]


@ENDED
def test_workers_and_kernels_end_with_a_grader_that_is_killed(tmp_path):
    running, _, scratch, _ = begun(tmp_path)
    running.kill()
    running.communicate()
    assert running_in(scratch) == []


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        (["SUBMISSIONS=my class"], ["my class"]),
        (["SUBMISSIONS=a.ipynb b.ipynb"], ["a.ipynb", "b.ipynb"]),
        (["SUBMISSIONS=it's; rm.zip"], ["it's; rm.zip"]),
        ([], ["exercises/a.ipynb", "exercises/b.ipynb"]),
    ],
    ids=["a folder with a space", "two notebooks", "an odd zip", "one's own"],
)
def test_make_grade_takes_a_folder_a_zip_or_notebooks(tmp_path, arguments, passed):
    (tmp_path / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    (tmp_path / "my class").mkdir()
    (tmp_path / "exercises").mkdir()
    for name in ("it's; rm.zip", "exercises/a.ipynb", "exercises/b.ipynb"):
        (tmp_path / name).touch()
    printer = f"{sys.executable} -c 'import sys; print(*sys.argv[1:], sep=\"\\n\")'"
    ran = subprocess.run(
        ["make", "-s", "grade", "STAMP=", f"PY={printer}", *arguments], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.stdout.splitlines()[-len(passed) - 1 :] == ["--", *passed]


def test_the_line_about_a_class_counts_its_submissions():
    one = Graded("ada", "day1.ipynb", 1, "failed", 0, 27, 1)
    assert summary(ClassResult([one], 0)).startswith("1 submission; 0 with all points")
    assert summary(ClassResult([one, one], 0)).startswith("2 submissions; 0 with all points")
