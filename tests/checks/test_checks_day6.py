"""Day 6's checks: what is particular to streams, tiles, traffic and Triton. Its variants run in test_checks.py."""

import inspect
import json
import linecache
import math
import os
import pickle
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from as_cells import graded
from torch.nn.attention.bias import causal_lower_right
from variants import WRONG, day6

from course_utils.attention import tiled, traffic
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.kernel.evidence import draw_rungs, find_ladder, gather
from course_utils.checks.kernel.result_numbers import BadResult
from course_utils.days.day6.given import ladders as inputs
from course_utils.days.day6.given import triton_emulation as launching
from course_utils.days.shared.given import call_spy as watching

NUMBERS = np.linspace(0, 1, 400).tolist()
OTHER_LOOPS = pytest.mark.thorough("other loops of Triton are compiled for a GPU and go through the grader")
HIDDEN = pytest.mark.parametrize("hidden", [False, True], ids=["visible", "hidden"])
triton, tl = launching.load_triton()


def expected(grade_id, hidden, measures=()):
    """The rungs of an exercise with the values that the reference gives, as arrays.

    Those that compare results, and those with one of the given measures.
    """
    outcomes = judge_of(6, grade_id).reference(hidden).outcomes
    for rung, outcome in zip(draw_rungs(6, grade_id, hidden=hidden), outcomes, strict=True):
        if rung.measure is None or rung.measure in measures:
            values = {part: outcome.array(part) for part in outcome.values}
            yield (
                rung,
                values,
            )


def answer(grade_id, function):
    return judge_of(6, grade_id).judge(gather(6, grade_id, {find_ladder(6, grade_id).names[0]: function}))


def attention(q, k, v, causal=False):
    """Output and log-sum-exp by PyTorch, in float64; causal is aligned lower-right."""
    q, k, v = (torch.as_tensor(x, dtype=torch.float64) for x in (q, k, v))
    n, m = q.shape[-2], k.shape[-2]
    mask = torch.ones(n, m, dtype=torch.bool)
    if causal:
        mask = mask.tril(m - n)
    heads = [x.reshape(1, -1, *x.shape[-2:]) for x in (q, k, v)]
    o = F.scaled_dot_product_attention(*heads, attn_mask=causal_lower_right(n, m) if causal else None)
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~mask, -math.inf)
    return o.reshape(*q.shape[:-1], -1), torch.logsumexp(scores, dim=-1)


# References against PyTorch and the library --------------------------------------------------------------------------


@HIDDEN
def test_the_maximum_and_the_sum_of_a_stream_are_those_of_a_list(hidden):
    for rung, right in expected("online_softmax", hidden, (inputs.of_a_generator, inputs.of_a_list)):
        (numbers,) = rung.args
        m = max(numbers, default=-math.inf)
        assert right["m"] == pytest.approx(m, rel=1e-7)
        assert right["l"] == pytest.approx(math.fsum(math.exp(x - m) for x in numbers if x > -math.inf), rel=1e-7)


@HIDDEN
def test_merged_parts_are_the_attention_over_the_keys_of_both(hidden):
    for rung, right in expected("merge_partials", hidden, (inputs.merged,)):
        m_a, l_a, o_a, m_b, l_b, o_b = (torch.as_tensor(x, dtype=torch.float64) for x in rung.args)
        m, l, o = (torch.as_tensor(right[part]) for part in "mlo")
        assert torch.equal(m.float(), torch.maximum(m_a, m_b).float())
        peak = torch.nan_to_num(torch.maximum(m_a, m_b), neginf=0.0)  # less it, a log-sum-exp keeps its digits
        lse_a, lse_b = m_a - peak + l_a.log(), m_b - peak + l_b.log()
        torch.testing.assert_close(l.log(), torch.logaddexp(lse_a, lse_b), rtol=1e-6, atol=1e-6)
        shares = torch.stack([lse_a, lse_b]).softmax(dim=0)[..., None]
        blends = (torch.nan_to_num(part / sums[..., None]) for part, sums in ((o_a, l_a), (o_b, l_b)))
        blended = sum(share * blend for share, blend in zip(torch.nan_to_num(shares), blends, strict=True))
        torch.testing.assert_close(torch.nan_to_num(o / l[..., None]), blended, rtol=1e-6, atol=1e-6)


@HIDDEN
def test_all_keys_merged_one_by_one_are_a_softmax(hidden):
    for rung, right in expected("merge_partials", hidden, (inputs.key_by_key,)):
        scores, values = map(torch.as_tensor, rung.args)
        np.testing.assert_allclose(right["o / l"], scores.softmax(-1) @ values, atol=1e-6)
        np.testing.assert_allclose(right["m + log l"], scores.logsumexp(-1), atol=1e-6)


@HIDDEN
def test_a_row_in_blocks_is_the_softmax_of_pytorch(hidden):
    for rung, right in expected("row_in_blocks", hidden, (launching.through_the_row_kernel,)):
        scores, values, _ = (torch.as_tensor(x, dtype=torch.float64) for x in rung.args)
        np.testing.assert_allclose(right["o"], torch.softmax(scores, 1) @ values, atol=1e-6)
        np.testing.assert_allclose(right["lse"], torch.logsumexp(scores, 1), atol=1e-6, rtol=1e-6)


@HIDDEN
@pytest.mark.parametrize("grade_id", ["tiled_attention", "triton_inner_loop", "find_the_bug"])
def test_attention_and_log_sum_exp_are_those_of_pytorch(grade_id, hidden):
    for rung, right in expected(grade_id, hidden, (launching.through_the_kernel,)):
        q, k, v, *options = rung.args
        if grade_id == "find_the_bug":  # a cache of which so many keys are in use
            k, v = k[..., : options[0], :], v[..., : options[0], :]
        o, lse = attention(q, k, v, causal=any(option is True for option in options))
        near = 1e-5 if q.dtype == np.float32 else 1e-6
        np.testing.assert_allclose(right["o"], o, atol=near)
        np.testing.assert_allclose(right["lse"], lse, atol=near, rtol=1e-6)


@HIDDEN
def test_bytes_are_those_that_the_meter_counts(hidden):
    for rung, right in expected("bytes_moved", hidden):
        T, d, *rest = rung.args
        flash = rung.of == "flash_bytes"
        bytes_per_value = rest[flash] if len(rest) > flash else 2
        if T > 300:  # the meter runs the whole attention
            continue
        q, k, v = torch.zeros(3, T, d)
        memory = traffic.FastMemory(2**30)
        metered = traffic.metered_forward if flash else traffic.metered_naive
        metered(q, k, v, memory, block_q=rest[0] if flash else T, block_k=T)
        assert right["bytes"] == memory.traffic / 4 * bytes_per_value


@HIDDEN
def test_the_gradients_are_those_of_autograd(hidden):
    for rung, right in expected("flash_backward", hidden):
        q, k, v, o, _, do = (torch.as_tensor(x, dtype=torch.float64) for x in rung.args)
        if rung.name.startswith("k and v are"):
            continue  # o is that of more keys: see the next test
        leaves = [x.requires_grad_() for x in (q, k, v)]
        out = F.scaled_dot_product_attention(*(x[None, None] for x in leaves))[0, 0]
        near = 1e-5 if rung.args[0].dtype == np.float32 else 1e-6
        np.testing.assert_allclose(o, out.detach(), atol=near)
        for part, gradient in zip(("dq", "dk", "dv"), torch.autograd.grad(out, leaves, do), strict=True):
            np.testing.assert_allclose(right[part], gradient, atol=near, err_msg=f"{rung.name} {part}")


def test_gradients_of_blocks_of_keys_add_up_to_those_of_all_keys():
    rng = np.random.default_rng(0)
    q, k, v, o, lse, do = inputs.with_forward(
        *(rng.normal(size=s) for s in ((4, 3), (9, 3), (9, 2))), rng.normal(size=(4, 2))
    )
    reference = all_exercises(6)["flash_backward"].reference["flash_backward"]
    dq, dk, dv = reference(q, k, v, o, lse, do)
    blocks = [reference(q, k[i : i + 4], v[i : i + 4], o, lse, do) for i in (0, 4, 8)]
    torch.testing.assert_close(sum(block[0] for block in blocks), dq)
    torch.testing.assert_close(torch.cat([block[1] for block in blocks]), dk)
    torch.testing.assert_close(torch.cat([block[2] for block in blocks]), dv)


def test_only_lse_and_o_tell_the_weights_of_a_key_among_many():
    """The rungs with some of the keys fail whoever does not use o, or lse."""
    rungs = [rung.name for rung in draw_rungs(6, "flash_backward")]
    for variant in (day6.gradients_of_a_new_softmax, day6.gradients_by_the_whole_jacobian_without_o):
        held = dict(answer("flash_backward", variant).rungs)
        assert [name for name in rungs if not held[name]] == [
            "k and v are some of the keys",
            "k and v are one key of many",
        ]


@HIDDEN
@pytest.mark.parametrize("grade_id", all_exercises(6))
def test_no_measure_blames_the_reference(grade_id, hidden):
    for outcome in judge_of(6, grade_id).reference(hidden).outcomes:
        assert outcome.array("measure") in (None, 0.0), outcome.rung


# The watch over tensors ----------------------------------------------------------------------------------------------


def watched(function, n=20, d=3):
    q = torch.arange(n * d, dtype=torch.float64).reshape(n, d)
    return watching.watch(function, q)


@pytest.mark.parametrize(
    "make",
    [
        lambda q: q @ q.T,
        lambda q: torch.einsum("nd,md->nm", q, q),
        lambda q: torch.cat([q @ row[:, None] for row in q], dim=1),
        lambda q: torch.stack([q @ row for row in q]),
        lambda q: torch.empty(20, 20),
        lambda q: torch.ones(20, 20, dtype=torch.bool).tril(),
        lambda q: torch.tensor([[1.0] * 20] * 20),
        lambda q: (q[:, None, 0] * q[None, :, 0]).sum(),
        lambda q: q[:, :1].expand(20, 20).clone(),
        lambda q: torch.cdist(q, q),
        lambda q: q.new_zeros(20, 20)[:2, :2],
        lambda q: torch.from_numpy(np.zeros((20, 20))) + 0,
    ],
)
def test_a_tensor_of_all_scores_is_seen_however_it_is_made(make):
    assert watched(make).largest >= 400


@pytest.mark.parametrize(
    "make",
    [
        lambda q: q[:, :1].expand(20, 20),
        lambda q: q[None].expand(50, 20, 3),
        lambda q: [q[i : i + 4] @ q[j : j + 4].T for i in range(0, 20, 4) for j in range(0, 20, 4)],
        lambda q: torch.arange(20)[:, None],
        lambda q: q.clone().mul_(2),
    ],
)
def test_views_and_tiles_are_no_tensor_of_all_scores(make):
    assert watched(make).largest <= 60


def test_tiles_that_are_kept_add_up_and_those_let_go_do_not():
    def tiles(q):
        return (q[i : i + 4] @ q[j : j + 4].T for i in range(0, 20, 4) for j in range(0, 20, 4))

    assert watched(lambda q: list(tiles(q))).most_kept >= 400
    assert watched(lambda q: [tile.view(16)[:2] for tile in tiles(q)]).most_kept >= 400  # a view keeps the whole
    assert watched(lambda q: sum(tile.sum() for tile in tiles(q))).most_kept <= 60


def test_work_counts_products_once_and_views_not_at_all():
    assert watched(lambda q: q @ q.T).work == 20 * 20 * 3
    assert watched(lambda q: torch.einsum("nd,md->nm", q, q)).work == 20 * 20 * 3
    assert (
        watched(lambda q: torch.baddbmm(torch.zeros(1, 20, 20, dtype=q.dtype), q[None], q.mT[None])).work == 400 + 1200
    )
    assert watched(lambda q: q.T.reshape(3, 4, 5)[1:].transpose(0, 1)).work <= 60
    assert watched(lambda q: q.exp()).work == 60


@pytest.mark.parametrize(
    "leave",
    [
        torch.Tensor.numpy,
        torch.Tensor.tolist,
        np.asarray,
        np.from_dlpack,
        lambda q: [x.item() for x in q.flatten()],
        lambda q: [float(x) for x in q.flatten()],
        lambda q: [complex(x) for x in q.flatten()],
        lambda q: [f"{x}" for x in q.flatten()],
        pickle.dumps,
    ],
    ids=range(9),
)
def test_numbers_that_leave_pytorch_are_counted(leave):
    assert watched(leave).taken_out == 60
    assert watched(lambda q: float(q.sum())).taken_out == 1


def test_a_tile_may_be_printed(capsys):
    assert watched(lambda q: print(q, f"{q}")).taken_out == 0


def test_a_sparse_tensor_is_spoken_of_as_such():
    with pytest.raises(BadResult, match="sparse"):
        watched(lambda q: q.to_sparse())


def test_what_is_given_does_not_count_and_is_not_changed():
    q = torch.ones(5, 2, dtype=torch.float64)
    assert watching.watch(lambda q: q.mul_(2), q).largest == 0
    assert torch.equal(q, torch.ones(5, 2, dtype=torch.float64))


def test_the_watch_does_not_load_the_compiler():
    code = (
        "import sys, numpy as np; from course_utils.days.shared.given.call_spy import watch; "
        "watch(lambda q: q @ q.T, np.ones((3, 2))); assert 'torch._dynamo' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_the_library_itself_passes_the_watch():
    q, k, v = (torch.randn(40, 3, dtype=torch.float64) for _ in "qkv")
    seen = watching.watch(lambda q, k, v: tiled.forward(q, k, v, True, 4, 8), q, k, v)
    assert seen.largest < 4 * 40
    assert seen.most_kept < 40 * 40 / 2


# Streams -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keep",
    [
        list,
        set,
        sorted,
        dict.fromkeys,
        lambda stream: np.fromiter(stream, float),
        lambda stream: [2 * x for x in stream],
        lambda stream: [str(x) for x in stream],
    ],
    ids=range(7),
)
def test_a_reader_that_keeps_the_numbers_is_seen(keep):
    assert inputs.numbers_kept(lambda stream: (keep(stream), 0.0), NUMBERS)["measure"] == 1


@pytest.mark.parametrize(
    "read",
    [max, sum, lambda s: sum(1 for x in s), lambda stream: [None for x in stream if x > 2]],
    ids=range(4),
)
def test_a_reader_that_lets_them_go_is_not_blamed(read):
    assert inputs.numbers_kept(lambda s: (read(x + 1 - 1 for x in s), 0.0), NUMBERS)["measure"] == 0


# The Triton loop -----------------------------------------------------------------------------------------------------


SOURCE = (Path(__file__).parents[2] / "sources" / "exercises" / "day6_flash_attention.md").read_text(encoding="utf-8")
LOOP = re.search(r"grade_id: triton_inner_loop.*?---\n(.*?)```", SOURCE, re.DOTALL)[1]
PASS = re.search(r"grade_id: row_in_blocks.*?---\n(.*?)```", SOURCE, re.DOTALL)[1]
STUB = re.sub(r"### BEGIN SOLUTION.*?### END SOLUTION", "raise NotImplementedError", LOOP, flags=re.DOTALL)


def from_a_cell(source, name="attend_to_keys", number=1):
    """What a cell of a notebook defines, with the file name that Jupyter would give it."""
    file = f"/tmp/ipykernel_1/{number}.py"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    made = {"triton": triton, "tl": tl, "__name__": "__main__"}
    exec(compile(source, file, "exec"), made)
    return made[name]


def test_the_kernel_in_the_text_is_the_one_that_runs():
    shown = re.search(r"```python\n(def attention_kernel.*?)```", SOURCE, re.DOTALL)[1]
    source = textwrap.dedent(inspect.getsource(launching.attention_kernel().fn))
    assert shown == source.partition("\n")[2].replace("  # fmt: skip", "")


def test_the_row_kernel_in_the_text_is_the_one_that_runs():
    shown = re.search(r"```python\n(def row_kernel.*?)```", SOURCE, re.DOTALL)[1]
    source = textwrap.dedent(inspect.getsource(launching.row_kernel().fn))
    assert shown == source.partition("\n")[2].replace("  # fmt: skip", "")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("l = l * rescale", "l = l"), "l does not shrink when the maximum grows"),
        (("o = o * rescale", "o = o"), "o does not shrink when the maximum grows"),
        ((', other=float("-inf"))', ")"), "counts as a score of 0"),
        ((', mask=in_row, other=float("-inf"))', ")"), "numbers that lie after the row"),
        ((", mask=in_row, other=0.0)", ")"), "0 · NaN is NaN"),
        (('m, l, o = float("-inf")', "m, l, o = -1e9"), "Begin at float"),
        (("start + tl.arange", "tl.arange"), "Every turn reads the first block"),
        (("return m, l, o", "return m, o, l"), "l and o have changed places"),
        (("return m, l, o", "return l, m, o"), "m and l have changed places"),
        (("@triton.jit\n", ""), "keep the line @triton.jit above it"),
    ],
    ids=range(10),
)
def test_mistakes_in_the_row_are_told_by_their_names(change, said):
    assert PASS.count(change[0]) == 1
    wrong = from_a_cell(PASS.replace(*change), "one_pass", number=30)
    assert said in answer("row_in_blocks", wrong).message


def test_the_interpreter_leaves_a_notebook_what_it_is():
    cell = from_a_cell(PASS, "one_pass", number=40)
    launching.launch_rows(cell, torch.zeros(1, 3), torch.zeros(3), 2)
    assert "__file__" not in cell.fn.__globals__


def test_the_kernel_around_the_loop_of_the_cell_is_attention_in_half_precision_too():
    loop = from_a_cell(LOOP)
    made = torch.Generator().manual_seed(0)
    for dtype, near in ((torch.float32, 1e-6), (torch.float16, 2e-3)):
        for causal, n, m, block_k in ((False, 30, 50, 32), (True, 50, 50, 32), (True, 18, 45, 16)):
            q, k, v = (torch.randn(2, T, 32, generator=made).to(dtype) for T in (n, m, m))
            o, lse = launching.launch(loop, q, k, v, causal, 16, block_k)
            exact, exact_lse = attention(q, k, v, causal)
            torch.testing.assert_close(o.cpu().double(), exact, atol=near, rtol=near)
            torch.testing.assert_close(lse.cpu().double(), exact_lse, atol=near, rtol=near)


def test_triton_and_numpy_run_the_same_kernel():
    """Who judges has the mistakes in NumPy; each is the same as a learner's in Triton."""
    by_name = {mistake.name: mistake.answer for mistake in all_exercises(6)["triton_inner_loop"].mistakes}
    pairs = {
        "acc is not rescaled": ("v, acc * rescale[:, None], ", "v, acc, "),
        "e in place of 2": ("tl.exp2(", "tl.exp("),
        "columns without j": ("columns = j + ", "columns = "),
        "m stays as it was": ("        m = m_new\n", ""),
    }
    for number, (name, (old, new)) in enumerate(pairs.items()):
        loop = from_a_cell(LOOP.replace(old, new), number=10 + number)
        verdict = answer("triton_inner_loop", loop)
        if name == "m stays as it was":  # in the cell m also stays within the loop
            assert verdict.status == "failed"
        else:
            assert verdict.mistake == name, verdict
        assert by_name[name]


def test_a_loop_that_is_not_written_is_missing():
    verdict = answer("triton_inner_loop", from_a_cell(STUB, number=2))
    assert (verdict.status, verdict.message) == ("missing", "Not written yet.")


def test_an_error_in_the_interpreter_names_the_line_of_the_cell():
    verdict = answer("triton_inner_loop", from_a_cell(LOOP.replace("tl.maximum", "tl.largest"), number=3))
    assert "AttributeError" in verdict.message and "no attribute 'largest'" in verdict.message
    line = LOOP.splitlines().index("        m_new = tl.maximum(m, tl.max(s, 1))") + 1
    assert f"at line {line} of your cell: m_new = tl.largest(m, tl.max(s, 1))" in verdict.message


def test_a_function_without_the_decorator_is_told_to_keep_it():
    verdict = answer("triton_inner_loop", from_a_cell(LOOP.replace("@triton.jit\n", ""), number=4))
    assert "keep the line @triton.jit above it" in verdict.message


COMPILE = """
import json, linecache, sys
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
import triton
from course_utils.checks.kernel.evidence import gather
from course_utils.days.day6.given import triton_emulation as launching

triton, tl = launching.load_triton()
kernel, sizes = launching.attention_kernel(), []
for number, source in enumerate(json.load(sys.stdin)):
    file = f"/tmp/ipykernel_1/{number}.py"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    cell = {"triton": triton, "tl": tl, "__name__": "__main__"}
    exec(compile(source, file, "exec"), cell)
    for causal, dtype, d_head, block_q, block_k in (
        (False, "fp32", 16, 16, 32), (True, "fp16", 64, 64, 32), (True, "bf16", 64, 64, 64)
    ):
        constants = {"attend_to_keys": cell["attend_to_keys"], "CAUSAL": causal, "D_HEAD": d_head}
        constants |= {"BLOCK_Q": block_q, "BLOCK_K": block_k}
        names, signature = [parameter.name for parameter in kernel.params], {}
        for name in names:
            rows = block_q if name in ("queries", "outputs") else block_k
            signature[name] = {"lse": "*fp32", "scale_log2": "fp32"}.get(name, "i32")
            if name in constants:
                signature[name] = "constexpr"
            elif name in ("queries", "keys", "values", "outputs"):
                signature[name] = f"tensordesc<{dtype}[1, {rows}, {d_head}]>"
        constants = {(names.index(name),): value for name, value in constants.items()}
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
        try:
            made = triton.compile(source, target=GPUTarget("cuda", 90, 32))
        except Exception as error:
            print(repr(launching._root(error, cell["attend_to_keys"])))
            break
        sizes.append(len(made.asm["cubin"]))
print(min(sizes) > 1000, len(sizes))
"""


@OTHER_LOOPS
def test_the_loop_of_the_cell_compiles_for_a_gpu_and_others_say_why_they_do_not(tmp_path):
    sources = [LOOP, STUB, LOOP.replace("k.T", "k"), LOOP.replace("tl.maximum", "tl.largest")]
    ran = subprocess.run(
        [sys.executable, "-c", COMPILE],
        input=json.dumps(sources),
        env=os.environ | {"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    stub, dot, largest, sizes = ran.stdout.splitlines()
    assert stub == "NotImplementedError()", ran.stderr[-2000:]
    assert "equal reduction dimensions, at the line s = tl.dot(q, k, " in dot
    assert "no attribute 'largest'" in largest.replace("\\", "") and "at the line m_new = tl.largest(m, " in largest
    assert sizes == "True 3"


WITHOUT = """
import sys
import torch

class NoTriton:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "triton":
            raise ImportError("No module named triton")

sys.meta_path.insert(0, NoTriton())  # as on macOS
from course_utils.checks import checks_for
from course_utils.days.day6 import launch, load_triton
from course_utils.checks.judge.exercise_tables import all_exercises

triton, tl = load_triton()
exec(sys.stdin.read())
merge = all_exercises(6)["merge_partials"].reference["merge"]
check = checks_for(day=6)
check("merge_partials")
try:
    check("triton_inner_loop")
except Exception as error:
    print(error)
try:
    launch(attend_to_keys, *torch.zeros(3, 1, 16, 16))
except RuntimeError as error:
    print(error)
"""


def test_without_triton_the_cells_run_the_others_pass_and_one_line_says_what_is_missing():
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    ran = subprocess.run([sys.executable, "-c", WITHOUT], input=LOOP, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "merge_partials: passed, 4 of 4 points" in ran.stdout
    text = " ".join(ran.stdout.split())
    assert text.count("Triton is not installed here, and this exercise needs it: it has wheels for Linux only.") == 2


RUN = """
import linecache, sys, torch
from course_utils.days.day6 import launch, load_triton

triton, tl = load_triton()
source = sys.stdin.read()
linecache.cache["cell"] = len(source), None, source.splitlines(keepends=True), "cell"
exec(compile(source, "cell", "exec"))
print(launch(attend_to_keys, *torch.ones(3, 1, 16, 16))[0].sum().item())
"""


@pytest.mark.parametrize(
    "before",
    ["", pytest.param("import triton, torch.optim\n", marks=OTHER_LOOPS)],
    ids=["alone", "after Triton was imported"],
)
def test_a_kernel_runs_with_or_without_a_gpu_and_nothing_is_said(before):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    code = [sys.executable, "-c", before + RUN]
    ran = subprocess.run(code, input=LOOP, env=environment, capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("256.0\n", "")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (("l * rescale + ", "l + "), "failed"),
        pytest.param(("tl.range(start", "range(start"), "passed", marks=OTHER_LOOPS),
        pytest.param(("acc * rescale[:, None]", "acc"), "failed", marks=OTHER_LOOPS),
        pytest.param(("tl.maximum", "tl.largest"), "error", marks=OTHER_LOOPS),
    ],
    ids=["l not rescaled", "with range", "acc not rescaled", "an error"],
)
def test_triton_loops_go_through_the_whole_grader(change, status, tmp_path):
    result = graded(6, tmp_path, {"triton_inner_loop": LOOP.replace(*change)})
    (loop,) = [each for each in result.exercises if each.id == "triton_inner_loop"]
    assert loop.status == status, loop.message
    assert all(each.status == "passed" for each in result.exercises if each is not loop)


# What is accepted and what is said -----------------------------------------------------------------------------------


def test_the_bug_as_it_stands_is_not_given_away():
    mistake = all_exercises(6)["find_the_bug"].mistakes[0]
    message = answer("find_the_bug", mistake.answer).message
    assert message == mistake.message
    assert not {"length", "slice", "mask", "end", "stop"} & set(re.findall(r"\w+", message.lower()))


def test_the_broken_code_of_the_notebook_is_the_first_known_mistake():
    given = re.search(r"grade_id: find_the_bug\n.*?---\n(.*?)### BEGIN SOLUTION", SOURCE, re.DOTALL)[1]
    made = {"math": math, "torch": torch}
    exec(given, made)
    verdict = answer("find_the_bug", made["broken_tiled_attention"])
    assert verdict.mistake == "the bug as it stands"


@pytest.mark.parametrize(
    ("grade_id", "variant", "name"),
    [
        ("online_softmax", "online_read_twice", "two passes, in loops"),
        ("merge_partials", "merge_that_rescales_the_first_only", "only a is rescaled"),
        ("tiled_attention", "tiles_of_whole_blocks_of_keys", "whole blocks of keys only"),
    ],
)
def test_a_slip_that_people_make_is_told_by_its_name(grade_id, variant, name):
    (slip,) = [each for each in WRONG[6, grade_id] if getattr(each, "__name__", "") == variant]
    assert answer(grade_id, slip).mistake == name


@pytest.mark.parametrize(
    ("grade_id", "variant", "words"),
    [
        ("tiled_attention", "tiles_summed_in_float32", "torch.zeros makes float32, q.new_zeros does not"),
        ("flash_backward", "gradients_in_float32_and_back", "float32, which keeps about seven digits"),
        ("tiled_attention", "tiles_of_float32_scores", "float32 keeps about seven digits"),
        ("online_softmax", day6.online_without_zeros, "“a 0 among others” m is -1, expected 0"),
        ("online_softmax", day6.online_two_hundred_at_a_time, "the numbers are kept, in a list or elsewhere"),
        ("merge_partials", day6.merge_in_single_precision, "All tensors are float64 here"),
        ("flash_backward", day6.gradients_in_single_precision, "All tensors are float64 here"),
        ("tiled_attention", day6.tiles_until(lambda i, end, n, m, b, c: m if n - m else end), "NaN has come into"),
        ("triton_inner_loop", "loop_with_a_large_fill", "use −∞"),
        ("triton_inner_loop", "loop_with_a_fill_of_a_million", "such as −1e6 or −1e9 is a number like any other"),
        ("triton_inner_loop", "loop_with_a_fill_of_a_billion", "such as −1e6 or −1e9 is a number like any other"),
    ],
    ids=[
        "tiles in float32",
        "gradients in float32",
        "scores in float32",
        "zeros",
        "kept",
        "merge",
        "backward",
        "tiles",
        "fill",
        "million",
        "billion",
    ],
)
def test_a_failure_names_its_cause(grade_id, variant, words):
    if isinstance(variant, str):  # one that was made of text, or by a function
        (variant,) = [each for each in WRONG[6, grade_id] if each.__name__ == variant]
    assert words in answer(grade_id, variant).message


def test_a_right_answer_that_is_untiled_is_told_so_and_gets_nothing():
    verdict = answer("tiled_attention", day6.tiles_none)
    assert (verdict.status, verdict.share, verdict.mistake) == ("failed", 0.0, "untiled")
    held = dict(verdict.rungs)
    assert [name for name, ok in held.items() if not ok] == [
        "no tensor of n × m elements",
        "no row of tiles at once",
        "no tile larger than asked for",
        "no tile smaller than asked for",
        "a tile is let go",
        "no tensor of n × m elements, causal",
        "causal blocks are skipped",
        "each block of queries skips",
    ]
