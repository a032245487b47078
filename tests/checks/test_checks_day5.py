"""Day 5's checks: what is particular to caches, counted passes and bytes. Its variants run in test_checks.py."""

import re
from array import array
from collections import deque
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from variants import day5 as answers

from course_utils.answers.day5.exercises import BY_HAND, decoded, intense, longest, over_latents, stepped, with_keys
from course_utils.answers.day5.exercises import PagedCache as Pages
from course_utils.answers.day5.exercises import RingCache as Ring
from course_utils.attention.cache import CacheFull, ContiguousCache, PagedCache, SlidingWindowCache
from course_utils.attention.rotary import rotate
from course_utils.checks.examination import examine
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.kernel.evidence import draw_rungs, find_ladder, gather
from course_utils.checks.kernel.result_numbers import BadResult
from course_utils.costs import memory, roofline
from course_utils.days.day5.given.ladders import (
    TinyModel,
    decode,
    in_chunks,
    least_work,
    numbers_held,
    paged,
    pair_of,
    ring_views,
    side_by_side,
    step_of,
    whole_tokens,
)
from course_utils.days.day5.given.ladders import over_latents as latents_measured
from course_utils.days.day5.given.ladders import rotate as turned
from course_utils.days.shared.given.call_spy import watch

HIDDEN = pytest.mark.parametrize("hidden", [False, True], ids=["visible", "hidden"])
SOURCE = Path(__file__).parents[2] / "sources" / "exercises" / "day5_kv_cache.md"


def expected(grade_id, hidden, measure=None):
    """The rungs of an exercise, or those with this measure, and what the reference gives on them, as arrays."""
    outcomes = judge_of(5, grade_id).reference(hidden).outcomes
    for rung, outcome in zip(draw_rungs(5, grade_id, hidden=hidden), outcomes, strict=True):
        if measure is None or rung.measure is measure:
            values = {part: outcome.array(part) for part in outcome.values}
            yield rung, values


def answer(grade_id, given):
    return judge_of(5, grade_id).judge(gather(5, grade_id, {find_ladder(5, grade_id).names[0]: given}))


def given_code(*names):
    """What the cells of the notebook define that a reader is given, not asked for."""
    cells = re.findall(r"```\{code-cell\} ipython3\n(?!---|:tags)(.*?)```", SOURCE.read_text(encoding="utf-8"), re.S)
    namespace = {"torch": torch}
    for cell in cells:
        if any(f"def {name}(" in cell for name in names):
            exec(cell, namespace)
    return [namespace[name] for name in names]


# References against the library --------------------------------------------------------------------------------------


@HIDDEN
def test_every_cached_step_is_a_row_of_causal_attention(hidden):
    for rung, right in expected("cached_step", hidden, decode):
        q, k, v = map(torch.as_tensor, rung.args)
        theirs = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        np.testing.assert_allclose(right["outputs"], theirs, atol=1e-5 if q.dtype == torch.float32 else 1e-6)
        np.testing.assert_allclose(right["keys"], k, atol=1e-6)
        np.testing.assert_allclose(right["values"], v, atol=1e-6)


@HIDDEN
def test_absorbed_decoding_is_attention_with_the_keys_of_every_head(hidden):
    for rung, right in expected("absorbed_step", hidden, latents_measured):
        q, c, W_UK, W_UV = map(torch.as_tensor, rung.args)
        theirs = F.scaled_dot_product_attention(q[:, None], c @ W_UK, c @ W_UV)[:, 0]
        np.testing.assert_allclose(right["output"], theirs, atol=1e-5 if q.dtype == torch.float32 else 1e-6)


def test_the_work_that_is_watched_tells_absorbed_decoding_from_the_keys_made():
    rung = next(rung for rung in draw_rungs(5, "absorbed_step") if rung.name == "no keys or values are made")
    least = least_work(*rung.args)
    assert least <= watch(over_latents(), *rung.args).work < 1.2 * least
    assert watch(answers.absorbed_by_sums_of_products, *rung.args).work < 2.3 * least
    assert watch(answers.absorbed_token_by_token, *rung.args).work < 2.3 * least
    for slow in (with_keys, answers.keys_of_one_token_at_a_time, answers.keys_of_one_head_at_a_time):
        assert watch(slow, *rung.args).work > 3.5 * least


def test_the_counts_by_pencil_are_those_of_what_runs():
    model = TinyModel()
    decoded()(model, torch.zeros(1, 6, dtype=torch.int64), 5)
    sizes = (np.ones((3, 4)), np.ones((20, 6)), np.ones((3, 6, 4)), np.ones((3, 6, 4)))
    assert {
        "tokens_through": model.passed,
        "bytes_of_a_token": memory.kv_cache_bytes(3, 2, 16, 1),
        "with_keys_made": 2 * 20 * 3 * 6 * 4 + 2 * 3 * 20 * 4,
        "with_both_absorbed": least_work(*sizes),
    } == BY_HAND


@HIDDEN
def test_the_cache_of_a_step_holds_what_that_of_the_library_does(hidden):
    for rung, right in expected("cached_step", hidden, decode):
        k, v = (torch.as_tensor(x) for x in rung.args[1:])
        v = F.pad(v, (0, k.shape[-1] - v.shape[-1]))  # the library's keys and values are equally wide
        cache = ContiguousCache(*k.shape[:2], k.shape[-1], capacity=k.shape[2], dtype=k.dtype)
        for t in range(k.shape[2]):
            keys, values, _ = cache.update(k[:, :, t : t + 1], v[:, :, t : t + 1])
        np.testing.assert_allclose(right["keys"], keys, atol=1e-6)
        np.testing.assert_allclose(right["values"], values[..., : right["values"].shape[-1]], atol=1e-6)


@HIDDEN
def test_the_mended_decoder_is_rotated_causal_attention_however_the_text_is_cut(hidden):
    for rung, right in expected("find_the_bug", hidden, in_chunks):
        q, k, v = map(torch.as_tensor, rung.args[:3])
        positions = torch.arange(q.shape[2])
        theirs = F.scaled_dot_product_attention(rotate(q, positions), rotate(k, positions), v, is_causal=True)
        np.testing.assert_allclose(right["outputs"], theirs, atol=1e-6)


@HIDDEN
def test_the_bytes_are_those_of_the_formula_and_of_a_cache_that_is_there(hidden):
    for rung, right in expected("cache_bytes", hidden):
        if not rung.measure:
            assert right["bytes"] == pytest.approx(memory.kv_cache_bytes(*rung.args), rel=1e-7)
    cache = ContiguousCache(batch=3, n_kv_heads=2, d_head=8, capacity=10, dtype=torch.float16)
    assert 4 * cache.n_bytes == all_exercises(5)["cache_bytes"].reference["kv_cache_bytes"](4, 2, 8, 10, 3, 2)


@HIDDEN
def test_the_longest_context_fits_and_one_token_more_does_not(hidden):
    for rung, right in expected("longest_context", hidden):
        budget, *sizes = rung.args
        tokens = longest()(*rung.args)
        layers, heads, d_head, batch, width = (*sizes, 1, 2)[:5] if len(sizes) == 3 else (*sizes, 2)[:5]
        assert memory.kv_cache_bytes(layers, heads, d_head, tokens + 1, batch, width) > budget
        assert tokens == 0 or memory.kv_cache_bytes(layers, heads, d_head, tokens, batch, width) <= budget
        assert right["tokens"] == pytest.approx(tokens, rel=1e-7) and right["last four digits"] == tokens % 10_000


def test_the_huge_budget_is_one_where_a_float_rounds_up():
    (rung,) = (r for r in draw_rungs(5, "longest_context") if r.name.startswith("a huge"))
    budget, layers, heads, d_head = rung.args
    a_token = memory.kv_cache_bytes(layers, heads, d_head, 1)
    assert int(budget / a_token) > budget // a_token


@HIDDEN
def test_the_intensity_is_that_of_the_roofline_without_the_query_and_the_output(hidden):
    for rung, right in expected("decode_intensity", hidden):
        if rung.measure:
            continue
        h, n_kv_heads, d_head, T, width = (*rung.args, 2)[:5]
        task = roofline.attention_core(1, h, 1, T, d_head=d_head, n_kv_heads=n_kv_heads, bytes_per_value=width)
        query_and_output = 2 * h * d_head * width
        assert right["FLOPs per byte"] == pytest.approx(task.flops / (task.bytes - query_and_output), rel=1e-7)


def test_in_a_long_context_the_query_and_the_output_do_not_count():
    task = roofline.attention_core(1, 32, 1, 10**6, d_head=128, n_kv_heads=8)
    assert task.intensity == pytest.approx(intense()(32, 8, 128, 10**6), rel=1e-4)


@HIDDEN
def test_the_ring_holds_what_a_sliding_window_of_the_library_sees(hidden):
    for rung, right in expected("ring_cache", hidden, ring_views):
        window, keys, values, looks = rung.args
        width, d_k = max(keys.shape[1], values.shape[1]), keys.shape[1]
        keys, values = (np.pad(x, ((0, 0), (0, width - x.shape[1]))) for x in (keys, values))
        cache = SlidingWindowCache(1, 1, width, window, dtype=torch.float32)
        for n, (k, v) in enumerate(zip(keys, values, strict=True), start=1):
            seen, _, positions = cache.update(torch.tensor(k)[None, None, None], torch.tensor(v)[None, None, None])
            if n in looks:
                name = next(part for part in right if part.startswith(f"keys after {n} "))
                np.testing.assert_allclose(right[name], seen[0, 0, positions[0] > n - 1 - window, :d_k], atol=1e-6)


@HIDDEN
def test_the_pages_hold_and_refuse_what_those_of_the_library_do(hidden):
    for rung, right in expected("paged_cache", hidden, paged):
        n_blocks, block_size, script, keys, values = rung.args
        names, d = sorted({op[-1] for op in script.split()}), keys.shape[1]
        cache = PagedCache(len(names), 1, d, block_size, n_blocks, dtype=torch.float32)
        refused, tokens = [], iter(zip(keys, values, strict=True))
        for i, op in enumerate(script.split(), start=1):
            row = names.index(op[-1])
            added = torch.eye(len(names), dtype=torch.int64)[row]
            if op in names:
                k, v = (torch.tensor(x).expand(len(names), 1, 1, d) for x in next(tokens))
                try:
                    cache.update(k, v, added)
                    refused.append(0)
                except CacheFull:
                    refused.append(1)
                continue
            length, place = int(cache.lengths[row]), f"{op[-1]} at call {i}"
            if op[0] == "-":
                assert right[f"KeyError from free of {place}"] == (length == 0)
                cache.free(row)
                continue
            assert right[f"KeyError from gather of {place}"] == (length == 0)
            if length:
                empty = torch.zeros(len(names), 1, 0, d)
                held = cache.update(empty, empty)[:2]
                for part, x in zip(("keys", "values"), held, strict=True):
                    np.testing.assert_allclose(right[f"{part} of {place}"], x[row, 0, :length], atol=1e-6)
        np.testing.assert_array_equal(right["MemoryError at append"], refused)


# The tiny model -----------------------------------------------------------------------------------------------------


@HIDDEN
def test_the_generated_tokens_are_those_of_the_notebooks_naive_function(hidden):
    (naive,) = given_code("generate_naive")
    for rung, right in expected("generate_cached", hidden):
        if "passes by position" in right:
            seed, prompt, steps, *zero_after = rung.args
            model = TinyModel(seed, zero_after=zero_after[0] if zero_after else ())
            np.testing.assert_array_equal(right["tokens"], naive(model, torch.tensor(prompt), steps))
            np.testing.assert_array_equal(right["passes by position"], np.ones(prompt.shape[1] + steps))
            assert not zero_after or (right["tokens"][:, [6, 7]] == 0).all()


@HIDDEN
def test_no_two_tokens_are_so_near_that_a_machine_could_choose_the_other(hidden):
    for rung, right in expected("generate_cached", hidden):
        if "tokens" in right:
            tokens = torch.tensor(right["tokens"]).long()
            logits, _ = TinyModel(rung.args[0])(tokens, torch.arange(tokens.shape[1]))
            best = logits.topk(2).values
            chosen = (best[..., 0] - best[..., 1])[:, rung.args[1].shape[1] - 1 : -1]
            assert (chosen > 1e-3).all(), rung.name


@pytest.mark.parametrize("sizes", [[9], [1] * 9, [4, 1, 3, 1], [2, 7]], ids=str)
def test_the_tiny_model_gives_the_same_logits_however_a_text_is_cut(sizes):
    tokens = torch.arange(18).reshape(2, 9)
    whole, _ = TinyModel(5)(tokens, torch.arange(9))
    model, cache, parts, start = TinyModel(5), None, [], 0
    for size in sizes:
        end = start + size
        logits, cache = model(tokens[:, start:end], torch.arange(start, end), cache)
        parts.append(logits)
        start = end
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)
    assert model.passed == 9


def test_the_tiny_model_knows_places_and_leaves_the_cache_it_is_given():
    model, tokens = TinyModel(1), torch.tensor([[3, 1, 4]])
    first, cache = model(tokens, torch.arange(3))
    moved, _ = model(tokens, torch.arange(3) + 1)
    assert (first - moved).abs().max() > 0.1
    kept = [x.clone() for pair in cache for x in pair]
    one, _ = model(torch.tensor([[2]]), torch.tensor([3]), cache)
    model(torch.tensor([[7]]), torch.tensor([3]), cache)
    again, _ = model(torch.tensor([[2]]), torch.tensor([3]), cache)
    assert torch.equal(one, again)
    assert all(map(torch.equal, kept, [x for pair in cache for x in pair]))


@pytest.mark.parametrize(
    ("tokens", "positions", "message"),
    [
        ([1, 2], [0, 1], r"tokens is \(2,\): give \(B, t\)"),
        ([[]], [], r"tokens is \(1, 0\)"),
        ([[1, 2]], [0], "one position for each of the 2 tokens"),
        ([[1]], 4, "a tensor of one axis"),
    ],
)
def test_the_tiny_model_says_what_it_wants(tokens, positions, message):
    with pytest.raises(ValueError, match=message):
        TinyModel()(torch.tensor(tokens), torch.tensor(positions))


def test_the_rotation_in_the_notebook_is_that_of_the_library():
    x, positions = torch.linspace(-2, 2, 48, dtype=torch.float64).reshape(1, 2, 4, 6), torch.tensor([0, 3, 4, 1000])
    torch.testing.assert_close(turned(x, positions), rotate(x, positions))
    assert turned(x.float(), positions).dtype == torch.float32


def test_passes_are_counted_for_each_place_and_a_copy_of_the_model_counts_too():
    import copy

    def on_a_copy(model, prompt, steps):
        naive = next(m.answer for m in all_exercises(5)["generate_cached"].mistakes if m.name.startswith("recomputed"))
        return naive(copy.deepcopy(model), prompt, steps)

    message = answer("generate_cached", on_a_copy).message
    assert "go" in message and "every step" in message
    twice = answer("generate_cached", lambda *args: (decoded()(*args), decoded()(*args))[1])
    assert "passes by position[0] is 2, expected 1." in twice.message


# What is measured ---------------------------------------------------------------------------------------------------


class Holder:
    def __init__(self, **held):
        self.__dict__.update(held)


class Walked:
    """A thing of length 1 that can be walked and called, and holds more than it shows."""

    shown = torch.zeros(100)

    def __init__(self, x):
        self.x = x

    def __len__(self):
        return 1

    def __iter__(self):
        return iter("a")

    __call__ = __len__


class Slotted:
    __slots__ = ("__x",)

    def __init__(self, x):
        self.__x = x


class Named(dict):
    def __init__(self, entries, x):
        super().__init__(entries)
        self.x = x


def remembering(x):
    return lambda: x


def with_default(x):
    return lambda held=x: held


ROOM = torch.zeros(4, 3)


@pytest.mark.parametrize(
    ("thing", "numbers"),
    [
        (Holder(n=3, name="a", nothing=None), 0),
        (Holder(x=torch.zeros(2, 3), y=torch.zeros(5)), 11),
        (Holder(x=ROOM, y=ROOM), 12),
        (Holder(row=ROOM[1]), 12),
        (Holder(a=ROOM[1], b=ROOM[2]), 12),
        (Holder(order=torch.arange(9)), 0),
        (Holder(x=torch.zeros(4, dtype=torch.float16)), 4),
        (Holder(rows=[torch.zeros(3), torch.zeros(3)]), 6),
        (Holder(rows=deque([torch.zeros(3)] * 4, maxlen=4)), 3),
        (Holder(table={"a": (torch.zeros(3), [1, 2])}), 3),
        (Holder(x=np.zeros((2, 3)), y=np.arange(4)), 6),
        (Holder(x=np.zeros((9, 3))[:2]), 27),
        (Holder(rows=[[0.5, 1.5], [2.5]]), 3),
        (Holder(rows=[[0.0] * 4] * 2 + [[0.0] * 4]), 8),
        (Holder(x=array("f", [1, 2, 3]), n=array("i", [1, 2])), 3),
        (Holder(text=bytes(12), more=bytearray(8)), 5),
        (Holder(take=remembering(torch.zeros(5))), 5),
        (Holder(take=[torch.zeros(6)].append), 6),
        (Holder(take=with_default(torch.zeros(4))), 4),
        (Holder(library=torch, kind=torch.Tensor), 0),
        (Walked(torch.zeros(8)), 8),
        (Slotted(torch.zeros(9)), 9),
        (Named({"a": torch.zeros(2)}, x=torch.zeros(3)), 5),
        (torch.nn.Linear(3, 2), 8),
        (Holder(inner=Holder(x=torch.zeros(7))), 7),
        (Holder(x=torch.zeros(2, requires_grad=True), f=print, kind=int), 2),
    ],
)
def test_the_numbers_that_an_object_holds_are_those_of_its_storages(thing, numbers):
    assert numbers_held(thing) == numbers


def test_an_object_that_holds_itself_is_counted_once():
    thing = Holder(x=torch.zeros(3))
    thing.me = [thing]
    assert numbers_held(thing) == 3


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (4.0, "4.0, a float"),
        ("4", "a str"),
        (None, "None"),
        (True, "a bool"),
        ([4], "a list"),
        (torch.tensor(4), "a Tensor"),
    ],
)
def test_a_context_that_is_no_whole_number_is_refused_with_what_to_return(tokens, message):
    with pytest.raises(BadResult, match=message):
        whole_tokens(lambda: tokens)


@pytest.mark.parametrize("tokens", [4, np.int64(4)], ids=type)
def test_a_whole_number_of_any_kind_is_read(tokens):
    assert whole_tokens(lambda: tokens)["tokens"] == 4


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "Did you forget the return statement"),
        (torch.zeros(1, 2), "a Tensor of shape .*it should return \\(output, cache\\)"),
        ((1, 2, 3), "a tuple of 3"),
        ((1, None), "the cache that came back is None; it should be the pair"),
        ((1, torch.zeros(2, 3)), "the cache that came back is a Tensor of shape \\(2, 3\\)"),
    ],
)
def test_a_step_that_returns_something_else_is_told_what_to_return(result, message):
    with pytest.raises(BadResult, match=message):
        step_of(result)


@pytest.mark.parametrize(
    ("result", "message"), [(None, "Did you forget the return"), (ROOM, "view returned a Tensor of")]
)
def test_a_view_that_is_no_pair_is_told_what_to_return(result, message):
    with pytest.raises(BadResult, match=message):
        pair_of(result, "view")


def test_of_outputs_that_do_not_fit_together_the_odd_one_is_shown():
    assert side_by_side([np.ones((1, 2, 1, 3)), np.ones((1, 2, 1, 3))]).shape == (1, 2, 2, 3)
    assert side_by_side([np.ones((1, 2, 1, 3)), np.ones((1, 4, 1, 3))]).shape == (1, 4, 1, 3)
    assert side_by_side([np.ones((1, 2, 1, 3)), np.ones((1, 2, 1, 5))]).shape == (1, 2, 1, 5)


# What is accepted and what is said ----------------------------------------------------------------------------------


def test_the_bug_as_it_stands_is_not_given_away():
    message = answer("find_the_bug", all_exercises(5)["find_the_bug"].mistakes[0].answer).message
    assert message == all_exercises(5)["find_the_bug"].mistakes[0].message
    assert not re.search("rotat|mask|position|align", message.lower())


def test_an_earlier_slip_costs_the_longest_context_and_the_intensity_nothing():
    def decode_intensity(n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2):
        read = own["kv_cache_bytes"](1, n_kv_heads, d_head, n_tokens, 1, bytes_per_value)
        return 4 * n_heads * n_tokens * d_head / read

    own = {"kv_cache_bytes": lambda *sizes: 0, "decode_intensity": decode_intensity}
    own["longest_context"] = lambda budget, *sizes: budget // own["kv_cache_bytes"](*sizes[:3], 1, *sizes[3:])
    for grade_id in ("longest_context", "decode_intensity"):
        assert judge_of(5, grade_id).judge(gather(5, grade_id, own)).status == "error"
        assert examine(5, grade_id, own)[1].status == "passed"


@HIDDEN
@pytest.mark.parametrize("grade_id", ["cached_step", "generate_cached", "ring_cache", "paged_cache", "find_the_bug"])
def test_the_reference_writes_into_nothing_and_its_memory_does_not_grow(grade_id, hidden):
    measured = [right["measure"] for _, right in expected(grade_id, hidden) if "measure" in right]
    assert len(measured) == {"ring_cache": 4, "paged_cache": 2}.get(grade_id, 1) and not any(measured)


@pytest.mark.parametrize(
    ("grade_id", "answered", "mistake"),
    [
        (
            "generate_cached",
            answers.generate_without_cache_and_place,
            "no cache after the prompt, positions from 0, to the last",
        ),
        ("generate_cached", answers.generate_with_what_the_last_text_left, "a cache kept between calls"),
        ("ring_cache", answers.RingThatGivesAFullStorage, "wrong only on “a view kept while tokens are appended”"),
        ("ring_cache", answers.RingOfEverythingElsewhere, "nothing dropped"),
        ("paged_cache", answers.PagesWithABlockInReserve, "a new block too early, if one is free"),
        ("find_the_bug", answers.mended_by_a_global_count, "counted outside the cache"),
    ],
    ids=lambda case: getattr(case, "__name__", case),
)
def test_a_mistake_that_people_make_is_told_by_its_name(grade_id, answered, mistake):
    assert answer(grade_id, answered).mistake == mistake


def test_a_result_of_another_dtype_is_named():
    def in_numpys_own_dtype(q_t, k_t, v_t, cache):
        output, cache = stepped()(q_t, k_t, v_t, cache)
        return output.double(), cache

    message = answer("cached_step", in_numpys_own_dtype).message
    assert "On “float32” the output is float64, and the inputs are float32." in message
    message = answer("cached_step", answers.step_with_double_cache).message
    assert "float64" in message and "of the same dtype" not in message


def test_a_generation_without_a_result_is_asked_for_its_return():
    assert "returned None. Did you forget the return" in answer("generate_cached", lambda *args: None).message


def test_blocks_that_do_not_come_back_are_spoken_of_where_they_are_freed():
    class AllButTheLast(Pages):
        def free(self, seq):
            self.free_blocks += self.tables.pop(seq)[:-1]
            del self.lengths[seq]

    assert "free gives back every block" in answer("paged_cache", AllButTheLast).message


def test_a_ring_that_is_cut_only_by_looking_is_told_so():
    assert "view is never called: append itself" in answer("ring_cache", answers.RingCutWhenLookedAt).message


@pytest.mark.parametrize("grade_id", ["ring_cache", "paged_cache"])
def test_a_class_with_nothing_in_it_is_missing(grade_id):
    class Unwritten:
        def __init__(self, *sizes):
            raise NotImplementedError("your code goes here")

    assert answer(grade_id, Unwritten).status == "missing"


def test_a_method_not_written_yet_is_said_to_raise():
    class HalfWritten(Ring):
        def view(self):
            raise NotImplementedError("your code goes here")

    verdict = answer("ring_cache", HalfWritten)
    assert verdict.share == 0 and verdict.message


def test_a_pool_that_runs_out_in_its_own_words_is_told_apart():
    class OutOfList(Pages):
        def append(self, seq, k, v):
            try:
                super().append(seq, k, v)
            except MemoryError:
                raise IndexError("pop from empty list") from None

    message = answer("paged_cache", OutOfList).message
    assert "MemoryError" in message


def test_one_cache_for_all_texts_and_one_list_for_all_forks_are_told_apart():
    names = {m.name: m.answer for m in all_exercises(5)["cached_step"].mistakes}
    for name in ("one list for every continuation", "remembered outside the cache"):
        assert answer("cached_step", names[name]).mistake == name
    assert answer("cached_step", stepped()).status == "passed"
