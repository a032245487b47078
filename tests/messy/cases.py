"""Messy notebooks, most of day 1: honest work, right throughout, in cells that nobody planned.

Each case changes the cells of a solved notebook. What its checks call passed when the cells are run from top to
bottom, the grader must pass; a case that the grader cannot follow says why in the first sentence of its check.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass

import nbformat

from course_utils.answer_key.key import COURSE

DOTS = "def dots(a, b):\n    return sum(x * y for x, y in zip(a, b))"
SCORES = "def scores(Q, K):\n    return [[dots(q, k) for k in K] for q in Q]"
SOFTMAX = "def softmax_row(row):\n    e = [math.exp(x - max(row)) for x in row]\n    return [x / sum(e) for x in e]"
SCALE = "def scale_scores(S, d_k):\n    return [[s / math.sqrt(d_k) for s in row] for row in S]"


@dataclass(frozen=True)
class Case:
    """name: what the student did. change(cells): does it. refused: what the check says of exercises that the grader
    cannot follow, by grade_id. unsolved: exercises that are not right, and need not be."""

    name: str
    change: Callable[[list], None]
    refused: dict[str, str]
    day: int = 1
    unsolved: tuple[str, ...] = ()


CASES: dict[str, Case] = {}


def case(name: str, day: int = 1, unsolved: tuple[str, ...] = (), **refused: str):
    """Register a change of the cells as a case."""

    def register(change: Callable[[list], None]) -> Callable[[list], None]:
        CASES[name] = Case(name, change, refused, day, unsolved)
        return change

    return register


def notebook_of(case: Case) -> nbformat.NotebookNode:
    """The solved notebook of its day after the case was at work on it."""
    notebook = nbformat.from_dict(json.loads(json.dumps(COURSE.notebook(case.day))))
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


def put_below(cells, grade_id: str, *sources: str) -> None:
    """Write cells of one's own between an answer and its check."""
    i = place(cells, grade_id) + 1
    cells[i:i] = [own(source) for source in sources]


def split(cells, grade_id: str, above: str, below: str) -> None:
    """What JupyterLab does: both halves keep the metadata, and the lower one gets a new id."""
    i = place(cells, grade_id)
    lower = copy.deepcopy(cells[i])
    cells[i].source = above
    lower.source = below
    lower["id"] = "split"
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


@case("a module that is not there", scores="there is no yaml")
def _(cells):
    cells.insert(1, own("import yaml"))
    put(cells, "scores", "yaml\n" + DOTS + "\n" + SCORES.replace("return", "yaml; return"))


@case("a function made by a program", scores="no cell of the notebook defines dots")
def _(cells):
    cells.insert(1, own(f"exec({DOTS!r})"))
    put(cells, "scores", SCORES)


@case("torch's usual type changed in a cell of one's own")
def _(cells):
    cells.insert(place(cells, "softmax_row"), own("torch.set_default_dtype(torch.float64)"))
    cells.insert(place(cells, "check_softmax_row") + 1, own("torch.set_default_dtype(torch.float32)"))


@case("a value that a later cell changes")
def _(cells):
    cells.insert(1, own("settings = {}"))
    cells.insert(2, own("settings['power'] = 0.5"))
    put(
        cells,
        "scale_scores",
        "def scale_scores(S, d_k):\n    return [[s / d_k ** settings['power'] for s in row] for row in S]",
    )


@case("a second try in a new cell, the wrong one left above it")
def _(cells):
    put(cells, "softmax_row", "def softmax_row(row):\n    return [1 / len(row) for _ in row]")
    put_below(cells, "softmax_row", "softmax_row([1.0, 2.0])", SOFTMAX, "softmax_row([1.0, 2.0])")


@case("a second try in a new cell for one of two numbers by hand")
def _(cells):
    solved = cells[place(cells, "by_hand_three")].source
    put(cells, "by_hand_three", f"{solved}\nweights_3 = [1.0, 0.0, 0.0]")
    put_below(cells, "by_hand_three", solved)
    put(cells, "by_hand_two", "order_output = 7\ndelayed_output = [1.42, 1.58]")
    put_below(cells, "by_hand_two", "order_output = [1.53, 1.47]")


@case("a helper mended in a new cell below the answer")
def _(cells):
    put(cells, "scores", "def dots(a, b):\n    return 0\n\n" + SCORES)
    put_below(cells, "scores", DOTS)


@case("a class continued in a new cell", day=5)
def _(cells):
    solved = cells[place(cells, "ring_cache")].source
    put(cells, "ring_cache", solved.replace("def view(self", "def view_all(self"))
    put_below(cells, "ring_cache", "class RingCache(RingCache):\n    def view(self):\n        return self.view_all()")


@case("a function that is wrapped in a new cell")
def _(cells):
    cells.insert(1, own("def counted(f):\n    def g(*args):\n        return f(*args)\n    return g"))
    put_below(cells, "softmax_row", "softmax_row = counted(softmax_row)")
    cells.insert(1, own(DOTS))
    cells.insert(2, own("def counted_dots(f):\n    return lambda *args: f(*args)"))
    cells.insert(3, own("dots = counted_dots(dots)"))
    put(cells, "scores", SCORES)


@case("a cell that is indented as a whole")
def _(cells):
    cells.insert(1, own(DOTS))
    put(cells, "scores", "    " + SCORES.replace("\n", "\n    "))
    put(cells, "softmax_row", "\n\t" + SOFTMAX.replace("\n", "\n\t"))
    put(cells, "scale_scores", "  %%time\n  " + SCALE.replace("\n", "\n  "))


@case("an import from __future__ in the first cell")
def _(cells):
    cells.insert(1, own("from __future__ import annotations"))
    cells.insert(2, own(DOTS))
    put(cells, "softmax_row", SOFTMAX.replace("(row)", "(row: Row) -> Row", 1))
    put(cells, "scores", "from __future__ import annotations\n" + SCORES.replace("(Q, K)", "(Q: Rows, K: Rows)", 1))


@case("a table that is filled entry by entry")
def _(cells):
    cells.insert(1, own("ROOT = {}"))
    cells.insert(2, own("for d in range(1, 9):\n    ROOT[d] = d**0.5"))
    cells.insert(3, own("ROOT[9] = 3.0\nSIZES = []"))
    cells.insert(4, own("for d in range(10, 600):\n    ROOT.update({d: d**0.5})\n    SIZES.append(d)"))
    code = "def scale_scores(S, d_k):\n    SIZES[0]\n    return [[s / ROOT[d_k] for s in row] for row in S]"
    put(cells, "scale_scores", code)


@case("functions that a decorator registers")
def _(cells):
    cells.insert(1, own("OPS = {}\n\ndef op(f):\n    OPS[f.__name__] = f\n    return f"))
    cells.insert(2, own("@op\ndef times(a, b):\n    return a * b"))
    cells.insert(3, own("@op\ndef dot(a, b):\n    return sum(map(OPS['times'], a, b))"))
    put(cells, "scores", SCORES.replace("dots(", "OPS['dot']("))


@case("a method that is put into a class in a new cell")
def _(cells):
    cells.insert(1, own("class Tools:\n    pass"))
    cells.insert(2, own(DOTS + "\n\nTools.dots = staticmethod(dots)"))
    put(cells, "scores", SCORES.replace("dots(", "Tools.dots("))


@case("an answer below a long comment")
def _(cells):
    put(cells, "softmax_row", "# what I tried before\n" * 1_200 + SOFTMAX)


@case("NumPy told to raise, in an answer")
def _(cells):
    put(cells, "softmax_row", "import numpy as np\nnp.seterr(all='raise')\n" + SOFTMAX)


@case("settings of NumPy and PyTorch in an answer", day=6)
def _(cells):
    solved = cells[place(cells, "online_softmax")].source
    settings = (
        "import random, warnings\nimport numpy as np\nnp.seterr(all='raise')\nwarnings.simplefilter('error')\n"
        "np.random.seed(1)\nrandom.seed(1)\nnp.set_printoptions(precision=1)\ntorch.set_printoptions(precision=1)\n"
        "torch.set_grad_enabled(False)\ntorch.manual_seed(1)\ntorch.set_num_threads(1)\n"
        "torch.use_deterministic_algorithms(True)\ntorch.autograd.set_detect_anomaly(True)\n"
        "import decimal\ndecimal.getcontext().prec = 3\n"
    )
    put(cells, "online_softmax", settings + solved)


@case("torch's usual type changed in an answer", day=5)
def _(cells):
    solved = cells[place(cells, "cached_step")].source
    put(cells, "cached_step", "torch.set_default_dtype(torch.float64)\n" + solved)


@case("exercise 1 of day 3 untouched", day=3, unsolved=("causal_mask",))
def _(cells):
    put(cells, "causal_mask", 'def causal_mask(n):\n    raise NotImplementedError("your code goes here")')


@case("exercises 1 and 7 of day 3 wrong", day=3, unsolved=("causal_mask", "masked_softmax"))
def _(cells):
    put(cells, "causal_mask", "def causal_mask(n):\n    return torch.ones(n, n).tril(-1).bool()")
    put(cells, "masked_softmax", "def masked_softmax(scores, mask):\n    return torch.softmax(scores * mask, -1)")


@case("a second try that calls the first by another name")
def _(cells):
    put(
        cells,
        "softmax_row",
        "def softmax_row(row):\n    e = [math.exp(x) for x in row]\n    return [x / sum(e) for x in e]",
    )
    put_below(
        cells,
        "softmax_row",
        "plain = softmax_row",
        "def softmax_row(row):\n    return plain([x - max(row) for x in row])",
    )


@case("the check called in the answer's cell")
def _(cells):
    put(cells, "softmax_row", f"{SOFTMAX}\n\ncheck('softmax_row')")


@case("packages that an answer does without")
def _(cells):
    put(
        cells,
        "softmax_row",
        f"try:\n    from numba import njit\nexcept ImportError:\n    njit = lambda f: f\n\n{SOFTMAX}",
    )


@case("a number taken from Jupyter's last output", by_hand_three="no cell of the notebook defines _ by that name")
def _(cells):
    solved = cells[place(cells, "by_hand_three")].source
    put(cells, "by_hand_three", f"{solved}\nscore_33 = _")
    cells.insert(place(cells, "by_hand_three"), own("1 * 1 + 2 * 1"))
