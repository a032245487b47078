"""What a class gets and what its teacher keeps: hidden inputs from a secret, an edition without answers, a bundle."""

import gzip
import hashlib
import hmac
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from importlib import import_module

import nbformat
import pytest
from hostile.corpus import CORPUS, record_of, verdicts, write_entry
from hostile.entries import in_answers
from markdown_it import MarkdownIt
from typer.testing import CliRunner
from variants import RIGHT, SLOW, WRONG

from course_utils.answer_key.key import COURSE, AnswerKey
from course_utils.authoring import edition as student_edition
from course_utils.authoring import release as class_release
from course_utils.authoring.edition import find_traces, write_student_edition
from course_utils.authoring.release import class_seeds, hidden_outputs, read_secret, release
from course_utils.checks.examination import examine
from course_utils.checks.judge.exercise_tables import all_exercises, days_with_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.judge.message import CheckMessage
from course_utils.checks.judge.rungs import evidence_for
from course_utils.checks.kernel.evidence import draw_rungs, find_ladder, gather
from course_utils.checks.kernel.outcome import MIME, as_json, evidence_of
from course_utils.cli import app
from course_utils.course import ROOT, TO_LOOK_UP, version
from course_utils.errors import CourseError
from course_utils.grading.classroom import grade_class
from course_utils.grading.grade import grade_notebook, grade_submission
from course_utils.grading.intake.collect import collect
from course_utils.grading.notebook.attempts import UNSTEADY
from course_utils.grading.results import Settings

DAYS = days_with_exercises()
SECRET = b"a class in Delft, spring 2027"
SEEDS = ["00" * 32, "ab" * 32]
LESSON = "day1_attention_by_hand.ipynb"


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A release of day 1 with a secret, and beside it something of the teacher's own."""
    out = tmp_path_factory.mktemp("release")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_release.build, "check", lambda *_, **options: [])  # which takes as long as all the rest
        release(out, [1], SECRET)
    (out / "notes.txt").write_text("room 4.12")
    return out


@pytest.fixture
def quick(monkeypatch):
    """A release that neither compares sources and notebooks nor stores results."""
    monkeypatch.setattr(class_release.build, "check", lambda *_, **options: [])
    monkeypatch.setattr(student_edition, "expected_results", lambda day: {})


def answered(day, grade_id, answer):
    return answer if isinstance(answer, Mapping) else dict.fromkeys(find_ladder(day, grade_id).names, answer)


# Hidden inputs ------------------------------------------------------------------------------------------------------


def test_hidden_inputs_follow_their_seed_and_visible_ones_do_not():
    def drawn(seed=""):
        return [draw_rungs(1, "scores", hidden=hidden, seed=seed)[3].args for hidden in (False, True)]

    visible, public = drawn()
    assert all(drawn(seed) == drawn(seed) and drawn(seed)[0] == visible for seed in SEEDS)
    assert len({str(args) for args in (visible, public, *(drawn(seed)[1] for seed in SEEDS))}) == 4


def test_what_is_expected_follows_the_seed_and_judges_of_two_seeds_do_not_meet():
    def known(seed=""):
        exercise = judge_of(1, "scores", seed)
        mistakes = [str([*evidence.outcomes]) for _, evidence in exercise.mistakes(hidden=True)]
        return [str(exercise.reference(hidden=True)), str(mistakes)]

    public, first, second = (known(seed) for seed in ("", *SEEDS))
    for of_all in zip(public, first, second, strict=True):
        assert len(set(of_all)) == 3
    assert [known(seed) for seed in (SEEDS[0], "", SEEDS[1])] == [first, public, second]


def test_a_seed_that_is_no_hex_text_is_refused():
    with pytest.raises(ValueError):
        draw_rungs(1, "scores", hidden=True, seed="spring")


@pytest.mark.filterwarnings("ignore")
def is_drawn(grade_id):
    """Whether an exercise of day 1 has hidden inputs that differ from class to class."""
    return not (find_ladder(1, grade_id).by_hand or find_ladder(1, grade_id).duel)


@pytest.mark.thorough("answers to a day are judged on the hidden inputs of a class of their own")
@pytest.mark.parametrize(("day", "seed"), [(day, SEEDS[day % 2]) for day in DAYS] + [(1, SEEDS[0]), (3, SEEDS[0])])
def test_on_the_hidden_inputs_of_any_seed_right_answers_pass_and_wrong_ones_do_not(day, seed):
    import_module(f"variants.day{day}")  # registers its answers
    for grade_id in all_exercises(day):
        if grade_id in SLOW or find_ladder(day, grade_id).by_hand:
            continue
        exercise = judge_of(day, grade_id, seed)
        for answers, share in ((RIGHT[day, grade_id], 1), (WRONG[day, grade_id], 0)):
            for answer in answers:
                evidence = answered(day, grade_id, answer)
                verdict = exercise.judge(gather(day, grade_id, evidence, hidden=True, seed=seed))
                assert verdict.share == share, (grade_id, answer, verdict)
        for mistake, evidence in exercise.mistakes(hidden=True):
            assert exercise.judge(evidence).share == 0, (grade_id, mistake.name)


def test_a_notebook_is_graded_with_the_seeds_of_its_bundle_and_no_others(out, monkeypatch):
    seeds_used = []
    monkeypatch.setattr(pytest, "main", lambda options, plugins: seeds_used.append(plugins[0].seeds))
    bundle = AnswerKey(out / "grader")
    for official in (bundle, COURSE):
        grade_notebook(COURSE.path(1), settings=Settings(official))
    assert seeds_used == [bundle.seeds(1), {}] and seeds_used[0]["scores"]


# Secret and seeds ----------------------------------------------------------------------------------------------------


def test_each_exercise_has_a_seed_of_its_own_made_of_the_secret():
    seeds = class_seeds(SECRET, 1)
    assert seeds["scores"] == hmac.new(SECRET, b"1/scores", hashlib.sha256).hexdigest()
    assert len({*seeds.values(), *class_seeds(SECRET + b"8", 1).values()}) == 2 * len(all_exercises(1))


def test_a_seed_that_would_hide_a_known_mistake_is_passed_over(monkeypatch):
    first = hmac.new(SECRET, b"1/scores", hashlib.sha256).hexdigest()
    monkeypatch.setattr(class_release, "_tells_mistakes", lambda day, grade_id, seed: seed != first)
    assert class_seeds(SECRET, 1)["scores"] == hmac.new(SECRET, b"1/scores/1", hashlib.sha256).hexdigest()


def test_a_seed_on_which_a_mistake_does_not_show_is_known_for_that(monkeypatch):
    assert class_release._tells_mistakes(1, "scores", SEEDS[0])
    exercise = judge_of(1, "scores", SEEDS[0])
    (mistake, _), *others = exercise.mistakes(hidden=True)
    one_looks_right = [(mistake, exercise.reference(hidden=True)), *others]
    monkeypatch.setattr(exercise, "mistakes", lambda hidden: one_looks_right)
    assert not class_release._tells_mistakes(1, "scores", SEEDS[0])


def test_the_secret_is_the_file_without_its_last_newline(tmp_path):
    file = tmp_path / "secret"
    file.write_bytes(SECRET + b"\r\n")
    file.chmod(0o600)
    assert read_secret(file) == (SECRET, "")
    file.chmod(0o644)
    secret, warning = read_secret(file)
    assert secret == SECRET
    assert "other users of this machine can read" in warning


@pytest.mark.parametrize(
    "content", [None, b"", b"fifteen bytes..\n", b"\n" * 40], ids=["none", "empty", "15", "newlines"]
)
def test_a_secret_that_is_missing_or_short_is_an_error_that_does_not_tell_it(tmp_path, content):
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    result = CliRunner().invoke(app, ["release", "--out", str(tmp_path / "out"), "--secret-file", str(file)])
    assert isinstance(result.exception, CourseError)
    assert "fifteen" not in str(result.exception)
    assert not (tmp_path / "out").exists()


# The student's edition ----------------------------------------------------------------------------------------------


# All that an edition of day 1 may hold.
PAGES = {f"notebooks/{name}.ipynb" for name in TO_LOOK_UP if (ROOT / "notebooks" / f"{name}.ipynb").exists()}
MAY_HOLD = re.compile(
    r"LICENSE|LICENSE-TEXT|Makefile|README\.md|AGENTS\.md|pyproject\.toml|requirements\.lock|environment\.yml|setup\.py"
    r"|\.gitignore|scripts/preflight\.py|labconfig/.+|notebooks/(?:widgets/)?day1_\w+\.\w+|exercises/day1_\w+\.ipynb"
    r"|course_utils/(?:(?:__init__|course|errors|files|loader|notebooks|progress|time_limits)\.py|days/(?:__init__\.py|days\.toml)|days/(?:day1|shared)/.+"
    r"|(?:attention|checks|costs|data|guesses|models|parts|practice|serving|views)/.+)"
)


def test_the_student_gets_one_day_and_nothing_of_answers_or_grader(out):
    student = out / "student"
    files = {path.relative_to(student).as_posix() for path in student.rglob("*") if path.is_file()}
    assert [path for path in files - PAGES if not MAY_HOLD.fullmatch(path) or "__pycache__" in path] == []
    assert {path for path in files if path.endswith(".ipynb")} == {f"notebooks/{LESSON}", f"exercises/{LESSON}", *PAGES}
    assert {"course_utils/days/day1/duel.py", "course_utils/days/day1/quiz.yaml"} <= files
    assert {"Makefile", "README.md", "AGENTS.md", "labconfig/default_setting_overrides.json"} <= files
    assert {"course_utils/views/widgets/heatmap.js", "course_utils/data/saturation.json"} <= files


def test_what_an_assistant_of_a_student_reads_is_true_of_the_edition(out):
    text = (out / "student" / "AGENTS.md").read_text(encoding="utf-8")
    folders = set(re.findall(r"`([\w/]+)/`", text)) - {"guesses"}  # made when the student guesses
    assert "exercises" in folders and all((out / "student" / folder).is_dir() for folder in folders)
    assert "solutions" not in text and "make " not in text
    assert "lesson part 3" in text and "lesson part " in (out / "student" / "exercises" / LESSON).read_text("utf-8")


def test_its_notebooks_install_no_other_course(out):
    """That would be the public one, with its answers: an edition brings a library of its own."""
    paths = [*(out / "student").glob("notebooks/*.ipynb"), *(out / "student").glob("exercises/*.ipynb")]
    assert len(paths) == 2 + len(PAGES)
    for path in paths:
        assert "google.colab" not in path.read_text(encoding="utf-8"), path.name
    assert "urls" not in tomllib.loads((out / "student" / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_no_hidden_test_and_no_result_of_one_is_in_the_exercises(out):
    text = (out / "student" / "exercises" / LESSON).read_text(encoding="utf-8")
    assert "hidden=True" not in text
    assert MIME not in text
    assert "solutions" not in text
    assert "sources/" not in text
    assert "make grade" not in text
    assert "day 2" in text and "day2_" not in text  # the link is gone, its words are there


def test_no_edition_of_any_day_shows_an_answer(quick, tmp_path):
    write_student_edition(tmp_path, DAYS)
    assert find_traces(tmp_path).faults == ()


def test_the_search_finds_what_was_planted(out, tmp_path):
    line = next(line for _, line in student_edition.lines_of_answers(COURSE))
    exercise = nbformat.read(out / "student" / "exercises" / LESSON, as_version=4)
    next(cell for cell in exercise.cells if cell.get("outputs")).outputs[0].data[MIME] = {"hidden": True}
    planted = {
        "course_utils/days/day1/given/ladders.py": f"  {line}   # as a hint\n".encode(),
        f"exercises/{LESSON}": nbformat.writes(exercise).encode(),
        "exercises/solved.ipynb": COURSE.path(1).read_bytes(),
        "notes.txt": f"key {SEEDS[1]}".encode(),
        "course_utils/data/expected/day1.json.gz": gzip.compress(b'"### BEGIN SOLUTION"'),
        "tests/test_it.py": b"pass",
    }
    for name, content in planted.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "harmless.txt").write_text("room 4.12")
    faults = find_traces(tmp_path, secrets=(SEEDS[1],)).faults
    assert {fault.partition(": ")[0] for fault in faults} == planted.keys()


def test_nothing_is_released_when_an_answer_could_be_read(quick, tmp_path, monkeypatch):
    monkeypatch.setattr(student_edition, "LIBRARY_PARTS", (*student_edition.LIBRARY_PARTS, "answers"))
    with pytest.raises(CourseError, match="answers could be read"):
        release(tmp_path / "out", [1])
    assert list((tmp_path / "out").iterdir()) == []


IMPORT_ALL = """
import importlib, json, math, pkgutil, sys
from dataclasses import asdict
import course_utils
assert course_utils.__file__.startswith(sys.argv[2]), course_utils.__file__
modules = [m.name for m in pkgutil.walk_packages(course_utils.__path__, "course_utils.")]
for name in modules:
    importlib.import_module(name)
"""
JUDGE = """
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.kernel.outcome import read_evidence
cases = json.load(open(sys.argv[1]))
judged = [asdict(judge_of(1, grade_id).judge(read_evidence(evidence))) for grade_id, evidence in cases]
"""
NOTEBOOK = """
from course_utils.checks import NotYet, checks_for
check = checks_for(day=1)
messages = []

def attempt(*args, **kwargs):
    try:
        check(*args, **kwargs)
    except NotYet as text:
        messages.append(str(text))
    else:
        messages.append("passed")

def softmax_row(row):
    e = [math.exp(x) for x in row]
    return [x / sum(e) for x in e]
attempt("softmax_row")
def attention_lists(Q, K, V):
    weights = [softmax_row(row) for row in scale_scores(scores(Q, K), len(K[0]))]
    return [[sum(w * v[c] for w, v in zip(row, V)) for c in range(len(V[0]))] for row in weights], weights
def scores(Q, K):
    return [[sum(a * b for a, b in zip(q, k)) for k in K] for q in Q]
def scale_scores(S, d_k):
    return [[s / d_k**0.5 for s in row] for row in S]
attempt("attention_lists")
attempt("scores")
attempt("scores", hidden=True)
print("")
print(json.dumps({"modules": modules, "judged": judged, "messages": messages}))
"""


@pytest.fixture(scope="module")
def cases():
    return list(cases_of_day_1())


@pytest.fixture(scope="module")
def report_of_class(out, cases, tmp_path_factory):
    """What works with the student's course_utils and no other: its modules, verdicts, and what checks say."""
    file = tmp_path_factory.mktemp("cases") / "cases.json"
    file.write_text(json.dumps([(grade_id, as_json(evidence)) for grade_id, evidence in cases]))
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IMPORT_ALL + JUDGE + NOTEBOOK, str(file), str(out / "student")],
        cwd=out / "student",
        env=os.environ | {"PYTHONPATH": str(out / "student"), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.strip().splitlines()[-1])


def cases_of_day_1():
    """(grade_id, evidence) of every variant, every known mistake and numbers by hand in several states."""
    import_module("variants.day1")  # registers its answers
    for (day, grade_id), answers in [*RIGHT.items(), *WRONG.items()]:
        if day == 1:
            yield from ((grade_id, evidence_for(1, grade_id, answered(1, grade_id, answer))) for answer in answers)
    for grade_id in all_exercises(1):
        yield grade_id, judge_of(1, grade_id).reference()
        for _, evidence in judge_of(1, grade_id).mistakes():
            yield grade_id, evidence
    for score, weights in [
        (None, None),
        (3, [0.18, 0.09, 0.73]),
        (3, [0.179, 0.088, 0.734]),
        (3, [0.11, 0.04, 0.84]),
        (None, [0.1142, 0.042, 0.8438]),
        (3, [0.2, 0.3]),
        ("3", [0.2, 0.3, 0.5]),
    ]:
        yield "by_hand_three", gather(1, "by_hand_three", {"score_33": score, "weights_3": weights})


@pytest.mark.filterwarnings("ignore")
def test_its_checks_say_of_every_answer_what_the_full_course_says(cases, report_of_class):
    same = 0
    for (grade_id, evidence), verdict in zip(cases, report_of_class["judged"], strict=True):
        own = judge_of(1, grade_id).judge(evidence)
        if all_exercises(1)[grade_id].scaled and str(own.mistake).startswith("scores times"):
            continue  # what is found by trying the reference is not told where there is none
        same += 1
        assert {**verdict, "rungs": tuple(map(tuple, verdict["rungs"]))} == vars(own), grade_id
    assert same > 150


def test_a_check_in_the_students_notebook_advises_and_lends_an_earlier_answer(report_of_class):
    softmax, attention, scores, hidden = report_of_class["messages"]

    def softmax_row(row):
        e = [2.718281828459045**x for x in row]
        return [x / sum(e) for x in e]

    own = str(CheckMessage(1, "softmax_row", examine(1, "softmax_row", {"softmax_row": softmax_row})[1]))
    assert softmax.startswith(f"{own}\n\nThe smallest failing input found (3 numbers):\n")
    assert "Subtract max(row)" in " ".join(softmax.split())
    assert attention == scores == "passed"
    assert hidden == "Hidden inputs are tried when the notebook is graded."


def test_all_of_its_library_can_be_imported_without_the_grader(report_of_class):
    names = report_of_class["modules"]
    assert {
        "course_utils.views.widgets.heatmap",
        "course_utils.attention.flash",
        "course_utils.checks.interactive",
    } <= set(names)
    assert not [name for name in names if name.startswith(("course_utils.grading", "course_utils.answers"))]


def test_its_makefile_opens_the_lab_and_sends_to_the_teacher_for_points(out):
    def make(target, *more):
        command = ["make", "--no-print-directory", *more, target]  # as it says where it is inside another make
        return subprocess.run(command, cwd=out / "student", capture_output=True, text=True)

    help_text = make("help").stdout
    targets = set(re.findall(r"^  make (\S+)", help_text, re.MULTILINE))
    assert targets == {"help", "lab", "model", "lab-report", "clean", "grade"} and "Contribute" not in help_text
    assert "jupyterlab" in make("lab", "--dry-run").stdout
    graded = make("grade")
    assert graded.returncode != 0
    assert "points come from your teacher" in graded.stderr
    text = (out / "student" / "Makefile").read_text(encoding="utf-8")
    assert "SUBMISSIONS" not in text and "grades" not in text


def test_a_student_of_a_class_can_write_a_lab_report_too(out, tmp_path):
    page = tmp_path / "page.html"
    command = [sys.executable, "-m", "course_utils.parts.lab_report", "--out", str(page)]
    ran = subprocess.run(command, cwd=out / "student", capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"your lab report: {page}\n", "")
    assert "not answered yet" in page.read_text(encoding="utf-8")


def test_its_project_file_has_no_grader_and_ships_the_stored_results(out):
    project = tomllib.loads((out / "student" / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dependencies"] == full_project()["project"]["dependencies"]
    assert not {"scripts", "entry-points"} & set(project["project"])
    assert set(project["project"]["optional-dependencies"]) == {"mlx"}
    assert "grade" not in (out / "student" / "pyproject.toml").read_text(encoding="utf-8")
    assert list(project["tool"]) == ["setuptools"]
    assert "data/**/*.gz" in project["tool"]["setuptools"]["package-data"]["course_utils"]
    installed = [name for names in project["tool"]["setuptools"]["data-files"].values() for name in names]
    assert "labconfig/labextension/package.json" in installed
    assert [name for name in installed if not (out / "student" / name).is_file()] == []


def full_project():
    return tomllib.loads((COURSE.folder / "pyproject.toml").read_text(encoding="utf-8"))


# The grader's bundle ------------------------------------------------------------------------------------------------


def test_only_what_comes_of_hidden_inputs_differs_in_the_bundle(out):
    public, seeded = (nbformat.read(official.path(1), as_version=4) for official in (COURSE, AnswerKey(out / "grader")))
    changed = 0
    for cell, other in zip(public.cells, seeded.cells, strict=True):
        for output, again in zip(hidden_outputs(cell), hidden_outputs(other), strict=True):
            changed += output.data[MIME] != again.data[MIME]
            assert evidence_of(output).exercise == evidence_of(again).exercise
            del output.data[MIME], again.data[MIME]
    assert changed == len([grade_id for grade_id in all_exercises(1) if is_drawn(grade_id)])
    assert public == seeded


def test_what_the_bundle_holds_is_right_on_the_hidden_inputs_of_the_class(out):
    for cell in nbformat.read(out / "grader" / "solutions" / LESSON, as_version=4).cells:
        for output in hidden_outputs(cell):
            evidence = evidence_of(output)
            grade_id = evidence.exercise
            if is_drawn(grade_id):
                assert judge_of(1, grade_id).judge(evidence).share == 0
                assert judge_of(1, grade_id, class_seeds(SECRET, 1)[grade_id]).judge(evidence).share == 1


def test_a_class_is_graded_on_its_own_hidden_inputs(out, tmp_path):
    bundle = out / "grader"
    result = CliRunner().invoke(app, ["grade", str(COURSE.path(1)), "--bundle", str(bundle), "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (graded,) = json.loads((tmp_path / "grades.json").read_text())["submissions"]
    assert graded["score"] == graded["max_score"] == 31
    unseeded = tmp_path / "unseeded"
    shutil.copytree(bundle, unseeded)
    (unseeded / "keys.json").unlink()
    same = sum(exercise.points for grade_id, exercise in all_exercises(1).items() if not is_drawn(grade_id))
    assert grade_notebook(COURSE.path(1), settings=Settings(AnswerKey(unseeded))).score == same


@pytest.mark.parametrize(("keys", "edition"), [({}, "unknown"), ({"edition": "9.9.9"}, "9.9.9")])
def test_a_bundle_of_another_edition_is_refused_with_what_to_do(keys, edition, tmp_path):
    (tmp_path / "solutions").mkdir()
    (tmp_path / "keys.json").write_text(json.dumps(keys))
    shutil.copy(COURSE.path(1), tmp_path / "solutions")
    result = CliRunner().invoke(app, ["grade", str(COURSE.path(1)), "--bundle", str(tmp_path)])
    assert isinstance(result.exception, CourseError)
    assert f"a bundle of edition {edition}, but this course is edition {version()}: grade with that edition" in str(
        result.exception
    )


@pytest.mark.parametrize("name", ["the keys of hidden inputs", "the keys of hidden inputs in numbers"])
def test_no_key_and_no_hidden_input_of_a_class_comes_back_to_a_student(name, out, tmp_path):
    bundle = AnswerKey(out / "grader")
    entry = CORPUS[name]
    seeds = bundle.seeds(1)
    graded = grade_submission(write_entry(entry, tmp_path), Settings(bundle))
    assert verdicts(record_of(graded)) == entry.deserves
    known = grade_submission(write_entry(entry, tmp_path / "public"), Settings())
    message, public = (
        next(each.message for each in grade.exercises if each.id == "scale_scores") for grade in (graded, known)
    )
    assert not any(key[:8] in message for key in seeds.values())
    assert str(int(seeds["scores"][:4], 16)) not in message
    assert (message == public) == (name != "the keys of hidden inputs")  # without a key, inputs are quoted


FIRST_LOOK = """
import linecache, os, re, sys
from IPython.core.interactiveshell import InteractiveShell
def softmax_row(row):
    kernel = InteractiveShell.instance().kernel
    texts = [globals(), sys.argv, os.environ, kernel.get_parent(), kernel.session.key, *linecache.cache.values()]
    raise ValueError(sorted({key for text in texts for key in re.findall("[0-9a-f]{64}", str(text))}))
"""


def test_in_a_class_an_error_is_quoted_and_no_key_is_there_yet(out, tmp_path):
    bundle = AnswerKey(out / "grader")
    slips = {"softmax_row": FIRST_LOOK, "self_attention": "def self_attention(x, *W):\n    raise ValueError('mine')"}
    graded = grade_submission(collect([in_answers(slips)(tmp_path)])[0], Settings(bundle))
    messages = {each.id: each.message for each in graded.exercises if each.status not in ("passed", "missing")}
    assert messages.keys() == slips.keys()
    assert "it raised ValueError: mine, at line 2 of your cell" in messages["self_attention"]
    assert "it raised ValueError: [" in messages["softmax_row"]
    assert not any(seed in messages["softmax_row"] for seed in bundle.seeds(1).values())


def test_what_fails_in_a_class_and_holds_alone_is_said_to_be_unsteady(out, tmp_path):
    keeps = "math.seen = []\ndef softmax_row(row):\n    math.seen.append(row)\n"
    late = "def scale_scores(S, d_k):\n    if math.seen:\n        raise ValueError(math.seen)\n"
    slips = {
        "softmax_row": keeps + "    e = [math.exp(x - max(row)) for x in row]\n    return [x / sum(e) for x in e]",
        "scale_scores": late + "    return [[s / math.sqrt(d_k) for s in row] for row in S]",
    }
    graded = grade_submission(collect([in_answers(slips)(tmp_path)])[0], Settings(AnswerKey(out / "grader")))
    failed = [(each.id, each.message) for each in graded.exercises if each.status not in ("passed", "missing")]
    assert failed == [("scale_scores", UNSTEADY)]


def test_a_bundle_of_one_day_grades_a_notebook_whose_name_tells_none(out, tmp_path):
    path = tmp_path / "ada.ipynb"
    shutil.copy(out / "student" / "exercises" / LESSON, path)
    bundle = AnswerKey(out / "grader")
    (graded,) = grade_class(collect([path]), Settings(bundle)).graded
    assert (bundle.days(), graded.day, graded.status, graded.max_score) == ([1], 1, "failed", 31)


def test_the_bundle_is_for_its_owner_only_and_does_not_hold_the_secret(out):
    assert (out / "grader").stat().st_mode & 0o077 == 0
    assert (out / "grader.zip").stat().st_mode & 0o077 == 0
    for path in out.rglob("*"):
        assert path.is_dir() or SECRET not in path.read_bytes()


# The folder ---------------------------------------------------------------------------------------------------------


def test_zips_hold_their_folders(out):
    for name in ("student", "grader"):
        with zipfile.ZipFile(out / f"{name}.zip") as file:
            zipped = {member: file.read(member) for member in file.namelist()}
        files = [path for path in (out / name).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        assert zipped == {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


@pytest.mark.thorough("a class's edition is released a second time")
def test_the_same_release_gives_the_same_bytes_in_the_place_of_the_first(out):
    before = {path.name: path.read_bytes() for path in out.glob("*.zip")}
    release(out, [1], SECRET)
    assert {path.name: path.read_bytes() for path in out.glob("*.zip")} == before
    assert (out / "notes.txt").read_text() == "room 4.12"
    assert sorted(path.name for path in out.iterdir() if path.is_dir()) == ["grader", "student"]


def test_a_course_that_is_not_built_is_not_released(tmp_path, monkeypatch):
    problems = ["exercises/day1.ipynb: was solved", "solutions/day1.ipynb: not there; run make build"]
    monkeypatch.setattr(class_release.build, "check", lambda *_, **options: problems)
    with pytest.raises(CourseError, match=r"^solutions/day1\.ipynb: not there; run make build first$"):
        release(tmp_path / "out", [1])
    assert not (tmp_path / "out").exists()


def test_a_folder_that_no_release_made_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("three years of work")
    with pytest.raises(CourseError, match="no release made it"):
        release(tmp_path, [1])
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("where", ["student/README.md", "grader/remarks.txt", "student.zip"])
def test_a_release_that_somebody_changed_is_not_overwritten(out, tmp_path, where):
    folder = tmp_path / "release"
    shutil.copytree(out, folder)
    (folder / where).write_text("mine")
    with pytest.raises(CourseError, match="was changed or added since"):
        release(folder, [1])
    assert (folder / where).read_text() == "mine"


def test_a_release_without_a_secret_says_that_hidden_inputs_are_public(quick, tmp_path):
    result = CliRunner().invoke(app, ["release", "--out", str(tmp_path / "out"), "--days", "2, 1"])
    assert result.exit_code == 0, result.output
    assert "days 1, 2:" in result.stdout
    assert "the hidden inputs are those of the public course" in result.stderr
    bundle = tmp_path / "out" / "grader"
    assert json.loads((bundle / "keys.json").read_text()) == {"edition": version()}
    assert (bundle / "solutions" / LESSON).read_bytes() == COURSE.path(1).read_bytes()


def test_a_note_stands_at_the_top_of_the_readme_and_is_kept_by_the_next_release(quick, tmp_path):
    out = tmp_path / "out"
    note = tmp_path / "welcome.md"
    note.write_text("Room 4.12, **Mondays**. {days}\n", encoding="utf-8")
    for note_given in (note, None):
        release(out, [1], note=note_given)
        text = (out / "student" / "README.md").read_text(encoding="utf-8")
        assert text.split("\n\n")[1] == "Room 4.12, **Mondays**. {days}"
        note.unlink(missing_ok=True)
    (out / "note.md").write_text("Room 5.1 now.")
    release(out, [1])
    assert "\n\nRoom 5.1 now.\n\nA course" in (out / "student" / "README.md").read_text(encoding="utf-8")
    with pytest.raises(CourseError, match=r"gone\.md: the note cannot be read"):
        release(out, [1], note=tmp_path / "gone.md")


@pytest.mark.parametrize(
    ("note", "heading"),
    [
        (
            "# Deep Learning\n\nRoom 4.\n\n## When\n\n```\n# code\n```",
            "## Deep Learning\n\nRoom 4.\n\n### When\n\n```\n# code\n```",
        ),
        ("Deep Learning\n===\n\nWhen\n---\nMondays", "Deep Learning\n---\n\n### When\n\nMondays"),
        ("## When\n\nMondays", "## When\n\nMondays"),
    ],
    ids=["a title", "a title that is underlined", "none"],
)
def test_a_note_with_a_title_leaves_the_readme_one_title(quick, tmp_path, note, heading):
    write_student_edition(tmp_path, [1], note=note)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert f"\n\n{heading}\n\nA course in notebooks" in text
    titles = [token for token in MarkdownIt().parse(text) if token.type == "heading_open" and token.tag == "h1"]
    assert len(titles) == 1


def test_an_edition_tells_of_no_day_that_it_does_not_have(quick, tmp_path):
    write_student_edition(tmp_path / "one", [1])
    text = (tmp_path / "one" / "README.md").read_text(encoding="utf-8")
    assert "Triton" not in text and "lab report" not in text and "No exercise needs a GPU.\n" in text
    assert "93 MB" in text  # of the model that make lab brings
    assert "Next:" not in (tmp_path / "one" / "exercises" / LESSON).read_text(encoding="utf-8")
    write_student_edition(tmp_path / "six", [6])
    assert "One of day 6 needs Triton" in (tmp_path / "six" / "README.md").read_text(encoding="utf-8")


def test_students_on_windows_are_told_the_commands_that_the_course_tells(out):
    """But for the page on which JupyterLab opens."""
    texts = [
        path.read_text(encoding="utf-8")
        for path in (COURSE.folder / "docs" / "install.md", out / "student" / "README.md")
    ]
    course, class_ = (re.findall(r"^    (?:py |set |\.venv\\).+$", text, re.MULTILINE) for text in texts)
    assert len(course) == 5
    assert [line.replace("notebooks/course_map.ipynb", "README.md") for line in course] == class_


@pytest.mark.parametrize(("days", "message"), [("19", "no exercises for day 19"), ("one", "give numbers")])
def test_days_that_are_none_are_an_error(tmp_path, days, message):
    result = CliRunner().invoke(app, ["release", "--out", str(tmp_path / "out"), "--days", days])
    assert result.exit_code != 0
    assert message in str(result.exception) + result.output
    assert not (tmp_path / "out").exists()
