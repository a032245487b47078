"""A class graded on a Dask cluster of separate worker processes: the same grades, also when workers die."""

import contextlib
import itertools
import os
import signal
import socket
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import nbformat
import pytest
from as_cells import POINTS

from course_utils.answer_key.key import COURSE, AnswerKey
from course_utils.answer_key.strip_answers import release_exercise
from course_utils.errors import CourseError
from course_utils.grading import cluster
from course_utils.grading.classroom import grade_class
from course_utils.grading.cluster import answer_key_parcel, grade_parcel, grade_there
from course_utils.grading.grade import grade_submission
from course_utils.grading.intake.collect import Submission
from course_utils.grading.results import Settings
from course_utils.sandbox.limits import Start

CLUSTER = pytest.mark.thorough("a class is graded on a Dask cluster")
SETTINGS = Settings()
COLD = Settings(start=Start(warm=False))
ANSWERS = {
    "ada": "def scale_scores(S, d_k):\n    return [[s / d_k**0.5 for s in row] for row in S]",
    "bob": "def scale_scores(S, d_k):\n    return [[s / d_k for s in row] for row in S]",
    "cyd": "",
    "dan": None,
}


def notebook(answer=""):
    """The bytes of a notebook in which one exercise is answered, or none; then it needs no kernel."""
    book = release_exercise(COURSE.notebook(1))
    for cell in book.cells:
        if answer and cell.metadata.get("nbgrader", {}).get("grade_id") == "scale_scores":
            cell.source = answer
    return nbformat.writes(book).encode()


@contextlib.contextmanager
def two_workers():
    """The address of the scheduler of two worker processes."""
    import cloudpickle
    from distributed import LocalCluster

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # a worker has the course, but not its tests
    with LocalCluster(
        n_workers=2, threads_per_worker=2, processes=True, host="127.0.0.1", dashboard_address=":0"
    ) as two:
        yield two.scheduler_address


@pytest.fixture(scope="module")
def address():
    """The scheduler of two worker processes that nothing kills."""
    with two_workers() as scheduler:
        yield scheduler


class Deadly(Submission):
    """Kills the worker that reads it, until it finds as many marks as it has lives."""

    def read(self):
        marks = len(os.listdir(self.key))
        if marks < self.place:
            open(f"{self.key}/{marks}", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read()


@CLUSTER
def test_a_cluster_gives_the_grades_that_this_process_gives(address, tmp_path):
    mine = []
    for student, answer in ANSWERS.items():
        path = tmp_path / f"{student}.ipynb"
        path.write_bytes(b"{" if answer is None else notebook(answer))
        mine.append(Submission(student, path, 1))
    there = grade_class(mine, replace(SETTINGS, dask=address)).graded
    here = [grade_submission(each, SETTINGS) for each in mine]
    assert [each.score for each in there] == [1, 0, 0, 0]
    assert [replace(each, seconds=0) for each in there] == [replace(each, seconds=0, answers={}) for each in here]


@CLUSTER
def test_a_worker_killed_in_mid_run_costs_no_result(tmp_path, monkeypatch):
    """The first kills the worker that grades it, once; the second kills every one."""
    monkeypatch.setattr(cluster, "WORKERLESS_SECONDS", 120)  # on a busy machine others take long to start
    for name in "ab":
        (tmp_path / name).mkdir()
    common = {"day": 1, "data": notebook()}
    queue = [
        Deadly("once", Path("once.ipynb"), place=1, key=str(tmp_path / "a"), **common),
        Deadly("always", Path("always.ipynb"), place=9, key=str(tmp_path / "b"), **common),
        *(Submission(f"s{n}", Path(f"s{n}.ipynb"), place=n, **common) for n in range(3, 7)),
    ]
    with two_workers() as scheduler:
        results = {submission.student: graded for submission, graded in grade_there(iter(queue), COLD, scheduler)}
    assert {each.student for each in queue} == set(results)
    assert {name for name, graded in results.items() if graded.status != "failed"} == {"always"}
    assert results["always"].message == "always.ipynb: it ends the process that grades it, each time that it is tried"
    assert [len(list((tmp_path / name).iterdir())) for name in "ab"] == [1, 3]


def test_no_submission_is_lost_while_no_worker_is_there(monkeypatch):
    class Between:
        """A worker that is away each second time that it is asked for."""

        running: ClassVar = {}
        turns = itertools.cycle([["worker"], []])

        def idle(self):
            return next(self.turns)

        def give(self, worker, submission, parcel, settings):
            self.running[submission] = grade_parcel(submission, parcel, settings)

        def finished(self):
            return [(each, self.running.pop(each)) for each in list(self.running)]

    monkeypatch.setattr(cluster, "_connect", lambda address: contextlib.nullcontext(Between()))
    queue = [Submission(name, Path(f"{name}.ipynb"), 1, data=notebook()) for name in ("ada", "bob", "cyd")]
    assert [submission for submission, _ in grade_there(iter(queue), COLD, "")] == queue


@CLUSTER
def test_a_worker_with_another_course_is_named_in_one_line(address, monkeypatch):
    parcel = replace(answer_key_parcel(COURSE, 1), package="0.0.1")
    monkeypatch.setattr(cluster, "answer_key_parcel", lambda answer_key, day: parcel)
    with pytest.raises(CourseError, match=r"the worker tcp://\S+ has course_utils \S+, not 0.0.1; install"):
        list(grade_there(iter([Submission("ada", Path("a.ipynb"), 1, data=notebook())]), COLD, address))


@CLUSTER
def test_a_worker_with_other_checks_is_named_in_one_line(address, monkeypatch):
    parcel = replace(answer_key_parcel(COURSE, 1), digests={1: "another"})
    monkeypatch.setattr(cluster, "answer_key_parcel", lambda answer_key, day: parcel)
    with pytest.raises(CourseError, match="has other checks or another grader; install the same"):
        list(grade_there(iter([Submission("ada", Path("a.ipynb"), 1, data=notebook())]), COLD, address))


def test_a_worker_uses_the_official_side_that_is_sent_and_not_its_own(tmp_path):
    (tmp_path / "solutions").mkdir()
    book = nbformat.from_dict(COURSE.notebook(1))
    check = next(c for c in book.cells if c.metadata.get("nbgrader", {}).get("grade_id") == "check_scores")
    check.metadata.nbgrader.points = 7
    nbformat.write(book, tmp_path / "solutions" / "day1_other.ipynb")
    parcel = answer_key_parcel(AnswerKey(tmp_path), 1)
    graded = grade_parcel(Submission("ada", Path("a.ipynb"), 1, data=notebook()), parcel, COLD)
    assert graded.max_score == 36


def test_a_worker_keeps_few_official_sides(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(cluster, "_UNPACKED", {})
    monkeypatch.setattr(cluster, "MAX_UNPACKED_KEYS", 1, raising=False)
    empty = Submission("ada", Path("a.ipynb"), 1, data=notebook())
    for days in (1, None, 1):
        assert grade_parcel(empty, answer_key_parcel(COURSE, days), COLD).max_score == POINTS
        assert len(list(tmp_path.glob("course_answer_key_*"))) == 1


def unreachable(nowhere):
    with pytest.raises(CourseError, match=f"^{nowhere}: no Dask scheduler answers there") as caught:
        list(grade_there(iter([Submission("ada", Path("a.ipynb"), 1, data=notebook())]), COLD, nowhere))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("nowhere", ["carrier pigeon", "ftp://here"])
def test_what_is_no_address_of_a_scheduler_is_named_in_one_line(nowhere):
    unreachable(nowhere)


@CLUSTER
def test_an_unreachable_scheduler_is_named_in_one_line(monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 5)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # nobody listens
        unreachable(f"tcp://127.0.0.1:{silent.getsockname()[1]}")


def test_a_cluster_without_workers_is_an_error(monkeypatch):
    from distributed import LocalCluster

    monkeypatch.setattr(cluster, "WORKERLESS_SECONDS", 0)
    with (
        LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=":0") as empty,
        pytest.raises(CourseError, match="no workers; start one: dask worker tcp://"),
    ):
        list(grade_there(iter([Submission("ada", Path("a.ipynb"), 1, data=notebook())]), COLD, empty.scheduler_address))


def test_without_dask_the_command_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(CourseError, match="pip install dask distributed"):
        list(grade_there(iter([Submission("ada", Path("a.ipynb"), 1, data=notebook())]), COLD, "tcp://127.0.0.1:1"))
