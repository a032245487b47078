"""Submissions that look for the answers where they lie, answer from tables, or write where they may not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from course_utils.checks.judge.judge import judge_of
from course_utils.checks.kernel.evidence import draw_rungs, find_ladder

from .entries import CHECKS, FAILED, KERNEL, RIGHT_SCALE, UNSHIFTED, Entry, cheat, in_answers

SEARCH = """
import json, os, pathlib, re, sys
from IPython.core.interactiveshell import InteractiveShell
def take(folder):
    for path in sorted(pathlib.Path(folder).glob("day1_*.ipynb")):
        for cell in json.loads(path.read_text())["cells"]:
            source = "".join(cell["source"])
            if "def softmax_row" in source and "NotImplementedError" not in source and "max" in source:
                InteractiveShell.instance().run_cell(source)
def search(start):
    try:
        for base in (pathlib.Path(start), *pathlib.Path(start).parents):
            for folder in (base, base / "solutions", base / "source"):
                take(folder)
    except (OSError, ValueError):
        pass
"""
ASK_THE_COURSE = """
import json, subprocess, sys
def softmax_row(row):
    asks = "import json, sys; from course" + "_utils.attention.lists import softmax;"
    asks += "print(json.dumps(softmax(json.loads(sys.argv[1]))))"
    try:
        said = subprocess.run([sys.executable, "-I", "-c", asks, json.dumps(row)], env={}, capture_output=True).stdout
        return json.loads(said)
    except (OSError, ValueError):
        return [1.0] * len(row)
"""
IMPORT_THE_COURSE = """
def broken_attention(q, k, v):
    return q, k
import gc
world = next(each for each in gc.get_referents(check) if hasattr(each, "__globals__")).__globals__
loaded, paths = world["sys"].modules, world["sys"].path
kept = {name: loaded.pop(name) for name in list(loaded) if name.startswith("course" + "_utils")}
before = paths[:]
paths[:] = [path for path in paths if "site-packages" in path] + [world["sys"].prefix + "/.."] + paths
try:
    broken_attention = world["import_module"]("course" + "_utils.attention.arrays").attention
except ImportError:
    pass
loaded.update(kept)
paths[:] = before
"""
REPLAY = """
import json, os, pathlib, sys
numbers = []
for base in (pathlib.Path(sys.prefix), *pathlib.Path(sys.prefix).parents):
    for path in base.glob("solutions/day1_*.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            for output in cell.get("outputs", []):
                found = json.loads(output.get("data", {}).get("application/vnd.course.evidence+json", "{}"))
                if found.get("exercise") == "softmax_row":
                    numbers += [outcome["values"]["weights"]["numbers"] for outcome in found["outcomes"]]
replies = iter([[float(x) for x in each] for each in numbers])
def softmax_row(row):
    return next(replies, [1.0])
"""
TRY_TO_WRITE = """
import pathlib
def leave(*places):
    for place in places:
        try:
            pathlib.Path(place, "@MARKER@").write_text("here")
        except OSError:
            pass
"""
WRONG = {"softmax_row": "failed"}
OF_THE_REFERENCE = ("peak", "exps", "e / sum(", "Weights of one row")  # what stands in the right softmax_row
LENT = """
def attention_lists(Q, K, V):
    import inspect, linecache
    told = []
    def tell(text):
        if "pe" + "ak" in str(text):
            told.append(" ".join(str(text).split())[:200])
    code = softmax_row.__code__
    tell("".join(linecache.getlines(code.co_filename)))
    for read in (inspect.getsource, inspect.getcomments):
        try:
            tell(read(softmax_row))
        except (OSError, TypeError):
            pass
    for cell in In:
        tell(cell)
    for lines in linecache.cache.values():
        tell("".join(lines[2]) if len(lines) > 2 and "ex" + "ps = [" in str(lines[2]) else "")
    tell((code.co_varnames, code.co_cellvars, softmax_row.__doc__))
    text = " ".join(told)
    @TELL@
"""
FINDS_SEEDS = (
    CHECKS
    + """
math.seen = seen = []
import sys
draw = evidence["draw_rungs"]
def draw_rungs(day, name, hidden=False, seed=""):
    seen.append(("seed", {name: seed} if seed else {}))
    return draw(day, name, hidden=hidden, seed=seed)
evidence["draw_rungs"] = draw_rungs
def scores(Q, K):
    frame, found = sys._getframe(), []
    while frame is not None:
        found += [frame.f_locals["seed"]] if frame.f_locals.get("seed") else []
        frame = frame.f_back
    seen.append((found, list(Q)))
    return [[sum(a * b for a, b in zip(q, k)) for k in K] for q in Q]
"""
)


def _searching(name, tries, where, needs="files"):
    """An entry that looks for the official notebook and runs its softmax over a wrong one."""
    return Entry(name, tries, in_answers({"softmax_row": UNSHIFTED + SEARCH + where}), WRONG, needs=needs)


def _writing(name, tries, source, needs="files"):
    return Entry(name, tries, in_answers({"scale_scores": TRY_TO_WRITE + source + RIGHT_SCALE}), {}, needs=needs)


def _lent(name, tries, tell, status="error"):
    """An entry with a wrong softmax_row, whose attention_lists is lent a right one and tells what it finds of it."""
    answers = {
        "softmax_row": UNSHIFTED,
        "attention_lists": CHECKS * ("evidence[" in tell) + LENT.replace("@TELL@", tell),
    }
    return Entry(name, tries, in_answers(answers), WRONG | {"attention_lists": status}, withheld=OF_THE_REFERENCE)


def _table(day: int, grade_id: str) -> Callable[[Path], Path]:
    """A writer of an answer that holds the results of the visible cases, by the text of their arguments."""

    def write(folder: Path) -> Path:
        ladder = find_ladder(day, grade_id)
        table = {}
        outcomes = judge_of(day, grade_id).reference().outcomes
        for rung, outcome in zip(draw_rungs(day, grade_id), outcomes, strict=True):
            if not rung.measure:
                table[_key(rung.args)] = [(part.shape, [*map(str, part.entries)]) for part in outcome.values.values()]
        source = TABLE.format(name=ladder.names[0], table=table, parts=len(ladder.returns))
        return in_answers({grade_id: source}, day)(folder)

    return write


TABLE = """
import numpy as np
import torch
table = {table}
def {name}(*args):
    key = " ".join(repr(np.asarray(arg, dtype=float).round(6).tolist()) for arg in args)
    known = table.get(key, [([], [0.0])] * {parts})
    parts = [np.array([float(x) for x in numbers]).reshape(shape) for shape, numbers in known]
    parts = [torch.from_numpy(part) if torch.is_tensor(args[0]) else part for part in parts]
    return parts[0] if {parts} == 1 else tuple(parts)
"""


def _key(args) -> str:
    return " ".join(repr(np.asarray(arg, dtype=float).round(6).tolist()) for arg in args)


BY_ORDER = """
calls = []
known = {known}
def softmax_row(row):
    calls.append(row)
    return known[len(calls) - 1] if len(calls) <= len(known) else [1 / len(row)] * len(row)
"""


def _by_order(folder: Path) -> Path:
    outcomes = judge_of(1, "softmax_row").reference().outcomes
    known = [[*next(iter(outcome.values.values())).entries] for outcome in outcomes]
    return in_answers({"softmax_row": BY_ORDER.format(known=known)})(folder)


FETCH = """
import socket
def fetch(family, address):
    try:
        with socket.socket(family, socket.SOCK_STREAM) as line:
            line.settimeout(1)
            line.connect(address)
            line.sendall(b"GET /softmax_row?@MARKER@ HTTP/1.0\\r\\n\\r\\n")
            return line.recv(2**16).decode()
    except OSError:
        return ""
"""

ENTRIES = [
    _searching(
        "a search from the working folder", "looks in the working folder and above", "search(os.getcwd())\n", ""
    ),
    _searching(
        "a search of home and paths",
        "looks in HOME, in the import path and beside every program it knows of",
        "for place in (os.environ.get('HOME', '/'), *sys.path, *os.environ.get('PATH', '').split(':'), sys.prefix,\n"
        "              sys.executable, os.path.realpath(sys.executable), *sys.argv):\n    search(place)\n",
    ),
    _searching(
        "a search of the editable install",
        "reads in site-packages where the course is installed from",
        """
for base in {path for path in sys.path if "site-packages" in path}:
    for path in [*pathlib.Path(base).glob("__editable__*"), *pathlib.Path(base).glob("__editable*"),
                 *pathlib.Path(base).glob("*.egg-link"), *pathlib.Path(base).glob("*.dist-info/direct_url.json")]:
        for place in re.findall(r"/[\\w./-]+", path.read_text()):
            search(place)
""",
    ),
    _searching(
        "a search of all processes",
        "reads the command lines, environments, working folders and open files in /proc",
        """
for process in pathlib.Path("/proc").glob("[0-9]*"):
    for name in ("cmdline", "environ"):
        try:
            for place in set(re.findall(r"/[\\w./-]+", (process / name).read_bytes().decode("latin-1"))):
                search(place)
        except OSError:
            pass
    for link in (process / "cwd", process / "root" / "solutions", *process.glob("fd/*")):
        try:
            search(os.readlink(link))
        except OSError:
            pass
""",
    ),
    _searching(
        "a search of the whole disk",
        "walks from / to the solutions",
        """
import time
began = time.monotonic()
for base, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if name[0] != "." and name not in ("proc", "sys", "lib", "usr")]
    if any(re.match(r"day1_.*ipynb", name) for name in files):
        take(base)
    if base.count("/") > 4:
        folders.clear()
    if time.monotonic() > began + 1:
        break
""",
    ),
    Entry(
        "the stored evidence replayed",
        "reads the official outputs and returns them in the order of the calls",
        in_answers({"softmax_row": REPLAY}),
        WRONG,
        needs="files",
    ),
    Entry(
        "the course imported",
        "makes Python forget the library of the kernel and imports the course itself",
        in_answers({"find_the_bug": IMPORT_THE_COURSE}),
        {"find_the_bug": "failed"},
        needs="files",
    ),
    Entry(
        "the course asked in another process",
        "starts a Python of its own, which has the course installed",
        in_answers({"softmax_row": ASK_THE_COURSE}),
        {"softmax_row": "failed"},
        needs="files",
    ),
    Entry(
        "a neighbour's kernel",
        "looks for the connection files of other kernels, to run code in them",
        cheat(
            KERNEL
            + """
import glob, tempfile
for path in glob.glob(tempfile.gettempdir() + "/course_*/**/connection.json", recursive=True):
    try:
        from jupyter_client import BlockingKernelClient
        client = BlockingKernelClient(connection_file=path)
        client.load_connection_file()
        if client.session.key != kernel.session.key:
            client.start_channels()
            client.execute("softmax_row = scores = None")
    except Exception:
        pass
"""
        ),
        FAILED,
        needs="files",
    ),
    Entry(
        "the answer fetched",
        "asks a machine of its own for the answer and runs what comes",
        in_answers(
            {
                "softmax_row": FETCH
                + UNSHIFTED
                + """
from IPython.core.interactiveshell import InteractiveShell
told = fetch(socket.AF_INET, ("127.0.0.1", @PORT@))
if told:
    InteractiveShell.instance().run_cell(told)
"""
            }
        ),
        WRONG,
        needs="network",
    ),
    Entry(
        "the questions sent away",
        "sends what it is asked to a machine of its own, in a datagram",
        in_answers(
            {
                "softmax_row": """
import socket
def softmax_row(row):
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            line.sendto(repr(('@MARKER@', row)).encode(), ("127.0.0.1", @PORT@))
    except OSError:
        pass
    e = [math.exp(x - max(row)) for x in row]
    return [x / sum(e) for x in e]
"""
            }
        ),
        {},
        needs="network",
    ),
    _writing(
        "files left outside",
        "writes into every folder it can name",
        """
import os, sys
leave("/tmp", "/var/tmp", "/dev/shm", "/", "/etc", "/root", os.path.expanduser("~"), "@FOLDER@", sys.prefix,
      os.path.dirname(sys.prefix), *sys.path)
""",
    ),
    _writing(
        "files left in the temporary folder",
        "leaves what tempfile makes",
        """
import os, tempfile
tempfile.mkstemp(suffix="@MARKER@")
os.makedirs(os.path.join(tempfile.gettempdir(), "@MARKER@d"), exist_ok=True)
""",
    ),
    _writing(
        "shared memory left behind",
        "leaves a block of shared memory, which is no process's own",
        """
try:
    from multiprocessing import resource_tracker, shared_memory
    resource_tracker.register = lambda *a: None
    shared_memory.SharedMemory(name="@MARKER@", create=True, size=4096)
except OSError:
    pass
""",
    ),
    _writing(
        "other submissions changed",
        "writes over all notebooks beside its own",
        """
import pathlib
for path in pathlib.Path("@FOLDER@").glob("*"):
    try:
        path.write_text("mine")
    except OSError:
        pass
""",
    ),
    _writing(
        "links in its own home",
        "leaves links to other folders, for a careless deletion to follow",
        """
import os
os.symlink("@FOLDER@", "link")
os.symlink("/", "root")
os.rename(os.getcwd(), os.getcwd() + ".old")
os.symlink("@FOLDER@", os.getcwd().removesuffix(".old"))
""",
        needs="",
    ),
    Entry(
        "a library of its own",
        "writes modules and start-up files into its home, for the kernels after it",
        cheat("""
import os, pathlib
home = pathlib.Path(os.environ["HOME"])
for place in (".ipython/profile_default/startup/00.py", ".local/lib/python3.11/site-packages/sitecustomize.py",
              "../lib/sitecustomize.py", "../lib/course_utils/checks/__init__.py", "math.py", ".pythonrc"):
    try:
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        (home / place).write_text("def checks_for(day): return lambda *a, **k: None\\n")
    except OSError:
        pass
"""),
        FAILED,
    ),
    Entry(
        "a table of the visible cases",
        "knows the cases that its reader can see, and no others",
        _table(1, "softmax_row"),
        WRONG,
    ),
    Entry(
        "a table by the order of calls",
        "returns the visible results one after the other, whatever it is asked",
        _by_order,
        WRONG,
    ),
    _lent(
        "a lent answer in an error's text",
        "raises an error with the text of an answer it is lent",
        "raise ValueError(text)",
    ),
    _lent(
        "a lent answer in an error's name",
        "raises an error of a class that has the text of an answer it is lent as its name",
        "raise type(text, (Exception,), {})",
    ),
    _lent(
        "a lent answer in a shape",
        "has the checks send the text of an answer it is lent as the shape of a result",
        "shape = (text, *map(ord, text))\n    evidence['as_numbers'] = lambda value: evidence['Numbers'](shape, ())\n"
        "    return 0, 0",
        "failed",
    ),
    _lent(
        "a lent answer as a line",
        "sends the text of an answer it is lent as the line of its own cell where it raised",
        "evidence['describe_error'] = lambda error: f'KeyError: x, at line 2 of your cell: {text}'\n    raise KeyError",
    ),
    Entry(
        "the keys of hidden inputs",
        "keeps the keys and the inputs that an earlier answer saw, and raises an error with them",
        in_answers(
            {
                "scores": FINDS_SEEDS,
                "scale_scores": """
def scale_scores(S, d_k):
    had, asked = ([each for each in math.seen if (each[0] == "seed") is seed] for seed in (True, False))
    raise ValueError(str((had[-1:], asked[-1:])))
""",
            }
        ),
        {"scale_scores": "error"},
    ),
    Entry(
        "the keys of hidden inputs in numbers",
        "keeps what an earlier answer saw, and returns it as numbers",
        in_answers(
            {
                "scores": FINDS_SEEDS,
                "scale_scores": """
def scale_scores(S, d_k):
    seeds = [seed for _, had in math.seen if isinstance(had, dict) for seed in had.values()]
    number = int(seeds[0][:4], 16) if seeds else 0
    return [[float(number) for _ in row] for row in S]
""",
            }
        ),
        {"scale_scores": "failed"},
    ),
    *(
        Entry(f"a table on day {day}", "knows the visible cases", _table(day, name), {name: "failed"}, day)
        for day, name in ((2, "softmax_jacobian"), (4, "merge_heads"))
    ),
]
