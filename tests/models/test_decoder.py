"""The decoder with caches against the decoder without: the same logits, however the tokens arrive."""

import copy
import gc
import weakref
from functools import cache as remember

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.attention.cache import CacheFull, ContiguousCache, PagedCache, QuantisedCache, SlidingWindowCache
from course_utils.attention.masks import causal, future_leak, padding, sliding_window
from course_utils.models.decoder import Decoder, generate, new_caches

law = settings(deadline=None, max_examples=10, derandomize=True)

WORDS = 13
T = 12
WINDOW = 4
SIZES = {
    ContiguousCache: {"capacity": 24},
    PagedCache: {"block_size": 3, "n_blocks": 24},
    SlidingWindowCache: {"window": WINDOW},
    QuantisedCache: {"capacity": 24},
}
MORE = pytest.mark.thorough("the cached decoder is compared with other numbers of key heads and lengths")
HEADS = pytest.mark.parametrize("n_kv_heads", [2, pytest.param(4, marks=MORE), pytest.param(1, marks=MORE)])
EXACT = pytest.mark.parametrize("kind", [ContiguousCache, PagedCache, SlidingWindowCache])
INT8_TOLERANCE = 0.05  # logits have standard deviation 0.56 here; over 300 sequences the errors were 0.007 to 0.029


@remember
def decoder(n_kv_heads=2, window=None):
    """Two layers in float64, with weights large enough that it matters who attends to whom."""
    torch.manual_seed(0)
    model = Decoder(WORDS, d_model=16, n_layers=2, n_heads=4, n_kv_heads=n_kv_heads, window=window).double()
    with torch.no_grad():
        for block in model.blocks:
            for layer in (block.attention.q_proj, block.attention.k_proj, block.attention.v_proj):
                layer.weight *= 3
    return model.requires_grad_(False)


def pair(kind, batch, n_kv_heads=2):
    """A model that fits the kind of cache, and empty caches for it."""
    model = decoder(n_kv_heads, WINDOW if kind is SlidingWindowCache else None)
    return model, new_caches(model, kind, batch, **SIZES[kind])


def words(batch, t=T, seed=0):
    return torch.randint(WORDS, (batch, t), generator=torch.Generator().manual_seed(seed))


def close(x, y, atol=1e-10):
    torch.testing.assert_close(x, y, atol=atol, rtol=0)


# --- cached equals uncached -----------------------------------------------------------------------------------------


@EXACT
@HEADS
def test_one_token_at_a_time_gives_the_uncached_logits_at_every_step(kind, n_kv_heads):
    model, caches = pair(kind, 3, n_kv_heads)
    tokens = words(3)
    for step in range(T):
        logits = model(tokens[:, step : step + 1], caches)
        close(logits[:, 0], model(tokens[:, : step + 1])[:, -1])


@EXACT
@HEADS
@law
@given(data=st.data())
def test_prefill_in_any_chunks_gives_the_uncached_logits(kind, n_kv_heads, data):
    model, caches = pair(kind, 2, n_kv_heads)
    tokens = words(2, seed=data.draw(st.integers(0, 99)))
    ends = sorted({*data.draw(st.lists(st.integers(1, T - 1), max_size=5)), T})
    pieces = [model(tokens[:, a:b], caches) for a, b in zip([0, *ends], ends, strict=False)]
    close(torch.cat(pieces, dim=1), model(tokens))


@EXACT
@law
@given(data=st.data())
def test_each_row_of_a_ragged_batch_equals_the_sequence_alone(kind, data):
    model, caches = pair(kind, 3)
    tokens = words(3, 24, seed=data.draw(st.integers(0, 99)))
    alone = [[], [], []]
    for _ in range(data.draw(st.integers(1, 4))):
        lengths = data.draw(st.tuples(*[st.integers(0, 5)] * 3).filter(any))
        done = [sum(map(len, row)) for row in alone]
        chunk = torch.full((3, 5), WORDS - 1)  # any token will do for padding
        for row, length in enumerate(lengths):
            chunk[row, :length] = tokens[row, done[row] : done[row] + length]
        logits = model(chunk, caches, lengths)
        for row, length in enumerate(lengths):
            alone[row].append(logits[row, :length])
    for row, pieces in enumerate(alone):
        logits = torch.cat(pieces)
        close(logits, model(tokens[row : row + 1, : len(logits)])[0])


@EXACT
def test_two_continuations_of_one_prefix_do_not_touch_each_other(kind):
    model, caches = pair(kind, 2)
    prefix = words(1, 7)
    endings = words(2, 5, seed=1)
    model(prefix.expand(2, -1), caches, lengths=[7, 0])
    for cache in caches:
        cache.fork(0, 1)
    expected = model(torch.cat([prefix.expand(2, -1), endings], dim=1))[:, 7:]
    close(torch.cat([model(endings[:, :2], caches), model(endings[:, 2:], caches)], dim=1), expected)


def test_the_window_is_there_and_layers_reach_beyond_it_together():
    model = decoder(window=WINDOW)
    tokens = words(1)
    changed = words(1)
    changed[0, 0] = (changed[0, 0] + 1) % WORDS
    moved = (model(tokens) - model(changed)).abs().amax(dim=-1)[0] > 0
    reach = 2 * (WINDOW - 1)  # two layers
    assert moved.tolist() == [True] * (reach + 1) + [False] * (T - reach - 1)


def test_no_token_sees_a_later_one():
    model = decoder()
    x = model.embedding(words(2))
    mask = model._mask(T, x.device)
    assert future_leak(lambda x: model.blocks[1](model.blocks[0](x, mask), mask), x).amount == 0


def test_a_mask_replaces_the_causal_one_so_a_leak_can_be_taught():
    model = decoder()
    tokens = words(2)
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % WORDS
    leaking = torch.ones(T, T, dtype=torch.bool)
    assert (model(tokens)[:, :-1] == model(changed)[:, :-1]).all()
    assert ((model(tokens, mask=leaking) != model(changed, mask=leaking)).any(dim=-1)).all()


def test_a_mask_has_the_shapes_of_a_layers_mask_and_replaces_the_window_too():
    model = decoder()
    narrow = decoder(window=WINDOW)
    tokens = words(2)
    close(model(tokens, mask=causal(T)), model(tokens))
    close(model(tokens, mask=sliding_window(T, WINDOW)), narrow(tokens))
    close(narrow(tokens, mask=causal(T)), model(tokens))
    by_row = causal(T) & padding([T, 5], T)  # (B, 1, T, T)
    close(model(tokens, mask=by_row)[:, :5], model(tokens)[:, :5])
    assert not torch.equal(model(tokens, mask=by_row)[1, 5:], model(tokens)[1, 5:])
    with pytest.raises(ValueError, match=r"mask is \(3, 12\) but scores are \(2, 4, 12, 12\)"):
        model(tokens, mask=causal(3, T))


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("layer, head", [(0, 1), (1, 3)])
def test_a_head_mask_takes_out_one_head_of_one_layer(layer, head, cached):
    model = decoder()
    tokens = words(2)
    without = copy.deepcopy(model)
    without.blocks[layer].attention.out_proj.weight[:, head * 4 : head * 4 + 4] = 0
    head_masks = [[1.0] * 4, [1.0] * 4]
    head_masks[layer][head] = 0.0
    caches = new_caches(model, ContiguousCache, 2, capacity=T) if cached else None
    close(model(tokens, caches, head_masks=head_masks), without(tokens))
    close(model(tokens, head_masks=torch.ones(2, 4)), model(tokens))
    assert (model(tokens) - without(tokens)).abs().max() > 1e-3
    for wrong in (torch.ones(4), torch.ones(4, 2), [[1.0] * 3] * 2):
        with pytest.raises(ValueError, match=r"expected \(n_layers, h\) = \(2, 4\)"):
            model(tokens, head_masks=wrong)


@EXACT
def test_the_weights_of_each_layer_come_with_the_logits(kind):
    model, caches = pair(kind, 2)
    tokens = words(2)
    logits, weights = model(tokens, return_weights=True)
    assert torch.equal(logits, model(tokens))
    x = model.embedding(tokens)
    mask = model._mask(T, tokens.device)
    for block, of_layer in zip(model.blocks, weights, strict=True):
        _, expected = block.attention(block.attention_norm(x), mask=mask, return_weights=True)
        assert torch.equal(of_layer, expected)
        x = block(x, mask)
    model(tokens[:, :-1], caches)
    _, cached = model(tokens[:, -1:], caches, return_weights=True)
    assert all(one.shape[:3] == (2, 4, 1) for one in cached)
    observed = cached[1].shape[-1]
    close(cached[1], weights[1][:, :, -1:, T - observed :])


def test_without_feed_forward_each_block_is_attention_only():
    torch.manual_seed(0)
    model = Decoder(WORDS, 16, 2, 4, d_ff=0).double().requires_grad_(False)
    assert not any("feed_forward" in name for name in model.state_dict())
    x = model.embedding(words(2))  # (B, T, d_model)
    for block in model.blocks:
        x = x + block.attention(block.attention_norm(x), mask=causal(T))
    close(model(words(2)), model.unembedding(model.norm(x)))
    caches = new_caches(model, ContiguousCache, 2, capacity=T)
    close(torch.cat([model(words(2)[:, :7], caches), model(words(2)[:, 7:], caches)], dim=1), model(words(2)))
    assert Decoder(WORDS, 16, 1, 4).blocks[0].feed_forward[0].out_features == 64
    assert Decoder(WORDS, 16, 1, 4, d_ff=5).blocks[0].feed_forward[0].out_features == 5


def test_a_scale_reaches_every_layer():
    models = []
    for scale in (None, 1.0, 1 / 4):
        torch.manual_seed(0)
        models.append(Decoder(WORDS, 16, 2, 4, scale=scale).double())
        assert [block.attention.scale for block in models[-1].blocks] == [scale or 1 / 2] * 2
    plain, unscaled, _ = models
    with torch.no_grad():
        for block in plain.blocks:
            block.attention.q_proj.weight *= 2  # √d_head
    close(plain(words(2)), unscaled(words(2)))


@law
@given(seed=st.integers(0, 99), cut=st.integers(1, T - 1))
def test_an_int8_cache_is_close_and_not_exact(seed, cut):
    model, caches = pair(QuantisedCache, 2)
    tokens = words(2, seed=seed)
    cached = torch.cat([model(tokens[:, :cut], caches), model(tokens[:, cut:], caches)], dim=1)
    error = (cached - model(tokens)).abs().max()
    assert 1e-3 < error < INT8_TOLERANCE


def test_a_block_that_finds_nothing_passes_its_input_on():
    block = Decoder(WORDS, 16, 1, 4).blocks[0]
    last = block.feed_forward[-1]
    with torch.no_grad():
        for weights in (block.attention.out_proj.weight, last.weight, last.bias):
            weights.zero_()
    x = torch.randn(2, 3, 16, generator=torch.Generator().manual_seed(0))
    assert torch.equal(block(x), x)


# --- generation -----------------------------------------------------------------------------------------------------


@EXACT
@pytest.mark.parametrize("n_kv_heads", [1, pytest.param(4, marks=MORE)])
@pytest.mark.parametrize("lengths", [pytest.param(None, marks=MORE), [5, 1, 3]])
def test_generation_gives_the_same_tokens_with_and_without_a_cache(kind, n_kv_heads, lengths):
    model, caches = pair(kind, 3, n_kv_heads)
    tokens = words(3, 5, seed=4)
    expected = generate(model, tokens, 10, lengths=lengths)
    assert expected.shape == (3, 10)
    assert torch.equal(generate(model, tokens, 10, caches, lengths), expected)
    assert caches[0].lengths.tolist() == [real + 9 for real in lengths or [5, 5, 5]]  # all but the last new one


def test_generation_takes_the_likeliest_token_at_every_step():
    model = decoder()
    tokens = words(2, 3)
    for step in range(4):
        newest = model(tokens)[:, -1].argmax(dim=-1, keepdim=True)
        assert torch.equal(generate(model, tokens, 1), newest), step
        tokens = torch.cat([tokens, newest], dim=1)
    assert torch.equal(generate(model, tokens[:, :3], 4), tokens[:, 3:])


def test_each_row_of_a_ragged_generation_equals_the_row_alone():
    model = decoder()
    tokens = words(3, 5)
    lengths = [2, 5, 1]
    together = generate(model, tokens, 6, lengths=lengths)
    for row, length in enumerate(lengths):
        assert torch.equal(together[row], generate(model, tokens[row : row + 1, :length], 6)[0])


def test_generation_goes_on_from_what_the_caches_hold():
    model, caches = pair(PagedCache, 2)
    tokens = words(2, 6)
    model(tokens[:, :4], caches)
    assert torch.equal(generate(model, tokens[:, 4:], 5, caches), generate(model, tokens, 5))


def test_draws_follow_the_softmax_at_the_temperature():
    model = decoder()
    tokens = words(1, 3).expand(4000, 3)
    drawn = generate(model, tokens, 1, temperature=2.0, generator=torch.Generator().manual_seed(0))[:, 0]
    shares = torch.softmax(model(tokens[:1])[0, -1] / 2.0, dim=-1)
    close(torch.bincount(drawn, minlength=WORDS) / 4000, shares.float(), atol=0.04)  # 5 standard errors
    _, caches = pair(ContiguousCache, 2)
    again = [
        generate(model, tokens[:2], 8, held, temperature=1.0, generator=torch.Generator().manual_seed(1))
        for held in (None, caches)
    ]
    assert torch.equal(*again)


def test_no_new_tokens_are_no_tokens():
    assert generate(decoder(), words(2), 0).shape == (2, 0)


class Saved:
    """What autograd keeps of a tensor for the backward pass; weak references can point to it."""

    def __init__(self, tensor):
        self.tensor = tensor


@EXACT
def test_decoding_keeps_no_graph_alive(kind):
    model = Decoder(WORDS, 16, 2, 4, window=SIZES[kind].get("window"))
    alive = weakref.WeakSet()
    saves = []
    caches = new_caches(model, kind, 1, **SIZES[kind])

    def pack(tensor):
        saved = Saved(tensor.detach())  # detached, or an operation that saves its own output would keep itself alive
        alive.add(saved)
        saves.append(tensor.shape)
        return saved

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor):
        logits = model(words(1, 4), caches)
        assert logits.requires_grad and alive
        del logits
        gc.collect()
        assert not alive  # so the caches hold nothing of the step's graph
        saves.clear()
        generate(model, words(1, 4), 3, caches)
        assert not saves  # generation makes no graph at all


# --- errors ---------------------------------------------------------------------------------------------------------


def test_new_caches_have_the_models_dtype_and_the_key_heads():
    caches = new_caches(decoder(n_kv_heads=1), ContiguousCache, 5, capacity=8)
    assert len(caches) == 2
    assert all(
        (cache.batch, cache.n_kv_heads, cache.d_head, cache.dtype) == (5, 1, 4, torch.float64) for cache in caches
    )


def test_caches_that_do_not_fit_the_model_are_refused():
    model, caches = pair(ContiguousCache, 2)
    with pytest.raises(ValueError, match="1 caches for 2 layers"):
        model(words(2), caches[:1])
    with pytest.raises(ValueError, match="a cache has window None but the model 4"):
        decoder(window=4)(words(2), caches)
    with pytest.raises(
        TypeError, match=r"caches is a list, one a layer: new_caches\(model, ContiguousCache, batch, …\)"
    ):
        model(words(2), caches[0])
    with pytest.raises(ValueError, match="mask together with caches"):
        model(words(2), caches, mask=causal(T))
    with pytest.raises(ValueError, match="one cache is given for two layers"):
        model(words(2), [caches[0]] * 2)
    with pytest.raises(ValueError, match=r"x is \(3, 12, 16\) but the cache has 2 rows"):
        model(words(3), caches)
    assert [cache.lengths.tolist() for cache in caches] == [[0, 0]] * 2


@pytest.mark.parametrize(
    "sizes, named",
    [
        ({"batch": 3}, "batch: 3 in the cache of layer 1, 2 in layer 0"),
        ({"n_kv_heads": 4}, "n_kv_heads: 4"),
        ({"d_head": 8}, "d_head: 8"),
        ({"dtype": torch.float32}, r"dtype: torch\.float32"),
        ({"device": "meta"}, "device: meta"),
    ],
)
def test_a_later_cache_that_does_not_fit_is_refused_before_the_first_takes_the_tokens(sizes, named):
    model, (first, _) = pair(ContiguousCache, 2)
    fitting = {"batch": 2, "n_kv_heads": 2, "d_head": 4, "capacity": 24, "dtype": torch.float64}
    with pytest.raises(ValueError, match=named):
        model(words(2), [first, ContiguousCache(**{**fitting, **sizes})])
    assert first.lengths.tolist() == [0, 0]


def test_caches_that_hold_different_numbers_of_tokens_are_refused():
    model, caches = pair(PagedCache, 2)
    model(words(2), caches)
    caches[1].free(0)
    with pytest.raises(
        ValueError, match=r"lengths: tensor\(\[ 0, 12\]\) in the cache of layer 1, tensor\(\[12, 12\]\)"
    ):
        model(words(2, 1), caches)
    caches[0].free(0)
    close(model(words(2, 1), caches)[1], model(torch.cat([words(2), words(2, 1)], dim=1))[1, -1:])


@pytest.mark.parametrize("lengths", [None, [3, 0]])
@pytest.mark.parametrize("small", [ContiguousCache, PagedCache, QuantisedCache])
def test_where_only_a_later_cache_is_full_no_layer_takes_the_tokens(small, lengths):
    model, caches = pair(PagedCache, 2)
    tight = {"block_size": 2, "n_blocks": 5} if small is PagedCache else {"capacity": 6}
    caches[1] = small(2, 2, 4, **tight, dtype=torch.float64)
    model(words(2, 4), caches)
    storage = [[store.clone() for store in cache._storage()] for cache in caches]
    with pytest.raises(CacheFull, match=r"but the capacity is|blocks needed"):
        model(words(2, 3), caches, lengths)
    assert [cache.lengths.tolist() for cache in caches] == [[4, 4]] * 2
    for cache, before in zip(caches, storage, strict=True):
        assert all(map(torch.equal, cache._storage(), before))
    model(words(2, 3), caches, [2, 0])  # what fits goes in, since padding takes no room
    assert [cache.lengths.tolist() for cache in caches] == [[6, 4]] * 2


def test_a_later_cache_without_a_block_to_copy_a_shared_one_is_full_too():
    model = decoder()
    caches = [PagedCache(2, 2, 4, block_size=4, n_blocks=blocks, dtype=torch.float64) for blocks in (5, 2)]
    model(words(2, 5), caches, [5, 0])
    for cache in caches:
        cache.fork(0, 1)
    with pytest.raises(CacheFull, match="blocks needed: 1"):
        model(words(2, 1), caches)
    assert [(cache.lengths.tolist(), cache.tables) for cache in caches] == [([5, 5], [[0, 1]] * 2)] * 2
    for cache in caches:
        cache.free(1)
    model(words(2, 1), caches, [1, 0])  # now nobody shares it


def test_tokens_that_are_not_of_the_vocabulary_are_refused():
    model, caches = pair(ContiguousCache, 2)
    with pytest.raises(ValueError, match=r"tokens is \(12,\): expected \(B, T\)"):
        model(words(2)[0])
    with pytest.raises(ValueError, match=r"tokens is \(12,\): expected \(B, T\)"):
        generate(model, words(2)[0], 1)
    for wrong in (WORDS, -1):
        tokens = words(2)
        tokens[1, 3] = wrong
        with pytest.raises(ValueError, match=f"tokens holds {wrong}, but the vocabulary has 13 words, numbered from 0"):
            model(tokens, caches)
    with pytest.raises(TypeError, match=r"tokens is torch\.float32: each is a number in the vocabulary"):
        model(words(2).float(), caches)
    assert caches[0].lengths.tolist() == [0, 0]
    assert model(words(2, 0)).shape == (2, 0, WORDS)
    close(model(words(2).int()), model(words(2)))


@pytest.mark.parametrize(
    "sizes, error, message",
    [
        ((13, 16, 2, 16 / 4), TypeError, "n_heads is 4.0: give a whole number"),
        ((13, 16.0, 2, 4), TypeError, "d_model is 16.0: give a whole number"),
        ((13, 16, 2.0, 4), TypeError, "n_layers is 2.0: give a whole number"),
        ((13, 16, 2, 4, None, -1), ValueError, "d_ff is -1: it must be at least 0"),
        ((0, 16, 2, 4), ValueError, "vocabulary is 0: it must be at least 1"),
        ((13, 16, 2, 3), ValueError, "d_model is 16, which is no multiple of n_heads, 3"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes, error, message):
    with pytest.raises(error) as caught:
        Decoder(*sizes)
    assert str(caught.value) == message


@pytest.mark.parametrize("kind", [ContiguousCache, PagedCache])
def test_a_full_cache_refuses_in_the_first_layer_so_no_layer_changes(kind):
    model = decoder()
    tight = {ContiguousCache: {"capacity": 5}, PagedCache: {"block_size": 2, "n_blocks": 5}}
    caches = new_caches(model, kind, 2, **tight[kind])
    model(words(2, 4), caches)
    with pytest.raises(CacheFull, match=r"row 0 holds 4 tokens and 3 more make 7|blocks needed: 4"):  # its own words
        model(words(2, 3), caches)
    assert [cache.lengths.tolist() for cache in caches] == [[4, 4]] * 2


def test_generation_refuses_empty_rows_temperatures_below_zero_and_numbers_that_are_not_whole():
    model = decoder()
    tokens = words(2, 5)
    for lengths in ([0, 1], [1, 6], [1]):
        with pytest.raises(ValueError, match="expected 2 numbers from 1 to 5"):
            generate(model, tokens, 1, lengths=lengths)
    for temperature in (-1, float("nan")):
        with pytest.raises(ValueError, match=f"temperature is {temperature}"):
            generate(model, tokens, 1, temperature=temperature)
    with pytest.raises(ValueError, match="n_new is -1: it must be at least 0"):
        generate(model, tokens, -1)
    with pytest.raises(TypeError, match=r"n_new is 2\.0: give a whole number"):
        generate(model, tokens, 2.0)
    for lengths in ([2.0, 1.0], torch.tensor([True, True])):
        with pytest.raises(TypeError, match="it counts tokens, in integers"):
            generate(model, tokens, 1, lengths=lengths)
