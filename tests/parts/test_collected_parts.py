"""A learner's answers collected: whose each part is and why, which go together, and two models made of them."""

import math
import sys
from dataclasses import replace

import pytest
import torch
from letter_model import of_letters
from own_notebook import written

from course_utils.attention import rotary
from course_utils.course import EXERCISES, ROOT, SOLUTIONS
from course_utils.errors import CourseError
from course_utils.models import real
from course_utils.models.decoder import PARTS, Decoder, put_parts
from course_utils.parts import SLOTS, collect, compare, shares
from course_utils.parts.collect import COLUMNS, find_hindrance
from course_utils.parts.notebook import PASSED, Row, take
from course_utils.parts.slots import excludes, slot_of

TEXT = "the parcel that we sent"
HERE = pytest.mark.skipif(bool(real.missing()), reason="the real model is not here: make model")
MERGED = "def merge_heads(x):\n    return x.transpose(1, 2).flatten(2)"
SPLIT = "def split_heads(x, n_heads):\n    return x.unflatten(2, (n_heads, -1)).transpose(1, 2)"
CHOSEN = {"causal_mask", "split_heads", "merge_heads", "Block", "rotate", "grouped_query_attention", "Scheduler"}


@pytest.fixture(scope="module", autouse=True)
def solved():
    """The solutions, collected; other tests take the rows of them that this took."""
    collected = collect(ROOT / SOLUTIONS)
    rows = {row.slot.grade_id: row for row in collected.rows}
    with pytest.MonkeyPatch.context() as patch:

        def take_again(slot, folder):
            return rows[slot.grade_id] if folder == ROOT / SOLUTIONS else take(slot, folder)

        patch.setattr(sys.modules[collect.__module__], "take", take_again)
        yield collected


@pytest.fixture(scope="module")
def modern():
    return of_letters(heads=4, kv_heads=2, d_ff=48, gated=True)


def whose(collected):
    """By answer: whose it is, and why."""
    return {row[0]: (row[2], row[5]) for row in collected.table()}


def at_work(collected):
    return {row.slot.name for row in collected.parts.rows}


# --- whose a part is ------------------------------------------------------------------------------------------------


def test_an_answer_that_passes_is_yours_and_the_table_says_why_another_is_not(tmp_path):
    wrong = "def split_heads(x, n_heads):\n    return x.unflatten(2, (n_heads, -1))"
    folder = written(tmp_path, 4, MERGED, wrong, "def rotate(x, positions, base=1e4):\n    raise NotImplementedError")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    collected = collect(folder)
    told = whose(collected)
    assert told["merge_heads"] == ("yours", "passed")
    assert told["split_heads"][0] == "reference" and told["split_heads"][1].startswith("failed: ")
    assert told["rotate"] == ("reference", "not done")
    assert told["Block"] == ("reference", "not done: no cell of day4_mine.ipynb defines Block")
    assert told["softmax_row"][1].startswith("not done: there is no notebook of day 1")
    assert [*collected.parts] == [*collected.trainable()] == ["merge_heads"]
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_an_answer_that_never_ends_is_too_slow(tmp_path, monkeypatch):
    monkeypatch.setattr("course_utils.checks.judge.time_limit.ANSWER_SECONDS", 0.2)
    folder = written(tmp_path, 4, "def merge_heads(x):\n    while True:\n        pass")
    whose_it_is, why = whose(collect(folder))["merge_heads"]
    assert whose_it_is == "reference" and why.startswith("too slow: Stopped after")


def test_without_answers_everything_is_the_reference(modern):
    collected = collect(ROOT / EXERCISES)
    assert {row[2:] for row in collected.table()} == {("reference", "–", "–", "not done")}
    assert collected.trainable() == {} and collected.real(modern).loss(TEXT) == modern.loss(TEXT)


def test_the_table_is_text_and_html(solved):
    assert len(str(solved).splitlines()) == len(SLOTS) + 1 and str(solved).startswith(COLUMNS[0])
    page = solved._repr_html_()
    assert page.count("<tr>") == len(SLOTS) + 1 and "<td>yours</td>" in page


# --- which go together ----------------------------------------------------------------------------------------------


def test_of_answers_that_exclude_each_other_the_stated_rule_takes_one(solved):
    assert at_work(solved) == CHOSEN
    told = whose(solved)
    assert told["tiled_attention"] == ("yours", "passed; grouped_query_attention was chosen in its place")
    assert told["generate_cached"] == ("yours", "passed; Scheduler was chosen in its place")


def test_without_the_first_choice_the_next_one_is_taken(solved):
    def chosen_of(*names, **swapped):
        return at_work(replace(solved, rows=tuple(r for r in solved.rows if r.slot.name in names), swapped=swapped))

    assert chosen_of("stable_softmax", "tiled_attention", "generate_cached") == {"tiled_attention", "generate_cached"}
    assert chosen_of("causal_mask", "tiled_attention", "masked_softmax") == {"causal_mask", "masked_softmax"}
    assert chosen_of("causal_mask", "tiled_attention") == {"causal_mask"}
    assert chosen_of("causal_mask", "tiled_attention", causal_mask="reference") == set()
    assert chosen_of("RingCache", "sink_window_mask") == set()


def test_what_is_preferred_goes_first(modern):
    taken = at_work(collect(ROOT / SOLUTIONS, prefer=["tiled_attention", "BatchScheduler"]))
    assert {"tiled_attention", "BatchScheduler"} <= taken and not {"causal_mask", "Scheduler"} & taken
    ring = collect(ROOT / SOLUTIONS, prefer=["ring_cache"])
    assert "RingCache" in at_work(ring) and not compare(modern, ring.parts, text=TEXT).shows
    assert ring.real(modern).loss(TEXT) != modern.loss(TEXT)
    with pytest.raises(CourseError, match="causal_mask and tiled_attention cannot work in one model: take one of them"):
        collect(ROOT / SOLUTIONS, prefer=["tiled_attention"], swap={"causal_mask": lambda n: None})


def test_answers_exclude_each_other_where_one_leaves_the_other_nothing():
    def together(one, other):
        found = excludes(slot_of(one), slot_of(other))
        assert found == excludes(slot_of(other), slot_of(one))
        return not found

    assert together("causal_mask", "masked_softmax") and together("split_heads", "tiled_attention")
    assert not together("causal_mask", "tiled_attention") and not together("softmax_row", "grouped_query")
    assert all(together(slot.name, slot.name) for slot in SLOTS)


# --- swapped --------------------------------------------------------------------------------------------------------


def test_a_fault_is_located_by_swapping_one_part(modern):
    late = {"rotate": lambda x, positions, base: rotary.rotate(x, 2 * positions, base)}
    faulty = collect(ROOT / SOLUTIONS, swap=late)
    assert whose(faulty)["rotate"] == ("swapped", "you swapped it for a function")
    assert compare(modern, faulty.parts, text=TEXT).shows
    for name in CHOSEN:
        swapped = collect(ROOT / SOLUTIONS, swap=late | {name: "reference"})
        assert compare(modern, swapped.parts, text=TEXT, most=0).shows == (name != "rotate")
        assert whose(swapped)[name] == ("reference", "you swapped it for the reference")


def test_in_the_place_of_a_reference_no_other_answer_works(solved):
    swapped = collect(ROOT / SOLUTIONS, swap={"grouped_query": "reference", "scheduler": "reference"})
    assert at_work(swapped) == CHOSEN - {"grouped_query_attention", "Scheduler"}
    assert "grouped_attention" not in swapped.trainable()


def test_what_cannot_be_swapped_is_named():
    with pytest.raises(TypeError, match="rotation is swapped for 3: give a function, or 'reference'"):
        collect(ROOT / SOLUTIONS, swap={"rotate": 3})
    with pytest.raises(KeyError, match="no part of the real model is called 'rope'"):
        collect(ROOT / SOLUTIONS, swap={"rope": "reference"})


# --- the real model -------------------------------------------------------------------------------------------------


def test_with_right_answers_the_model_says_the_same_and_each_share_is_of_one_time(solved, modern):
    assert not compare(modern, solved.parts, text=TEXT).shows
    few = collect(ROOT / SOLUTIONS, prefer=["sink_window_mask"])
    measured = shares(few, modern, text=TEXT, most=2)
    assert [share.name for share in measured] == [*(slot.name for slot in SLOTS), "all together"]
    assert all(share.same and share.difference < 1e-4 and 0 < share.alone < 1 for share in measured)
    together = {share.name: share.together for share in measured if share.together is not None}
    assert together.keys() == CHOSEN - {"causal_mask"} | {"sink_window_mask"}
    assert sum(together.values()) == pytest.approx(measured[-1].alone)


def test_a_part_that_raises_has_its_error_in_the_table(modern):
    def broken(x):
        raise ZeroDivisionError("no heads")

    measured = shares(collect(ROOT / EXERCISES, swap={"merge_heads": broken}), modern, text=TEXT, most=1)
    assert [share.error for share in measured] == ["ZeroDivisionError: no heads"] * 2
    assert "no heads" in str(measured) and measured._repr_html_().count("<tr>") == 3


def test_layers_can_be_shared_out_among_all_attentions(solved):
    deep = of_letters(layers=12, heads=4, kv_heads=2, d_ff=8, gated=True)
    shared = solved.real(deep, share_layers=True)
    used = {id(block.attention.own["grouped_attention"].__code__) for block in shared.model.blocks}
    assert len(used) == 10  # all answers that are an attention, but the ring
    assert shared.loss(TEXT) == pytest.approx(deep.loss(TEXT), rel=1e-5)


@HERE
@pytest.mark.thorough("the real model writes with every answer")
def test_the_real_model_speaks_with_the_solutions(solved):
    question = "What is the capital of France?"
    assert solved.real(share_layers=True).answer(question, 5) == real.load().answer(question, 5)


# --- the model to train ---------------------------------------------------------------------------------------------


def gradients(model, tokens):
    loss = torch.nn.functional.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    return loss, torch.autograd.grad(loss, [*model.parameters()])


def test_a_model_trains_with_all_parts_as_without():
    parts = collect(ROOT / SOLUTIONS).trainable()
    assert parts.keys() == {*PARTS}
    torch.manual_seed(0)
    model = Decoder(20, d_model=32, n_layers=2, n_heads=4, gated=True, tied=True).double()
    tokens = torch.randint(20, (3, 9))
    expected, right = gradients(model, tokens)
    put_parts(model, parts)
    loss, found = gradients(model, tokens)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-8)
    assert all(torch.allclose(x, y, atol=1e-8) for x, y in zip(found, right, strict=True))


def cut_softmax(scores, mask):
    return torch.softmax(scores.detach().masked_fill(~mask, -math.inf), dim=-1)


def of_one(x, n_heads):
    return x.view(1, x.shape[1], n_heads, -1).transpose(1, 2)


@pytest.mark.parametrize(
    ("name", "answer", "why"),
    [
        ("masked_softmax", cut_softmax, "the right gradients do not pass through it"),
        ("split_heads", of_one, "in training it raises"),
        ("tiled_attention", len, "it is not made for training"),
        ("masked_softmax", lambda s, m: torch.softmax(s.masked_fill(~m, -math.inf), dim=-1), ""),
    ],
)
def test_an_answer_that_cannot_be_trained_with_is_told_why(name, answer, why):
    assert find_hindrance(Row(slot_of(name), answer, PASSED)).startswith(why)
    assert bool(find_hindrance(Row(slot_of(name), answer, PASSED))) == bool(why)
