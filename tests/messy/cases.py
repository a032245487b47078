"""Messy notebooks of day 1: honest work, right throughout, in cells that nobody planned.

Each case changes the cells of the solved notebook. What its checks call passed when the cells are run from top to
bottom, the grader must pass; a case that the grader cannot follow says why in the first sentence of its check.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass

import nbformat

from course_utils.authoring.answer_key import COURSE

DOTS = "def dots(a, b):\n    return sum(x * y for x, y in zip(a, b))"
SCORES = "def scores(Q, K):\n    return [[dots(q, k) for k in K] for q in Q]"
SOFTMAX = "def softmax_row(row):\n    e = [math.exp(x - max(row)) for x in row]\n    return [x / sum(e) for x in e]"
SCALE = "def scale_scores(S, d_k):\n    return [[s / math.sqrt(d_k) for s in row] for row in S]"


@dataclass(frozen=True)
class Case:
    """name: what the student did. change(cells): does it. refused: what the check says of exercises that the grader
    cannot follow, by grade_id."""

    name: str
    change: Callable[[list], None]
    refused: dict[str, str]


CASES: dict[str, Case] = {}


def case(name: str, **refused: str):
    """Register a change of the cells as a case."""

    def register(change: Callable[[list], None]) -> Callable[[list], None]:
        CASES[name] = Case(name, change, refused)
        return change

    return register


def notebook_of(case: Case) -> nbformat.NotebookNode:
    """The solved notebook of day 1 after the case was at work on it."""
    notebook = nbformat.from_dict(json.loads(json.dumps(COURSE.notebook(1))))
    case.change(notebook.cells)
    return notebook


def place(cells, grade_id: str) -> int:
    """Where the answer cell of an exercise stands."""
    return next(i for i, c in enumerate(cells) if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id)


def put(cells, grade_id: str, source: str) -> None:
    """Write an answer."""
    cells[place(cells, grade_id)].source = source


def own(source: str):
    """A cell of one's own."""
    return nbformat.v4.new_code_cell(source)


def split(cells, grade_id: str, above: str, below: str) -> None:
    """What JupyterLab does: both halves keep the metadata, and the lower one gets a new id."""
    i = place(cells, grade_id)
    lower = copy.deepcopy(cells[i])
    cells[i].source, lower.source, lower["id"] = above, below, "split"
    cells.insert(i + 1, lower)


@case("an answer cell split, scratch below")
def _(cells):
    split(cells, "softmax_row", SOFTMAX, "softmax_row([1.0, 2.0])")


@case("an answer cell split, the helper above")
def _(cells):
    split(cells, "scores", DOTS, SCORES)


@case("an answer cell split, scratch above that raises")
def _(cells):
    split(cells, "softmax_row", "try_this = [1, 2\n", SOFTMAX)


@case("an answer cell split in three")
def _(cells):
    split(cells, "scores", DOTS, SCORES)
    split(cells, "scores", "import operator", "def dots(a, b):\n    return sum(map(operator.mul, a, b))")


@case("a helper in a cell above")
def _(cells):
    put(cells, "scores", SCORES)
    cells.insert(place(cells, "scores"), own(DOTS))


@case("a helper between answer and check")
def _(cells):
    put(cells, "scores", SCORES)
    cells.insert(place(cells, "scores") + 1, own(DOTS))


@case("a helper that needs a helper and an import")
def _(cells):
    put(cells, "scores", SCORES)
    cells.insert(1, own("import operator as op"))
    cells.insert(2, own("def times(a, b):\n    return map(op.mul, a, b)"))
    cells.insert(3, own("def dots(a, b):\n    return sum(times(a, b))"))


@case("a helper written twice, the second time right")
def _(cells):
    put(cells, "scores", SCORES)
    cells.insert(1, own("def dots(a, b):\n    return 0"))
    cells.insert(place(cells, "scores"), own(DOTS))


@case("a helper at the end of another answer cell")
def _(cells):
    put(cells, "softmax_row", f"{SOFTMAX}\n\n{DOTS}")
    put(cells, "scores", SCORES)


@case("a constant in a cell of one's own")
def _(cells):
    put(cells, "scale_scores", "def scale_scores(S, d_k):\n    return [[s * d_k**POWER for s in row] for row in S]")
    cells.insert(1, own("POWER = -0.5  # one over the root\nprint(POWER)"))


@case("two constants in one line")
def _(cells):
    put(
        cells, "scale_scores", "def scale_scores(S, d_k):\n    return [[s * ONE / d_k**HALF for s in row] for row in S]"
    )
    cells.insert(1, own("ONE, HALF = 1, 0.5"))


@case("an import in the first cell that everybody is given")
def _(cells):
    first = next(cell for cell in cells if "import math" in cell.source)  # after the one for Colab
    first.source = first.source.replace("import math", "import math\nfrom math import sqrt as root")
    put(cells, "scale_scores", "def scale_scores(S, d_k):\n    return [[s / root(d_k) for s in row] for row in S]")


@case("a star import in a cell of one's own")
def _(cells):
    cells.insert(1, own("from math import *"))
    put(cells, "scale_scores", "def scale_scores(S, d_k):\n    return [[s / sqrt(d_k) for s in row] for row in S]")


@case("a star import that may fail")
def _(cells):
    cells.insert(1, own("try:\n    from math import *\nexcept ImportError:\n    pass"))
    put(cells, "scale_scores", "def scale_scores(S, d_k):\n    return [[s / sqrt(d_k) for s in row] for row in S]")


@case("a statement that is too deep for Python")
def _(cells):
    cells.insert(1, own("deep = " + "+".join(["1"] * 1500)))


@case("%%time on top")
def _(cells):
    put(cells, "softmax_row", f"%%time\n{SOFTMAX}")


@case("%%capture on top, after a blank line")
def _(cells):
    put(cells, "softmax_row", f"\n%%capture out\n{SOFTMAX}")


@case("%timeit below the function")
def _(cells):
    put(cells, "softmax_row", f"{SOFTMAX}\n\n%timeit -n 1 -r 1 softmax_row([1.0, 2.0])")


@case("%matplotlib inline in an answer cell")
def _(cells):
    put(cells, "softmax_row", f"%matplotlib inline\n{SOFTMAX}")


@case("a shell command in an answer cell")
def _(cells):
    put(cells, "softmax_row", f"!echo softmax\n{SOFTMAX}")


@case("a question to IPython in an answer cell")
def _(cells):
    put(cells, "softmax_row", f"{SOFTMAX}\nmath.exp?")


@case("a magic in a helper's cell")
def _(cells):
    put(cells, "scores", SCORES)
    cells.insert(1, own(f"%%time\n{DOTS}"))


@case("prompts pasted with the code")
def _(cells):
    put(cells, "scale_scores", ">>> " + SCALE.replace("\n", "\n... "))


@case("all answers in one answer cell")
def _(cells):
    ids = ("softmax_row", "scores", "scale_scores")
    sources = [cells[place(cells, name)].source for name in ids]
    for name in ids:
        put(cells, name, "# see below" if name != "scale_scores" else "\n\n".join(sources))
    checks = [place(cells, f"check_{name}") for name in ids[:2]]
    moved = [cells[i] for i in checks]
    for i in reversed(checks):
        del cells[i]
    at = place(cells, "scale_scores") + 1
    cells[at:at] = moved


@case("an answer in a cell of one's own, the stub left above it")
def _(cells):
    put(cells, "scale_scores", 'def scale_scores(S, d_k):\n    raise NotImplementedError("your code goes here")')
    cells.insert(place(cells, "scale_scores") + 1, own(SCALE))


@case("the stub left, and tried, in the answer cell")
def _(cells):
    i = place(cells, "scale_scores")
    stub = 'def scale_scores(S, d_k):\n    raise NotImplementedError("your code goes here")'
    cells[i].source = stub + "\nprint('later')"
    cells.insert(i + 1, own(SCALE))


@case("an answer made by giving another function its name")
def _(cells):
    put(cells, "softmax_row", "softmax_row = my_softmax")
    cells.insert(1, own(SOFTMAX.replace("softmax_row", "my_softmax")))


@case("an answer that is a lambda with a helper")
def _(cells):
    cells.insert(1, own(DOTS))
    put(cells, "scores", "scores = lambda Q, K: [[dots(q, k) for k in K] for q in Q]")


@case("an answer made by a decorator of one's own")
def _(cells):
    cells.insert(1, own("import functools\ndef seen(f):\n    return functools.wraps(f)(lambda *a: f(*a))"))
    put(cells, "softmax_row", f"@seen\n{SOFTMAX}")


@case("a class of helpers")
def _(cells):
    cells.insert(
        1, own("class Tools:\n    @staticmethod\n    def dots(a, b):\n        return sum(map(float.__mul__, a, b))")
    )
    put(cells, "scores", SCORES.replace("dots(", "Tools.dots(").replace("def scores(Q, K):", MADE_FLOATS))


MADE_FLOATS = (
    "def scores(Q, K):\n    Q, K = ([[float(x) for x in row] for row in rows] for rows in (Q, K))"  # as a student would
)


@case("type hints from a cell of one's own")
def _(cells):
    cells.insert(1, own("Row = list[float]"))
    put(cells, "softmax_row", SOFTMAX.replace("(row)", "(row: Row) -> Row", 1))


@case("a cell of scratch that raises, above everything")
def _(cells):
    cells.insert(1, own("softmax_row([1, 2])"))


@case("a helper at the end of a later answer cell, checked when that had run")
def _(cells):
    put(cells, "scale_scores", "def scale_scores(S, d_k):\n    return [[s / root(d_k) for s in row] for row in S]")
    cells[place(cells, "self_attention")].source += "\n\ndef root(x):\n    return x**0.5"
    check = next(i for i, c in enumerate(cells) if c.metadata.get("nbgrader", {}).get("grade_id") == CHECK)
    cells.append(cells.pop(check))


CHECK = "check_scale_scores"


@case("a module that is not there", scores="there is no pandas")
def _(cells):
    cells.insert(1, own("try:\n    import pandas\nexcept ImportError:\n    pandas = None"))
    put(cells, "scores", "pandas\n" + DOTS + "\n" + SCORES.replace("return", "pandas; return"))


@case("a function made by a program", scores="no cell of the notebook defines dots")
def _(cells):
    cells.insert(1, own(f"exec({DOTS!r})"))
    put(cells, "scores", SCORES)


@case("torch's usual type changed in a cell of one's own", softmax_row="torch.set_default_dtype")
def _(cells):
    cells.insert(place(cells, "softmax_row"), own("torch.set_default_dtype(torch.float64)"))
    cells.insert(place(cells, "check_softmax_row") + 1, own("torch.set_default_dtype(torch.float32)"))


@case("a value that later cells change", scale_scores="run afresh")
def _(cells):
    cells.insert(1, own("settings = {}"))
    cells.insert(2, own("settings['power'] = 0.5"))
    put(
        cells,
        "scale_scores",
        "def scale_scores(S, d_k):\n    return [[s / d_k ** settings['power'] for s in row] for row in S]",
    )
