"""The check of a web page: the same verdicts without PyTorch, from the files that enter the page alone."""

import gzip
import io
import json
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest
from needs import NODE, PYODIDE
from page_verdicts import cells_of

from course_utils.checks import in_page
from course_utils.checks.judge import time_limit
from course_utils.files import write_all
from course_utils.site.exercise_pages import WITHOUT_TORCH
from course_utils.site.python_files import course_files, python_files

TESTS = Path(__file__).parents[1]
MORE = pytest.mark.thorough("the exercises of a page are judged without PyTorch on all days")
BY_DAY = [day if day in (1, 3) else pytest.param(day, marks=MORE) for day in WITHOUT_TORCH]
ON_A_PAGE = """
import json, sys
sys.path[:0] = [{folder!r}, {tests!r}]
from page_verdicts import hide_torch
hide_torch()
from course_utils.checks import in_page
assert in_page.__file__.startswith({folder!r})
given, stubs, answers, asked = json.load(sys.stdin)
for grade_id in asked:
    earlier = {{}}
    for name in answers:
        if name == grade_id:
            break
        earlier[name] = answers[name]
    for cell in (stubs[grade_id], answers[grade_id]):
        records = []
        in_page.check({day}, grade_id, given, earlier, cell, records.append)
        print(grade_id, records[-1]["status"], records[-1]["points"], records[-1]["full"])
"""


@pytest.mark.parametrize("day", BY_DAY)
def test_answers_pass_from_the_files_of_the_page_and_stubs_get_nothing(tmp_path, day):
    write_all({tmp_path / "course_utils" / name: content for name, content in course_files().items()})
    program = ON_A_PAGE.format(folder=str(tmp_path), tests=str(TESTS), day=day)
    text = json.dumps([*cells_of(day), WITHOUT_TORCH[day]])
    ended = subprocess.run([sys.executable, "-c", program], input=text, capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    lines = [line.split() for line in ended.stdout.splitlines()]
    for (grade_id, _, earned, _), (_, status, points, full) in zip(lines[::2], lines[1::2], strict=True):
        assert float(earned) == 0, grade_id
        assert status == "passed" and float(points) == float(full), grade_id
    assert len(lines) == 2 * len(WITHOUT_TORCH[day])


@NODE
@PYODIDE
@pytest.mark.thorough("the Python of the pages is compiled, twice")
def test_the_python_of_the_pages_is_small_and_compiled_for_the_first_check_and_each_time_the_same():
    folder, files = python_files()
    again = python_files()
    assert again[0] == folder and again[1] == files
    assert sum(len(gzip.compress(content)) for content in files.values()) < 10e6  # bytes over the wire
    packs = {}
    for name in ("library", "packages"):
        with zipfile.ZipFile(io.BytesIO(gzip.decompress(files[f"{folder}/{name}.pack"]))) as pack:
            packs[name] = {each: pack.read(each) for each in pack.namelist()}
    compiled = {name for pack in packs.values() for name in pack if name.endswith(".pyc")}
    needed = {"asyncio/__init__", "numpy/__init__", "hypothesis/core", "course_utils/answers/day1/exercises"}
    assert {f"{name}.pyc" for name in needed} <= compiled
    assert not {name for pack in packs.values() for name in pack if f"{name}c" in compiled}  # nothing comes twice
    path = "/lib/python3.12/site-packages/course_utils/loader.pyc"
    assert path.encode() in packs["packages"]["course_utils/loader.pyc"]  # as its __file__ is
    days = set(packs["packages"]) & {f"course_utils/answers/day{day}/exercises.py" for day in WITHOUT_TORCH}
    assert len(days) == len(WITHOUT_TORCH) - 1  # those of other days come as sources
    assert any("numpy" in name and "LICENSE" in name for name in packs["packages"])


@pytest.mark.parametrize("day", BY_DAY)
def test_each_known_mistake_gets_the_same_verdict_without_torch(day):
    command = [sys.executable, TESTS / "page_verdicts.py", "--days", str(day)]
    with_torch, without = (subprocess.check_output([*command, *more]) for more in ([], ["--without-torch"]))
    assert json.loads(with_torch) == json.loads(without)


ENDLESS = {
    "a loop": "while True:\n        row = row",
    "a caught stop": """while True:
        try:
            while row:
                pass
        except BaseException:
            pass""",
    "recursion": "while True:\n        again(row)",
    "a comprehension": "return [x for x in iter(int, 1)]",
}


if time_limit.monitoring is not None:  # Python 3.11 has none

    @pytest.mark.parametrize("body", ENDLESS.values(), ids=ENDLESS)
    def test_an_answer_without_end_is_stopped_where_there_are_no_signals(monkeypatch, body):
        """A page has no signals, nor has a thread."""
        monkeypatch.setattr(time_limit, "ANSWER_SECONDS", 0.3)
        answer = f"def again(row):\n    for x in row:\n        again(row[1:])\n\ndef softmax_row(row):\n    {body}\n"
        given, *_ = cells_of(1)
        records = []
        thread = threading.Thread(target=in_page.check, args=(1, "softmax_row", given, {}, answer, records.append))
        thread.start()
        thread.join(60)
        assert "seconds of work" in records[-1]["text"] and " of its cell" in records[-1]["text"]


def test_run_shows_what_a_cell_prints_and_the_value_of_its_last_line():
    assert in_page.run(1, [], {}, "print('sum')\nsum([1, 2])") == "sum\n3\n"


@pytest.mark.parametrize("cell", ["sum([1, 2)", "return 1", "break", "await x", "def f():\n    nonlocal x"])
def test_a_cell_that_is_not_python_is_said_to_be_none(cell):
    assert "The cell is not valid Python: " in in_page.run(1, [], {}, cell)


def test_a_cell_that_exits_is_reported():
    assert "SystemExit" in in_page.run(1, [], {}, "raise SystemExit")
