"""The decoder with caches against the decoder without: the same logits, however the tokens arrive."""

import gc
import weakref
from functools import cache as remember

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.attention.cache import CacheFull, ContiguousCache, PagedCache, QuantisedCache, SlidingWindowCache
from course_utils.attention.masks import future_leak
from course_utils.models.decoder import Decoder, generate, new_caches

law = settings(deadline=None, max_examples=25, derandomize=True)

WORDS, T, WINDOW = 13, 12, 4
SIZES = {
    ContiguousCache: {"capacity": 24},
    PagedCache: {"block_size": 3, "n_blocks": 24},
    SlidingWindowCache: {"window": WINDOW},
    QuantisedCache: {"capacity": 24},
}
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
@pytest.mark.parametrize("n_kv_heads", [4, 2, 1])
def test_one_token_at_a_time_gives_the_uncached_logits_at_every_step(kind, n_kv_heads):
    model, caches = pair(kind, 3, n_kv_heads)
    tokens = words(3)
    for step in range(T):
        logits = model(tokens[:, step : step + 1], caches)
        close(logits[:, 0], model(tokens[:, : step + 1])[:, -1])


@EXACT
@pytest.mark.parametrize("n_kv_heads", [4, 2, 1])
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
    tokens, alone = words(3, 24, seed=data.draw(st.integers(0, 99))), [[], [], []]
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
    prefix, endings = words(1, 7), words(2, 5, seed=1)
    model(prefix.expand(2, -1), caches, lengths=[7, 0])
    for cache in caches:
        cache.fork(0, 1)
    expected = model(torch.cat([prefix.expand(2, -1), endings], dim=1))[:, 7:]
    close(torch.cat([model(endings[:, :2], caches), model(endings[:, 2:], caches)], dim=1), expected)


def test_the_window_is_there_and_layers_reach_beyond_it_together():
    model = decoder(window=WINDOW)
    tokens, changed = words(1), words(1)
    changed[0, 0] = (changed[0, 0] + 1) % WORDS
    moved = (model(tokens) - model(changed)).abs().amax(dim=-1)[0] > 0
    reach = 2 * (WINDOW - 1)  # two layers
    assert moved.tolist() == [True] * (reach + 1) + [False] * (T - reach - 1)


def test_no_token_sees_a_later_one():
    model = decoder()
    x = model.embedding(words(2))
    mask = model._mask(T, x.device)
    assert future_leak(lambda x: model.blocks[1](model.blocks[0](x, mask), mask), x).amount == 0


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
@pytest.mark.parametrize("n_kv_heads", [4, 1])
@pytest.mark.parametrize("lengths", [None, [5, 1, 3]])
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
    model, tokens, lengths = decoder(), words(3, 5), [2, 5, 1]
    together = generate(model, tokens, 6, lengths=lengths)
    for row, length in enumerate(lengths):
        assert torch.equal(together[row], generate(model, tokens[row : row + 1, :length], 6)[0])


def test_generation_goes_on_from_what_the_caches_hold():
    model, caches = pair(PagedCache, 2)
    tokens = words(2, 6)
    model(tokens[:, :4], caches)
    assert torch.equal(generate(model, tokens[:, 4:], 5, caches), generate(model, tokens, 5))


def test_draws_follow_the_softmax_at_the_temperature():
    model, tokens = decoder(), words(1, 3).expand(4000, 3)
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
    model, alive, saves = Decoder(WORDS, 16, 2, 4, window=SIZES[kind].get("window")), weakref.WeakSet(), []
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
    with pytest.raises(ValueError, match="tokens is \\(12,\\)"):
        model(words(2)[0])


@pytest.mark.parametrize("kind", [ContiguousCache, PagedCache])
def test_a_full_cache_refuses_in_the_first_layer_so_no_layer_changes(kind):
    model = decoder()
    tight = {ContiguousCache: {"capacity": 5}, PagedCache: {"block_size": 2, "n_blocks": 5}}
    caches = new_caches(model, kind, 2, **tight[kind])
    model(words(2, 4), caches)
    with pytest.raises(CacheFull):
        model(words(2, 3), caches)
    assert [cache.lengths.tolist() for cache in caches] == [[4, 4]] * 2


def test_generation_refuses_empty_rows_and_negative_temperatures():
    for lengths in ([0, 1], [1, 6], [1]):
        with pytest.raises(ValueError, match="expected 2 numbers from 1 to 5"):
            generate(decoder(), words(2, 5), 1, lengths=lengths)
    with pytest.raises(ValueError, match="temperature is -1"):
        generate(decoder(), words(2, 5), 1, temperature=-1)
