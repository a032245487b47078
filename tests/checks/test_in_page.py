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
from without_torch import WITHOUT_TORCH

from course_utils.checks import in_page
from course_utils.checks.judge import time_limit
from course_utils.files import write_all
from course_utils.site.python_files import course_files, python_files

HELPERS = Path(__file__).parents[1] / "helpers"
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


WRONG_ON_A_PAGE = """
import sys
sys.path.insert(0, {tests!r})
from page_verdicts import cells_of, hide_torch
from without_torch import WITHOUT_TORCH
hide_torch()
from course_utils.checks import in_page
from course_utils.checks.kernel.evidence import find_ladder
given, stubs, answers = cells_of({day})
for grade_id in WITHOUT_TORCH[{day}]:
    for result in ("0", "None"):
        names = find_ladder({day}, grade_id).names
        by_hand = find_ladder({day}, grade_id).by_hand
        pattern = "{{name}} = {{result}}" if by_hand else "def {{name}}(*args, **named): return {{result}}"
        lines = [pattern.format(name=name, result=result) for name in names]
        records = []
        in_page.check({day}, grade_id, given, {{}}, "\\n".join(lines), records.append)
        assert records and not records[-1]["searching"], grade_id
        print(grade_id, records[-1]["status"], records[-1]["points"])
"""


@pytest.mark.parametrize("day", BY_DAY)
def test_wrong_answers_get_a_verdict_where_there_is_no_torch(day):
    """The functions that day 3 lends needed PyTorch: the search for a smallest input failed where nothing was lent."""
    program = WRONG_ON_A_PAGE.format(tests=str(HELPERS), day=day)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    lines = [line.split() for line in ended.stdout.splitlines()]
    assert len(lines) == 2 * len(WITHOUT_TORCH[day])
    for grade_id, status, points in lines:
        assert status in ("failed", "error", "missing") and float(points) == 0, grade_id


@pytest.mark.parametrize("day", BY_DAY)
def test_answers_pass_from_the_files_of_the_page_and_stubs_get_nothing(tmp_path, day):
    write_all({tmp_path / "course_utils" / name: content for name, content in course_files().items()})
    program = ON_A_PAGE.format(folder=str(tmp_path), tests=str(HELPERS), day=day)
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
    command = [sys.executable, HELPERS / "page_verdicts.py", "--days", str(day)]
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
        assert "seconds of work" in records[-1]["text"] and " of your cell" in records[-1]["text"]


def test_run_shows_what_a_cell_prints_and_the_value_of_its_last_line():
    assert in_page.run(1, [], {}, "print('sum')\nsum([1, 2])") == "sum\n3\n"


@pytest.mark.parametrize("cell", ["sum([1, 2)", "return 1", "break", "await x", "def f():\n    nonlocal x"])
def test_a_cell_that_is_not_python_is_said_to_be_none(cell):
    assert "This is not valid Python: " in in_page.run(1, [], {}, cell)


REPR = "class A:\n    def __repr__(self):\n        {}\n\nA()"


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("raise SystemExit", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        (REPR.format("return 1 / 0"), "ZeroDivisionError: division by zero, at line 3"),
        (REPR.format("while True: pass"), "Stopped"),
        ("-" * 20000 + "1", "Python cannot read this cell: "),
    ],
)
def test_whatever_ends_a_cell_is_reported(cell, said):
    assert said in in_page.run(1, [], {}, cell)


def checked(cell, day=1, grade_id="softmax_row"):
    """The last record of a check."""
    records = []
    in_page.check(day, grade_id, cells_of(day)[0], {}, cell, records.append)
    return records[-1]


ROW = "import math\n\ndef softmax_row(row):\n    {}\n"
SAID = {
    "the stub's line is left": (
        ROW.format('raise NotImplementedError("your code goes here")\n    return row'),
        "The line that raises NotImplementedError is still in your answer, at line 4. Delete it.",
    ),
    "renamed": ("def softmax(row):\n    return row", "Your code does not define softmax_row. It defines softmax: did"),
    "a prompt": (">>> import math", "invalid syntax, at line 1. Remove the >>> and the ... that"),
    "no def": ("\n\n    \nreturn 1", "'return' outside function, at line 4. A line that begins with def comes first"),
    "no return": (ROW.format("x = row"), "the function returned None. Did you forget the return statement?"),
    "prints": (ROW.format("print(row)"), "Your function prints its result. Return it:"),
    "a generator": (ROW.format("return (x for x in row)"), "Return a list: square brackets in place of the round"),
    "SciPy": (ROW.format("import scipy.elsewhere"), "SciPy is not on this page"),
    "a power": (ROW.format("return [2.0 ^ x for x in row]"), "In Python a power is **."),
    "a list for a number": (ROW.format("return [math.exp(row)]"), "math.exp takes one number: call it for each entry."),
    "a slip in a name": (
        ROW.format("reslt = row\n    return result"),
        "is not defined (did you mean reslt?), at line 5",
    ),
    "another language's true": (ROW.format("done = true"), "Python writes True and False"),
    "a comparison": ("weights == 1", "To set a value write one =, not two."),
    "parameters": (
        "def softmax_row(a, row): return row",
        "Leave the parameters in its first line as the exercise gives them.",
    ),
    "a name without its module": (
        ROW.format("return [exp(x) for x in row]"),
        "name 'exp' is not defined, at line 4 of your cell: return [exp(x) for x in row]. For a number it is math.exp,",
    ),
}


@pytest.mark.parametrize(("cell", "said"), SAID.values(), ids=SAID)
def test_what_everybody_does_first_is_answered_plainly(cell, said):
    text = " ".join(checked(cell)["text"].split())
    assert said in text
    assert "e^x / e^x" not in text and "second mistake" not in text  # nothing was computed to which these would apply


PASTED = {  # what beginners bring that is no Python, and what they are told
    "```python\nx = 1\n```": "Remove the lines with ```",
    "Here is the function:\nx = 1": "This line is no code.",
    "x = “a”": "Write straight quotes",
    "def f():\n\xa0   return 1": "One space is not an ordinary one",
    "x = [0,183, 0,09]": "Write decimals with a point, as in 0.183",
    "const x = 1": "Python has no const: write x = and the value.",
    "int bytes = 2 * 3": "Python names no type: write bytes = and the value.",
    "For x in row:\n    pass": "Python writes this word in small letters",
    "// a comment": "A comment begins with # in Python",
    "if a && b:\n    pass": "Python writes and, or, not",
    "if x {\n  y\n}": "A block has no braces",
    "i++": "Python has no ++",
    "  def f():\n    return 1": "Remove the spaces before this line",
    "def f():\n    a = 1\n\tb = 2": "Indent with spaces alone",
    "e <- 3": "To set a value write = and not <-.",
}


@pytest.mark.parametrize(("cell", "said"), PASTED.items(), ids=range(len(PASTED)))
def test_what_is_no_python_is_told_in_the_words_of_where_it_comes_from(cell, said):
    assert said in in_page.run(1, [], {}, cell)


@pytest.mark.parametrize("cell", ["x = (1", "def f()\n    return 1", "a b", "x = 7 // 2 +", "if x = 1:\n    pass"])
def test_other_faults_have_pythons_own_words(cell):
    said = in_page.run(1, [], {}, cell)
    assert "This is not valid Python: " in said and "//" not in said.partition("line 1")[0]


def test_run_says_that_only_check_lends_functions():
    assert in_page.ONLY_CHECK_LENDS in in_page.run(1, [], {}, "scale_scores([[1.0]], 1)")
    assert in_page.ONLY_CHECK_LENDS not in in_page.run(1, [], {}, "anything_else")


def test_an_error_in_an_earlier_answer_says_where_both_lines_are():
    given, _, answers = cells_of(1)
    records = []
    cell = "def attention_lists(Q, K, V):\n    weights = softmax_row(scores(Q, K))\n    return weights, weights\n"
    in_page.check(1, "attention_lists", given, {**answers, "attention_lists": cell}, cell, records.append)
    text = " ".join(records[0]["text"].split())
    assert "in softmax_row at its line 4, exps = " in text or "in softmax_row at its line 5, exps = " in text
    assert "called at line 2 of your cell: weights = softmax_row(scores(Q, K))." in text


def test_an_error_of_the_check_is_not_put_on_the_learner():
    cell = cells_of(2)[2]["saturation"].replace(".mean()\n", "\n")
    text = checked(cell, 2, "saturation")["text"]
    assert "TypeError" not in text and "shape (50,), expected ()" in text


def test_parameters_that_do_not_fit_get_no_example():
    for cell in ("def softmax_row(): return 1", "def softmax_row(self, row): return row"):
        assert "smallest input" not in checked(cell)["text"]


QUANTISE = """
def quantise(x):
    scales = np.broadcast_to(max(abs(x).max() / 127, 1e-12), (*x.shape[:-1], 1))
    return np.round(x / scales).astype(np.int8), scales.astype(np.float32)

def dequantise(integers, scales):
    return integers.astype(np.float64) * scales
"""


def test_what_is_counted_beside_the_steps_is_not_called_steps():
    text = " ".join(checked(QUANTISE, 5, "quantise")["text"].split())
    assert "of 19 steps passed" in text and "of the 20 results that are wrong" in text


def test_an_example_of_a_second_function_has_its_parameters_and_types():
    cell = cells_of(5)[2]["quantise"].replace("return integers *", "return integers.astype(float) *")
    text = checked(cell, 5, "quantise")["text"]
    assert "more_1" not in text and "dtype=np.int8" in text and "scales = " in text


def test_a_check_tells_at_which_step_it_is():
    told = []
    in_page.check(1, "softmax_row", cells_of(1)[0], {}, ROW.format("return row"), lambda record: None, told.append)
    count = int(told[-1].split()[-1])
    assert told[:count] == [f"step {number} of {count}" for number in range(1, count + 1)]


def test_the_stub_itself_is_not_written_yet():
    assert "Not written yet." in checked(ROW.format('raise NotImplementedError("your code goes here")'))["text"]


def test_the_smallest_input_shows_numbers_and_no_code_that_a_page_cannot_run():
    text = checked(ROW.format("return [x / sum(row) for x in row]"))["text"]
    assert "ZeroDivisionError" not in text and ": got " in text
    solution = cells_of(1)[2]["attention_lists"]
    unscaled = solution.replace("scale_scores(scores(Q, K), len(K[0]))", "scores(Q, K)")
    text = checked(unscaled, 1, "attention_lists")["text"]
    assert "attention_lists(" in text and "AttentionStepper" not in text and "step by step" not in text


def test_the_call_that_is_wrong_is_shown_as_it_was_made():
    cell = "def kv_cache_bytes(n_layers, n_kv_heads, d_head, n_tokens, batch=1, bytes_per_value=2):\n    return {}\n"
    wrong = cell.format("2 * n_layers * n_kv_heads * d_head * n_tokens * min(batch, 2) * bytes_per_value")
    assert "batch=3" in checked(wrong, 5, "cache_bytes")["text"]


def test_what_a_long_answer_prints_is_cut_with_a_mark():
    text = checked(ROW.format("print('x' * 600)\n    return row"))["text"]
    assert text.rstrip().endswith("x \u2026") and "x" * 501 not in text


def test_what_a_cell_prints_is_told_before_it_ends():
    told = []
    assert in_page.run(1, [], {}, "print('first')\nprint('second')", told.append).split() == ["first", "second"]
    assert told and told[0].startswith("first")
