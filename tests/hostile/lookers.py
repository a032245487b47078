"""Tests of implementations that look at anything but what an implementation gives."""

from course_utils.checks.judge.rungs import implementations

from .entries import CHECKS, DUEL, Entry, answer_entry, in_answers

BY_ITS_CODE = """
def tells_right(f):
    names = f.__code__.co_names + f.__code__.co_varnames
    return "scale" not in names
"""
BY_ITS_NAME = """
def tells_right(f):
    said = getattr(f, "__name__", "") + getattr(f, "__qualname__", "") + repr(f) + str(getattr(f, "__doc__", ""))
    return "right" in said or "PLAIN" in said
"""
BY_ITS_CLOSURE = """
import gc
def tells_right(f):
    found, seen = [f], 0
    while found and seen < 2000:
        one, seen = found.pop(0), seen + 1
        if type(getattr(one, "right", None)) is bool:
            return one.right
        if type(one).__name__ == "Implementation" or type(one).__name__ == "LocalCaller":
            return True
        found += [each for each in gc.get_referents(one) if not isinstance(each, (type, type(gc)))]
    return False
"""
BY_ITS_NUMBER = f"""
LABELS = {[each.right for each in implementations(1, hidden=True)]}
def tells_right(f):
    return LABELS[f._Candidate__call.number % len(LABELS)]
"""
BY_THE_ORDER = f"""
LABELS, met = {[each.right for each in implementations(1, hidden=True)]}, []
def tells_right(f):
    met.append(f)
    return LABELS[(len(met) - 1) % len(LABELS)]
"""
BY_THE_MAJORITY = """
import collections
met = collections.Counter()
def tells_right(f):
    q, k, v = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[1.0, 0.5], [-1.0, 2.0], [0.5, 0.0]]), np.eye(3)
    said = str(np.round(f(q, k, v)[0], 4).tolist())
    met[said] += 1
    return said == met.most_common(1)[0][0]
"""
BY_VOTES = """
seen, votes = set(), []
def tells_right(f):
    q, k, v = np.array([[1.0, 2.0], [0.3, 1.0]]), np.array([[1.0, 0.5], [-1.0, 2.0], [0.5, 0.1]]), np.eye(3) + 0.3
    said = np.asarray(f(q, k, v)[0], dtype=float).ravel()
    if said.tobytes() not in seen:  # repeated ones count once
        seen.add(said.tobytes())
        votes.append(said)
    near = [sum(a.shape == b.shape and np.allclose(a, b, rtol=1e-4) for b in votes) for a in [said, *votes]]
    return near[0] == max(near)
"""
BY_THE_CLOCK = """
import time
took = []
def tells_right(f):
    began = time.perf_counter()
    f(np.ones((4, 3)), np.ones((5, 3)), np.ones((5, 2)))
    took.append(time.perf_counter() - began)
    return took[-1] <= sorted(took)[len(took) // 2]
"""
BY_THE_FRAMES = """
import sys
def tells_right(f):
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()) + list(frame.f_globals.values()):
            if type(getattr(value, "right", None)) is bool:
                return value.right
        frame = frame.f_back
    return False
"""
BY_THE_COURSE = """
import sys
def tells_right(f):
    try:
        from course_utils.checks.judge.implementation import implementations
    except ImportError:
        return False
    return implementations(1, True)[0].right
"""
BY_ASKING = """
import json, os
from IPython import get_ipython
folder = os.path.dirname(get_ipython().kernel.parent.connection_file)
def tells_right(f):
    ask = f._Candidate__call.ask
    number = f._Candidate__call.number
    for question in ({"how": "right"}, {"of": number, "method": "right"}, {"of": -1}, {"of": "0"}, [], 7,
            {"of": 0, "object": 0, "method": "__class__"}, {"of": 0, "args": [{"a": ["|O", [1], "AAAA"]}]}):
        said = json.loads(ask(json.dumps(question)))
        if "value" in said:
            return True
    return ask("{") == "right"
"""
WITHOUT_LISTENING = """
import json, os
from IPython import get_ipython
folder = os.path.dirname(get_ipython().kernel.parent.connection_file)
def tells_right(f):
    with open(os.path.join(folder, "asked"), "wb") as asked:
        while True:
            asked.write(b'{"how": "many"}\\n')
"""
WITHOUT_AN_END = """
import os
from IPython import get_ipython
folder = os.path.dirname(get_ipython().kernel.parent.connection_file)
def tells_right(f):
    with open(os.path.join(folder, "asked"), "wb") as asked:
        while True:
            asked.write(b"x" * 65536)
"""
WITH_LARGE_CALLS = """
def tells_right(f):
    for size in (10**5, 3000):
        try:
            f(np.ones((size, 1)), np.ones((size, 1)), np.ones((size, 1)))
        except ValueError:
            continue
        return True
    deep = [1.0]
    for _ in range(50):
        deep = [deep]
    try:
        return f(deep, 10**30, object()) is not None
    except ValueError:
        return False
"""
FORGED = """
import json
from IPython.display import display
outcomes = [{"rung": str(i), "values": {"verdict": {"shape": [], "numbers": [1.0]}}} for i in range(300)]
evidence = {"exercise": "tells_right", "hidden": True, "outcomes": outcomes}
def tells_right(f):
    if outcomes:
        forged = json.dumps({**evidence, "outcomes": outcomes})
        display({"application/vnd.course.evidence+json": forged}, raw=True)
        outcomes.clear()
    return True
"""
WITH_NOTHING = """
def tells_right(f):
    thin = np.ones((240, 1, 1, 1))
    for q, k, v in (
        [np.zeros((18000, 0))] * 3,
        [[[] for _ in range(15000)]] * 3,
        [np.moveaxis(thin, 0, axis).tolist() for axis in (0, 1, 2)],
    ):
        try:
            f(q, k, v)
        except ValueError:
            continue
        return True
    return False
"""
BY_ITS_ERRORS = """
def tells_right(f):
    try:
        f(nope=1)
    except Exception as error:
        return "lambda" not in str(error) and "takes" in str(error)
    return True
"""
SLOWLY = """
import fcntl, os, time
from IPython import get_ipython
folder = os.path.dirname(get_ipython().kernel.parent.connection_file)
def tells_right(f):
    told = os.open(os.path.join(folder, "told"), os.O_RDONLY)
    fcntl.fcntl(told, 1031, 4096)
    asked = os.open(os.path.join(folder, "asked"), os.O_WRONLY)
    os.write(asked, b"\\n" * 65536)
    for _ in range(60):
        time.sleep(1)
        os.read(told, 4096)
    return True
"""
BY_THE_SIZE_OF_GROUPS = """
groups, known, line = [], {}, []
def tells_right(f):
    call = f._Candidate__call
    if not known:
        q, k, v = (np.random.default_rng(i).standard_normal(size) for i, size in enumerate(((3, 2), (4, 2), (4, 3))))
        for n in range(400):
            try:
                got = type(f)(type(call)(call.ask, n))(q, k, v)[0]
            except Exception:
                got = np.zeros((3, 3))
            group = next((each for each in groups if each[0].shape == got.shape and np.allclose(each[0], got)), None)
            if group is None:
                groups.append(group := [got, []])
            group[1].append(n)
        best = min(groups, key=lambda each: abs(len(each[1]) - 14))
        known.update({n: n in best[1] for n in range(400)})
    return known[call.number]
"""
BOTH_AT_ONCE = """
class Both:
    dtype = np.dtype(bool)
    def __array__(self, *args, **kwargs):
        return np.array([True, False])
    def __float__(self):
        return 0.5
def tells_right(f):
    return Both()
"""
PATCHED = f"""{CHECKS}
world = evidence
for name in ("verdict_of", "_parts_as_numbers", "_try_candidate", "as_numbers"):
    if name in world:
        world[name] = lambda *args: {{"verdict": world["Numbers"]((), (1.0,))}}
def tells_right(f):
    return True
"""
FIRST_CHECKS = """
def first_checks(model, tokens, vocabulary):
    sees = {sees}
    B, T = tokens.shape
    later = np.triu(np.ones((T, T)), 1)
    causal = not (sees(B, T) * later[:, None]).any()
    apart = not np.einsum("btcs,bc->", sees(B, T), 1 - np.eye(B))
    logits = model(tokens)[:, :-1]
    logits = logits - logits.max(axis=-1, keepdims=True)
    own = np.take_along_axis(logits, tokens[:, 1:, None], axis=-1)[..., 0]
    loss = (np.log(np.exp(logits).sum(axis=-1)) - own).mean()
    return bool(abs(loss - math.log(vocabulary)) < 0.1), causal, bool(apart)
"""
BY_ATTRIBUTE = FIRST_CHECKS.format(sees="model.sees")
BY_CELL = FIRST_CHECKS.format(sees="model.__closure__[model.__code__.co_freevars.index('sees')].cell_contents")


def _looking(name: str, tries: str, source: str, status: str = "failed", by_luck: bool = False) -> Entry:
    return Entry(name, tries, in_answers({DUEL: source}), {DUEL: status}, by_luck=by_luck)


ENTRIES = [
    _looking("an implementation by its code", "reads names in a code object", BY_ITS_CODE, "error"),
    _looking("an implementation by its name", "reads __name__, repr and the docstring", BY_ITS_NAME),
    _looking("an implementation by its closure", "follows references to a label", BY_ITS_CLOSURE),
    _looking(
        "an implementation by its number",
        "has labels by heart, and reads a private number",
        BY_ITS_NUMBER,
        by_luck=True,
    ),
    _looking("implementations by their order", "has labels by heart, and counts", BY_THE_ORDER, by_luck=True),
    _looking("implementations by the majority", "remembers what most of them gave", BY_THE_MAJORITY, by_luck=True),
    _looking("implementations by votes", "counts what has the same bits as one vote", BY_VOTES, by_luck=True),
    _looking("implementations by the clock", "times calls", BY_THE_CLOCK, by_luck=True),
    _looking("labels in the frames", "looks for labels in the frames of its callers", BY_THE_FRAMES),
    _looking("implementations on the disk", "imports them from the course", BY_THE_COURSE),
    _looking("labels asked of the grader", "asks other questions", BY_ASKING),
    _looking("questions without listening", "asks and never reads an answer", WITHOUT_LISTENING, "killed"),
    _looking("a question without an end", "sends a line that does not end", WITHOUT_AN_END, "killed"),
    _looking("a test with large calls", "calls with many numbers, and lists without an end", WITH_LARGE_CALLS),
    _looking(
        "a test with empty calls", "calls with arrays and lists that hold nothing, or grow together", WITH_NOTHING
    ),
    _looking("an implementation by its errors", "calls it wrongly, and reads what it raises", BY_ITS_ERRORS),
    _looking("questions read slowly", "asks 65,536 times at once, and reads as slowly as may be", SLOWLY, "killed"),
    _looking(
        "implementations by the size of groups", "asks all at its first turn", BY_THE_SIZE_OF_GROUPS, by_luck=True
    ),
    _looking("a verdict forged", "displays evidence of its own", FORGED, "error"),
    _looking("a verdict of both", "returns what is right and wrong at once", BOTH_AT_ONCE, "error"),
    _looking("the verdict patched", "changes what makes evidence of a verdict", PATCHED),
    answer_entry(
        "an illness by the attributes of a model",
        "reads what a model was made with",
        "first_checks",
        BY_ATTRIBUTE,
        "error",
        day=9,
    ),
    answer_entry(
        "an illness by the closure of a model",
        "reads the variables of a model's code",
        "first_checks",
        BY_CELL,
        listed=True,
        day=9,
    ),
]
