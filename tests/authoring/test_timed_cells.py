"""A lesson's cell that shows a measurement is not compared by nbval, or the build stops; a prediction is compared."""

import shutil
from collections import Counter
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_output
from test_build import HEADER, complaint, course

from course_utils.authoring import build as building
from course_utils.authoring.sources import load_source, read_source
from course_utils.authoring.timed_cells import names, verify_measured
from course_utils.errors import SourceError

ROOT = Path(__file__).parents[2]
PRINTED = new_output("stream", name="stdout", text="T = 64: 5.02 ms\n")
DRAWN = new_output("display_data", data={"image/png": "", "text/plain": "picture"})
CLOCK = "import time\nbegan = time.perf_counter()"
ROOFLINE = """from course_utils.costs import roofline
card = roofline.MACHINES["NVIDIA H100 SXM"]
task = roofline.attention_core(1, 32, 512, d_head=128)
print(f"{1e3 * roofline.least_seconds(card, task):.2f} ms")"""


def lesson(tmp_path, *cells, tags="", output=PRINTED):
    """A lesson whose last cell shows the output, and verify what it shows."""
    head = f":tags: [{tags}]\n\n" if tags else ""
    blocks = [f"```{{code-cell}} ipython3\n{cell}\n```\n" for cell in cells[:-1]]
    blocks.append(f"```{{code-cell}} ipython3\n{head}{cells[-1]}\n```\n")
    path = tmp_path / "sources" / "lessons" / "day1_small.md"
    path.parent.mkdir(parents=True)
    path.write_text(HEADER + "# A lesson\n\n" + "\n".join(blocks))
    source = load_source(path, tmp_path)
    source.notebook.cells[-1].outputs = [output] if output else []
    verify_measured(source, source.notebook)


MEASURED = {
    "a clock": (CLOCK, "print(f'{1e3 * (time.perf_counter() - began):.2f} ms')"),
    "a clock by name": ("from time import process_time as clock", "print(clock())"),
    "timeit": ("import timeit", "print(timeit.timeit('1 + 1'))"),
    "a magic": ("x = 1", "%timeit x + x"),
    "costs.measure": ("from course_utils.costs import measure", "print(measure.time_call(print).median)"),
    "one function of it": (
        "from course_utils.costs.measure import time_together as both",
        "for name, timing in both({'a': int}).items():\n    print(name, timing)",
    ),
    "a function that measures": (CLOCK, "def late():\n    return time.time() - began", "print(late())"),
    "a list that was filled": (CLOCK, "found = []\nfound.append(time.time())", "print(found)"),
    "a dict that was filled": (CLOCK, "found = {}\nfound['a'] = time.time()", "print(found)"),
    "a ratio of two": (CLOCK, "here = [time.time() - began]", "faster = here[0] / here[0]", "print(faster)"),
}


@pytest.mark.parametrize("cells", MEASURED.values(), ids=MEASURED)
@pytest.mark.parametrize("output", [PRINTED, DRAWN], ids=["printed", "drawn"])
def test_a_measurement_that_nbval_compares_is_named_with_its_line(cells, output, tmp_path):
    with pytest.raises(SourceError, match=r"^sources/lessons/day1_small\.md:\d+: .+measured.+; tag the cell"):
        lesson(tmp_path, *cells, output=output)


@pytest.mark.parametrize("cells", MEASURED.values(), ids=MEASURED)
def test_a_tagged_measurement_is_fine(cells, tmp_path):
    lesson(tmp_path, *cells, tags="nbval-ignore-output")


COMPUTED = {
    "a prediction in milliseconds": (ROOFLINE,),
    "a recorded run": ("from course_utils.costs import records", "print(records.recorded('generation-cpu')[0])"),
    "a name that was a measurement before": (CLOCK, "T = time.time()", "T = 64", "print(T)"),
    "a loop with the name of a measurement": (CLOCK, "T = time.time()", "for T in (64, 128):\n    print(f'{T} ms')"),
    "a parameter with the name of one": (CLOCK, "T = time.time()", "print((lambda T: 2 * T)(64))"),
    "an attribute with the name of a clock": (
        "import types, time",
        "x = types.SimpleNamespace(time=1)",
        "print(x.time)",
    ),
    "a field called time": ("row = {'time': 1.5}", "print(row['time'])"),
    "a function that measures, defined only": (CLOCK, "def late():\n    return time.time() - began"),
    "another language": ("x = 1", "%%html\n<b>5.02 ms</b>"),
}


@pytest.mark.parametrize("cells", COMPUTED.values(), ids=COMPUTED)
def test_what_is_computed_is_compared(cells, tmp_path):
    lesson(tmp_path, *cells)


def test_a_measurement_that_is_only_asserted_shows_nothing(tmp_path):
    lesson(tmp_path, CLOCK, "assert time.perf_counter() > began\nprint('later')", output=None)
    shutil.rmtree(tmp_path / "sources")
    words = new_output("stream", name="stdout", text="later\n")
    lesson(tmp_path, CLOCK, "assert time.perf_counter() > began\nprint('later')", output=words)


def test_cells_of_day_4_can_be_run_again_in_any_order():
    """No cell takes a name from others that two of them make: then it matters not which of them ran last."""
    cells = [
        cell for cell in read_source(ROOT / "sources/lessons/day4_multi_head.md").cells if cell.cell_type == "code"
    ]
    used, made = zip(*(names(compile(cell.source, "cell", "exec")) for cell in cells), strict=True)
    makers = Counter(name for one in made for name in one)
    assert {name for name, number in makers.items() if number > 1} & set().union(*used) == set()


def test_the_build_stops_at_the_line_that_measures(tmp_path):
    cell = "```{code-cell} ipython3\nx = 1\nimport time\nprint(1)\nprint(time.time(), 's')\n```\n"
    text = HEADER + "# A lesson\n\n" + cell
    line = text.splitlines().index("print(time.time(), 's')") + 1
    assert f"day1_small.md:{line}: " in complaint(tmp_path, lesson=text)


def test_check_finds_it_in_what_was_built_before(tmp_path, monkeypatch):
    cell = "```{code-cell} ipython3\nx = 1\nimport time\nprint(time.time(), 's')\n```\n"
    root = course(tmp_path, lesson=HEADER + "# A lesson\n\n" + cell)
    with monkeypatch.context() as without:
        without.setattr(building, "verify_measured", lambda *_: None)
        building.build(root)
    with pytest.raises(SourceError, match="measured"):
        building.check(root)


@pytest.mark.parametrize("second", ["new", "tagged only now"])
def test_a_table_and_its_picture_come_from_one_run(second, tmp_path):
    """Where one measuring cell is new, the outputs of the others are not kept from an older run."""
    cell = "```{{code-cell}} ipython3\n:tags: [nbval-ignore-output]\n\n{}\n```\n"
    table = cell.format("import time\n\nnow = time.time_ns()\nprint(now)")
    drawn = cell.format("print('drawn:', now)")
    before = drawn.replace(":tags: [nbval-ignore-output]\n\n", "") if second == "tagged only now" else ""
    root = course(tmp_path, lesson=HEADER + "# A lesson\n\n" + table + (before and "\n" + before))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(building, "verify_measured", lambda *_: None)
        building.build(root)
    lesson = next((root / "sources/lessons").glob("*.md"))
    lesson.write_text(HEADER + "# A lesson\n\n" + table + "\n" + drawn)
    building.build(root)
    notebook = nbformat.read(root / "notebooks/day1_small.ipynb", as_version=4)
    printed = [cell.outputs[0].text.split()[-1] for cell in notebook.cells if cell.cell_type == "code"]
    assert len(printed) == 2 and len(set(printed)) == 1
