"""The learner's functions as parts of the real model: taken from notebooks, fitted in, and compared."""

import math
import signal
from dataclasses import replace

import pytest
import torch
from letter_model import of_letters
from own_notebook import written

from course_utils.answers.day4.exercises import grouped, in_steps
from course_utils.answers.day5.exercises import PagedCache
from course_utils.answers.shared.attention import flawed
from course_utils.checks.judge.exercise_tables import all_exercises, days_with_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.judge.rungs import evidence_for
from course_utils.course import EXERCISES, ROOT, SOLUTIONS, find_notebook
from course_utils.errors import CourseError
from course_utils.models import real
from course_utils.parts import SLOTS, compare, mine
from course_utils.parts.notebook import PASSED, Parts, Row
from course_utils.parts.slots import slot_of

BY_NAME = pytest.mark.parametrize("slot", SLOTS, ids=lambda slot: slot.grade_id)
HERE = pytest.mark.skipif(bool(real.missing()), reason="the real model is not here: make model")
MOST = {"writes": 6} | dict.fromkeys(set(real.OWN) - {"writes"}, 4)  # tokens to write, with a cache
TEXT = "the parcel that we sent"  # 23 letters: no multiple of a block
BY_VALUES = flawed(scale=lambda q, k, v: math.sqrt(v.shape[-1]))
IN_SINGLE = in_steps(share=lambda scores: torch.softmax(scores.float(), dim=-1).to(scores.dtype))
MERGED = "def merge_heads(x):\n    return x.transpose(1, 2).flatten(2)"


class Forgiving(PagedCache):
    def free(self, seq):
        if seq in self.tables:
            super().free(seq)


# Answers whose mistake a relation names: by exercise and relation.
RELATED = {
    ("attention_lists", "divided by √len(V[0])"): BY_VALUES,
    ("attention_batched", "divided by √v.shape[−1]"): BY_VALUES,
    ("grouped_query", "computed in float32"): grouped(attention=IN_SINGLE),
    ("paged_cache", "no KeyError where one is due"): Forgiving,
}


def small(gated=False):
    real_model = of_letters(heads=4, kv_heads=2, d_ff=48, gated=gated)
    for block in real_model.model.blocks:
        for each in (block.attention.q_proj, block.attention.out_proj):
            each.weight.mul_(4)  # heads that look at few tokens, and whose output counts
    return real_model


@pytest.fixture(scope="module")
def tiny():
    return small()


@pytest.fixture(scope="module")
def modern():
    real_model = small(gated=True)
    real_model.model.embedding.weight.mul_(0.03)  # tokens so near zero that the eps of a norm counts
    for block in real_model.model.blocks:
        block.attention_norm.weight.mul_(2)  # and two norms that differ
    return real_model


@pytest.fixture
def fitting(slot, tiny, modern):
    """A model that has the part of the slot."""
    return modern if slot.part == "block" else tiny


def filled(slot, answer, report=PASSED, hidden=""):
    return Parts((Row(slot, answer, report, hidden),))


def reference(slot):
    return all_exercises(slot.day)[slot.grade_id].reference[slot.name]


# --- the slots --------------------------------------------------------------------------------------------------------


@BY_NAME
def test_a_right_answer_changes_nothing(fitting, slot):
    comparison = compare(fitting, filled(slot, reference(slot)), text=TEXT, most=6)
    assert not comparison.shows and comparison.before, str(comparison)


@BY_NAME
def test_what_is_told_of_a_slot_is_what_its_exercise_asks(slot):
    assert slot.part in real.OWN and slot.day in days_with_exercises()
    known = {mistake.name for mistake in all_exercises(slot.day)[slot.grade_id].mistakes}
    said = {relation for grade_id, relation in RELATED if grade_id == slot.grade_id}
    assert set(slot.hidden) <= known | said, "a mistake that is not there is listed"


@pytest.mark.parametrize(("grade_id", "relation"), RELATED, ids=str)
def test_a_mistake_that_a_relation_names_is_said_not_to_show(tiny, grade_id, relation):
    slot, answer = slot_of(grade_id), RELATED[grade_id, relation]
    verdict = judge_of(slot.day, grade_id).judge(evidence_for(slot.day, grade_id, {slot.name: answer}, arrays=True))
    assert (verdict.status, verdict.mistake) == ("failed", relation)
    assert relation in slot.hidden and not compare(tiny, filled(slot, answer), text=TEXT, most=6).shows


@pytest.mark.thorough("all known mistakes are tried as parts of a model")
@BY_NAME
def test_every_known_mistake_shows_or_is_listed(fitting, slot):
    if slot.part == "rotate":
        fitting = fitting.with_parts({})  # a model of its own, with another base than an answer's default
        for block in fitting.model.blocks:
            block.attention.rope = replace(block.attention.rope, base=1e5)
    mistakes = all_exercises(slot.day)[slot.grade_id].mistakes
    comparisons = {
        each.name: compare(fitting, filled(slot, each.answer), text=TEXT, most=MOST[slot.part]) for each in mistakes
    }
    assert {name for name, each in comparisons.items() if not each.shows} <= set(slot.hidden)


@HERE
@pytest.mark.parametrize("name", ["attention_batched", "split_heads", "generate_cached"])
def test_in_the_real_model_a_right_answer_changes_nothing_and_a_wrong_one_shows(name):
    slot = slot_of(name)
    assert not compare(real.load(), filled(slot, reference(slot)), most=2).shows
    wrong = next(each for each in all_exercises(slot.day)[slot.grade_id].mistakes if each.name not in slot.hidden)
    assert compare(real.load(), filled(slot, wrong.answer), most=6 if slot.part == "writes" else 0).shows


@BY_NAME
def test_a_known_mistake_shows_or_is_said_not_to(fitting, slot):
    mistakes = all_exercises(slot.day)[slot.grade_id].mistakes
    wrong = next(mistake for mistake in mistakes if mistake.name not in slot.hidden)
    assert compare(fitting, filled(slot, wrong.answer), text=TEXT, most=6).shows, wrong.name
    for mistake in [mistake for mistake in mistakes if mistake.name in slot.hidden][:1]:
        told = filled(slot, mistake.answer, "failed", slot.hidden[mistake.name])
        comparison = compare(fitting, told, text=TEXT, most=6)
        assert not comparison.shows and slot.hidden[mistake.name] in str(comparison), mistake.name


# --- the comparison ---------------------------------------------------------------------------------------------------


def test_the_first_layer_and_token_are_told_where_numbers_part(tiny):
    slot = slot_of("attention_batched")
    wrong = flawed(scale=lambda q, k, v: q.shape[-1])
    comparison = compare(tiny, filled(slot, wrong), text=TEXT)
    assert (comparison.layer, comparison.token) == (0, 1)  # the first token has one key, of weight 1 whatever its score
    assert "layer 0, token 1 ('h')" in str(comparison) and repr(comparison.now) in str(comparison)
    assert 0 < comparison.size < 2
    comparison = compare(tiny, filled(slot, wrong), [1], TEXT)
    assert (comparison.layer, comparison.token) == (1, 1)
    mask = compare(tiny, filled(slot_of("causal_mask"), lambda n: torch.ones(n, n, dtype=torch.bool)), text=TEXT)
    assert (mask.layer, mask.token) == (0, 0)


def test_what_a_part_raises_or_returns_amiss_is_told(tiny):
    slot = slot_of("softmax_row")
    for answer, error in (
        (lambda row: [1.0], "ValueError: it returned (1,), and (2,) is asked for"),
        (lambda row: row[9], "IndexError: list index out of range"),
    ):
        comparison = compare(tiny, filled(slot, answer), text=TEXT)
        assert comparison.shows and comparison.error == error and comparison.now == "" and error in str(comparison)
    numbers = compare(tiny, filled(slot_of("causal_mask"), lambda n: torch.ones(n, n)), text=TEXT)
    assert numbers.error == "TypeError: it returned torch.float32, and torch.bool is asked for"
    nan = compare(tiny, filled(slot, lambda row: [float("nan")] * len(row)), text=TEXT)
    assert (nan.layer, nan.token) == (0, 0)


def test_a_scheduler_that_plans_what_nobody_has_is_told(tiny):
    class Still:
        def __init__(self, n_blocks, block_size, budget):
            self.names = []

        def add(self, name, prompt, new):
            self.names.append(name)

        def step(self):
            return {}, []

    class Much(Still):
        def step(self):
            return dict.fromkeys(self.names, 1000), []

    slot = slot_of("Scheduler")
    assert "0 tokens are planned" in compare(tiny, filled(slot, Still), text=TEXT).error
    assert "3000 tokens are planned" in compare(tiny, filled(slot, Much), text=TEXT).error


# --- the model with parts ---------------------------------------------------------------------------------------------


def test_a_model_with_parts_shares_weights_and_leaves_the_first_as_it_was(tiny):
    merge = slot_of("merge_heads")
    own = tiny.with_parts(filled(merge, lambda x: 0 * x.transpose(1, 2).flatten(2)), [1])
    assert [bool(block.attention.own) for block in own.model.blocks] == [False, True]
    assert not any(block.attention.own for block in tiny.model.blocks)
    pairs = zip(own.model.parameters(), tiny.model.parameters(), strict=True)
    assert all(a.data_ptr() == b.data_ptr() for a, b in pairs)
    assert own.loss(TEXT) != tiny.loss(TEXT)
    assert tiny.with_parts(filled(merge, reference(merge))).loss(TEXT) == tiny.loss(TEXT)


def test_parts_and_layers_that_are_not_there_are_named(tiny):
    with pytest.raises(ValueError, match="no part rope; its parts are split_heads"):
        tiny.with_parts({"rope": len})
    with pytest.raises(ValueError, match="no layer 2; its layers are 0 to 1"):
        tiny.with_parts({}, [0, 2])
    with pytest.raises(ValueError, match="leave the layers out"):
        tiny.with_parts({"writes": len}, [0])


def test_who_chooses_tokens_ends_with_the_turn(tiny):
    own = replace(tiny, writes=lambda model, tokens, most: [5, 7, tiny.end, 9])
    assert list(own.stream([1, 2], 4)) == [5, 7]


# --- the notebooks ----------------------------------------------------------------------------------------------------


def test_an_answer_is_taken_with_what_it_uses_and_nothing_else_runs(tmp_path, tiny):
    cells = [
        "import torch\nTURN = (1, 2)",
        f"open({str(tmp_path / 'ran')!r}, 'w')",
        "def merge_heads(x):\n    return x",
    ]
    folder = written(tmp_path / "exercises", 4, *cells, MERGED.replace("1, 2", "*TURN"), "raise SystemExit")
    parts = mine("merge_heads", folder=folder)
    assert [*parts] == ["merge_heads"] and not (tmp_path / "ran").exists()
    assert str(parts).split() == ["merge_heads", "4", "yours", "passed"]
    assert not compare(tiny, parts, text=TEXT).shows


def test_a_wrong_answer_is_taken_and_said_to_be_wrong(tmp_path, tiny):
    folder = written(tmp_path, 4, "def merge_heads(x):\n    return x.flatten(2).mT.contiguous()")
    parts = mine("merge_heads", folder=folder)
    assert "yours" in str(parts) and "failed: " in str(parts)
    assert compare(tiny, parts, text=TEXT).shows


def test_a_mistake_that_cannot_show_here_is_said_to_be_that(tmp_path, tiny):
    wrong = """import numpy as np
def attention_batched(q, k, v):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(v.shape[-1])
    e = np.exp(scores - scores.max(-1, keepdims=True))
    weights = e / e.sum(-1, keepdims=True)
    return weights @ v, weights"""
    comparison = compare(tiny, mine("attention_batched", folder=written(tmp_path, 1, wrong)), text=TEXT)
    assert not comparison.shows and comparison.failing[0][0] == "attention_batched"
    assert "does not pass its check, and that does not show here: keys and values are equally wide" in str(comparison)


@pytest.mark.parametrize(
    ("cell", "report"),
    [
        ("def merge_heads(x):\n    raise NotImplementedError('your code goes here')", "Not written yet."),
        ("x = 1", "no cell of day4_mine.ipynb defines merge_heads"),
        (f"{MERGED}\nraise OSError('gone')", "its cell raises OSError: gone"),
        ("merge_heads = {}['x']", "its cell raises KeyError: 'x'"),
        ("def merge_heads(x:", "its cell is not valid Python: '(' was never closed, at line 1"),
        (f"if False:\n    merge_heads = 1\n\n# {MERGED!r}", "its cell runs, and does not define merge_heads"),
        (f"{MERGED}\ndel merge_heads", "its cell runs, and does not define merge_heads"),
        (f"{MERGED}\nraise SystemExit", "its cell raises SystemExit"),
        (f"{MERGED}\nraise KeyboardInterrupt", "its cell raises KeyboardInterrupt"),
        ("def merge_heads(x):\n    raise KeyboardInterrupt", "its cell raises KeyboardInterrupt"),
        (f"def deep():\n    deep()\ndeep()\n{MERGED}", "its cell raises RecursionError: maximum recursion depth"),
    ],
)
def test_what_cannot_be_taken_leaves_the_reference(tmp_path, tiny, cell, report):
    parts = mine("merge_heads", folder=written(tmp_path, 4, cell))
    assert report in str(parts) and "reference" in str(parts)
    assert not compare(tiny, parts, text=TEXT).shows


def test_an_interrupt_is_the_learners_own(tmp_path):
    folder = written(tmp_path, 4, f"import signal\n{MERGED}\nsignal.raise_signal(signal.SIGINT)")
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        mine("merge_heads", folder=folder)
    assert signal.getsignal(signal.SIGINT) is before


def test_answers_are_taken_as_the_grader_takes_them(tmp_path):
    """Indented as a whole, from a file with a byte order mark, with a second try between the answer and its check."""
    first = "from __future__ import annotations\n\ndef merge_heads(x: Unknown) -> Unknown:\n    return x"
    second = "    " + MERGED.replace("\n", "\n    ")
    folder = written(tmp_path, 4, first, second, "check('merge_heads')", "merge_heads = None if False else merge_heads")
    (path,) = folder.glob("*.ipynb")
    path.write_text(path.read_text(encoding="utf-8"), encoding="utf-8-sig")
    assert str(mine("merge_heads", folder=folder)).split() == ["merge_heads", "4", "yours", "passed"]


def test_files_that_are_no_notebooks_and_names_that_are_no_parts(tmp_path):
    for text, error in (("{}", "KeyError"), ("[" * 100_000, "RecursionError")):
        (tmp_path / "day4_x.ipynb").write_text(text)
        with pytest.raises(CourseError, match=rf"day4_x.ipynb: not a notebook \({error}\)"):
            mine("split_heads", folder=tmp_path)
    assert "there is no notebook of day 1" in str(mine("softmax_row", folder=tmp_path))
    with pytest.raises(KeyError, match="no part of the real model is called 'rope'; there are softmax_row"):
        mine("rope")
    with pytest.raises(CourseError, match="softmax_row and grouped_query_attention are the same part"):
        mine("softmax_row", "grouped_query")


def test_the_table_is_text_and_html(tmp_path):
    parts = mine("split_heads", "merge_heads", folder=written(tmp_path, 4, MERGED))
    assert str(parts).count("\n") == 1
    page = parts._repr_html_()
    assert page.count("<tr>") == 3 and "<td>yours</td>" in page and "<td>reference</td>" in page


def test_the_solutions_fill_all_slots(tiny):
    for slot in SLOTS:
        parts = mine(slot.grade_id, folder=ROOT / SOLUTIONS)
        assert [*parts] == [slot.part] and PASSED in str(parts), str(parts)
    assert find_notebook(ROOT / EXERCISES, 4)
    stubs = mine("split_heads", "merge_heads", "grouped_query", folder=ROOT / EXERCISES)
    assert len(stubs) == 0
