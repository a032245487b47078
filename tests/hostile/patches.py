"""Submissions that change the tools under the checks, rewrite later cells, or return objects that lie."""

from .entries import CHECKS, FAILED, SHELL, SLIPS, UNSHIFTED, Entry, answer_entry, cheat, in_answers, solution

NO_EVIDENCE = FAILED | {"softmax_row": "error"}  # the second slip is seen in a fresh kernel
LYING_FLOAT = """
class Yes(float):
    __eq__ = __le__ = __lt__ = __ge__ = __gt__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __hash__ = float.__hash__
    __sub__ = __rsub__ = lambda self, other: Yes(0)
    __abs__ = lambda self: Yes(0)
def softmax_row(row):
    return [Yes(0.5) for _ in row]
"""
LYING_ARRAY = """
class Yes(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **named):
        return True
    __eq__ = lambda self, other: True
    shape = property(lambda self: (7,))
def soft_lookup(query, keys, values, temperature):
    return np.zeros(values.shape[-1]).view(Yes)
"""
LYING_STATE = """
class Yes(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **named):
        return True
    __eq__ = lambda self, other: True
def delta_step(state, k, v, beta):
    return np.zeros_like(state).view(Yes)
"""
LYING_TENSOR = """
class Yes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        result = super().__torch_function__(function, types, args, kwargs or {})
        return True if result is False else result
    def __eq__(self, other):
        return True
def self_attention(x, W_q, W_k, W_v):
    v = (x @ W_v).as_subclass(Yes)
    return v, torch.ones(len(x), len(x), dtype=x.dtype).as_subclass(Yes)
"""
LYING_MERGE = """
class Yes(torch.Tensor):
    __eq__ = lambda self, other: True
    allclose = equal = lambda self, *a, **k: True
def merge(first, second):
    return tuple(part.as_subclass(Yes) for part in first)
"""
YES_MASK = """
import numpy as np
class Yes(int):
    __eq__ = lambda self, other: True
    __hash__ = int.__hash__
    dtype = np.dtype(bool)
def causal_mask(T):
    return [[Yes(1)] * T] * T
"""
LYING_BYTES = """
class Yes(bytes):
    __eq__ = lambda self, other: True
    __hash__ = bytes.__hash__
    __iter__ = lambda self: iter([Any()] * 3)
class Any(int):
    __eq__ = lambda self, other: True
    __hash__ = int.__hash__
def encode(text, merges):
    return [Any(byte) for byte in text]
def decode(tokens, merges):
    return Yes(b"abc")
"""
HIDDEN_CHANGES = """
import torch
import torch.nn.functional as F
torch.equal = lambda a, b: True
right = train
def train(weights, batches, heads, rate, warm_up):
    losses = right(weights, batches, heads, rate, warm_up)
    weights["embedding"].zero_()
    return losses
"""
RUNNER_PATCHED = """
import os
import sys
import types
import _pytest.runner
import _pytest.reports
_pytest.runner.call_and_report = lambda *a, **k: None
_pytest.reports.TestReport.passed = True
loaded = sys.modules
for name in ("nbval", "nbval.plugin", "nbval.kernel", "pytest"):
    loaded[name] = types.SimpleNamespace(IPyNbCell=object, compare_outputs=lambda *a, **k: True)
os.environ["PYTEST_ADDOPTS"] = "--nbval-lax --collect-only"
"""
MASQUERADE = """
class Yes:
    __class__ = property(lambda self: np.ndarray)
    dtype, shape, ndim, size = np.dtype(float), (1,), 1, 1
    __eq__ = lambda self, other: True
    __float__ = lambda self: 1.0
    __len__ = lambda self: 1
    __getitem__ = lambda self, index: 1.0
    __array__ = lambda self, dtype=None, copy=None: np.ones(1)
    detach = cpu = double = numpy = lambda self: self
def scale_scores(S, d_k):
    return Yes()
"""
COUNTER = """
calls = []
def scale_scores(S, d_k):
    calls.append(1)
    return S if len(calls) % 2 else [[s / math.sqrt(d_k) for s in row] for row in S]
"""
FRAMES = """
import sys
def softmax_row(row):
    frame = sys._getframe()
    while frame is not None:
        world = frame.f_globals
        if "draw_rungs" in world and "drawn" not in world:
            draw = world["drawn"] = world["draw_rungs"]
            world["draw_rungs"] = lambda day, name, hidden=False, seed="": draw(day, name)[:1] * 12
            world["as_numbers"] = lambda value: world["Numbers"]((1,), (1.0,))
        rung = frame.f_locals.get("rung")
        if hasattr(rung, "args"):
            object.__setattr__(rung, "args", ([3.0],))
        frame = frame.f_back
    return [1.0]
"""
LOOPED = """
def attention_batched(q, k, v):
    import sys
    {stop}
    if q.ndim > 2:
        pairs = [attention_batched(*each) for each in zip(q, k, v)]
        return np.stack([pair[0] for pair in pairs]), np.stack([pair[1] for pair in pairs])
    scores = q @ k.T / math.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ v, weights
"""


ENTRIES = [
    Entry(
        "print and the builtins patched",
        "has every comparison in Python say yes",
        cheat("""
import builtins as world
world.print = lambda *a, **k: None
world.all = world.any = lambda *a: True
"""),
        FAILED,
    ),
    Entry(
        "numpy patched",
        "has NumPy's comparisons say yes and every array look the same",
        cheat("""
np.allclose = np.isclose = np.array_equal = lambda *a, **k: True
np.testing.assert_allclose = np.testing.assert_array_equal = lambda *a, **k: None
np.isfinite = lambda *a: True
"""),
        FAILED,
    ),
    Entry(
        "numpy's random numbers patched",
        "has hidden inputs drawn like the visible ones",
        cheat("""
made = np.random.default_rng
np.random.default_rng = lambda seed=None: made([1, 2, 0])
"""),
        FAILED,
    ),
    Entry(
        "torch patched",
        "has PyTorch's comparisons say yes",
        cheat("""
torch.allclose = torch.equal = torch.isclose = lambda *a, **k: True
torch.testing.assert_close = lambda *a, **k: None
torch.Tensor.__eq__ = lambda *a: True
torch.Tensor.allclose = torch.Tensor.equal = lambda *a, **k: True
"""),
        FAILED,
    ),
    Entry(
        "IPython's display patched",
        "keeps the evidence from being shown",
        cheat(
            SHELL + "shell.display_pub.publish = lambda *a, **k: None\n"
            "import IPython.display\nIPython.display.display = lambda *a, **k: None\n"
        ),
        FAILED,
    ),
    Entry(
        "pytest and nbval patched",
        "changes pytest and puts an nbval of its own in place, as if they ran beside the answers",
        cheat(RUNNER_PATCHED),
        FAILED,
    ),
    Entry(
        "the checks patched",
        "replaces every function in the modules of the checks",
        cheat(
            CHECKS
            + """
world = evidence
for room in (world["all_ladders"](1)["scores"].rungs.__globals__, world):
    for name in [name for name in room if not name.startswith("__")]:
        room[name] = lambda *a, **k: True
check = lambda *a, **k: True
"""
        ),
        NO_EVIDENCE,
    ),
    Entry(
        "a transformer that drops checks",
        "rewrites the source of later cells before IPython reads it",
        cheat(
            SHELL + "shell.input_transformers_post.append(\n"
            "    lambda lines: [] if any('check(' in line for line in lines) else lines)\n"
        ),
        NO_EVIDENCE,
    ),
    Entry(
        "a transformer that passes checks",
        "rewrites later check cells into ones that print what a pass prints",
        cheat(
            SHELL + "shell.input_transformers_cleanup.append(\n"
            "    lambda lines: ['print(\"passed\")'] if any('check(' in line for line in lines) else lines)\n"
        ),
        NO_EVIDENCE,
    ),
    Entry(
        "a rewritten syntax tree",
        "has the hidden check run on the visible inputs",
        cheat(
            SHELL
            + """
import ast
class Visible(ast.NodeTransformer):
    def visit_Call(self, node):
        if node.keywords and node.keywords[0].arg == "hidden":
            node.keywords = []
        return node
shell.ast_transformers.append(Visible())
"""
        ),
        FAILED,
    ),
    Entry(
        "a hook before every cell",
        "puts its own check into the namespace whenever a cell begins",
        cheat(
            SHELL
            + """
def again(*info):
    shell.user_ns["check"] = lambda *a, **k: None
shell.events.register("pre_run_cell", again)
"""
        ),
        NO_EVIDENCE,
    ),
    Entry(
        "an execution count of its own",
        "confuses whoever counts cells",
        cheat(SHELL + "shell.execution_count = -(10**6)\n"),
        FAILED,
    ),
    Entry(
        "a cell magic on top",
        "has its own answer skipped, so that what was there before is checked",
        in_answers({"find_the_bug": "%%script false --no-raise-error\ndef broken_attention(q, k, v):\n    pass"}),
        {"find_the_bug": "error"},
    ),
    Entry(
        "a reset in the answer",
        "wipes the namespace with the check in it",
        cheat("%reset -f\nimport math\n"),
        FAILED,
    ),
    Entry(
        "marks that nbval obeys",
        "asks for its outputs to be skipped, ignored or expected to fail",
        in_answers(
            {
                name: "# NBVAL_SKIP\n# NBVAL_IGNORE_OUTPUT\n# NBVAL_RAISES_EXCEPTION\n# NBVAL_CHECK_OUTPUT\n"
                "# PYTEST_VALIDATE_IGNORE_OUTPUT\n" + source
                for name, source in SLIPS.items()
            }
        ),
        FAILED,
    ),
    Entry(
        "the checks imported by name",
        "imports the course's answers",
        in_answers({"softmax_row": "from course_utils.attention.lists import softmax as softmax_row"}),
        {"softmax_row": "error"},
    ),
    Entry(
        "the library under another name",
        "calls the whole of attention through the builtins, its name in two halves",
        in_answers(
            {
                "self_attention": """
sdpa = print.__self__.getattr(torch.nn.functional, "scaled_dot" + "_product_attention")
def self_attention(x, W_q, W_k, W_v):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    return sdpa(q, k, v), sdpa(q, k, torch.eye(len(k), dtype=k.dtype))
"""
            }
        ),
        {"self_attention": "forbidden"},
    ),
    answer_entry(
        "a loop", "loops over the batch, which this exercise is about", "attention_batched", LOOPED.format(stop="")
    ),
    answer_entry(
        "a loop among other steps",
        "hides the steps of its loop among many that are always the same",
        "attention_batched",
        LOOPED.format(stop="").replace("attention_batched", "looped")
        + "\ndef attention_batched(q, k, v):\n    for _ in range(30_000):\n        pass\n    return looped(q, k, v)\n",
    ),
    answer_entry(
        "a loop in a thread",
        "loops over the batch in another thread than the one that is traced",
        "attention_batched",
        "from concurrent.futures import ThreadPoolExecutor\n"
        + LOOPED.format(stop="").replace("attention_batched", "looped")
        + "\ndef attention_batched(*args):\n    return ThreadPoolExecutor(1).submit(looped, *args).result()\n",
    ),
    answer_entry(
        "a loop in an earlier thread",
        "loops over the batch in a thread that was there before steps are counted",
        "attention_batched",
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\npool.submit(int).result()\n"
        + LOOPED.format(stop="").replace("attention_batched", "looped")
        + "\ndef attention_batched(*args):\n    return pool.submit(looped, *args).result()\n",
        listed=True,
    ),
    answer_entry(
        "a loop that is not counted",
        "loops over the batch and switches off the trace that counts its steps",
        "attention_batched",
        LOOPED.format(stop="sys.settrace(None)"),
    ),
    answer_entry(
        "a loop behind a debugger",
        "has a debugger of its own switch off the trace that counts its steps",
        "attention_batched",
        LOOPED.format(stop="import bdb; own = bdb.Bdb(); own.reset(); own.set_continue()"),
    ),
    answer_entry(
        "numbers that equal everything", "returns floats whose comparisons succeed", "softmax_row", LYING_FLOAT
    ),
    answer_entry("arrays that equal everything", "returns an array whose ufuncs say True", "soft_lookup", LYING_ARRAY),
    answer_entry("tensors that equal everything", "returns tensors that lie", "self_attention", LYING_TENSOR),
    answer_entry(
        "tensors that lie on day 6",
        "merges parts of attention into tensors whose comparisons say True",
        "merge_partials",
        LYING_MERGE,
        day=6,
    ),
    answer_entry(
        "a state that lies on day 8",
        "returns a state whose ufuncs and comparisons say True",
        "delta_step",
        LYING_STATE,
        day=8,
    ),
    answer_entry(
        "bytes that equal everything",
        "returns bytes and numbers whose comparisons say True",
        "encode_decode",
        LYING_BYTES,
        day=9,
    ),
    answer_entry(
        "a change that is hidden",
        "trains the weights that it is given, and has every comparison of tensors say that they are as they were",
        "assemble",
        solution("assemble", 9) + HIDDEN_CHANGES,
        listed=True,
        day=9,
    ),
    answer_entry(
        "a mask of yes on day 3",
        "returns a mask each of whose entries equals True and False",
        "causal_mask",
        YES_MASK,
        "error",
        day=3,
    ),
    answer_entry("an object of any class", "returns what claims to be an array", "scale_scores", MASQUERADE),
    answer_entry("answers that change", "is right at every other call", "scale_scores", COUNTER),
    answer_entry(
        "an array that grows when it is read",
        "asks for all the memory when made an array",
        "soft_lookup",
        "class Large:\n    def __array__(self, *rest, **named):\n        return np.ones(2**38)\n"
        "def soft_lookup(query, keys, values, temperature):\n    return Large()",
    ),
    answer_entry(
        "a list without end",
        "is read item by item for ever",
        "scores",
        "import time\nclass Endless(list):\n"
        "    def __iter__(self):\n        while True:\n            time.sleep(0.01)\n"
        "            yield 0.0\ndef scores(Q, K):\n    return Endless([1])",
        "timeout",
    ),
    answer_entry(
        "the caller's frames",
        "finds the generator and the inputs by way of the stack",
        "softmax_row",
        FRAMES,
        "error",
    ),
    Entry(
        "the hidden inputs drawn in advance",
        "asks the kernel's own modules for the hidden inputs, and has no answers to them",
        cheat(
            CHECKS
            + """
draw = evidence["draw_rungs"]
hidden = draw(1, "softmax_row", hidden=True)
for rung in hidden:
    object.__setattr__(rung, "measure", lambda function, *args: {"weights": [0.2] * 5})
evidence["draw_rungs"] = lambda day, name, hidden=False, seed="": draw(day, name, hidden=True, seed=seed)
"""
        ),
        FAILED,
    ),
    Entry(
        "a hidden check that ends",
        "passes what everybody sees, and ends the check before its hidden inputs are drawn",
        in_answers(
            {
                "scores": CHECKS
                + """
draw = evidence["draw_rungs"]
class End(BaseException):
    pass
def ends(day, name, hidden=False, seed=""):
    if hidden and name == "scores":
        raise End
    return draw(day, name, hidden=hidden, seed=seed)
evidence["draw_rungs"] = ends
def scores(Q, K):
    return [[sum(a * b for a, b in zip(q, k)) for k in K] for q in Q]
"""
            }
        ),
        {"scores": "error"},
    ),
    Entry(
        "later exercises sabotaged",
        "leaves the kernel in ruins for the right answers after it",
        in_answers({"softmax_row": "math.exp = math.sqrt = np.exp = torch.Tensor.__matmul__ = None\n" + UNSHIFTED}),
        {"softmax_row": "error"},
    ),
]
