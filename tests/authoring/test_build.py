"""The build: sources in, notebooks out; the same bytes every time, and a clear line when a source is wrong."""

import base64
import json
import os
import re
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from in_process import course as course_command

from course_utils import course as days_of_the_course
from course_utils.answer_key.strip_answers import release_exercise
from course_utils.authoring import build as building
from course_utils.authoring import sources
from course_utils.authoring.sources import canonical, load_source, read_source
from course_utils.course import ROOT
from course_utils.errors import CourseError, SourceError
from course_utils.files import code_in
from course_utils.loader import PACKAGE

HEADER = """---
jupytext:
  notebook_metadata_filter: -kernelspec,-jupytext.text_representation.jupytext_version
  text_representation:
    extension: .md
    format_name: myst
    format_version: 0.13
---

"""
LESSON = (
    HEADER
    + """# A lesson

```{code-cell} ipython3
x = 1
x
```

```{code-cell} ipython3
x
```

```{code-cell} ipython3
x
```

```{code-cell} ipython3
:tags: [raises-exception]

from course_utils.answer_key.strip_answers import find_regions

find_regions("### END SOLUTION")
```
"""
)


def answer(name="double", solution="    return twice_of(number)", options="", above="def double(number):"):
    return f"""```{{code-cell}} ipython3
---
{options}nbgrader:
  grade: false
  grade_id: {name}
  locked: false
  schema_version: 3
  solution: true
  task: false
---
twice_of = (2).__mul__
{above}
    ### BEGIN SOLUTION
{solution}
    ### END SOLUTION
```
"""


def check(name="double", body="print(double(4))", points="  points: 2\n"):
    return f"""```{{code-cell}} ipython3
---
nbgrader:
  grade: true
  grade_id: check_{name}
  locked: true
{points}  schema_version: 3
  solution: false
  task: false
tags: [raises-exception]
---
{body}
```
"""


CODE = '''"""A module."""

import re  # for texts


class Rung:
    """One step.

    # no comment
    """

    texts = ("# none", """
# none either

'quoted'""", r'\\\\')  # one


def hint():
    # Said once.

    return f"{'#'}" "it's"  # "what
'''
BARE = '''import re
class Rung:
    texts = ("# none", """
# none either

'quoted'""", r'\\\\')
def hint():
    return f"{'#'}" "it's"'''


def test_code_alone_has_no_docstrings_comments_and_empty_lines():
    assert code_in(CODE) == BARE
    assert code_in(CODE.replace("Said once", "Said twice").replace("One step", "A step")) == BARE
    for before, after in (("# none", "# one"), ("either\n\n'", "either\n'"), ('"it', '"It')):
        assert before in CODE and code_in(CODE.replace(before, after)) != BARE
    assert code_in('"""Words alone."""') == ""
    assert code_in("rungs = [\n    '# scores'\n    'are said',\n]") == "rungs = [\n    '# scores'\n    'are said',\n]"


HIDDEN = """from IPython.display import display

print(double(4))
display({"text/plain": "seen", "application/vnd.course.evidence+json": [1]}, raw=True)
### BEGIN HIDDEN TESTS
display({"text/plain": "secret"}, raw=True, metadata={"course": {"hidden": True}})
display({"application/vnd.course.evidence+json": [2]}, raw=True)
### END HIDDEN TESTS"""
EXERCISE = HEADER + "# An exercise\n\n" + answer() + "\n" + check(body=HIDDEN)


def course(root: Path, exercise: str | None = None, lesson: str | None = None) -> Path:
    for kind, text in (("lessons", lesson), ("exercises", exercise)):
        (root / "sources" / kind).mkdir(parents=True, exist_ok=True)
        if text is not None:
            (root / "sources" / kind / "day1_small.md").write_text(text)
    return root


def complaint(root: Path, exercise: str | None = None, lesson: str | None = None) -> str:
    """What the build says about a wrong source; it writes nothing."""
    with pytest.raises(SourceError) as caught:
        building.build(course(root, exercise, lesson))
    assert not list(root.rglob("*.ipynb"))
    message = str(caught.value)
    assert re.match(r"sources/\w+/day1_small\.md:\d+: .+; .+", message) and "\n" not in message
    return message


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    root = course(tmp_path_factory.mktemp("course"), EXERCISE, LESSON)
    building.build(root)
    return root


@pytest.fixture
def copy(built, tmp_path):
    return Path(shutil.copytree(built, tmp_path / "copy"))


def read_built(path: Path):
    return nbformat.read(path, as_version=4)


def files(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*.ipynb"))}


def test_a_build_makes_the_three_editions(built):
    assert sorted(files(built)) == [
        "exercises/day1_small.ipynb",
        "notebooks/day1_small.ipynb",
        "solutions/day1_small.ipynb",
    ]
    for name in files(built):
        nbformat.validate(read_built(built / name))


def test_the_answer_is_cut_out_of_the_exercise_only(built):
    exercise, solution = (read_built(built / f"{room}/day1_small.ipynb").cells for room in ("exercises", "solutions"))
    stub = '    raise NotImplementedError("your code goes here")'
    assert exercise[1].source == "twice_of = (2).__mul__\ndef double(number):\n" + stub
    assert "return twice_of(number)" in solution[1].source


def test_hidden_tests_and_what_they_print_are_cut_out(built):
    exercise, solution = ((built / f"{room}/day1_small.ipynb").read_text() for room in ("exercises", "solutions"))
    for private in ("secret", "HIDDEN", "vnd.course"):
        assert private in solution
    assert "secret" not in exercise and "HIDDEN" not in exercise
    outputs = read_built(built / "exercises/day1_small.ipynb").cells[2].outputs
    assert (
        outputs[0].text == "Not run yet. A right answer shows:\n8\n"
        and outputs[1].data == {"text/plain": "seen"}
        and len(outputs) == 2
    )


def test_a_check_that_was_not_run_lists_what_it_will_try_and_claims_no_points():
    passed = {"text/plain": "double: passed, 2 of 2 points\n\n  ✓ one\n  ✓ ten"}
    check = nbformat.v4.new_code_cell(
        "check('double')",
        metadata={"nbgrader": {"grade": True}},
        outputs=[nbformat.v4.new_output("display_data", passed)],
    )
    (cell,) = release_exercise(nbformat.v4.new_notebook(cells=[check])).cells
    assert cell.outputs[0].data["text/plain"] == "Not run yet. The check will try:\n  ○ one\n  ○ ten"


@pytest.mark.parametrize(("tags", "shown"), [(["ungraded"], True), (["ungraded", "asked"], False)])
def test_what_the_text_asks_is_not_shown_before_a_student_runs_the_cell(tags, shown):
    cell = nbformat.v4.new_code_cell("larger", metadata={"tags": tags})
    cell.outputs = [nbformat.v4.new_output("stream", text="the second\n")]
    notebook = nbformat.v4.new_notebook(cells=[cell])
    assert bool(release_exercise(notebook).cells[0].outputs) == shown
    assert notebook.cells[0].outputs  # the solution keeps it


@pytest.mark.parametrize("path", sorted((ROOT / "sources/exercises").glob("*.md")), ids=lambda path: path.stem)
def test_a_cell_below_a_question_says_that_its_output_is_the_answer(path):
    for above, cell in pairwise(read_source(path).cells):
        tags = cell.metadata.get("tags", [])
        if above.cell_type == "markdown" and "ungraded" in tags:
            paragraph = above.source.rstrip().rpartition("\n\n")[2]
            asks = "?" in paragraph or "before you run" in paragraph.lower()
            assert "asked" in tags or not asks, f"tag the cell below “{paragraph[-60:]}” with asked"


def test_nothing_in_an_exercise_was_counted_and_it_is_paired_with_no_text(built):
    notebook = read_built(built / "exercises/day1_small.ipynb")
    assert all(cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")
    assert "jupytext" not in notebook.metadata


def test_code_to_mend_stays_and_nothing_is_put_in(tmp_path):
    mend = "score = None\nif True:\n    pass"
    source = answer(options="course:\n  stub: given\n", above=mend, solution="    score = 2")
    course(tmp_path, HEADER + source + "\n" + check(body="print(score)"))
    building.build(tmp_path)
    assert read_built(tmp_path / "exercises/day1_small.ipynb").cells[0].source.endswith("if True:\n    pass")


def test_cells_have_lasting_ids(built, tmp_path):
    before = [cell.id for cell in read_built(built / "notebooks/day1_small.ipynb").cells]
    assert len(set(before)) == len(before)
    course(tmp_path, lesson=LESSON.replace("# A lesson\n", "# A lesson\n\n```{code-cell} ipython3\nnew = 1\n```\n"))
    after = [cell.id for cell in read_source(tmp_path / "sources/lessons/day1_small.md").cells]
    assert [one for one in after if one in before] == before
    assert [cell.id for cell in read_built(built / "solutions/day1_small.ipynb").cells][1:] == [
        "double",
        "check_double",
    ]


def test_a_built_notebook_holds_nothing_of_the_machine_or_the_moment(built):
    for name, content in files(built).items():
        text = content.decode()
        assert str(built) not in text and "site-packages" not in text and str(Path(__file__).parents[2]) not in text
        notebook = json.loads(text)
        assert set(notebook["metadata"]) <= {"course", "jupytext", "kernelspec", "language_info"}
        assert "version" not in notebook["metadata"]["language_info"]
        for cell in notebook["cells"]:
            assert "execution" not in cell["metadata"]
        assert text.endswith("}\n") and name


def test_counts_are_in_order(built):
    cells = read_built(built / "notebooks/day1_small.ipynb").cells
    assert [cell.execution_count for cell in cells if cell.cell_type == "code"] == [1, 2, 3, 4]


def test_a_widget_is_stored_without_its_random_id(tmp_path):
    cell = "```{code-cell} ipython3\nimport ipywidgets\n\nipywidgets.IntSlider()\n```\n"
    building.build(course(tmp_path, lesson=HEADER + cell))
    text = (tmp_path / "notebooks/day1_small.ipynb").read_text()
    assert "widget-view" not in text and "model_id" not in text and "IntSlider" in text


def test_a_lesson_that_lost_its_last_widget_has_no_states_of_widgets(tmp_path):
    choices = [{"text": text, "right": text == "yes", "why": "so it is"} for text in ("yes", "no")]
    quiz = f"Quiz([{{'question': 'Is it?', 'choices': {choices}}}])"
    cell = f"```{{code-cell}} ipython3\nfrom course_utils.views import Quiz\n\n{quiz}\n```\n"
    states = tmp_path / "notebooks/widgets/day1_small.json"
    building.build(course(tmp_path, lesson=HEADER + cell))
    assert states.exists() and building.check(tmp_path) == []
    measures = HEADER + "```{code-cell} ipython3\nimport time\n\nprint(time.time())\n```\n"
    with pytest.raises(SourceError, match="measured"):
        building.build(course(tmp_path, lesson=measures))
    assert states.exists(), "a day is written when all of its notebooks are right, or not at all"
    building.build(course(tmp_path, lesson=HEADER + "No widget is here.\n"))
    assert not states.exists() and building.check(tmp_path) == []


def test_nothing_is_built_of_a_draft_for_a_planned_day(copy, monkeypatch):
    planned = tuple(replace(day, minutes=0) if day.number == 7 else day for day in days_of_the_course.DAYS)
    monkeypatch.setattr(days_of_the_course, "DAYS", planned)
    (copy / "sources/lessons/day7_draft.md").write_text(HEADER + "# Not yet\n")
    assert building.check(copy) == []
    assert not building.build(copy).written and not (copy / "notebooks/day7_draft.ipynb").exists()
    monkeypatch.setattr(days_of_the_course, "DAYS", ())
    assert [line for line in building.check(copy) if "day7_draft" in line]


def test_a_forced_build_gives_the_same_bytes(copy):
    before = files(copy)
    report = building.build(copy, force=True)
    assert files(copy) == before and not report.written


def test_a_forced_build_keeps_the_timings_of_unchanged_cells(tmp_path):
    timing = "```{code-cell} ipython3\n:tags: [nbval-ignore-output]\n\nimport time\ntime.time_ns()\n```\n"
    root = course(tmp_path, lesson=HEADER + "# A lesson\n\n" + timing)
    building.build(root)
    before = files(root)
    building.build(root, force=True)
    assert files(root) == before


def test_timings_with_wide_quartiles_are_refused_and_those_of_the_build_before_kept(tmp_path):
    seconds = tmp_path / "seconds.json"
    cell = f"""```{{code-cell}} ipython3
:tags: [nbval-ignore-output]

import itertools
import json

from course_utils.costs.measure import time_together

with open({str(seconds)!r}) as file:
    turns = json.load(file)
clock = itertools.accumulate(value for turn in turns for value in (0, turn))
time_together({{"f": int}}, repeats=4, warmup=0, clock=clock.__next__)["f"].median
```
"""
    seconds.write_text("[1, 1, 3, 3]")
    assert "upper quartile of f is 3.0 times" in complaint(tmp_path, lesson=HEADER + "# A lesson\n\n" + cell)
    seconds.write_text("[1, 1, 1.5, 1.5]")
    building.build(tmp_path)
    before = files(tmp_path)
    seconds.write_text("[1, 1, 3, 3]")
    building.build(tmp_path, force=True)
    assert files(tmp_path) == before


def test_a_forced_build_keeps_a_picture_that_another_machine_drew_a_shade_otherwise(tmp_path):
    drawn = "import io\n\nfrom PIL import Image\n\nfile = io.BytesIO()\n"
    drawn += "Image.new('RGB', (6, 4), ({0}, {0}, {0})).save(file, 'png')\n"
    drawing = "from IPython.display import Image\n\nImage(file.getvalue())\n"
    cell = "```{code-cell} ipython3\n" + drawn.format(100) + drawing + "```\n"
    building.build(course(tmp_path, lesson=HEADER + cell))
    path = tmp_path / "notebooks/day1_small.ipynb"
    for shade, retained in ((101, True), (120, False)):
        notebook = read_built(path)
        world = {}
        exec(drawn.format(shade), world)
        there = base64.b64encode(world["file"].getvalue()).decode()
        (output,) = notebook.cells[0].outputs
        output.data["image/png"] = there
        path.write_text(nbformat.writes(notebook) + "\n")
        building.build(tmp_path, force=True)
        assert (read_built(path).cells[0].outputs[0].data["image/png"].strip() == there) is retained
        assert building.check(tmp_path) == []


def test_kept_timings_are_numbered_anew_where_a_cell_was_put_before_them(tmp_path):
    timing = "```{code-cell} ipython3\n:tags: [nbval-ignore-output]\n\nimport time\ntime.time_ns()\n```\n"
    root = course(tmp_path, lesson=HEADER + "# A lesson\n\n" + timing)
    building.build(root)
    lesson = next((root / "sources/lessons").glob("*.md"))
    lesson.write_text(HEADER + "# A lesson\n\n```{code-cell} ipython3\n1 + 1\n```\n\n" + timing)
    building.build(root)
    assert building.check(root) == []


def test_check_sees_an_edited_output(copy):
    path = copy / "notebooks/day1_small.ipynb"
    notebook = read_built(path)
    next(cell for cell in notebook.cells if cell.get("outputs")).outputs[0].data["text/plain"] = "2"
    path.write_text(nbformat.writes(notebook) + "\n")
    assert any("run or saved since" in line for line in building.check(copy))


def test_unchanged_sources_are_not_executed_again(copy, monkeypatch):
    monkeypatch.setattr(building, "execute", lambda *_: pytest.fail("executed"))
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*.ipynb")}
    building.build(copy)
    assert {path: path.stat().st_mtime_ns for path in copy.rglob("*.ipynb")} == before


def test_only_the_day_that_is_asked_for_is_built(tmp_path):
    course(tmp_path, lesson=LESSON)
    (tmp_path / "sources/lessons/day2_other.md").write_text(HEADER + "Text\n")
    assert building.build(tmp_path, ["2"]).written == ["notebooks/day2_other.ipynb"]
    assert building.build(tmp_path, ["day2_other"]).unchanged == ["notebooks/day2_other.ipynb"]
    with pytest.raises(CourseError, match=r"no day '7'.*day1_small, day2_other"):
        building.build(tmp_path, ["7"])


def test_a_page_that_belongs_to_no_day_is_built_by_its_name(tmp_path):
    course(tmp_path, lesson=HEADER + "Text\n")
    (tmp_path / "sources/lessons/course_map.md").write_text(HEADER + "A map\n")
    assert building.build(tmp_path, ["course_map"]).written == ["notebooks/course_map.ipynb"]
    building.build(tmp_path, ["1"])
    assert building.check(tmp_path) == []


def test_answers_somebody_wrote_are_not_overwritten(copy):
    for name in ("sources/lessons/day1_small.md", "notebooks/day1_small.ipynb"):
        (copy / name).unlink()  # without a lesson it takes half the time
    path = copy / "exercises/day1_small.ipynb"
    path.write_text(path.read_text().replace("raise NotImplementedError", "return 3 #"))
    before = path.read_text()
    with pytest.raises(CourseError, match="somebody has solved double"):
        building.build(copy)
    assert path.read_text() == before
    for number in (1, 2):
        path.write_text(before)
        building.build(copy, force=True)
        assert path.read_text() != before
        assert (copy / f"exercises/kept/day1_small-{number}.ipynb").read_text() == before
    assert building.check(copy) == []


DECIDES_EVIDENCE = (
    "checks/kernel/measures.py",
    "checks/kernel/steps.py",
    "days/shared/attention_duel.py",
    "days/day1/duel.py",
    "answers/shared/weak_tests.py",
    "answers/day1/duel.py",
    "days/day1/given/ladders.py",
)


def test_other_inputs_make_an_exercise_stale_and_another_quiz_a_lesson(copy, tmp_path, monkeypatch):
    package = tmp_path / PACKAGE.name
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("*.js", "*.css"))
    monkeypatch.setattr(sources, "PACKAGE", package)

    def outdated():
        problems = building.check(copy)
        assert all("another version" in line for line in problems)
        return [line.partition(":")[0] for line in problems]

    for module in DECIDES_EVIDENCE:
        before = (package / module).read_text(encoding="utf-8")
        (package / module).write_text(f"# Another comment.\n{before}", encoding="utf-8")
        assert outdated() == []
        (package / module).write_text(f"{before}\nOTHER = 1\n", encoding="utf-8")
        assert "solutions/day1_small.ipynb" in outdated(), module
        (package / module).write_text(before, encoding="utf-8")
    (package / "days/day2/duel.py").write_text("OTHER = 1\n", encoding="utf-8")
    assert outdated() == []
    (package / "days/day1/quiz.yaml").write_text("[]\n", encoding="utf-8")
    assert outdated() == ["notebooks/day1_small.ipynb"]


def test_a_changed_source_rebuilds_an_exercise_nobody_solved(copy):
    source = copy / "sources/exercises/day1_small.md"
    source.write_text(source.read_text().replace("def double(number):", "def double(number: int):"))
    assert "exercises/day1_small.ipynb" in building.build(copy).written


ANSWER_LINE = "twice_of = (2).__mul__"
CHECK_LINE = "print(double(4))"
WRONG = {  # what is wrong: the source, what is said, the line it is said of
    "an unclosed region": (
        EXERCISE.replace("    ### END SOLUTION\n", ""),
        "SOLUTION region is not closed",
        "    ### BEGIN SOLUTION",
    ),
    "an END without BEGIN": (
        EXERCISE.replace("    ### BEGIN SOLUTION\n", ""),
        "END SOLUTION without its BEGIN",
        "    ### END SOLUTION",
    ),
    "a misspelt mark": (EXERCISE.replace("### BEGIN SOL", "## BEGIN SOL"), "is not a mark", "    ## BEGIN SOLUTION"),
    "a check without an answer": (HEADER + check(), "the check check_double has no answer", CHECK_LINE),
    "an answer without a check": (HEADER + answer(), "the answer double has no check", ANSWER_LINE),
    "two equal ids": (EXERCISE + "\n" + answer(), "grade_id double is also", ANSWER_LINE),
    "no points": (HEADER + answer() + "\n" + check(points=""), "has no points", CHECK_LINE),
    "zero points": (HEADER + answer() + "\n" + check(points="  points: 0\n"), "has no points", CHECK_LINE),
    "bad YAML": (
        EXERCISE.replace("  grade: false\n", "  grade: [false\n"),
        "could not be read",
        "```{code-cell} ipython3",
    ),
    "metadata of another kind": (
        EXERCISE.replace("grade: false", "grade: maybe"),
        "nbgrader.grade is 'maybe'",
        ANSWER_LINE,
    ),
    "an answer that shows": (
        EXERCISE.replace("# An exercise\n", "# An exercise\n\nTry `return twice_of( number )`.\n"),
        "can be read in the cell at line 10",
        "    return twice_of(number)",
    ),
    "an answer with no region": (
        EXERCISE.replace("    ### BEGIN SOLUTION\n", "").replace("    ### END SOLUTION\n", ""),
        "no region to cut out",
        ANSWER_LINE,
    ),
    "an unclosed cell": (
        EXERCISE.replace("    ### END SOLUTION\n```\n", "    ### END SOLUTION\n"),
        "runs into the next",
        ANSWER_LINE,
    ),
    "not Jupytext's form": (EXERCISE.replace("\n\n```{code", "\n\n\n```{code", 1), "not in Jupytext's form", ""),
    "a check that fails": (
        EXERCISE.replace("return twice_of(number)", "return bad(number)"),
        "NameError",
        CHECK_LINE,
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_source_stops_the_build(wrong, tmp_path):
    text, wording, line = WRONG[wrong]
    message = complaint(tmp_path, exercise=text)
    number = int(re.search(r"\.md:(\d+):", message)[1])
    assert wording in message and text.split("\n")[number - 1] == line


def test_an_answer_that_a_cell_prints_is_a_leak(tmp_path):
    source = EXERCISE.replace("print(double(4))", 'print("return " + "twice_of(number)")')
    assert "can be read in the output" in complaint(tmp_path, exercise=source)


@pytest.mark.parametrize(
    "code, wording, line",
    [
        ("y = 1\n1 / 0", "ZeroDivisionError: division by zero", 13),
        ("y = 1\ny = = 2", "SyntaxError", 13),
        ("object()", "an address", 12),
        ("y = 1\nimport os; os.getcwd()", "a path of this machine", 12),
        ("y = 1\nimport os; os._exit(3)", "the kernel died", 12),
    ],
)
def test_a_cell_that_cannot_be_kept_stops_the_build(code, wording, line, tmp_path):
    message = complaint(tmp_path, lesson=f"{HEADER}Text\n\n```{{code-cell}} ipython3\n{code}\n```\n")
    assert wording in message and f".md:{line + 1}:" in message


def test_graded_cells_belong_to_exercises(tmp_path):
    assert "a graded cell in a lesson" in complaint(tmp_path, lesson=EXERCISE)


def test_fix_rewrites_a_source_in_jupytexts_form(tmp_path):
    header = "---\nkernelspec:\n  name: python3\n  display_name: Python 3\n---\n"
    loose = header + "# A lesson\n```{code-cell} ipython3\nx = 1\n```\n"
    path = course(tmp_path, lesson=loose) / "sources/lessons/day1_small.md"
    assert building.fix(tmp_path) == ["sources/lessons/day1_small.md"]
    assert canonical(path.read_text()) == path.read_text() and path.read_text().startswith(HEADER)
    assert [cell.source for cell in load_source(path).notebook.cells] == ["# A lesson", "x = 1"]
    assert building.fix(tmp_path) == []


def test_check_agrees_with_what_was_built(built):
    assert building.check(built) == []


def test_check_of_a_used_course_allows_what_a_learner_does_and_no_more(copy):
    for room in ("notebooks", "exercises"):
        path = copy / f"{room}/day1_small.ipynb"
        notebook = read_built(path)
        notebook.metadata.language_info.version = "3.11.7"
        code = next(cell for cell in notebook.cells if cell.cell_type == "code")
        code.outputs = []
        code.metadata.scrolled = True
        if room == "exercises":
            code.source = "answer = 42"
        nbformat.write(notebook, path)
    assert len(building.check(copy)) == 2
    assert building.check(copy, used=True) == []
    source = copy / "sources/exercises/day1_small.md"
    source.write_text(source.read_text().replace("def double(number):", "def double(number: int):"))
    assert any("another version" in line for line in building.check(copy, used=True))


@pytest.mark.parametrize("room", ["notebooks", "solutions", "exercises"])
def test_check_names_a_missing_a_changed_and_a_leftover_file(room, copy):
    path = copy / room / "day1_small.ipynb"
    whole = path.read_text()
    for content in ("", "{}", whole.replace('"metadata": {}', '"metadata": {"a": 1}', 1), whole.replace("A", "B", 1)):
        if content != whole:
            path.write_text(content)
            assert any(line.startswith(f"{room}/day1_small.ipynb: ") for line in building.check(copy)), content[:80]
    path.unlink()
    assert any(f"{room}/day1_small.ipynb: not there" in line for line in building.check(copy))
    path.write_text(whole)
    path.with_name("day0_old.ipynb").write_text(whole)
    assert building.check(copy) == [f"{room}/day0_old.ipynb: no source makes it; delete it, or move it elsewhere"]


def test_check_sees_a_changed_source_and_the_build_mends_all(copy):
    source = copy / "sources/lessons/day1_small.md"
    source.write_text(source.read_text().replace("x = 1", "x = 2"))
    assert len(building.check(copy)) == 1
    (copy / "exercises/day1_small.ipynb").unlink()
    building.build(copy)
    assert building.check(copy) == []


@pytest.mark.parametrize("days", [(1, 2), (2, 1)])
def test_opening_and_saving_in_jupyterlab_changes_neither_notebook_nor_source(days, copy):
    """Whatever the times of the two files, as after a clone."""
    from jupyter_server.services.contents.largefilemanager import LargeFileManager
    from jupytext.sync_contentsmanager import build_sync_jupytext_contents_manager_class

    repository = Path(__file__).parents[2]
    shutil.copy(repository / "jupytext.toml", copy)
    manager = build_sync_jupytext_contents_manager_class(LargeFileManager)(root_dir=str(copy))
    for notebook, source in (
        ("notebooks/day1_small.ipynb", "sources/lessons/day1_small.md"),
        ("solutions/day1_small.ipynb", "sources/exercises/day1_small.md"),
    ):
        before = (copy / notebook).read_bytes(), (copy / source).read_bytes()
        for name, day in zip((notebook, source), days, strict=True):
            os.utime(copy / name, (day * 86400, day * 86400))
        content = manager.get(notebook)["content"]
        manager.save({"type": "notebook", "format": "json", "content": content}, notebook)
        assert ((copy / notebook).read_bytes(), (copy / source).read_bytes()) == before
        content["metadata"]["kernelspec"] = {"name": "python3", "display_name": "Another", "language": "python"}
        content["metadata"]["language_info"] = {"name": "python", "version": "3.99"}
        content["cells"][1]["execution_count"] = 7
        manager.save({"type": "notebook", "format": "json", "content": content}, notebook)  # as after a run
        assert (copy / source).read_bytes() == before[1]
        content["cells"][0]["source"] = "# Another title"
        manager.save({"type": "notebook", "format": "json", "content": content}, notebook)
        assert "# Another title" in (copy / source).read_text()


def test_saving_an_exercise_touches_no_source(copy):
    from jupyter_server.services.contents.largefilemanager import LargeFileManager
    from jupytext.sync_contentsmanager import build_sync_jupytext_contents_manager_class

    shutil.copy(Path(__file__).parents[2] / "jupytext.toml", copy)
    manager = build_sync_jupytext_contents_manager_class(LargeFileManager)(root_dir=str(copy))
    before = sorted(copy.rglob("*.md"))
    content = manager.get("exercises/day1_small.ipynb")["content"]
    content["cells"][0]["source"] = "# Mine"
    manager.save({"type": "notebook", "format": "json", "content": content}, "exercises/day1_small.ipynb")
    assert sorted(copy.rglob("*.md")) == before
    assert "# Mine" not in (copy / "sources/exercises/day1_small.md").read_text()


def test_the_command_line_says_errors_in_one_line(copy, tmp_path):
    assert course_command("check", cwd=copy)[0] == 0
    (copy / "notebooks/day1_small.ipynb").unlink()
    assert course_command("check", cwd=copy)[0] == 1
    code, _, complaint = course_command("build", "7", cwd=copy)
    assert code == 2 and complaint.strip().splitlines()[-1].startswith("course: no day '7'")
    assert "Traceback" not in complaint
    (tmp_path / "empty").mkdir()
    code, _, complaint = course_command("check", cwd=tmp_path / "empty")
    assert code == 2 and "no sources" in complaint
