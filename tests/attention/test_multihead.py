"""Multi-head attention against a loop over heads, against PyTorch's own layer, and with a cache against without."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.attention import masks, tensors
from course_utils.attention.cache import ContiguousCache, PagedCache, SlidingWindowCache
from course_utils.attention.multihead import (
    MultiHeadAttention,
    fused_qkv,
    grouped_attention,
    merge_heads,
    split_heads,
    to_grouped,
)
from course_utils.attention.rotary import Rotary

law = settings(deadline=None, max_examples=40, derandomize=True)
close = {"atol": 1e-10, "rtol": 0}


def randoms(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def some_mask(*shape, seed=0, share=0.6):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) < share


def new_layer(d_model=12, n_heads=6, n_kv_heads=None, seed=0, **options):
    """A layer in float64 with every weight and bias drawn anew, so that a bias of zero hides nothing."""
    layer = MultiHeadAttention(d_model, n_heads, n_kv_heads, **options).double()
    return with_random_weights(layer, seed).eval()


def with_random_weights(layer, seed=0):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.copy_(torch.randn(weight.shape, dtype=torch.float64, generator=generator) / 2)
    return layer


def head_by_head(layer, x, source=None, mask=None, turn=lambda one: one):
    """The definition, one head at a time with its own slice of the weights: (output, weights)."""
    source = x if source is None else source
    group = layer.n_heads // layer.n_kv_heads
    heads, weights = [], []
    for i in range(layer.n_heads):
        q, k, v = (
            F.linear(tokens, proj.weight[rows], None if proj.bias is None else proj.bias[rows])
            for tokens, proj, rows in (
                (x, layer.q_proj, rows_of(i, layer.d_head)),
                (source, layer.k_proj, rows_of(i // group, layer.d_head)),
                (source, layer.v_proj, rows_of(i // group, layer.d_head)),
            )
        )
        of_this_head = None if mask is None else mask.expand(len(x), layer.n_heads, x.shape[1], source.shape[1])[:, i]
        head, shares = tensors.attention(turn(q), turn(k), v, of_this_head)
        heads.append(head)
        weights.append(shares)
    return layer.out_proj(torch.cat(heads, -1)), torch.stack(weights, 1)


def rows_of(head, d_head):
    return slice(head * d_head, (head + 1) * d_head)


class ListCache:
    """The keys and values of each row in a plain list: what every cache has to equal."""

    def __init__(self, rows, window=None, start=0):
        self.rows, self.window, self.start, self.batch = [[] for _ in range(rows)], window, start, rows

    def positions(self, t):
        return torch.tensor([[self.start + len(row) + i for i in range(t)] for row in self.rows])

    def columns(self, t, lengths=None):
        return max(len(row) + (t if lengths is None else int(lengths[b])) for b, row in enumerate(self.rows))

    def update(self, k, v, lengths=None):
        for b, row in enumerate(self.rows):
            row += [(k[b, :, i], v[b, :, i]) for i in range(k.shape[2] if lengths is None else lengths[b])]
        m = max(map(len, self.rows))
        keys, values = (torch.full((*x.shape[:2], m, x.shape[3]), 77.0, dtype=x.dtype) for x in (k, v))
        positions = torch.full((len(self.rows), m), -1)
        for b, row in enumerate(self.rows):
            for i, (key, value) in enumerate(row):
                keys[b, :, i], values[b, :, i], positions[b, i] = key, value, self.start + i
        return keys, values, positions


@st.composite
def problems(draw, cross=True):
    """A layer, x, source or None, mask or None: sizes drawn apart, groups of every kind, rows that see nothing."""
    n_kv_heads, group, d_head = (draw(st.integers(1, 3)) for _ in range(3))
    n_heads, seed = n_kv_heads * group, draw(st.integers(0, 2**31))
    layer = new_layer(n_heads * d_head, n_heads, n_kv_heads, seed=seed, bias=draw(st.booleans()))
    B, n, m = (draw(st.integers(1, 4)) for _ in range(3))
    x = randoms(B, n, layer.d_model, seed=seed + 1)
    source = randoms(B, m, layer.d_model, seed=seed + 2) if cross and draw(st.booleans()) else None
    m = n if source is None else m
    shapes = [None, (m,), (n, m), (n, 1), (B, 1, 1, m), (B, 1, n, m), (n_heads, 1, m), (B, n_heads, n, m)]
    shape = draw(st.sampled_from(shapes))
    return layer, x, source, None if shape is None else some_mask(*shape, seed=seed + 3)


# --- what the numbers are -------------------------------------------------------------------------------------------


@law
@given(problem=problems())
def test_it_equals_a_loop_over_heads(problem):
    layer, x, source, mask = problem
    output, weights = layer(x, source, mask=mask, return_weights=True)
    expected_output, expected_weights = head_by_head(*problem)
    torch.testing.assert_close(output, expected_output, **close)
    torch.testing.assert_close(weights, expected_weights, **close)
    assert torch.equal(layer(x, source, mask=mask), output)


def test_one_head_equals_plain_attention():
    layer, x = new_layer(5, 1), randoms(2, 4, 5)
    plain, _ = tensors.attention(x @ layer.q_proj.weight.T, x @ layer.k_proj.weight.T, x @ layer.v_proj.weight.T)
    torch.testing.assert_close(layer(x), plain @ layer.out_proj.weight.T, **close)


@law
@given(
    h_kv=st.integers(1, 3),
    group=st.integers(1, 3),
    n=st.integers(1, 4),
    m=st.integers(1, 5),
    shape=st.sampled_from(["none", "(n, m)", "(B, 1, 1, m)", "(B, h, n, m)"]),
    seed=st.integers(0, 1000),
)
def test_grouped_attention_equals_the_library(h_kv, group, n, m, shape, seed):
    B, h = 2, h_kv * group
    q, k, v = (
        randoms(B, h, n, 3, seed=seed),
        randoms(B, h_kv, m, 3, seed=seed + 1),
        randoms(B, h_kv, m, 5, seed=seed + 2),
    )
    sizes = {"(n, m)": (n, m), "(B, 1, 1, m)": (B, 1, 1, m), "(B, h, n, m)": (B, h, n, m)}
    mask = None if shape == "none" else some_mask(*sizes[shape], seed=seed)
    output, weights = grouped_attention(q, k, v, mask)
    torch.testing.assert_close(output, F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True), **close)
    assert weights.shape == (B, h, n, m)


@pytest.mark.parametrize("scale", [None, 1.0, 1 / 3, -0.5])
@pytest.mark.parametrize("n_kv_heads", [1, 2, 6])
def test_the_scale_multiplies_the_scores(n_kv_heads, scale):
    layer, x = new_layer(18, 6, n_kv_heads, scale=scale), randoms(2, 4, 18)
    plain = new_layer(18, 6, n_kv_heads)
    with torch.no_grad():
        plain.q_proj.weight *= 1 if scale is None else scale * math.sqrt(3)  # what 1/√d_head takes away
    torch.testing.assert_close(layer(x), plain(x), **close)
    assert to_grouped(layer, 1).scale == layer.scale == (1 / math.sqrt(3) if scale is None else scale)
    assert scale is None or not torch.allclose(layer(x), new_layer(18, 6, n_kv_heads)(x), atol=1e-3)
    q, k = randoms(2, 6, 4, 3), randoms(2, n_kv_heads, 5, 3, seed=1)
    expected = F.scaled_dot_product_attention(q, k, k, scale=scale, enable_gqa=True)
    torch.testing.assert_close(grouped_attention(q, k, k, scale=scale)[0], expected, **close)


def test_a_scale_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="scale is nan: it must be a finite number"):
        MultiHeadAttention(12, 6, scale=float("nan"))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_float32_is_as_close_to_float64_as_the_library_is(n_kv_heads, causal):
    layer, x = new_layer(48, 6, n_kv_heads, bias=True).float(), randoms(2, 33, 48).float()
    q, k, v = (
        split_heads(proj(x), heads)
        for proj, heads in ((layer.q_proj, 6), (layer.k_proj, n_kv_heads), (layer.v_proj, n_kv_heads))
    )
    library = layer.out_proj(merge_heads(F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)))
    mask = masks.causal(33) if causal else None
    exact = copy.deepcopy(layer).double()(x.double(), mask=mask)
    error, of_library = ((one.double() - exact).norm() / exact.norm() for one in (layer(x, mask=mask), library))
    assert error < 1e-6
    assert error < 1.5 * of_library


# --- PyTorch's own layer --------------------------------------------------------------------------------------------


def theirs(bias=True, batch_first=True, **options):
    return with_random_weights(
        nn.MultiheadAttention(12, 3, bias=bias, batch_first=batch_first, dtype=torch.float64, **options)
    ).eval()


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("crossing", [True, False])
@pytest.mark.parametrize("masked", ["not", "causal", "by key", "both"])
def test_a_layer_from_torch_equals_it(bias, batch_first, crossing, masked):
    layer = theirs(bias, batch_first)
    ours = MultiHeadAttention.from_torch(layer)
    x = randoms(2, 5, 12)
    source = randoms(2, 7, 12, seed=1) if crossing else x
    m = source.shape[1]
    ignored = ~masks.causal(5, m) if masked in ("causal", "both") else None
    padded = ~masks.padding([m, m - 3], m)[:, 0, 0] if masked in ("by key", "both") else None  # (B, m), True: ignore
    query, key = (one if batch_first else one.transpose(0, 1) for one in (x, source))
    expected, averaged = layer(query, key, key, key_padding_mask=padded, attn_mask=ignored)
    _, per_head = layer(query, key, key, padded, attn_mask=ignored, average_attn_weights=False)
    may_attend = masks.combine(
        None if ignored is None else ~ignored, None if padded is None else ~padded[:, None, None, :]
    )
    output, weights = ours(x, source if crossing else None, mask=may_attend, return_weights=True)
    torch.testing.assert_close(output if batch_first else output.transpose(0, 1), expected, **close)
    torch.testing.assert_close(weights, per_head, **close)
    torch.testing.assert_close(weights.mean(1), averaged, **close)


def test_a_layer_from_torch_keeps_dtype_mode_and_dropout_and_shares_no_memory():
    layer = nn.MultiheadAttention(8, 2, dropout=0.25, dtype=torch.bfloat16)
    ours = MultiHeadAttention.from_torch(layer)
    assert {one.dtype for one in ours.parameters()} == {torch.bfloat16}
    assert ours.training and ours.dropout == 0.25 and not MultiHeadAttention.from_torch(layer.eval()).training
    before = ours.k_proj.weight.clone(), ours.out_proj.bias.clone()
    with torch.no_grad():
        layer.in_proj_weight.fill_(9)
        layer.out_proj.bias.fill_(9)
    assert torch.equal(ours.k_proj.weight, before[0]) and torch.equal(ours.out_proj.bias, before[1])
    assert all(one.requires_grad for one in ours.parameters())


@pytest.mark.parametrize(
    "options, named",
    [
        ({"kdim": 5}, "kdim"),
        ({"vdim": 5}, "vdim"),
        ({"add_bias_kv": True}, "add_bias_kv"),
        ({"add_zero_attn": True}, "add_zero_attn"),
    ],
)
def test_options_of_torchs_layer_that_have_no_place_here_are_refused(options, named):
    with pytest.raises(ValueError, match=named):
        MultiHeadAttention.from_torch(theirs(**options))
    with pytest.raises(TypeError, match="layer is Linear: expected"):
        MultiHeadAttention.from_torch(nn.Linear(2, 2))


# --- laws -----------------------------------------------------------------------------------------------------------


@law
@given(problem=problems(), seed=st.integers(0, 1000))
def test_permuting_tokens_permutes_outputs_and_permuting_the_source_changes_nothing(problem, seed):
    layer, x, source, _ = problem
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(x.shape[1], generator=generator)
    elsewhere = None if source is None else source[:, torch.randperm(source.shape[1], generator=generator)]
    torch.testing.assert_close(layer(x[:, order], elsewhere), layer(x, source)[:, order], **close)


def test_with_rope_the_order_of_tokens_matters():
    layer, x = new_layer(rope=Rotary(2)), randoms(1, 5, 12)
    order = torch.tensor([4, 2, 0, 1, 3])
    assert not torch.allclose(layer(x[:, order]), layer(x)[:, order], atol=1e-3)


@pytest.mark.parametrize("rope", [None, Rotary(2), Rotary(2, pairs="halves")])
@law
@given(changed=st.integers(0, 6), n_kv_heads=st.sampled_from([1, 2, 6]))
def test_a_later_token_changes_nothing_before_it(rope, changed, n_kv_heads):
    layer, x = new_layer(12, 6, n_kv_heads, rope=rope), randoms(2, 7, 12)
    poked = x.clone()
    poked[:, changed] += 3.0
    moved = (layer(x, mask=masks.causal(7)) - layer(poked, mask=masks.causal(7))).abs().amax((0, 2))
    assert (moved[:changed] == 0).all()
    assert moved[changed] > 1e-6


@law
@given(problem=problems())
def test_rows_of_weights_sum_to_one_or_to_zero_where_all_is_masked(problem):
    layer, x, source, mask = problem
    _, weights = layer(x, source, mask=mask, return_weights=True)
    allowed = torch.ones_like(weights, dtype=torch.bool) if mask is None else mask.expand(weights.shape)
    assert (weights[~allowed] == 0).all()
    torch.testing.assert_close(weights.sum(-1), allowed.any(-1).double(), **close)


def test_one_row_of_a_batch_knows_nothing_of_another():
    layer, x = new_layer(n_kv_heads=2), randoms(3, 4, 12)
    mask = some_mask(3, 1, 4, 4)
    together = layer(x, mask=mask)
    apart = [layer(x[b : b + 1], mask=mask[b : b + 1]) for b in range(3)]
    torch.testing.assert_close(together, torch.cat(apart), **close)


@pytest.mark.parametrize("n_kv_heads, rope", [(2, None), (1, Rotary(2))])
def test_gradients_equal_finite_differences(n_kv_heads, rope):
    layer = new_layer(4, 2, n_kv_heads, bias=True, rope=rope)
    names = [name for name, _ in layer.named_parameters()]
    mask = torch.tensor([[True, False, False], [False, False, False], [True, False, True]])

    def run(x, *weights):
        return torch.func.functional_call(layer, dict(zip(names, weights, strict=True)), (x,), {"mask": mask})

    weights = [one.detach().clone().requires_grad_() for one in layer.parameters()]
    assert torch.autograd.gradcheck(run, (randoms(2, 3, 4).requires_grad_(), *weights))


def test_gradients_reach_every_weight_and_the_source():
    layer, x, source = new_layer(n_kv_heads=2, bias=True), randoms(2, 4, 12), randoms(2, 3, 12, seed=1)
    source.requires_grad_()
    layer(x, source).square().sum().backward()
    for name, weight in layer.named_parameters():
        if name != "k_proj.bias":  # it adds the same to every score of a row, which softmax does not see
            assert weight.grad.abs().max() > 1e-6, name
    assert layer.k_proj.bias.grad.abs().max() < 1e-10
    assert source.grad.abs().max() > 1e-6


@pytest.mark.parametrize("n_kv_heads", [1, 6])
def test_a_query_that_may_attend_to_nothing_gets_the_bias_of_the_output(n_kv_heads):
    layer, x = new_layer(n_kv_heads=n_kv_heads, bias=True), randoms(2, 3, 12).requires_grad_()
    mask = torch.tensor([[True, True, False], [False, False, False], [True, True, True]])
    output, weights = layer(x, mask=mask, return_weights=True)
    assert (output[:, 1] == layer.out_proj.bias).all()
    assert (weights[:, :, 1] == 0).all()
    output.square().sum().backward()
    assert all(torch.isfinite(one.grad).all() for one in (x, *layer.parameters()))


@pytest.mark.parametrize("n, m", [(0, 3), (3, 0), (1, 1)])
def test_no_tokens_and_one_token(n, m):
    layer = new_layer(n_kv_heads=2, bias=True)
    output, weights = layer(randoms(2, n, 12), randoms(2, m, 12), mask=some_mask(n, m, share=1), return_weights=True)
    assert output.shape == (2, n, 12) and weights.shape == (2, 6, n, m)
    assert m or (output == layer.out_proj.bias).all()


# --- heads ----------------------------------------------------------------------------------------------------------


def test_splitting_gives_each_head_its_own_numbers_of_every_token():
    x = torch.arange(24).view(2, 3, 4)
    heads = split_heads(x, 2)
    assert heads.shape == (2, 2, 3, 2)
    for head in range(2):
        assert torch.equal(heads[:, head], x[:, :, rows_of(head, 2)])
    assert heads.data_ptr() == x.data_ptr()
    assert not torch.equal(heads, x.view(2, 2, 3, 2))  # the right shape, and the wrong numbers


@law
@given(B=st.integers(0, 3), T=st.integers(0, 4), h=st.integers(1, 4), d_head=st.integers(1, 3))
def test_merging_undoes_splitting(B, T, h, d_head):
    x = randoms(B, T, h * d_head)
    assert torch.equal(merge_heads(split_heads(x, h)), x)
    heads = randoms(B, h, T, d_head)
    assert torch.equal(split_heads(merge_heads(heads), h), heads)


class Made(TorchDispatchMode):
    """Notes the size of every tensor that an operation makes, views of existing ones left out."""

    def __init__(self, *existing):
        super().__init__()
        self.known, self.sizes = {x.untyped_storage().data_ptr() for x in existing}, []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.untyped_storage().data_ptr() not in self.known:
            self.sizes.append(result.numel())
        return result


@pytest.mark.parametrize("h_kv", [1, 2, 8])
def test_no_key_or_value_is_copied_for_the_queries_that_share_it(h_kv):
    q, k, v = randoms(2, 8, 1, 64), randoms(2, h_kv, 200, 64), randoms(2, h_kv, 200, 64)
    with Made(q, k, v) as made:
        grouped_attention(q, k, v, masks.padding([200, 130], 200))
    assert made.sizes and max(made.sizes) <= 2 * 8 * 200  # the scores; the keys of one head would be 25,600
    with Made(q, k, v) as made:
        q.view(2, h_kv, 8 // h_kv, 1, 64) @ k[:, :, None].transpose(-2, -1)
    assert (max(made.sizes) == 2 * 8 * 200 * 64) == (h_kv < 8)  # so this is what the docstring warns of


def test_a_head_that_is_switched_off_leaves_the_others_as_they_were():
    layer, x = new_layer(n_kv_heads=2, bias=True), randoms(2, 4, 12)
    without = copy.deepcopy(layer)
    with torch.no_grad():
        without.out_proj.weight[:, rows_of(4, 2)] = 0
    on = torch.tensor([True, True, True, True, False, True])
    torch.testing.assert_close(layer(x, head_mask=on), without(x), **close)
    torch.testing.assert_close(layer(x, head_mask=[1, 1, 1, 1, 0, 1]), without(x), **close)
    torch.testing.assert_close(layer(x, head_mask=torch.ones(6)), layer(x), **close)
    assert copy.deepcopy(layer).float()(x.float(), head_mask=on.double()).dtype == torch.float32
    assert not torch.allclose(without(x), layer(x), atol=1e-3)


def test_the_gradient_of_a_head_mask_says_what_each_head_contributes():
    layer, x = new_layer(n_kv_heads=3), randoms(1, 4, 12)
    head_mask = torch.ones(6, dtype=torch.float64, requires_grad=True)
    layer(x, head_mask=head_mask).sum().backward()
    for head in range(6):
        off = torch.ones(6, dtype=torch.float64)
        off[head] = 0  # the output is linear in the mask, so leaving a head out takes its gradient away
        torch.testing.assert_close((layer(x) - layer(x, head_mask=off)).sum(), head_mask.grad[head], **close)


# --- fewer key and value heads, one product instead of three --------------------------------------------------------


def repeated(layer, n_kv_heads):
    """The same layer with each of n_kv_heads key and value heads written out for its whole group."""
    wide = new_layer(layer.d_model, layer.n_heads, bias=layer.q_proj.bias is not None)
    state = layer.state_dict()
    for name in [name for name in state if name[0] in "kv"]:
        heads = state[name].unflatten(0, (n_kv_heads, layer.d_head))
        state[name] = heads.repeat_interleave(layer.n_heads // n_kv_heads, 0).flatten(0, 1)
    wide.load_state_dict(state)
    return wide


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_pooling_equal_heads_changes_nothing(n_kv_heads, bias):
    layer, x = new_layer(n_kv_heads=n_kv_heads, bias=bias), randoms(2, 5, 12)
    wide = repeated(layer, n_kv_heads)
    torch.testing.assert_close(wide(x), layer(x), **close)
    pooled = to_grouped(wide, n_kv_heads)
    assert pooled.k_proj.weight.shape == (n_kv_heads * 2, 12)
    torch.testing.assert_close(pooled(x), layer(x), **close)


def test_pooled_heads_are_the_means_of_their_groups():
    layer = new_layer(n_kv_heads=6, bias=True)
    pooled = to_grouped(layer, 2)
    for proj in ("k_proj", "v_proj"):
        for part in ("weight", "bias"):
            old, new = (
                getattr(getattr(one, proj), part).view(-1, 2, 12 if part == "weight" else 1) for one in (layer, pooled)
            )
            torch.testing.assert_close(new[0], (old[0] + old[1] + old[2]) / 3, **close)
            torch.testing.assert_close(new[1], (old[3] + old[4] + old[5]) / 3, **close)
    assert torch.equal(pooled.q_proj.weight, layer.q_proj.weight)
    assert torch.equal(pooled.out_proj.bias, layer.out_proj.bias)


def test_pooling_twice_is_pooling_at_once():
    layer, x = new_layer(n_kv_heads=6, bias=True), randoms(2, 5, 12)
    torch.testing.assert_close(to_grouped(to_grouped(layer, 3), 1)(x), to_grouped(layer, 1)(x), **close)


def test_pooling_keeps_the_settings_and_leaves_the_layer_as_it_was():
    layer = MultiHeadAttention(12, 6, bias=True, dropout=0.25, rope=Rotary(2)).to(torch.bfloat16)
    before = copy.deepcopy(layer.state_dict())
    pooled = to_grouped(layer, 2)
    assert (pooled.dropout, pooled.rope, pooled.n_kv_heads, pooled.training) == (0.25, Rotary(2), 2, True)
    assert {one.dtype for one in pooled.parameters()} == {torch.bfloat16}
    with torch.no_grad():
        pooled.q_proj.weight.fill_(9)
    assert all(torch.equal(layer.state_dict()[name], value) for name, value in before.items())
    assert not to_grouped(layer.eval(), 2).training


def test_heads_may_be_wider_or_narrower_than_their_share_of_the_model():
    """As in Qwen3 4B, 32 heads of 128 in tokens of 2560; W_O leads back to the width of the model."""
    for d_head in (1, 5):
        layer, x = new_layer(12, 6, n_kv_heads=2, d_head=d_head, bias=True), randoms(2, 4, 12)
        by_head = [W.weight.view(-1, d_head, 12) for W in (layer.q_proj, layer.k_proj, layer.v_proj)]
        biases = [W.bias.view(-1, 1, d_head) for W in (layer.q_proj, layer.k_proj, layer.v_proj)]
        q, k, v = (torch.einsum("btm,hdm->bhtd", x, W) + b for W, b in zip(by_head, biases, strict=True))
        k, v = (part.repeat_interleave(3, dim=1) for part in (k, v))
        actual = F.scaled_dot_product_attention(q, k, v)  # (B, h, T, d_head), scaled by √d_head
        expected = actual.transpose(1, 2).flatten(2) @ layer.out_proj.weight.T + layer.out_proj.bias
        assert torch.allclose(layer(x), expected)
        pooled = to_grouped(layer, 1)
        assert pooled.d_head == d_head and pooled.k_proj.weight.shape == (d_head, 12)
        parts = fused_qkv(layer)(x).split([6 * d_head, 2 * d_head, 2 * d_head], -1)
        for part, map_of in zip(parts, (layer.q_proj, layer.k_proj, layer.v_proj), strict=True):
            assert torch.allclose(part, map_of(x))


@pytest.mark.parametrize("n_kv_heads", [2, 4, 6])
def test_pooling_into_heads_that_do_not_divide_is_refused(n_kv_heads):
    with pytest.raises(ValueError, match=f"n_kv_heads is {n_kv_heads} but the layer has 3"):
        to_grouped(new_layer(n_kv_heads=3), n_kv_heads)
    with pytest.raises(ValueError, match="n_kv_heads is 0: it must be at least 1"):
        to_grouped(new_layer(n_kv_heads=3), 0)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("n_kv_heads", [2, 6])
def test_one_fused_product_equals_three(n_kv_heads, bias):
    layer, x = new_layer(n_kv_heads=n_kv_heads, bias=bias), randoms(2, 5, 12)
    fused = fused_qkv(layer)
    q, k, v = fused(x).split([12, n_kv_heads * 2, n_kv_heads * 2], -1)
    torch.testing.assert_close(q, layer.q_proj(x), **close)
    torch.testing.assert_close(k, layer.k_proj(x), **close)
    torch.testing.assert_close(v, layer.v_proj(x), **close)
    assert (fused.bias is not None) == bias and fused.weight.requires_grad
    before = layer.q_proj.weight.clone()
    with torch.no_grad():
        fused.weight.fill_(9)
    assert torch.equal(layer.q_proj.weight, before)


# --- dropout, modes, names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_kv_heads", [2, 6])
def test_dropout_keeps_the_expectation_and_acts_in_training_only(n_kv_heads):
    layer, x = new_layer(n_kv_heads=n_kv_heads, dropout=0.3), randoms(1, 5, 12)
    still, still_weights = layer(x, return_weights=True)
    assert torch.equal(layer(x), still)
    torch.manual_seed(0)
    outputs, weights = layer.train()(x.expand(4000, 5, 12), return_weights=True)
    assert (weights == 0).double().mean() == pytest.approx(0.3, abs=0.01)
    stored = weights != 0
    torch.testing.assert_close(weights[stored], (still_weights / 0.7).expand_as(weights)[stored], **close)
    torch.testing.assert_close(outputs, layer.out_proj(merge_heads(_blend(layer, x, weights))), **close)
    error = outputs.std(0) / math.sqrt(4000)
    assert ((outputs.mean(0) - still[0]).abs() < 5 * error).all()


def _blend(layer, x, weights):
    values = split_heads(layer.v_proj(x), layer.n_kv_heads).repeat_interleave(6 // layer.n_kv_heads, 1)
    return weights @ values


def test_without_dropout_training_and_evaluation_agree():
    layer, x = new_layer(), randoms(2, 4, 12)
    assert torch.equal(layer.train()(x), layer.eval()(x))


def test_the_names_of_the_weights():
    plain = MultiHeadAttention(8, 4, 2, rope=Rotary(2)).state_dict()
    assert {name: tuple(value.shape) for name, value in plain.items()} == {
        "q_proj.weight": (8, 8),
        "k_proj.weight": (4, 8),
        "v_proj.weight": (4, 8),
        "out_proj.weight": (8, 8),
    }
    biases = MultiHeadAttention(8, 4, 2, bias=True).state_dict().keys() - plain.keys()
    assert biases == {"q_proj.bias", "k_proj.bias", "v_proj.bias", "out_proj.bias"}


# --- rope -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_kv_heads", [1, 3])
def test_rope_turns_the_queries_and_keys_of_each_head(n_kv_heads):
    rope = Rotary(4, base=100.0, pairs="halves")
    layer, x = new_layer(12, 3, n_kv_heads, rope=rope), randoms(2, 5, 12)
    expected, _ = head_by_head(layer, x, mask=masks.causal(5), turn=lambda one: rope(one, torch.arange(5)))
    torch.testing.assert_close(layer(x, mask=masks.causal(5)), expected, **close)


@law
@given(start=st.integers(0, 100_000), window=st.sampled_from([None, 3]))
def test_moving_all_positions_by_a_constant_changes_nothing(start, window):
    layer, x = new_layer(12, 3, rope=Rotary(4)), randoms(2, 6, 12)
    here, there = (layer(x, cache=ListCache(2, window, start=first)) for first in (0, start))
    torch.testing.assert_close(there, here, atol=1e-8, rtol=0)


# --- with a cache ---------------------------------------------------------------------------------------------------


@law
@given(
    n_kv_heads=st.sampled_from([1, 2, 6]),
    rope=st.sampled_from([None, Rotary(2)]),
    window=st.sampled_from([None, 1, 3]),
    chunks=st.lists(st.integers(1, 4), min_size=1, max_size=4),
)
def test_tokens_in_chunks_through_a_cache_equal_all_of_them_at_once(n_kv_heads, rope, window, chunks):
    layer, T = new_layer(n_kv_heads=n_kv_heads, rope=rope, bias=True), sum(chunks)
    x, mask = randoms(2, T, 12), masks.causal(T)
    if window is not None:
        mask &= masks.sliding_window(T, window)
    cache = ListCache(2, window)
    outputs = [layer(chunk, cache=cache) for chunk in x.split(chunks, 1)]
    torch.testing.assert_close(torch.cat(outputs, 1), layer(x, mask=mask), **close)


@law
@given(rope=st.sampled_from([None, Rotary(2)]), lengths=st.lists(st.integers(1, 4), min_size=3, max_size=3))
def test_rows_of_other_lengths_go_on_as_if_each_were_alone(rope, lengths):
    layer, prompts, more = new_layer(n_kv_heads=2, rope=rope), randoms(3, 4, 12), randoms(3, 2, 12, seed=1)
    cache = ListCache(3)
    first = layer(prompts, cache=cache, lengths=torch.tensor(lengths))
    then = layer(more, cache=cache)
    for b, length in enumerate(lengths):
        whole = torch.cat([prompts[b : b + 1, :length], more[b : b + 1]], 1)
        alone = layer(whole, mask=masks.causal(length + 2))[0]
        torch.testing.assert_close(first[b, :length], alone[:length], **close)
        torch.testing.assert_close(then[b], alone[length:], **close)


@pytest.mark.parametrize(
    "new_cache, window",
    [
        (lambda: ContiguousCache(3, 2, 4, capacity=9, dtype=torch.float64), None),
        (lambda: SlidingWindowCache(3, 2, 4, window=3, dtype=torch.float64), 3),
        (lambda: PagedCache(3, 2, 4, block_size=2, n_blocks=15, dtype=torch.float64), None),
    ],
    ids=["contiguous", "sliding window", "paged"],
)
@law
@given(chunks=st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=3))
def test_through_each_cache_the_layer_gives_what_it_gives_through_a_list(new_cache, window, chunks):
    layer, cache, plain = new_layer(16, 4, 2, rope=Rotary(4)), new_cache(), ListCache(3, window)
    for step, lengths in enumerate(chunks):
        x = randoms(3, 3, 16, seed=step)
        output, expected = (layer(x, cache=one, lengths=torch.tensor(lengths)) for one in (cache, plain))
        for b, length in enumerate(lengths):
            torch.testing.assert_close(output[b, :length], expected[b, :length], **close)


def test_a_mask_together_with_a_cache_takes_away_more():
    layer, x = new_layer(), randoms(2, 5, 12)
    observed = torch.tensor([True, False, True, True, True])
    output, weights = layer(x, mask=observed, cache=ListCache(2), return_weights=True)
    expected, expected_weights = layer(x, mask=masks.causal(5) & observed, return_weights=True)
    torch.testing.assert_close(output, expected, **close)
    torch.testing.assert_close(weights, expected_weights, **close)
    by_head = some_mask(2, 6, 5, 5)
    torch.testing.assert_close(
        layer(x, mask=by_head, cache=ListCache(2)), layer(x, mask=masks.causal(5) & by_head), **close
    )


def test_a_cache_is_given_what_was_turned_and_what_is_real():
    class Witness(ListCache):
        def update(self, k, v, lengths=None):
            self.seen = k, v, lengths
            return super().update(k, v, lengths)

    layer, x, cache = new_layer(n_kv_heads=2, rope=Rotary(2)), randoms(1, 3, 12), Witness(1, start=40)
    layer(x, cache=cache, lengths=[2])
    k, v, lengths = cache.seen
    assert k.shape == v.shape == (1, 2, 3, 2) and lengths == [2]
    assert torch.equal(k, layer.rope(split_heads(layer.k_proj(x), 2), torch.tensor([[40, 41, 42]])))
    assert torch.equal(v, split_heads(layer.v_proj(x), 2))


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"d_model": 10, "n_heads": 3}, "d_model is 10, which is no multiple of n_heads, 3"),
        ({"d_model": 8, "n_heads": 0}, "n_heads is 0: it must be at least 1"),
        ({"d_model": 12, "n_heads": 6, "n_kv_heads": 4}, "n_heads is 6, which is no multiple of n_kv_heads, 4"),
        ({"d_model": 12, "n_heads": 6, "n_kv_heads": 0}, "n_kv_heads is 0: it must be at least 1"),
        ({"d_model": 8, "n_heads": 2, "dropout": 1.0}, "dropout is 1.0: it must be at least 0 and less than 1"),
        ({"d_model": 8, "n_heads": 2, "rope": Rotary(8)}, "rope is for d_head 8 but the layer's d_head is 4"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(ValueError) as caught:
        MultiHeadAttention(**settings)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "settings, message",
    [
        ((512, 512 / 64), "n_heads is 8.0: give a whole number"),
        ((512.0, 8), "d_model is 512.0: give a whole number"),
        ((512, 8, 4.0), "n_kv_heads is 4.0: give a whole number"),
    ],
)
def test_sizes_that_are_no_whole_numbers_are_refused(settings, message):
    with pytest.raises(TypeError, match=message):
        MultiHeadAttention(*settings)
    for make in (lambda: split_heads(X, 6.0), lambda: to_grouped(new_layer(), 3.0)):
        with pytest.raises(TypeError, match=r"heads is .*: give a whole number"):
            make()


X = torch.zeros(2, 4, 12, dtype=torch.float64)


@pytest.mark.parametrize(
    "inputs, error, message",
    [
        ({"x": X[..., :5]}, ValueError, "x is (2, 4, 5): expected (B, n, d_model) with d_model 12"),
        ({"x": X[0]}, ValueError, "x is (4, 12): expected (B, n, d_model) with d_model 12"),
        ({"x": X, "source": X[:1]}, ValueError, "source is (1, 4, 12) but x is (2, 4, 12): expected (2, m, 12)"),
        ({"x": X, "source": X[..., :5]}, ValueError, "source is (2, 4, 5) but x is (2, 4, 12): expected (2, m, 12)"),
        ({"x": X, "source": X[0]}, ValueError, "source is (4, 12) but x is (2, 4, 12): expected (2, m, 12)"),
        ({"x": X, "source": X, "cache": ListCache(2)}, ValueError, "cache together with source"),
        ({"x": X, "lengths": [1, 2]}, ValueError, "lengths says which new tokens a cache keeps"),
        ({"x": X, "head_mask": torch.ones(5)}, ValueError, "head_mask is (5,): expected one number a head, (6,)"),
        ({"x": X, "head_mask": [1, 0, 1]}, ValueError, "head_mask is (3,): expected one number a head, (6,)"),
        ({"x": X[:1], "cache": ListCache(2)}, ValueError, "x is (1, 4, 12) but the cache has 2 rows: one for each"),
        ({"x": X.float()}, TypeError, "x is torch.float32 but the layer is torch.float64: convert one"),
        ({"x": X.long()}, TypeError, "x is torch.int64 but the layer is torch.float64: convert one"),
        ({"x": X, "source": X.half()}, TypeError, "source is torch.float16 but the layer is torch.float64"),
        ({"x": X, "mask": some_mask(4, 4).to("meta")}, ValueError, "mask is on meta but x is on cpu: move one of them"),
        ({"x": X, "mask": torch.ones(4, 4)}, TypeError, "mask is torch.float32, not a boolean tensor: True means"),
        ({"x": X, "mask": [[True] * 4] * 4}, TypeError, "mask is list, not a boolean tensor: True means"),
        (
            {"x": X, "mask": masks.causal(5)},
            ValueError,
            "mask is (5, 5) but scores are (2, 6, 4, 4): one row per query, one column per key",
        ),
        ({"x": X, "mask": some_mask(3, 1, 4, 4)}, ValueError, "mask is (3, 1, 4, 4) but scores are (2, 6, 4, 4)"),
        (
            {"x": X, "source": X[:, :3], "mask": some_mask(4, 4)},
            ValueError,
            "mask is (4, 4) but scores are (2, 6, 4, 3)",
        ),
    ],
)
def test_inputs_that_do_not_fit_are_refused(inputs, error, message):
    with pytest.raises(error) as caught:
        new_layer()(**inputs)
    assert message in str(caught.value)


def test_queries_keys_and_values_in_a_row_are_refused_as_there_is_no_place_for_values():
    with pytest.raises(TypeError, match="positional arguments"):
        new_layer()(X, X, X)


def test_under_autocast_tokens_may_have_another_dtype_than_the_weights():
    layer, x = new_layer().float(), randoms(2, 4, 12).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16


def test_a_source_in_a_layer_with_rope_is_refused():
    with pytest.raises(ValueError, match="source in a layer with rope"):
        new_layer(rope=Rotary(2))(X, X)


@pytest.mark.parametrize(
    "bad",
    [
        {"x": X[..., :5]},
        {"mask": torch.ones(4, 4)},
        {"mask": some_mask(3, 4)},
        {"mask": some_mask(3, 1, 4, 4)},
        {"source": X},
        {"mask": some_mask(4, 9)},
        {"mask": some_mask(4, 4).to("meta")},
        {"head_mask": torch.ones(5)},
        {"x": X.float()},
        {"x": X[:1]},
        {"x": X[:1], "mask": some_mask(4, 4)},
    ],
)
def test_after_a_refusal_the_cache_is_as_it_was(bad):
    cache = ListCache(2)
    with pytest.raises((ValueError, TypeError)):
        new_layer()(**{"x": X, "cache": cache, **bad})
    assert cache.rows == [[], []]


@pytest.mark.parametrize(
    "new_cache, keys",
    [
        (lambda: ListCache(2), 8),
        (lambda: ContiguousCache(2, 6, 2, capacity=9, dtype=torch.float64), 8),
        (lambda: SlidingWindowCache(2, 6, 2, window=3, dtype=torch.float64), 6),
        (lambda: PagedCache(2, 6, 2, block_size=2, n_blocks=9, dtype=torch.float64), 8),
    ],
    ids=["list", "contiguous", "sliding window", "paged"],
)
def test_a_mask_of_other_columns_is_refused_with_its_shape_before_the_cache_takes_the_tokens(new_cache, keys):
    layer, cache, untouched = new_layer(), new_cache(), new_cache()
    for one in (cache, untouched):
        layer(X, cache=one)
    for columns in (keys - 1, keys + 1, 4):
        with pytest.raises(ValueError) as caught:
            layer(X, mask=some_mask(4, columns), cache=cache)
        assert f"mask is (4, {columns}) but scores are (2, 6, 4, {keys})" in str(caught.value)
        assert torch.equal(cache.positions(1), untouched.positions(1))
    x, mask = randoms(2, 4, 12), some_mask(4, keys)  # the right number of columns goes through, and nothing was stored
    assert torch.equal(layer(x, mask=mask, cache=cache), layer(x, mask=mask, cache=untouched))


def test_of_ragged_rows_the_longest_decides_the_columns_of_the_mask():
    layer, cache = new_layer(), ContiguousCache(2, 6, 2, capacity=9, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"mask is \(4, 4\) but scores are \(2, 6, 4, 3\)"):
        layer(X, mask=some_mask(4, 4), cache=cache, lengths=[3, 1])
    assert cache.lengths.tolist() == [0, 0]
    layer(X, mask=some_mask(4, 3), cache=cache, lengths=[3, 1])
    assert cache.lengths.tolist() == [3, 1]


def test_heads_that_do_not_split_merge_or_group_are_refused():
    with pytest.raises(ValueError, match=r"x is \(2, 4, 12\): expected \(B, T, h · d_head\), a multiple of 5 heads"):
        split_heads(X, 5)
    with pytest.raises(ValueError, match=r"expected \(B, T, h · d_head\)"):
        split_heads(X[0], 6)
    with pytest.raises(ValueError, match=r"x is \(2, 4, 12\): expected \(B, h, T, d_head\)"):
        merge_heads(X)
    q, k = randoms(2, 6, 3, 2), randoms(2, 4, 3, 2)
    with pytest.raises(ValueError, match="q has 6 heads and k has 4"):
        grouped_attention(q, k, k)
    with pytest.raises(ValueError, match=r"expected \(B, h, n, d_head\)"):
        grouped_attention(q[0], q[0], q[0])
    with pytest.raises(TypeError, match="True means"):
        grouped_attention(q, q, q, torch.ones(3, 3))
    with pytest.raises(ValueError, match="one column per key"):
        grouped_attention(q, q, q, some_mask(3, 4))
