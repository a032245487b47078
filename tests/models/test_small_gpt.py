"""The small model of the capstone: its data, its batches, the parts it takes, and how it is measured."""

import math
from functools import cache as remember

import pytest
import torch

from course_utils.attention.cache import ContiguousCache
from course_utils.attention.multihead import grouped_attention, split_heads
from course_utils.models import small_gpt
from course_utils.models.decoder import generate, new_caches

pytestmark = pytest.mark.usefixtures("one_thread")
SMALL = {"d_model": 32, "n_layers": 2, "n_heads": 2, "d_ff": 48}
TEXT = small_gpt.TEXT.read_bytes()[:30_000]


@remember
def data():
    return small_gpt.data_of(TEXT, 300)


def new_model(**options):
    return small_gpt.new_model(300, **SMALL, **options)


def random_model(**options):
    """One whose blocks write something, as trained ones do."""
    model = new_model(**options)
    torch.manual_seed(5)
    for block in model.blocks:
        torch.nn.init.normal_(block.attention.out_proj.weight, std=0.3)
        torch.nn.init.normal_(block.feed_forward.down.weight, std=0.3)
    return model


def test_nothing_of_the_held_out_text_is_in_the_training_text_nor_in_the_merges():
    both = data()
    assert both.tokenizer.decode(both.train.tolist()) == TEXT[:27_000]
    assert both.tokenizer.decode(both.held_out.tolist()) == TEXT[27_000:]
    other = small_gpt.data_of(TEXT[:27_000] + b"x" * 3_000, 300)
    assert other.tokenizer.merges == both.tokenizer.merges
    assert both.lengths.tolist() == [len(both.tokenizer.bytes_of(token)) for token in range(300)]


@pytest.mark.thorough("the whole text is cut into byte pairs")
def test_the_courses_text_is_all_there():
    both = small_gpt.data(512)
    tokens = torch.cat([both.train, both.held_out]).tolist()
    assert both.tokenizer.decode(tokens) == small_gpt.TEXT.read_bytes()


def test_a_batch_depends_on_seed_and_step_alone_and_targets_follow_inputs():
    tokens = torch.arange(1000)
    inputs, targets = small_gpt.batches(tokens, 8, 5, seed=1, step=7)
    assert inputs.shape == targets.shape == (5, 8)
    assert torch.equal(targets, inputs + 1)
    assert torch.equal(small_gpt.batches(tokens, 8, 5, seed=1, step=7)[0], inputs)
    for seed, step in ((1, 8), (2, 7), (7, 1)):
        assert not torch.equal(small_gpt.batches(tokens, 8, 5, seed, step)[0], inputs)
    drawn = torch.cat([small_gpt.batches(tokens[:10], 8, 50, step=step)[1] for step in range(4)])
    assert drawn.min() == 1 and drawn.max() == 9  # all windows, to the last token
    with pytest.raises(ValueError, match="the text has 8 tokens: a window of 8 with its targets takes one more"):
        small_gpt.batches(tokens[:8], 8)


def test_an_untrained_model_scores_all_tokens_nearly_alike():
    for seed in range(3):
        inputs, targets = small_gpt.batches(data().train, 32, 16, seed)
        assert abs(small_gpt.loss_of(new_model(seed=seed), inputs, targets).item() - math.log(300)) < 0.05


def test_one_seed_gives_one_model_and_leaves_the_callers_generator_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    one, same, other = new_model(seed=1), new_model(seed=1), new_model(seed=2)
    assert torch.equal(torch.rand(1), expected)
    assert torch.equal(one.embedding.weight, same.embedding.weight)
    assert not torch.equal(one.embedding.weight, other.embedding.weight)
    assert one.unembedding.weight is one.embedding.weight


@pytest.mark.parametrize("n_kv_heads", [1, 2])
def test_training_and_evaluation_use_the_same_attention(n_kv_heads):
    model = random_model(n_kv_heads=n_kv_heads)
    inputs, _ = small_gpt.batches(data().train, 16, 3)
    training = model(inputs).detach()
    with torch.no_grad():
        logits, weights = model(inputs, return_weights=True)
    torch.testing.assert_close(training, logits, rtol=0, atol=1e-4)
    assert [each.shape for each in weights] == [(3, 2, 16, 16)] * 2


def test_the_cached_model_writes_what_the_uncached_one_writes():
    model = random_model()
    tokens, _ = small_gpt.batches(data().train, 8, 2)
    caches = new_caches(model, ContiguousCache, 2, capacity=40)
    assert torch.equal(generate(model, tokens, 20, caches), generate(model, tokens, 20))


def test_your_own_parts_are_used_in_every_layer():
    called = []

    def my_split(x, n_heads):
        called.append("split_heads")
        return split_heads(x, n_heads)

    def my_attention(q, k, v, mask, dropout, scale):
        called.append("grouped_attention")
        return grouped_attention(q, k, v, mask, dropout, scale)

    inputs, targets = small_gpt.batches(data().train, 8, 2)
    mine = random_model(parts={"split_heads": my_split, "grouped_attention": my_attention})
    torch.testing.assert_close(mine(inputs), random_model()(inputs), rtol=0, atol=1e-4)
    assert called.count("split_heads") == 6 and called.count("grouped_attention") == 2
    small_gpt.loss_of(mine, inputs, targets).backward()
    assert mine.blocks[0].attention.q_proj.weight.grad.abs().max() > 0
    with pytest.raises(ValueError, match="the model has no part softmax; its parts are split_heads"):
        new_model(parts={"softmax": my_split})


def test_bits_per_byte_is_the_loss_over_all_bytes():
    model, both = random_model(), data()
    tokens = both.held_out[: 3 * 16 + 1]
    total = 0.0
    with torch.no_grad():
        for start in (0, 16, 32):
            window = tokens[start : start + 17]
            total += small_gpt.loss_of(model, window[None, :-1], window[None, 1:]).item() * 16
    n_bytes = len(both.tokenizer.decode(tokens[1:].tolist()))
    found = small_gpt.bits_per_byte(model, both, context=16, windows=3)
    assert found == pytest.approx(total / n_bytes / math.log(2), rel=1e-5)
    on_training = small_gpt.bits_per_byte(model, both, context=16, windows=3, split="train")
    assert on_training != found
    with pytest.raises(ValueError, match="a window of 9999 with its targets takes one more"):
        small_gpt.bits_per_byte(model, both, context=9999)


def test_a_model_that_guesses_needs_eight_bits_for_each_byte():
    model = small_gpt.new_model(256, **SMALL)
    torch.nn.init.zeros_(model.embedding.weight)
    assert small_gpt.bits_per_byte(model, small_gpt.data_of(TEXT, 256), 16, windows=4) == pytest.approx(8)


def test_writing_goes_on_from_the_prompt_and_follows_its_seed():
    model, tokenizer = random_model(), data().tokenizer
    first = small_gpt.write(model, tokenizer, "KING:", 12, seed=1, context=16)
    assert small_gpt.write(model, tokenizer, "KING:", 12, seed=1, context=16) == first
    assert small_gpt.write(model, tokenizer, "KING:", 12, seed=2, context=16) != first
    assert small_gpt.write(model, tokenizer, "KING:", 0) == ""
    with pytest.raises(ValueError, match="prompt is empty"):
        small_gpt.write(model, tokenizer, "", 3)
