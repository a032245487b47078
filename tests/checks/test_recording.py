"""What an answer calls while it is checked is recorded, however it is written; honest code is not refused."""

import copy
import math
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from course_utils.checks.interactive import examine
from course_utils.checks.judge.exercises import days_with_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.kernel import recording as recording_module
from course_utils.checks.kernel.evidence import all_ladders, find_ladder
from course_utils.checks.kernel.outcome import Evidence, ForbiddenCall
from course_utils.checks.kernel.recording import DOORS, FRAMES, HIDDEN, THREAD, TOOLS, Recording, install

ROW = "    e = [math.exp(x - max(row)) for x in row]\n    return [x / sum(e) for x in e]\n"
RIGHT_ROW = f"def softmax_row(row):\n{ROW}"
ON_TENSORS = {
    "attention": (
        1,
        "self_attention",
        "def self_attention(x, W_q, W_k, W_v):\n    q, k, v = x @ W_q, x @ W_k, x @ W_v\n    return {call}, None\n",
    ),
    "softmax": (
        1,
        "softmax_row",
        "def softmax_row(row):\n    x = torch.tensor(row, dtype=torch.float64)\n    return ({call}).tolist()\n",
    ),
    "array": (
        2,
        "stable_softmax",
        "def softmax(x, axis=-1):\n    t = torch.from_numpy(np.array(x, dtype=float))\n    return np.asarray({call})\n",
    ),
    "logsumexp": (
        2,
        "logsumexp",
        "def logsumexp(x, axis=-1):\n    t = torch.tensor(np.array(x, float))\n    return np.asarray({call})\n",
    ),
    "backward": (
        2,
        "attention_backward",
        "def attention_backward(q, k, v, do):\n"
        "    q, k, v, do = (torch.from_numpy(a.copy()) for a in (q, k, v, do))\n"
        "    def f(q, k, v):\n        return torch.softmax(q @ k.T / q.shape[-1] ** 0.5, -1) @ v\n"
        "    {call}\n    return q.numpy(), k.numpy(), v.numpy()\n",
    ),
    "flash": (
        6,
        "flash_backward",
        "def flash_backward(q, k, v, o, lse, do):\n"
        "    def f(q, k, v):\n        return torch.softmax(q @ k.T / q.shape[-1] ** 0.5, -1) @ v\n"
        "    {call}\n    return q, k, v\n",
    ),
}


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch):
    """What one test leaves behind does not count in the next."""
    monkeypatch.setattr(recording_module, "_left", recording_module._Left())


def examined(day, grade_id, source):
    """What a check says of an answer that stands in a cell."""
    namespace = {"__name__": "__main__", "math": math, "np": np, "torch": torch, "F": F}
    exec(compile(source, "/tmp/ipykernel_7/7.py", "exec"), namespace)
    return examine(day, grade_id, namespace)


@pytest.mark.parametrize(
    ("kind", "before", "call"),
    [
        ("attention", "", "F.scaled_dot_product_attention(q, k, v)"),
        ("attention", "from torch.nn.functional import scaled_dot_product_attention as s", "s(q, k, v)"),
        ("attention", "name = 'scaled_dot' + '_product_attention'", "getattr(F, name)(q, k, v)"),
        ("attention", "", "vars(F)['scaled_' + 'dot_product_attention'](q, k, v)"),
        ("attention", "", "eval('F.scaled_' + 'dot_product_attention')(q, k, v)"),
        ("attention", "", "__import__('torch').nn.functional.scaled_dot_product_attention(q, k, v)"),
        ("attention", "import string", "string.Formatter().get_field('0.nn.functional', (torch,), {})[0]"
         ".scaled_dot_product_attention(q, k, v)"),
        ("attention", "import pydoc", "pydoc.locate('torch.nn.functional.scaled_dot_product_attention')(q, k, v)"),
        ("attention", "import pickle",
         "pickle.loads(b'ctorch.nn.functional\\nscaled_dot_product_attention\\n.')(q, k, v)"),
        ("attention", "import sys", "sys.modules['torch.nn.' + 'functional'].scaled_dot_product_attention(q, k, v)"),
        ("attention", "def note(x: F.scaled_dot_product_attention): ...", "note.__annotations__['x'](q, k, v)"),
        ("attention", "import timeit",
         "timeit.timeit('F.scaled_dot_product_attention(q, k, v)', number=1, globals=globals() | locals())"),
        ("attention", "m = torch.nn.MultiheadAttention(2, 1)", "m(*[q.float()[:, :2]] * 3)[0]"),
        ("attention", "m = torch.nn.TransformerEncoderLayer(2, 1, 2)", "m(q.float()[:, :2])"),
        ("attention", "",
         "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*(x[None, None] for x in (q, k, q)))"),
        ("attention", "", "list(map(F.scaled_dot_product_attention, [q], [k], [v]))[0]"),
        ("softmax", "", "torch.softmax(x, 0)"),
        ("softmax", "", "x.softmax(0)"),
        ("softmax", "", "torch.nn.Softmax(0)(x)"),
        ("softmax", "", "x.log_softmax(0).exp()"),
        ("softmax", "", "(x - x.logsumexp(0)).exp()"),
        ("softmax", "", "(x - x.logcumsumexp(0)[-1]).exp()"),
        ("softmax", "", "torch.distributions.Categorical(logits=x).probs"),
        ("softmax", "", "torch._softmax(x, 0, False)"),
        ("softmax", "", "torch._decomp.decompositions._softmax(x, 0, False)"),
        ("softmax", "", "(-F.cross_entropy(x.expand(len(row), -1), torch.arange(len(row)), reduction='none')).exp()"),
        ("softmax", "u = torch.jit.CompilationUnit('def f(x):\\n  return x.softmax(0)\\n')", "u.f(x)"),
        ("softmax", "", "F.scaled_dot_product_attention(x.new_ones(1, 1), x[:, None], x.new_ones(len(x)).diag())[0]"),
        ("array", "", "torch.softmax(t, axis)"),
        ("array", "", "np.exp(x - np.logaddexp.reduce(np.array(x, float), axis, keepdims=True))"),
        ("logsumexp", "", "np.logaddexp.reduce(np.array(x, float), axis)"),
        ("logsumexp", "from numpy import logaddexp as add", "add.reduce(np.array(x, float), axis)"),
        ("logsumexp", "", "torch.special.logsumexp(t, axis)"),
        ("logsumexp", "", "-t.log_softmax(axis).amax(axis) + t.amax(axis)"),
        *((kind, "", call) for kind in ("backward", "flash") for call in (
            "q.requires_grad_(); f(q, k, v).backward(do); q = q.grad",
            "q.requires_grad_(); (q,) = torch.autograd.grad(f(q, k, v), q, do)",
            "q, k, v = torch.func.vjp(f, q, k, v)[1](do)",
            "torch.func.grad(lambda q: (f(q, k, v) * do).sum())(q)",
            "torch.func.jacrev(f)(q, k, v)",
            "torch.func.jvp(f, (q, k, v), (q, k, v))",
            "torch.autograd.functional.jacobian(f, (q, k, v))",
        )),
    ],
)  # fmt: skip
def test_a_call_that_does_the_whole_job_is_heard_however_it_is_written(kind, before, call):
    day, grade_id, around = ON_TENSORS[kind]
    evidence, verdict = examined(day, grade_id, f"{before}\n{around.replace('{call}', call)}")
    assert verdict.status == "forbidden", verdict
    name = evidence.called[0].name
    assert name not in DOORS
    assert verdict.message.startswith(f"Line {evidence.called[0].line} of its cell calls {name}, ")
    assert verdict.message.endswith(f": {find_ladder(day, grade_id).forbidden[part_of(day, grade_id, name)]}.")


def part_of(day, grade_id, name):
    return next(part for part in find_ladder(day, grade_id).forbidden if part in name.lower())


@pytest.mark.parametrize(
    ("door", "source"),
    [
        (THREAD, "from concurrent.futures import ThreadPoolExecutor as P\ndef softmax_row(row):\n"
         "    with P(1) as pool:\n        return pool.submit(torch.softmax, torch.tensor(row), 0).result()"),
        (THREAD, f"import threading\ndef softmax_row(row):\n    threading.Thread(target=int).start()\n{ROW}"),
        (HIDDEN, "def softmax_row(row):\n    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():\n"
         "        return list(map(torch.softmax, [torch.tensor(row)], [0]))[0].tolist()"),
        (HIDDEN, "from torch.utils._python_dispatch import _disable_current_modes as off\ndef softmax_row(row):\n"
         f"    with off():\n        pass\n{ROW}"),
        (HIDDEN, f"def softmax_row(row):\n    torch._C._len_torch_dispatch_stack()\n{ROW}"),
        (HIDDEN, f"from torch.overrides import _pop_mode as pop\ndef softmax_row(row):\n    pop()\n{ROW}"),
        (TOOLS, f"import sys\ndef softmax_row(row):\n    sys.setprofile(None)\n{ROW}"),
        (TOOLS, f"import cProfile\ndef softmax_row(row):\n    with cProfile.Profile():\n        pass\n{ROW}"),
        (TOOLS, f"import sys\ndef softmax_row(row):\n    sys.settrace(None)\n{ROW}"),
        (TOOLS, f"import gc\ndef softmax_row(row):\n    gc.get_objects()\n{ROW}"),
        (TOOLS, f"import gc\ndef softmax_row(row):\n    gc.get_referents(row)\n{ROW}"),
        (FRAMES, f"import sys\ndef softmax_row(row):\n    sys._getframe(1)\n{ROW}"),
        (FRAMES, f"import inspect\ndef softmax_row(row):\n    inspect.currentframe()\n{ROW}"),
        (FRAMES, "def softmax_row(row):\n    try:\n        1 / 0\n    except ZeroDivisionError as e:\n"
         f"        e.__traceback__.tb_frame.f_back\n{ROW}"),
        (FRAMES, f"def softmax_row(row):\n    (x for x in row).gi_frame\n{ROW}"),
    ],
)  # fmt: skip
def test_what_could_hide_a_call_is_refused_and_named(door, source):
    try:
        evidence, verdict = examined(1, "softmax_row", source)
    finally:
        sys.setprofile(None)
    assert verdict.status == "forbidden", verdict
    assert next(each.name for each in evidence.called if each.name in DOORS) == door
    assert DOORS[door] in verdict.message or verdict.message.startswith("Line")


@pytest.mark.parametrize(
    "source",
    [
        RIGHT_ROW,
        f"{RIGHT_ROW}assert torch.softmax(torch.tensor([1.0, 2.0]), 0).sum() > 0  # compared in the cell",
        f"def softmax(row):\n{ROW}\ndef softmax_row(row):\n    return softmax(row)",
        f"class A:\n    softmax = 1\ndef softmax_row(row):\n    assert getattr(A(), 'softmax') and vars(A)\n{ROW}",
        f"import inspect, builtins, timeit, logging, collections, traceback, warnings\ndef softmax_row(row):\n"
        "    print(len(locals()), len(globals()), inspect.signature(builtins.len), timeit.default_timer())\n"
        "    logging.getLogger('x').info('y')\n    collections.namedtuple('A', 'b')\n    warnings.warn('z')\n"
        f"    try:\n        1 / 0\n    except ZeroDivisionError:\n        traceback.format_exc()\n{ROW}",
        f"def softmax_row(row):\n    eval('1 + 1')\n    exec('a = 2')\n{ROW}",
        f"def softmax_row(row):\n    with torch.no_grad():\n        torch.tensor(row).requires_grad\n{ROW}",
        f"import copy, pickle\ndef softmax_row(row):\n    row = pickle.loads(pickle.dumps(copy.deepcopy(row)))\n{ROW}",
        f"def softmax_row(row):\n    '''Not softmax by torch.softmax.'''\n    text = 'softmax'\n{ROW}",
        f"def softmax_row(row):\n    [len([]) for _ in range(60_000)]\n{ROW}",  # longer than calls are heard
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_honest_code_earns_its_points(source):
    evidence, verdict = examined(1, "softmax_row", source)
    assert verdict.status == "passed", verdict
    assert not evidence.called


def test_a_thread_that_a_cell_left_running_is_seen_and_one_that_ended_is_not():
    started = "import threading\nstop = threading.Event()\ndef run():\n    stop.wait()\n"
    started += "(thread := threading.Thread(target=run)).start()\n"
    install()
    namespace = {"math": math}
    exec(compile(started + RIGHT_ROW, "/tmp/ipykernel_7/7.py", "exec"), namespace)
    try:
        assert examine(1, "softmax_row", namespace)[0].called == [ForbiddenCall(THREAD)]
    finally:
        namespace["stop"].set()
        namespace["thread"].join()
    assert examine(1, "softmax_row", namespace)[1].status == "passed"


def test_a_thread_of_a_pool_is_seen_where_the_answer_uses_it_and_not_where_it_waits():
    started = "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\n"
    started += "pool.submit(lambda: 1).result()\n"
    uses = RIGHT_ROW.replace("def softmax_row(row):\n", "def softmax_row(row):\n    pool.submit(int).result()\n")
    assert uses != RIGHT_ROW
    install()
    namespace = {"math": math}
    exec(compile(started + RIGHT_ROW, "/tmp/ipykernel_7/7.py", "exec"), namespace)
    try:
        assert examine(1, "softmax_row", namespace)[1].status == "passed"
        exec(compile(uses, "/tmp/ipykernel_7/8.py", "exec"), namespace)
        assert examine(1, "softmax_row", namespace)[0].called == [ForbiddenCall(THREAD)]
    finally:
        namespace["pool"].shutdown()


def test_what_other_threads_do_is_not_recorded():
    go, gone = threading.Event(), threading.Event()

    def start_one_more():
        go.wait()
        threading.Thread(target=gone.set).start()

    threading.Thread(target=start_one_more).start()
    recording_module._left.threads.clear()  # as if a library had started it
    with Recording({"softmax": ""}) as recording:
        go.set()
        gone.wait()
    assert recording.found == []


def test_a_call_outside_the_block_is_not_recorded():
    with Recording({"softmax": ""}) as recording:
        pass
    torch.softmax(torch.zeros(2), 0)
    assert recording.found == []


def test_modes_and_profile_are_taken_off_again():
    before = sys.getprofile(), len(torch.overrides._get_current_function_mode_stack())
    with Recording({"softmax": ""}):
        assert sys.getprofile() is not before[0]
    assert (sys.getprofile(), len(torch.overrides._get_current_function_mode_stack())) == before


def test_a_recorded_ufunc_is_the_same_to_those_who_call_it():
    install()
    assert np.logaddexp(0.0, 0.0) == math.log(2)
    assert np.logaddexp.reduce([0.0, 0.0, 0.0]) == pytest.approx(math.log(3))
    assert np.logaddexp.nin == 2 and "logaddexp" in repr(np.logaddexp)


def test_a_recorded_ufunc_is_a_ufunc_that_can_be_copied_and_pickled():
    install()
    assert isinstance(np.logaddexp, np.ufunc) and "exponentiations" in np.logaddexp.__doc__
    assert copy.copy(np.logaddexp) is copy.deepcopy([np.logaddexp])[0] is np.logaddexp
    pickles = [pickle.dumps(np.logaddexp, protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    assert all(pickle.loads(each) is np.logaddexp for each in pickles)
    elsewhere = f"import pickle, numpy; assert pickle.loads({pickles[-1]!r}) is numpy.logaddexp"
    subprocess.run([sys.executable, "-c", elsewhere], check=True)


def test_an_earlier_answer_that_broke_its_own_rule_does_not_break_that_of_a_later_one():
    own = "def softmax_row(row):\n    return torch.softmax(torch.tensor(row, dtype=torch.float64), 0).tolist()\n"
    later = (
        "def soft_lookup(query, keys, values, temperature):\n"
        "    return np.array(softmax_row([q for q in keys @ query / temperature])) @ values\n"
    )
    assert examined(1, "softmax_row", own)[1].status == "forbidden"
    assert examined(1, "soft_lookup", own + later)[1].status == "passed"


@pytest.mark.parametrize("day", days_with_exercises())
def test_what_is_forbidden_is_said_in_lower_case_with_a_reason(day):
    for ladder in all_ladders(day).values():
        assert all(part == part.lower() and why for part, why in ladder.forbidden.items())


def test_a_function_of_numpy_is_named_as_it_is_written():
    """What np.mean calls first in Python is called _mean_dispatcher, a name that nobody wrote."""
    evidence = Evidence("softmax_row", False, (), [ForbiddenCall("_mean_dispatcher", 3)])
    assert judge_of(1, "softmax_row").judge(evidence).message.startswith("Line 3 of its cell calls mean, which is not")
