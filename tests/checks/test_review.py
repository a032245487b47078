"""Which lines of an answer a teacher is shown, because they name what no answer needs."""

import pytest

from course_utils.answer_key.key import COURSE, reference_answers
from course_utils.checks.judge.exercise_tables import days_with_exercises
from course_utils.checks.judge.review import MAX_LINES, lines_to_review


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import gc\nfound = gc.get_objects()", "line 1 names gc (the garbage collector); line 2 names gc"),
        ("x = 1\n\nget_ipython().display_pub.publish = print", "line 3 names display_pub (the display publisher)"),
        ("ip.events.register('pre_run_cell', print)", "line 1 names pre_run_cell (IPython itself)"),
        ("from concurrent.futures import ThreadPoolExecutor as P", "names concurrent (threads and processes)"),
        ("import os\nos.fork()", "line 2 names fork (threads and processes)"),
        ("import sys as s\ns.setprofile(None)", "line 2 names setprofile (tracing and profiling)"),
        ("import inspect\ninspect.currentframe().f_back", "line 2 names currentframe (frames of its callers)"),
        ("import torch.library", "line 1 names library (parts of PyTorch"),
        ("torch.library.custom_op", "line 1 names library (parts of PyTorch"),
        ("torch._decomp.decompositions._softmax(x, 0, False)", "line 1 names _decomp (parts of PyTorch"),
        ("getattr(torch, '_C')", "line 1 names _C (parts of PyTorch"),
        ("f = torch.compile(f)", "line 1 names compile (code made from text)"),
        ("exec('a = 1')\neval('a')\ncompile('a', '', 'eval')", "line 2 names eval (code made from text); line 3"),
        ("import sys\nsys.modules['torch']", "line 2 names modules (the modules that are loaded)"),
        ("f.__closure__[0].cell_contents", "line 1 names __closure__ (the insides of a function)"),
        ("import ctypes", "line 1 names ctypes (foreign machine code)"),
        ("from course_utils.checks.kernel import evidence", "line 1 names course_utils (the course's own code)"),
        ("import signal\nsignal.alarm(1)", "line 1 names signal (what runs later)"),
        ("loop.run_in_executor(None, f)", "names run_in_executor (threads and processes)"),
        ("from logging.handlers import QueueListener", "names QueueListener (threads and processes)"),
        ("from socketserver import ThreadingMixIn", "names ThreadingMixIn (threads and processes)"),
        ("from IPython.lib import backgroundjobs", "names backgroundjobs (threads and processes)"),
        ("import inspect\ninspect.stack()", "line 2 names stack (frames of its callers)"),
        ("import inspect as i\ni.stack()", "line 2 names stack (frames of its callers)"),
        ("from inspect import stack", "line 1 names stack (frames of its callers)"),
        ("from traceback import walk_stack", "names walk_stack (frames of its callers)"),
        ("inspect.getargvalues(f)", "names getargvalues (frames of its callers)"),
        ("import torch as t\nt.overrides", "line 2 names overrides (parts of PyTorch"),
        ("t = torch\nt.overrides", "line 2 names overrides (parts of PyTorch"),
        ("getattr(torch, 'overrides')", "line 1 names overrides (parts of PyTorch"),
        ("vars(torch)['overrides']", "line 1 names overrides (parts of PyTorch"),
        ("import code\ncode.InteractiveInterpreter()", "line 2 names InteractiveInterpreter (code made from text)"),
        ("import bdb\nbdb.Bdb().set_continue()", "line 2 names set_continue (tracing and profiling)"),
        ("import linecache\nlinecache.cache['x'] = 1", "names linecache (tracing and profiling)"),
        ("import json\njson.dumps = f", "line 2 changes json.dumps (what everything in the process shares)"),
        ("import json as j\nj.dumps = f", "line 2 changes j.dumps"),
        ("import jupyter_client.session as s\ns.Session.serialize = f", "line 2 changes s.Session.serialize"),
        ("from contextlib import ExitStack\nExitStack.enter_context = f", "line 2 changes ExitStack.enter_context"),
        ("print.__self__.any = f", "line 1 changes print.__self__.any"),
        ("world = print.__self__\nworld.any = f", "line 2 changes world.any"),
        ("import copy\ncopy.deepcopy, x = f, 1", "line 2 changes copy.deepcopy"),
        ("np.allclose = f", "line 1 changes np.allclose"),
        ("torch.Tensor.__eq__ = f", "line 1 changes torch.Tensor.__eq__"),
        ("import json\nsetattr(json, 'dumps', f)", "line 2 changes json.dumps"),
        ("import json\nvars(json)['dumps'] = f", "line 2 changes json.dumps"),
        ("import json\njson.__dict__['dumps'] = f", "line 2 changes json.__dict__.dumps"),
        ("import json\ndel json.dumps", "line 2 changes json.dumps"),
        ("for math.exp in [f]: pass", "line 1 changes math.exp"),
        ("x = " + "(" * 5000 + ")" * 5000, ""),
    ],
)  # fmt: skip
def test_machinery_is_named_with_its_line(source, line):
    assert line in lines_to_review(source)


def test_no_more_lines_are_listed_than_a_person_reads():
    text = lines_to_review("gc\n" * 100)
    assert text.count("line ") == MAX_LINES and text.endswith(f"; and {100 - MAX_LINES} more")


@pytest.mark.parametrize(
    "source",
    [
        "",
        "this is no Python",
        "import math\nimport numpy as np\nimport torch.nn.functional as F\nfrom collections import Counter",
        "model.eval()\nre.compile('x')\nmodel.modules()\nallocator.fork('a', 'b')\nsignal = 3\nlibrary = overrides = 1",
        "def f(x):\n    '''Not by gc, threading or torch.compile.'''\n    print('gc is no word here', x)\n    return x",
        "import copy, inspect, warnings, logging, functools, itertools, time, random\ninspect.signature(len)",
        "kinds = {'compile': 1, 'modules': 2, 'signal': 3}",
        "class Layer:\n    def __init__(self, x):\n        self.x = x\n        self.scale = np.sqrt(x)\nLayer.size = 3",
        "y = np.stack([x, x])\nlayer = torch.nn.Linear(2, 2)\nlayer.bias = None\nlayer.weight.data[0] = 1",
        "cache = {}\ncache['stack'] = np.zeros(3)\nx = np.ones(2)\nx.shape = (1, 2)\nsetattr(x, 'name', 1)",
        "from collections import deque\nqueue = deque()\nqueue.extra = 1\ngetattr(queue, 'popleft')()",
    ],
)
def test_what_answers_need_is_not_listed(source):
    assert lines_to_review(source) == ""


@pytest.mark.parametrize("day", days_with_exercises())
def test_no_right_answer_of_the_course_is_listed(day):
    for grade_id, source in reference_answers(COURSE.notebook(day)).items():
        assert lines_to_review(source) == "", grade_id
