"""FlashAttention in Triton against float64: in the interpreter on a CPU, on the GPU where there is one."""

import importlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process import script

from course_utils.attention import flash, flash_backward, flash_decode, tensors, triton_setup
from course_utils.attention.flash import flash_attention
from course_utils.attention.masks import causal as causal_mask
from course_utils.attention.triton_setup import readable, tiles
from course_utils.costs import records

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
HALF = [torch.float16, torch.bfloat16] if GPU else [torch.float16]
law = settings(max_examples=25, deadline=None, derandomize=True)
MORE = pytest.mark.thorough("a Triton kernel is run in the interpreter in more configurations")
FRESH = pytest.mark.thorough("Triton is imported in a fresh process in another way")
ALL_COMPILED = pytest.mark.thorough("every configuration of the Triton kernels is compiled for a Hopper GPU")
interpreter_only = pytest.mark.skipif(GPU, reason="the interpreter's own: this machine has a GPU")


def some(*chosen, of):
    """Values of a parameter: those chosen in every run, the others in that of everything."""
    return [pytest.param(each, marks=() if each in chosen else MORE) for each in of]


def problem(h, h_kv, n, m, d, dtype=torch.float32, seed=0, largest=1.0):
    """q, k, v with gradients on, and a gradient of the output, in a batch of two."""
    made = torch.Generator().manual_seed(seed)
    shapes = ((2, h, n, d), (2, h_kv, m, d), (2, h_kv, m, d), (2, h, n, d))
    q, k, v, do = (torch.randn(shape, generator=made, dtype=torch.float64) * largest for shape in shapes)
    q, k, v, do = (x.to(DEVICE, dtype) for x in (q, k, v, do / largest))
    return q.requires_grad_(), k.requires_grad_(), v.requires_grad_(), do


def oracle(q, k, v, causal=False, scale=None):
    """Output and log-sum-exp by the definition, in float64."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))  # (B, h, m, d)
    n, m, d = q.shape[2], k.shape[2], q.shape[3]
    mask = causal_mask(n, m, device=q.device) if causal else torch.ones(n, m, dtype=torch.bool, device=q.device)
    scores = q @ k.transpose(-2, -1) * (1 / d**0.5 if scale is None else scale)
    return tensors.attention(q, k, v, mask, scale)[0], tensors.logsumexp(scores.masked_fill(~mask, -torch.inf))


def gradients(attend, q, k, v, do):
    """Output, log-sum-exp and the gradients of q, k, v, with a gradient into the log-sum-exp as well."""
    o, lse = attend(q, k, v)
    d_lse = torch.linspace(-1, 1, lse.numel(), dtype=lse.dtype, device=lse.device).reshape(lse.shape)
    observed = lse.detach() > -torch.inf
    return o, lse, *torch.autograd.grad((o, lse), (q, k, v), (do.to(o.dtype), d_lse * observed))


def error(found, expected):
    """How far off in norm, relative to the size of what is expected (or 1 where that is nothing)."""
    found, expected = found.detach().double(), expected.detach().double()
    both = torch.isfinite(expected)
    assert torch.equal(found[~both], expected[~both])
    return ((found - expected)[both].norm() / expected[both].norm().clamp(min=1e-3)).item()


def compare(q, k, v, do, causal, scale=None):
    """The errors of output, log-sum-exp, dq, dk, dv against float64 arithmetic on the same numbers."""
    actual = gradients(lambda *x: flash_attention(*x, causal, scale, return_lse=True), q, k, v, do)
    exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
    expected = gradients(lambda *x: oracle(*x, causal, scale), *exact, do.double())
    return [error(a, b) for a, b in zip(actual, expected, strict=True)]


# --- the right numbers ----------------------------------------------------------------------------------------------


@MORE
@law
@given(
    heads=st.sampled_from([(1, 1), (2, 1), (4, 2), (3, 3)]),
    n=st.integers(1, 150),
    m=st.integers(1, 150),
    d=st.sampled_from([16, 24, 40, 64, 128]),
    causal=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_forward_and_backward_equal_float64_for_any_lengths_heads_and_widths(heads, n, m, d, causal, seed):
    q, k, v, do = problem(*heads, n, m, d, seed=seed)
    assert max(compare(q, k, v, do, causal)) <= 1e-6


@pytest.mark.parametrize("d", some(16, 80, 256, of=[16, 32, 48, 64, 80, 96, 112, 128, 256]))
def test_every_width_of_head_is_taken(d):
    q, k, v, do = problem(2, 1, 70, 70, d)
    assert max(compare(q, k, v, do, causal=True)) <= 1e-6


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("causal", some(True, of=[False, True]))
def test_half_precision_is_as_close_as_the_library(dtype, causal):
    q, k, v, do = problem(4, 4, 96, 96, 64, dtype)
    exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
    expected = oracle(*exact, causal)[0]
    expected = expected, *torch.autograd.grad(expected, exact, do.double())
    for attend, errors in ((flash_attention, ours := []), (F.scaled_dot_product_attention, theirs := [])):
        o = attend(q, k, v, **({"causal": causal} if attend is flash_attention else {"is_causal": causal}))
        assert o.dtype == dtype
        errors += [error(a, b) for a, b in zip((o, *torch.autograd.grad(o, (q, k, v), do)), expected, strict=True)]
    assert all(a <= 1.5 * b for a, b in zip(ours, theirs, strict=True)), (ours, theirs)


@pytest.mark.parametrize("scale", [0.3, 1.0, -0.5, 0.0])
def test_the_scale_may_be_any_finite_number(scale):
    q, k, v, do = problem(2, 2, 40, 70, 16)
    assert max(compare(q, k, v, do, True, scale)) <= 1e-6


@pytest.mark.parametrize("causal", [False, True])
def test_scores_of_ten_thousand_stay_finite_and_right(causal):
    q, k, v, do = problem(2, 2, 70, 90, 16, largest=50.0)
    scores = q @ k.transpose(-2, -1) / 4
    assert scores.abs().max() > 1e4
    assert all(x.isfinite().all() for x in gradients(lambda *x: flash_attention(*x, causal, None, True), q, k, v, do))
    # Single precision keeps a score of 10⁴ to about 10⁻³, so compare where one key has all the weight: the argmax.
    o = flash_attention(q * 100, k, v, causal)
    assert error(o, oracle(q.double() * 100, k.double(), v.double(), causal)[0]) <= 1e-5


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")  # in rows past the last key, which nobody stores
def test_scores_of_minus_ten_thousand_leave_no_trace_past_the_last_key():
    """There e^(0 − lse) would be infinite: the zeros that stand for missing keys must not get that weight."""
    q, k, v, do = problem(1, 1, 40, 50, 16, largest=50.0)
    q, k = q.detach().abs().requires_grad_(), (-k.detach().abs()).requires_grad_()
    result = gradients(lambda *x: flash_attention(*x, False, None, True), q, k, v, do)
    assert result[1].max() < -1000 and all(x.isfinite().all() for x in result)


@pytest.mark.parametrize("more", some(-33, 0, 31, of=[-33, -32, -31, -1, 0, 1, 31, 32, 33]))
def test_the_causal_edge_may_fall_anywhere_in_a_block(more):
    q, k, v, do = problem(1, 1, 129, 129 + more, 16)
    assert max(compare(q, k, v, do, causal=True)) <= 1e-6


def test_a_negative_scale_costs_no_accuracy_in_half_precision():
    q, k, v, _ = problem(2, 2, 40, 40, 16, torch.float16)
    assert torch.equal(flash_attention(q, k, v, scale=-300.0), flash_attention(-q, k, v, scale=300.0))


def test_one_token_attends_to_itself():
    q, k, v, _ = problem(2, 2, 1, 1, 16)
    o, lse = flash_attention(q, k, v, causal=True, return_lse=True)
    assert torch.equal(o, v)
    torch.testing.assert_close(lse, (q * k).sum(-1) / 4)


def test_a_query_that_sees_no_key_gives_zeros_and_no_gradient():
    q, k, v, do = problem(2, 1, 100, 30, 16)  # the first 70 queries come before the first key
    o, lse, dq, _, _ = gradients(lambda *x: flash_attention(*x, True, None, True), q, k, v, do)
    assert (o[:, :, :70] == 0).all() and (lse[:, :, :70] == -torch.inf).all() and (dq[:, :, :70] == 0).all()
    assert (o[:, :, 70:].abs().sum(-1) > 0).all() and lse[:, :, 70:].isfinite().all()
    assert max(compare(q, k, v, do, causal=True)) <= 1e-6


@pytest.mark.parametrize("B, n, m", [(1, 0, 5), (1, 5, 0), (0, 5, 5)])
def test_empty_sequences_are_taken(B, n, m):
    q = torch.randn(B, 2, n, 16, device=DEVICE, requires_grad=True)
    k, v = (torch.randn(B, 2, m, 16, device=DEVICE, requires_grad=True) for _ in "kv")
    o, lse = flash_attention(q, k, v, return_lse=True)
    assert o.shape == q.shape and (o == 0).all() and (lse == -torch.inf).all()
    assert all((g == 0).all() for g in torch.autograd.grad(o.sum(), (q, k, v)))


# --- laws -----------------------------------------------------------------------------------------------------------


@interpreter_only
@pytest.mark.parametrize("blocks", some((32, 16), of=[(16, 16), (16, 64), (32, 16), (128, 32)]))
def test_block_size_does_not_change_the_answer(blocks, monkeypatch):
    monkeypatch.setattr(triton_setup, "INTERPRETER_CONFIG", triton_setup.config(*blocks, 4, 1))
    more_q, more_k = blocks[0] + 1, blocks[1] + 1  # one past a block: two blocks of each, and both are ragged
    for n, m in ((more_q, more_k), (more_k, more_q)):
        q, k, v, do = problem(4, 2, n, m, 16)
        assert max(compare(q, k, v, do, causal=True)) <= 1e-6
        assert max(compare(q, k, v, do, causal=False)) <= 1e-6


@interpreter_only
@pytest.mark.filterwarnings("ignore:All-NaN slice")
def test_key_blocks_above_the_diagonal_are_skipped(monkeypatch):
    monkeypatch.setattr(triton_setup, "INTERPRETER_CONFIG", triton_setup.config(32, 16, 4, 1))
    q, k, v, do = problem(1, 1, 96, 96, 16)
    with torch.no_grad():
        k[:, :, 64:] = v[:, :, 64:] = torch.nan  # a weight of 0 would still give NaN: these must not be read
    o, lse, dq, dk, dv = gradients(lambda *x: flash_attention(*x, True, None, True), q, k, v, do)
    assert o[:, :, :64].isfinite().all() and lse[:, :, :64].isfinite().all() and dq[:, :, :64].isfinite().all()
    assert o[:, :, 64:].isnan().all()
    q, k, v, do = problem(1, 1, 96, 96, 16)
    with torch.no_grad():
        q[:, :, :32] = torch.nan  # keys from 32 on are seen by later queries only
    o, lse, dq, dk, dv = gradients(lambda *x: flash_attention(*x, True, None, True), q, k, v, do)
    assert dk[:, :, 32:].isfinite().all() and dv[:, :, 32:].isfinite().all()
    assert dk[:, :, :32].isnan().any()


def test_a_later_token_changes_nothing_before_it():
    q, k, v, _ = problem(2, 2, 100, 100, 16)
    before = flash_attention(q, k, v, causal=True)
    with torch.no_grad():
        k[:, :, 77] += 5
        v[:, :, 77] -= 5
    after = flash_attention(q, k, v, causal=True)
    assert torch.equal(before[:, :, :77], after[:, :, :77])
    assert (before[:, :, 77:] != after[:, :, 77:]).any(-1).all()


def test_two_halves_of_the_keys_merge_through_their_log_sum_exp():
    q, k, v, do = problem(2, 2, 40, 90, 16)
    parts = [flash_attention(q, k[:, :, part], v[:, :, part], return_lse=True) for part in (slice(50), slice(50, None))]
    outputs, lses = (torch.stack(x) for x in zip(*parts, strict=True))
    merged = (outputs * lses.softmax(0)[..., None]).sum(0)  # (B, h, n, d)
    whole = flash_attention(q, k, v)
    assert error(merged, whole) <= 1e-6
    for a, b in zip(torch.autograd.grad(merged, (q, k, v), do), torch.autograd.grad(whole, (q, k, v), do), strict=True):
        assert error(a, b) <= 1e-6


def test_threads_can_launch_side_by_side():
    q, k, v, do = problem(1, 1, 40, 40, 16)

    def once(_):
        o = flash_attention(q, k, v, causal=True)
        return o, *torch.autograd.grad(o, (q, k, v), do)

    expected = once(0)
    with ThreadPoolExecutor(4) as pool:
        for actual in pool.map(once, range(8)):
            assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))


# --- memory ---------------------------------------------------------------------------------------------------------


def strided(x, kind):
    """The numbers of x, laid out in memory in another way."""
    d = x.shape[-1]
    if kind == "tokens before heads":
        return x.transpose(1, 2).contiguous().transpose(1, 2)  # (B, h, T, d) in memory as (B, T, h, d)
    if kind == "a slice of a fused projection":
        return torch.cat([-x, x], -1)[..., d:]
    if kind == "rows with odd gaps":
        return torch.cat([x, x[..., :1]], -1)[..., :d]
    if kind == "an odd start":
        return torch.cat([x.new_zeros(1), x.flatten()])[1:].view(x.shape)
    if kind == "width not last":
        return x.transpose(2, 3).contiguous().transpose(2, 3)
    if kind == "every second token":
        return torch.stack([x, -x], 3).flatten(2, 3)[:, :, ::2]
    raise AssertionError(kind)


LAYOUTS = ["tokens before heads", "a slice of a fused projection", "rows with odd gaps"]
LAYOUTS += ["an odd start", "width not last", "every second token"]


@pytest.mark.parametrize("kind", some(LAYOUTS[1], "an odd start", "width not last", of=LAYOUTS))
def test_any_strides_give_the_same_bits(kind):
    q, k, v, do = problem(2, 2, 50, 50, 24)
    expected = gradients(lambda *x: flash_attention(*x, True, None, True), q, k, v, do)
    views = [strided(x.detach(), kind) for x in (q, k, v, do)]
    for view, x in zip(views, (q, k, v, do), strict=True):
        assert torch.equal(view, x) and (kind == "an odd start" or not view.is_contiguous())
    leaves = [view.requires_grad_() for view in views[:3]]
    actual = gradients(lambda *x: flash_attention(*x, True, None, True), *leaves, views[3])
    assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))


def test_a_copy_is_made_only_where_a_descriptor_could_not_read():
    x = torch.randn(2, 3, 8, 16, device=DEVICE)
    one = torch.randn(1, 1, 1, 32, device=DEVICE)
    for fine in (x, strided(x, "tokens before heads"), strided(x, "a slice of a fused projection"), one[:, :, :, :16]):
        assert readable(fine) is fine
    odd = ("rows with odd gaps", "an odd start", "width not last")
    for bad in (*(strided(x, kind) for kind in odd), x[:, :1].expand(-1, 3, -1, -1), one[..., ::2]):
        copy = readable(bad)
        assert copy.is_contiguous() and copy.data_ptr() % 16 == 0 and torch.equal(copy, bad)


def test_the_stride_of_an_axis_of_one_does_not_matter():
    x = torch.randn(8, 16, device=DEVICE).as_strided((1, 1, 8, 16), (7, 3, 16, 1))  # 7 and 3 are used for nothing
    assert readable(x) is x and all(stride % 4 == 0 for stride in tiles(x).strides[:-1])
    assert torch.equal(flash_attention(x, x, x), flash_attention(x.clone(), x.clone(), x.clone()))


def test_expanded_tensors_and_gradients_are_taken():
    q, k, v, _ = problem(2, 2, 50, 50, 16)
    shared_k, shared_v = (x[:, :1].expand(-1, 2, -1, -1) for x in (k, v))
    actual = torch.autograd.grad(flash_attention(q, shared_k, shared_v).sum(), (q, k, v))  # the gradient of a sum: ones
    expected = torch.autograd.grad(flash_attention(q, k[:, :1], v[:, :1]).sum(), (q, k, v))
    assert max(error(a, b) for a, b in zip(actual, expected, strict=True)) <= 1e-6


def test_every_output_is_written_and_nothing_beside_it(monkeypatch):
    """Outputs start as NaN inside larger tensors; a store past the end of a head would land in the margin."""
    wholes = []

    def poisoned(x, **options):
        whole = torch.full((*x.shape[:2], x.shape[2] + 24, *x.shape[3:]), torch.nan, dtype=x.dtype, device=x.device)
        wholes.append((whole, x.shape[2]))
        return whole[:, :, : x.shape[2]]

    q, k, v, do = problem(2, 1, 70, 50, 24)
    monkeypatch.setattr(
        torch, "empty_like", lambda x, **options: poisoned(x) if x.ndim == 4 else x.new_full(x.shape, torch.nan)
    )
    o, lse, dq, dk, dv = gradients(lambda *x: flash_attention(*x, False, None, True), q, k, v, do)
    assert len(wholes) == 4
    assert all(x.isfinite().all() for x in (o, lse, dq, dk, dv))
    assert all(whole[:, :, T:].isnan().all() for whole, T in wholes)


def test_no_tensor_of_scores_is_ever_made():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):
        n_bytes = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            for x in out if isinstance(out, tuple | list) else (out,):
                if isinstance(x, torch.Tensor):
                    self.n_bytes = max(self.n_bytes, x.nbytes)
            return out

    q, k, v, do = problem(1, 1, 150, 150, 16)
    with Largest() as largest:
        torch.autograd.grad(flash_attention(q, k, v), (q, k, v), do)
    assert largest.n_bytes == q.nbytes < 150 * 150 * 4


# --- what it cannot take --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shapes, message",
    [
        (((4, 16), (4, 16), (4, 16)), "four axes"),
        (((1, 2, 4, 20), (1, 2, 4, 20), (1, 2, 4, 20)), "d_head is 20"),
        (((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8)), "d_head is 8"),
        (((1, 2, 4, 264), (1, 2, 4, 264), (1, 2, 4, 264)), "d_head is 264"),
        (((1, 2, 4, 16), (1, 2, 4, 16), (1, 2, 4, 32)), r"d_head is 16 \(32 in v\)"),
        (((65536, 1, 0, 16), (65536, 1, 0, 16), (65536, 1, 0, 16)), "at most 65,535"),
        (((1, 3, 4, 16), (1, 2, 4, 16), (1, 2, 4, 16)), "q has 3 heads and k has 2"),
        (((2, 2, 4, 16), (1, 2, 4, 16), (1, 2, 4, 16)), "axes before the heads"),
        (((1, 2, 4, 16), (1, 2, 5, 16), (1, 2, 4, 16)), "one value for each key"),
        (((1, 2, 4, 16), (1, 2, 4, 32), (1, 2, 4, 32)), "same d_k"),
    ],
)
def test_shapes_that_do_not_fit_are_named(shapes, message):
    with pytest.raises(ValueError, match=message):
        flash_attention(*(torch.zeros(shape, device=DEVICE) for shape in shapes))


def test_dtypes_and_scales_that_do_not_fit_are_named():
    x = torch.zeros(1, 1, 4, 16, device=DEVICE)
    with pytest.raises(TypeError, match="float64"):
        flash_attention(x.double(), x.double(), x.double())
    with pytest.raises(TypeError, match=r"float32, torch\.float16"):
        flash_attention(x, x.half(), x.half())
    with pytest.raises(TypeError, match=r"causal is Tensor, not a bool: for other masks use tensors\.attention"):
        flash_attention(x, x, x, torch.ones(4, 4, dtype=torch.bool))
    with pytest.raises(TypeError, match=r"k is ndarray, not a tensor: convert it with torch\.as_tensor"):
        flash_attention(x, x.cpu().numpy(), x)
    with pytest.raises(ValueError, match="scale is inf"):
        flash_attention(x, x, x, scale=float("inf"))
    with pytest.raises(RuntimeError, match="one device"):
        flash_attention(x, x.to("meta"), x)


@interpreter_only
def test_bfloat16_is_refused_where_the_interpreter_would_multiply_it_wrongly():
    x = torch.zeros(1, 1, 4, 16, dtype=torch.bfloat16)
    with pytest.raises(TypeError, match="use float16 or float32"):
        flash_attention(x, x, x)


def test_a_second_derivative_is_refused():
    q, k, v, _ = problem(1, 1, 4, 4, 16)
    with pytest.raises(RuntimeError, match="first derivative only"):
        torch.autograd.grad(flash_attention(q, k, v).sum(), q, create_graph=True)


# --- with and without a GPU -----------------------------------------------------------------------------------------

IMPORT = "from course_utils.attention.flash import flash_attention; "
USE = "import torch; x = torch.ones(1, 1, 4, 16); print(flash_attention(x, x, x).sum().item())"
GPU_BENCHMARKS = Path(__file__).parents[2] / "benchmarks/gpu"
OPTIMIZER = "import torch; torch.optim.Adam([torch.ones(1, requires_grad=True)]); import triton; "


def run(code, **environment):
    inherited = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=inherited | environment)


@interpreter_only
@pytest.mark.parametrize(
    "before", ["", pytest.param(OPTIMIZER, marks=FRESH)], ids=["alone", "after Triton was imported"]
)
def test_without_a_gpu_the_interpreter_is_chosen_and_one_line_says_so(before):
    ran = run(before + IMPORT + USE)
    assert ran.stdout == "64.0\n", ran.stderr
    assert ran.stderr == "No GPU here: Triton's kernels run in its interpreter, right but slow. Keep T small.\n"


@FRESH
@interpreter_only
def test_who_chooses_the_interpreter_is_not_told_of_it():
    ran = run(IMPORT + USE, TRITON_INTERPRET="1")
    assert (ran.stdout, ran.stderr) == ("64.0\n", "")


@FRESH
@interpreter_only
def test_compiled_kernels_refuse_tensors_of_the_cpu():
    ran = run(IMPORT + USE, TRITON_INTERPRET="0")
    assert ran.returncode == 1 and "move it to the GPU, or start Python with TRITON_INTERPRET=1" in ran.stderr


def test_without_triton_the_import_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, triton_setup.__name__)
    with pytest.raises(ImportError, match="these kernels need Triton, which has wheels for Linux only"):
        importlib.import_module(triton_setup.__name__)


def as_a_command(path, *words):
    ran = subprocess.run([sys.executable, path, *words], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout


WHOLE = pytest.mark.thorough("a GPU benchmark is run whole, at tiny sizes")


# The first starts fresh processes to measure memory, and so it has to be a program of its own.
@WHOLE
@pytest.mark.parametrize(("name", "run"), [("attention", as_a_command), ("tricks", script), ("decoding", script)])
def test_the_gpu_benchmarks_run_whole_without_a_gpu_when_asked_for_tiny_sizes(name, run, tmp_path):
    message = run(GPU_BENCHMARKS / f"{name}.py", "--quick", "--out", tmp_path)
    (path,) = tmp_path.iterdir()
    result = records.read(path)
    assert result["benchmark"] == f"{name}-gpu" and result["settings"]["quick"] is True
    assert all(sentence in message for sentence in result["findings"])
    if name == "attention":
        assert {row["measured"] for row in result["rows"]} == {"error", "time", "memory"}
        assert {row["implementation"] for row in result["rows"]} >= {"ours", "flash", "naive"}
    elif name == "decoding":
        assert {row["implementation"] for row in result["rows"]} >= {"ours", "unsplit", "flash", "naive"}
        assert max(row["error"] for row in result["rows"] if row["measured"] == "error") <= (1e-2 if GPU else 1e-6)
    else:
        assert {row["causal"] for row in result["rows"]} == {False, True}


@interpreter_only
@pytest.mark.parametrize("name", ["attention", "decoding"])
def test_the_gpu_benchmarks_measure_nothing_without_a_gpu(name, tmp_path):
    with pytest.raises(SystemExit, match="no GPU here: nothing to measure"):
        script(GPU_BENCHMARKS / f"{name}.py", "--out", tmp_path)
    assert not list(tmp_path.iterdir())


# --- compiled for a Hopper GPU, which takes none --------------------------------------------------------------------


def hopper(folder, *options):
    program = Path(__file__).parents[1] / "helpers/sm90.py"
    environment = os.environ | {"TRITON_CACHE_DIR": str(folder)}
    ran = subprocess.run([sys.executable, program, *options], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    return hopper(tmp_path_factory.mktemp("triton"))


@ALL_COMPILED
def test_the_forward_kernel_in_half_precision_uses_tensor_cores_and_the_copy_engine_and_spills_nothing(everything):
    rows = [row for row in everything if row["kernel"] == "forward"]
    attempts = sum(len(configs) for d, configs in flash.FORWARD.items() if d in (64, 128, 256))
    assert len(rows) == attempts + 3  # and once more in float16, for each width
    for row in rows:
        assert row["HGMMA"] and row["UTMALDG"], row
        assert row["STL"] == row["LDL"] == row["stack"] == 0, row


@ALL_COMPILED
def test_the_forward_kernel_in_float32_uses_no_tensor_cores(everything):
    (row,) = [row for row in everything if row["kernel"] == "forward in float32"]
    assert row["FFMA"] > 0 and row["HGMMA"] == row["HMMA"] == 0, row


@ALL_COMPILED
@pytest.mark.parametrize("kernel", ["d_queries", "d_keys_values"])
@pytest.mark.parametrize("d", [64, 128, 256])
def test_each_backward_kernel_has_a_configuration_on_tensor_cores_that_spills_little(everything, kernel, d):
    """How much depends on Triton's version; the pinned one spills nothing."""
    rows = [row for row in everything if row["kernel"] == kernel and row["d"] == d and row["dtype"] == "bf16"]
    assert any(row["HGMMA"] and row["UTMALDG"] and row["STL"] <= 48 for row in rows), rows
    assert d > 64 or rows[0]["STL"] == rows[0]["LDL"] == rows[0]["stack"] == 0, rows


@ALL_COMPILED
def test_the_decoding_kernel_spills_nothing_in_half_precision_with_few_rows_or_many(everything):
    rows = [row for row in everything if row["kernel"] in ("decode", "merge")]
    assert {row.get("rows") for row in rows} == {16, flash_decode.MAX_ROWS, None}
    for row in rows:
        assert row["kernel"] == "merge" or (row["UTMALDG"] and row["HGMMA"] + row["HMMA"]), row
        assert row["STL"] == row["LDL"] == row["stack"] == 0, row


def test_every_table_of_configurations_serves_every_width():
    for table in (flash.FORWARD, flash_backward.D_QUERIES, flash_backward.D_KEYS_VALUES, flash_decode.PARTS):
        assert set(table) == {64, 128, 256, torch.float32}


@pytest.mark.parametrize("d", [64, 128])
def test_the_largest_tile_is_tried_with_three_stages_of_loads(d):
    assert triton_setup.config(128, 128, 8, 3) in flash.FORWARD[d]


# --- tuned ----------------------------------------------------------------------------------------------------------


def shapes(B, h, n, m, d=64, dtype=torch.bfloat16):
    return torch.empty(B, h, n, d, dtype=dtype, device="meta"), torch.empty(B, h, m, d, dtype=dtype, device="meta")


def test_decoding_and_prefill_share_no_configuration():
    decode, prefill = (triton_setup.situation(*shapes(1, 32, n, 4096), True) for n in (1, 4096))
    assert decode != prefill


@pytest.mark.parametrize(
    "one, other",
    [
        (shapes(1, 32, 1, 4096), shapes(1, 32, 1, 512)),
        (shapes(1, 32, 1, 4096), shapes(64, 32, 1, 4096)),
        (shapes(4, 16, 512, 512), shapes(4, 16, 512, 4096)),
        (shapes(4, 16, 512, 512), shapes(4, 16, 512, 512, d=128)),
        (shapes(4, 16, 512, 512), shapes(4, 16, 512, 512, dtype=torch.float16)),
    ],
    ids=["fewer keys", "a larger batch", "more keys than queries", "wider heads", "another dtype"],
)
def test_what_changes_the_fastest_configuration_is_tuned_apart(one, other):
    assert triton_setup.situation(*one, True) != triton_setup.situation(*other, True)
    assert triton_setup.situation(*one, True) != triton_setup.situation(*one, False)


def test_a_cache_that_grows_by_a_token_is_not_tuned_again():
    assert len({triton_setup.situation(*shapes(1, 32, 1, m), True) for m in range(513, 2049)}) == 1


@pytest.mark.thorough("the autotuner is run in a process of its own")
def test_a_list_is_measured_once_a_situation_and_kept_on_disk(tmp_path):
    counts = hopper(tmp_path, "--tuning")
    attempts = len(flash.FORWARD[64])
    assert counts == {"decode": attempts, "decode again": 0, "prefill": attempts, "by a new autotuner": 0}
