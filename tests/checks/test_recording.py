"""What an answer calls while it is checked is recorded, however it is written; honest code is not refused."""

import copy
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from course_utils.checks.examination import examine
from course_utils.checks.judge.exercise_tables import days_with_exercises
from course_utils.checks.kernel.evidence import all_ladders, find_ladder
from course_utils.checks.kernel.recording import Recording, install

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
    assert verdict.message.startswith(f"Line {evidence.called[0].line} of its cell calls {name}, ")
    assert verdict.message.endswith(f": {find_ladder(day, grade_id).forbidden[part_of(day, grade_id, name)]}.")


def part_of(day, grade_id, name):
    return next(part for part in find_ladder(day, grade_id).forbidden if part in name.lower())


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


def test_a_call_outside_the_block_is_not_recorded():
    with Recording({"softmax": ""}) as recording:
        pass
    torch.softmax(torch.zeros(2), 0)
    assert recording.calls == []


def test_modes_are_taken_off_again():
    stacks = (
        torch.overrides._get_current_function_mode_stack,
        torch.utils._python_dispatch._get_current_dispatch_mode_stack,
    )
    before = [len(stack()) for stack in stacks]
    with Recording({"softmax": ""}):
        assert [len(stack()) for stack in stacks] == [depth + 1 for depth in before]
    assert [len(stack()) for stack in stacks] == before


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
