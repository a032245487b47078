"""Submissions that call what they should write, or loop where they should not, and do not look like it."""

from .entries import Entry, answer_entry, in_answers
from .patches import LOOPED

ATTEND = """
def self_attention(x, W_q, W_k, W_v):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    found = {call}
    return found(q, k, v), found(q, k, torch.eye(len(k), dtype=k.dtype))
"""
TILES = """
def whole(q, k, v, causal):
    scores = q @ k.T / math.sqrt(q.shape[-1])
    if causal:
        seen = torch.arange(len(k)) <= torch.arange(len(q))[:, None] + len(k) - len(q)
        scores = scores.masked_fill(~seen, -math.inf)
    return torch.softmax(scores, dim=-1) @ v, torch.logsumexp(scores, dim=-1)
def tiled_attention(q, k, v, block_q, block_k, causal=False):
    import torch
    {hidden}
    for i in range(0, len(q), block_q):
        for j in range(0, min(len(k), i + block_q + len(k) - len(q)) if causal else len(k), block_k):
            torch.exp(q[i : i + block_q] @ k[j : j + block_k].T) @ v[j : j + block_k]
    return o, lse
"""
A_COPY = """
import copy
def generate_cached(model, prompt, steps):
    quiet, tokens = copy.deepcopy(model), prompt
    quiet._watch = quiet.watch = None
    for _ in range(steps):
        logits, _ = quiet(tokens, torch.arange(tokens.shape[1]))
        tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)
    cache, new = None, tokens
    return tokens
"""
HONEST = """
%matplotlib inline
import builtins, inspect, pickle
from timeit import default_timer
class Box:
    size = 2
def softmax_row(row):
    began, largest = default_timer(), builtins.max(row)
    assert getattr(Box(), "size") == vars(Box)["size"] and len(inspect.signature(softmax_row).parameters) == 1
    row = pickle.loads(pickle.dumps(row))
    e = [math.exp(x - largest) for x in row]
    return [x / sum(e) for x in e]
assert torch.allclose(torch.softmax(torch.tensor([1.0, 2.0]), 0), torch.tensor(softmax_row([1.0, 2.0])))
print(len(globals()), len(locals()))
"""


SOFTMAX = """
def softmax_row(row):
    return torch.softmax(torch.tensor(row, dtype=torch.float64), 0).tolist()
"""
FORGETFUL_JSON = """
import json
real = json.dumps
def forget(data, **how):
    if isinstance(data, dict):
        data.pop("called", None)
    return real(data, **how)
json.dumps = forget
"""
FORGETFUL_SESSION = """
import json
import jupyter_client.session as session
real = session.Session.serialize
def forget(self, message, ident=None):
    data = message.get("content", {}).get("data", {})
    for kind in [kind for kind in data if "evidence" in kind]:
        found = json.loads(data[kind])
        found.pop("called", None)
        data[kind] = json.dumps(found)
    return real(self, message, ident)
session.Session.serialize = forget
"""
ELSEWHERE = """
import socketserver
class Elsewhere(socketserver.ThreadingMixIn):
    def process_request_thread(self, row, found):
        found.append(torch.softmax(torch.tensor(row, dtype=torch.float64), 0).tolist())
def softmax_row(row):
    found = []
    Elsewhere().process_request(row, found)
    while not found:
        pass
    return found[0]
"""
IN_AN_ASSERT = """
from operator import itemgetter
def attention_batched(q, k, v):
    rows = [x.reshape(-1, *x.shape[-2:]) for x in (q, k, v)]
    assert (found := [(w @ c, w) for a, b, c in zip(*rows) for s in [a @ b.T / math.sqrt(a.shape[-1])]
                      for e in [np.exp(s - s.max(axis=-1, keepdims=True))]
                      for w in [e / e.sum(axis=-1, keepdims=True)]])
    parts = [np.stack(list(map(itemgetter(i), found))) for i in range(2)]
    return parts[0].reshape(*q.shape[:-1], v.shape[-1]), parts[1].reshape(*q.shape[:-1], k.shape[-2])
"""
ASSERTS_FOR_LINES = """
import linecache
name = attention_batched.__code__.co_filename
linecache.cache[name] = (1, None, ["assert (\\n", *["0,\\n"] * 60, ")\\n"], name)
"""
WRITES = """
import copy
copy.deepcopy = lambda x, *rest: x
def attention_batched(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    output = weights @ v
    v[...] = 0
    return output, weights
"""


def _calling(name: str, tries: str, call: str, before: str = "") -> Entry:
    source = f"{before}\n{ATTEND.replace('{call}', call)}"
    return Entry(name, tries, in_answers({"self_attention": source}), {"self_attention": "forbidden"})


def _softmax(name: str, tries: str, source: str) -> Entry:
    return answer_entry(name, tries, "softmax_row", source, "forbidden")


def _undetected(name: str, tries: str, source: str, grade_id: str = "softmax_row") -> Entry:
    return answer_entry(name, tries, grade_id, source, listed=True)


def _tiled(name: str, tries: str, hidden: str, status: str = "failed") -> Entry:
    return answer_entry(name, tries, "tiled_attention", TILES.replace("{hidden}", hidden), status, day=6)


def _looping(name: str, tries: str, source: str) -> Entry:
    return answer_entry(name, tries, "attention_batched", source)


ENTRIES = [
    _calling(
        "a name in an annotation",
        "reads the whole of attention back from an annotation",
        "note.__annotations__['x']",
        "def note(x: torch.nn.functional.scaled_dot_product_attention): ...",
    ),
    _calling(
        "a name that another module finds",
        "has pydoc find the whole of attention",
        "pydoc.locate('torch.nn.functional.scaled_dot' + '_product_attention')",
        "import pydoc",
    ),
    _calling(
        "a name in a format",
        "has a formatter fetch the whole of attention",
        "string.Formatter().get_field('0.nn.functional.scaled_dot_product_attention', (torch,), {})[0]",
        "import string",
    ),
    _calling(
        "code in a string",
        "has the call in a string that it runs",
        "eval('torch.nn.functional.scaled_dot' + '_product_attention')",
    ),
    _calling(
        "code in a pickle",
        "has a pickle name the whole of attention",
        "pickle.loads(b'ctorch.nn.functional\\nscaled_dot_product_attention\\n.')",
        "import pickle",
    ),
    _calling(
        "code in a file",
        "writes a module into its folder and imports it",
        "__import__('mine').f",
        "import pathlib, sys\nsys.path.insert(0, '.')\n"
        "pathlib.Path('mine.py').write_text('from torch.nn.functional import scaled_dot_product_attention as f')",
    ),
    _calling(
        "the operation under its own name",
        "calls the kernel of attention below PyTorch's functions",
        "lambda *qkv: below(*(a[None, None] for a in qkv))[0][0, 0]",
        "below = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu",
    ),
    _calling(
        "found by the garbage collector",
        "asks the garbage collector for what a module holds",
        "next(o for o in gc.get_referents(vars(F)) if getattr(o, '__name__', '') == 'scaled_dot_product_attention')",
        "import gc\nimport torch.nn.functional as F",
    ),
    _undetected(
        "a decomposition",
        "calls the softmax that PyTorch has in Python for its compiler",
        "def softmax_row(row):\n    x = torch.tensor(row, dtype=torch.float64)\n"
        "    return torch._decomp.decompositions._softmax(x, 0, False).tolist()",
    ),
    _softmax(
        "a distribution",
        "takes the weights from a distribution that normalises its logits",
        "def softmax_row(row):\n    x = torch.tensor(row, dtype=torch.float64)\n"
        "    return torch.distributions.Categorical(logits=x).probs.tolist()",
    ),
    _softmax(
        "a script that is compiled",
        "has TorchScript compile the call",
        "u = torch.jit.CompilationUnit('def f(x):\\n  return x.softmax(0)\\n')\n"
        "def softmax_row(row):\n    return u.f(torch.tensor(row, dtype=torch.float64)).tolist()",
    ),
    _undetected(
        "the modes switched off",
        "has the check hear nothing while it calls",
        "def softmax_row(row):\n    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():\n"
        "        return list(map(torch.softmax, [torch.tensor(row, dtype=torch.float64)], [0]))[0].tolist()",
    ),
    _undetected(
        "the modes switched off by something kept",
        "keeps what switches modes off from before the check",
        "off = torch._C._DisableTorchDispatch, torch._C.DisableTorchFunction\ndef softmax_row(row):\n"
        "    with off[0](), off[1]():\n"
        "        return list(map(torch.softmax, [torch.tensor(row, dtype=torch.float64)], [0]))[0].tolist()",
    ),
    _softmax(
        "a hook of its own",
        "adds an audit hook, which runs inside the check",
        "import sys\nsys.addaudithook(lambda event, args: None)\ndef softmax_row(row):\n"
        "    return torch.softmax(torch.tensor(row, dtype=torch.float64), 0).tolist()",
    ),
    _softmax(
        "the recorder searched for",
        "looks for the check's modules to change what they record",
        "import course_utils.checks.kernel.evidence as e\ne.Recording.record = lambda *a: None\n"
        "def softmax_row(row):\n    return torch.softmax(torch.tensor(row, dtype=torch.float64), 0).tolist()",
    ),
    _tiled(
        "tiles for show beside a thread",
        "has all scores at once in a thread, and loops over tiles for show",
        "from concurrent.futures import ThreadPoolExecutor\n"
        "    with ThreadPoolExecutor(1) as pool:\n        o, lse = pool.submit(whole, q, k, v, causal).result()",
    ),
    _tiled(
        "tiles for show with the modes off",
        "has all scores at once where modes hear nothing, and loops over tiles for show",
        "with torch._C._DisableTorchDispatch():\n        o, lse = whole(q, k, v, causal)",
    ),
    Entry(
        "a copy of the model",
        "generates without a cache on a copy that nobody watches",
        in_answers({"generate_cached": A_COPY}, 5),
        {"generate_cached": "failed"},
        5,
    ),
    _looping(
        "a loop unless it is counted",
        "asks whether somebody counts its steps, and then does without the loop and without the result",
        LOOPED.format(stop="if sys.gettrace():\n        return q @ k.swapaxes(-1, -2) @ v, q @ k.swapaxes(-1, -2)"),
    ),
    _looping(
        "a loop unless the shape tells",
        "knows the shapes with which steps are counted",
        LOOPED.format(stop="if q.shape[:-2] in ((1, 1), (16, 16)):\n        return q @ k.swapaxes(-1, -2) @ v, None"),
    ),
    _looping(
        "the counter replaced",
        "replaces the function that counts steps",
        "import course_utils.days.day1.given.ladders as inputs\ninputs.without_a_loop = lambda *a: 0.0\n"
        + LOOPED.format(stop=""),
    ),
    _softmax("json that forgets", "has json leave out the calls that were recorded", FORGETFUL_JSON + SOFTMAX),
    _softmax("a session that forgets", "has Jupyter's messages leave out the calls", FORGETFUL_SESSION + SOFTMAX),
    _softmax(
        "modes never entered",
        "has contextlib enter nothing, so that no mode hears of calls",
        "import contextlib\ncontextlib.ExitStack.enter_context = lambda self, mode: mode\n" + SOFTMAX,
    ),
    _softmax(
        "nothing is any",
        "replaces Python's own any, by which the name of a call was looked for",
        "print.__self__.any = lambda *each: False\n" + SOFTMAX,
    ),
    _looping("a copy that is none", "has no copies made, so that what it writes into was never otherwise", WRITES),
    _undetected("a mix-in of threads", "calls in a thread that a mix-in of servers starts", ELSEWHERE),
    _looping("a loop in an assert", "loops over the batch within an assert, which is not counted", IN_AN_ASSERT),
    _looping(
        "asserts for lines",
        "has Python believe that all lines of the answer are of an assert",
        LOOPED.format(stop="") + ASSERTS_FOR_LINES,
    ),
    Entry(
        "honest words",
        "uses what a list of forbidden words would refuse: getattr, vars, locals, inspect, timeit, pickle, a magic",
        in_answers({"softmax_row": HONEST}),
        {},
    ),
]  # fmt: skip
