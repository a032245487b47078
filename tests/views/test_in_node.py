"""What JavaScript computes on a page is what Python computes, in text, in pictures and where a kernel runs."""

import functools
import itertools
import json
import math
import random
import re
import subprocess
from collections import Counter

import numpy as np
import pytest
import torch
from as_page import on_page, send
from in_node import in_node
from needs import NODE, node_program

from course_utils import views
from course_utils.attention import masks, tensors
from course_utils.attention.masks import Leak
from course_utils.costs.configurations import MODELS
from course_utils.costs.memory import in_binary_units
from course_utils.guesses import Question, StoredGuess, brief, in_a_line, judge, summed_up
from course_utils.practice import KINDS, problem, read_entry
from course_utils.serving.traffic import Request
from course_utils.views import (
    AttentionStepper,
    DecodeStepper,
    HeadAblation,
    MaskPainter,
    MemoryBoard,
    MemoryCalculator,
    OnlineSoftmaxStepper,
    PageTable,
    Practice,
    ServingTimeline,
    SpeculativeStepper,
    TileWalker,
)
from course_utils.views.shared import number_text
from course_utils.views.static_page import page_state
from course_utils.views.widgets.calculator import CARDS, OWN
from course_utils.views.widgets.loss_ladder import message_of as message_of_loss
from course_utils.views.widgets.merges import message_of, states_of
from course_utils.views.widgets.page_table import replay
from course_utils.views.widgets.painter_verdict import Measured, empty_rows, oddities, verdict_lines
from course_utils.views.widgets.timeline_run import LibraryScheduler, run_scheduler

pytestmark = NODE


LOOK = """
import { readdirSync } from "node:fs";
for (const file of readdirSync(".").sort()) {
  const { default: widget } = await import(`${process.cwd()}/${file}`);
  console.log(file, typeof widget.render);
}
"""


def test_a_widget_with_all_that_it_imports_is_one_module(tmp_path):
    """Two files that give the same name to something at their top would break it."""
    for name in views.__all__:
        text = str(getattr(views, name)._esm)
        assert not re.search("^(import|export (?!default))", text, re.MULTILINE), name
        (tmp_path / f"{name}.mjs").write_text(text, encoding="utf-8")
    looking = [node_program(), "--input-type=module", "--eval", LOOK]
    ended = subprocess.run(looking, cwd=tmp_path, capture_output=True, text=True)
    assert ended.stdout.splitlines() == [f"{name}.mjs function" for name in sorted(views.__all__)], ended.stderr


# ---- what both languages have to know, on the same thousand inputs ---------------------------------------------------


def numbers_to_write(count: int) -> list[float]:
    """Numbers of all sizes and signs, halves that lie between two texts, and those that are no usual numbers."""
    chance = random.Random(0)
    drawn = [chance.choice((-1, 1)) * 10 ** chance.uniform(-14, 9) for _ in range(count // 2)]
    ties = [(chance.randrange(-20_000, 20_000) + 0.5) / 2 ** chance.randrange(12) for _ in range(count // 4)]
    round_ones = [chance.randrange(-999, 999) / 10 ** chance.randrange(7) for _ in range(count // 4)]
    odd = [0.0, -0.0, math.nan, math.inf, -math.inf, 1e-12, 5e-5, 0.0005, 9.99995, 99.9995, 999.995, 99999.95, 1e5]
    return [*drawn, *ties, *round_ones, *odd]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("numberText", number_text.number),
        ("threeDecimals", number_text.three_decimals),
        ("shortText", number_text.short),
        ("inBrackets", number_text.bracket_negative),
    ],
)
def test_numbers_are_written_alike(name, written):
    given = numbers_to_write(1000)
    if name == "threeDecimals":
        given = [value for value in given if not math.isnan(value)]
    inputs = list(map(number_text.number, given)) if name == "inBrackets" else given
    assert in_node("number_text.js", name, [[each] for each in inputs]) == [written(each) for each in inputs]


def test_bytes_are_written_alike():
    chance = random.Random(0)
    sizes = [0, 1, 999, 1023, 1024, 1025, 1536, 10234, 1048575, 1048576, 13_476_831_232, 5.5e13, 3 * 2**62]
    sizes += [round(2 ** chance.uniform(0, 62)) for _ in range(1000)]
    assert in_node("units.js", "inBinaryUnits", [[size] for size in sizes]) == [in_binary_units(s) for s in sizes]


def test_short_numbers_of_guesses_are_written_alike():
    given = [value for value in numbers_to_write(1000) if math.isfinite(value)]
    assert in_node("guessing.js", "brief", [[value] for value in given]) == [brief(value) for value in given]


def guesses_to_judge(count: int) -> list[StoredGuess]:
    """Guesses of all kinds and scales, on both sides of the truth and near it."""
    chance, kept = random.Random(2), []
    for place in range(count):
        low, high, scale = chance.choice([(0, 1, "linear"), (-5, 20, "linear"), (1, 1e6, "log"), (1e-8, 1, "log")])

        def some(low=low, high=high, scale=scale):
            share = chance.choice([chance.random(), chance.randrange(17) / 16])
            return low * (high / low) ** share if scale == "log" else low + share * (high - low)

        kind = ("number", "choice", "curve")[place % 3]
        more = {
            "number": {"truth": (some(),)},
            "choice": {"truth": (1.0,), "choices": ("a", "b", "c")},
            "curve": {"truth": tuple(some() for _ in range(5)), "places": tuple("vwxyz")},
        }[kind]
        ends = {} if kind == "choice" else {"low": low, "high": high, "scale": scale}
        asked = Question(1, f"g{place}", "How?", kind, **more, **ends)
        near = chance.choice([1, 1, 1.001, 1.03])
        moved = tuple(max(low, min(high, truth * near)) if near > 1 else some() for truth in asked.truth)
        guess = (float(chance.randrange(3)),) if kind == "choice" else moved
        kept.append(StoredGuess(asked, guess, guess, 1, "2026-01-01"))
    return kept


def test_guesses_are_judged_and_summed_up_as_python_does():
    kept = guesses_to_judge(1000)
    plain = [{"asked": vars(each.asked), "first": each.first} for each in kept]
    found = in_node("guessing.js", "judge", [[each["asked"], each["first"]] for each in plain])
    for mine, each in zip(found, kept, strict=True):
        verdict = judge(each.asked, each.first)
        assert (mine["text"], mine["lean"], mine["right"]) == (verdict.text, verdict.lean, verdict.right)
        assert mine["off"] == pytest.approx(verdict.off)
    groups = [slice(start, start + count) for start in range(0, 1000, 50) for count in (0, 1, 2, 3, 7, 20, 40)]
    summed = in_node("guessing.js", "summedUp", [[plain[group]] for group in groups])
    assert summed == [summed_up(kept[group]) for group in groups]
    lines = in_node("guessing.js", "inALine", [[plain[group]] for group in groups])
    assert lines == [in_a_line(kept[group]) for group in groups]


def test_requests_are_scheduled_as_the_library_does():
    """Each cell with its reason and what each step uses, of a thousand sets of requests."""
    chance, calls, wanted = random.Random(3), [], []
    for _ in range(1000):
        requests = [
            Request("ABCD"[place], chance.choice([0, 0, 1, 2.5, 4]), chance.randint(1, 5), chance.randint(1, 4))
            for place in range(chance.randint(1, 4))
        ]
        block_size, budget, blocks = chance.randint(1, 3), chance.choice([1, 2, 4, 16]), chance.randint(3, 9)
        rule = chance.choice(["continuous", "static"])
        settings = {"rule": rule, "budget": budget, "blocks": blocks}
        calls.append([[request._asdict() for request in requests], block_size, settings])
        make = functools.partial(LibraryScheduler, static=rule == "static")
        wanted.append(run_scheduler(make, requests, blocks, block_size, budget))
    found = in_node("timeline_alone.js", "scheduledRun", calls)
    assert found == [json.loads(json.dumps(each)) for each in wanted]
    did = {cell[0] for walk in wanted for step in walk["steps"] for cell in step["cells"]}
    assert did == {"", "prefill", "decode", "wait", "preempted", "finished", "refused"}


def masks_to_judge(count: int) -> list[tuple[np.ndarray, Measured]]:
    """Masks with what an attention might have done under each: right, wrong in several ways, or without weights."""
    chance, drawn = np.random.default_rng(4), []
    for _ in range(count):
        n, m = chance.integers(1, 5, size=2)
        mask = chance.random((n, m)) < chance.choice([0.2, 0.6, 1.0])
        weights = chance.random((n, m)) * (mask | (chance.random() < 0.3))
        weights = weights / np.maximum(weights.sum(1, keepdims=True), 1e-9)
        empty = ~mask.any(1)
        weights[empty] = chance.choice([0, math.nan, 1 / m, math.inf, 0.3])
        if chance.random() < 0.1:
            weights *= 0.9
        crossed = n != m
        i, j = sorted(chance.choice(n, 2, replace=False).tolist(), key=int) if n > 1 else (None, None)
        amount = float(chance.choice([0.25, math.inf, math.nan])) if chance.random() < 0.7 else None
        leak = None if crossed else Leak(i, j, amount) if amount is not None and n > 1 else Leak(None, None, 0.0)
        drawn.append((mask, Measured(None if chance.random() < 0.1 else weights, bool(chance.random() < 0.8), leak)))
    return drawn


@pytest.mark.parametrize("part", ["messageOfVerdict", "emptyRows", "oddities"])
def test_a_verdict_on_a_mask_is_told_alike(part):
    queries, name, calls, wanted = ["“a”", "“b”", "“c”", "“d”"], "attention()", [], []
    for mask, measured in masks_to_judge(1000):
        may = mask.tolist()
        weights = None if measured.weights is None else measured.weights.tolist()
        leak = measured.leak and measured.leak._asdict()
        if part == "messageOfVerdict":
            calls.append([leak, may, weights, queries, name])
            wanted.append(verdict_lines(measured, mask, queries, name))
        elif part == "emptyRows":
            calls.append([may, weights, queries])
            wanted.append(empty_rows(mask, measured.weights, queries))
        else:
            calls.append([may, weights, measured.follows, queries])
            wanted.append(oddities(mask, measured, queries, queries))
    assert in_node("painter_alone.js", part, calls) == wanted
    assert len({str(each) for each in wanted}) > 5


def texts_to_merge(count: int) -> list[str]:
    """Texts of few letters, so that pairs are frequent, tie and overlap; of all Unicode; and one of each odd kind."""
    chance = random.Random(5)
    scripts = ["a", "ab", "abc ", "the cat\n", "aé", "аб ", "日本", "🌍👩\u200d🔬", "\x00\t\r\x7f␣<C3>"]
    drawn = ["".join(chance.choices(chance.choice(scripts), k=chance.randint(1, 40))) for _ in range(count * 3 // 4)]
    points = [each for each in range(0x110000) if not 0xD800 <= each < 0xE000]
    drawn += ["".join(map(chr, chance.choices(points, k=chance.randint(1, 12)))) * 2 for _ in range(count // 4)]
    return [*drawn, "a" * 200, "🌍" * 200, "e\u0301 é", "\ufeffa\ufeffa"]


def merged_plainly(text: str) -> list[list[list[int]]]:
    """The tokens of a text and its pairs with their counts before each merge and after the last, without any haste."""
    tokens, states = [*text.encode()], []
    while True:
        counts = Counter(itertools.pairwise(tokens))
        ranked = sorted([[*pair, count] for pair, count in counts.items()], key=lambda each: (-each[2], each))
        states.append([tokens, ranked[:6]])
        if not ranked or ranked[0][2] == 1:
            return states
        left, right, _ = ranked[0]
        before, tokens = tokens, []
        for token in before:
            if tokens and (tokens[-1], token) == (left, right):
                tokens[-1] = 255 + len(states)
            else:
                tokens.append(token)


def test_pairs_are_merged_alike_and_told_alike():
    texts = texts_to_merge(1000)
    found = in_node("merges_steps.js", "statesOf", [[text, 6] for text in texts])
    plain = [merged_plainly(text) for text in texts]
    assert [[[*state.values()] for state in states] for states in found] == plain
    python = [states_of(text) for text in texts]
    assert [[[state.tokens, [*map(list, state.pairs)]] for state in states] for states in python] == plain
    names = in_node("merges_steps.js", "namesOf", [[states] for states in found])
    calls = [[states, len(states) // 2, named] for states, named in zip(found, names, strict=True)]
    calls += [[states, len(states) - 1, named] for states, named in zip(found[::9], names[::9], strict=True)]
    wanted = [message_of(states, len(states) // 2) for states in python]
    wanted += [message_of(states, len(states) - 1) for states in python[::9]]
    assert in_node("merges_steps.js", "messageOf", calls) == wanted
    assert any("at 1 place." in each for each in wanted) and any("smallest in a tie" in each for each in wanted)


def test_a_loss_among_floors_is_told_alike():
    chance = random.Random(6)
    floors = [["ln V", 5.545], ["the unigram floor", 3.3125], ["the bigram floor", 2.45]]
    calls = [[step, chance.choice([chance.uniform(0, 7), 3.3125]), floors] for step in range(1000)]
    wanted = [message_of_loss(*call) for call in calls]
    assert in_node("loss_ladder.js", "messageOfLoss", calls) == wanted
    assert len({re.sub(r"[\d.]+", "", each) for each in wanted}) == 4


# ---- what a page without a kernel computes itself --------------------------------------------------------------------


def alone(widget):
    return page_state(widget)["_alone"]


def test_the_calculator_counts_every_model():
    chance, widgets = random.Random(0), []
    owns = [
        {"layers": 4, "n_kv_heads": 2, "d_head": 64},
        {"layers": 4, "n_kv_heads": 2, "d_head": 64, "window": 512, "billions": 0.5},
        {"layers": 60, "latent": 512, "rotary": 64, "billions": 236},
    ]
    for name in [*MODELS] * 6:
        context = chance.choice([1, 300, 4096, 131072])
        batch = chance.choice([1, 7, 256])
        widgets.append(MemoryCalculator(name, context, batch, chance.choice([1, 2, 4]), card=chance.choice([*CARDS])))
        if groups := on_page(widgets[-1]).layout["groups"][name]:
            widgets[-1].n_kv_heads = chance.choice(groups)
    widgets += [MemoryCalculator(own=own, context=5000, card=card) for own in owns for card in CARDS]
    known = alone(widgets[0])
    calls = []
    for widget in widgets:
        set_to = {name: getattr(widget, name) for name in ("context", "batch", "bytes_per_value", "n_kv_heads", "card")}
        calls.append([known | set_to | {"name": widget.model, "own": widget.own if widget.model == OWN else None}])
    assert in_node("calculator_alone.js", "memoryOf", calls) == [on_page(widget).shown for widget in widgets]


def test_sizes_of_ones_own_are_read_as_python_reads_them():
    full = {"layers": "4", "n_kv_heads": "2", "d_head": "64"}
    typed = [
        *[full | {name: text} for name in full for text in ("", "x", "1.5", "0", "-3", "1,024", "99999999")],
        *[full | {"billions": text} for text in ("7", "0", "-1", "1e9", "a lot", ".5")],
        {"layers": "4", "latent": "512"},
        {"layers": "4", "latent": "512", "rotary": "64"},
    ]
    problems = []
    for each in typed:
        widget = MemoryCalculator(own={"layers": 1, "n_kv_heads": 1, "d_head": 1})
        send(widget, typed=each)
        problems.append(on_page(widget).problem)
    found = in_node("calculator_alone.js", "ownSizes", [[each, alone(widget)] for each in typed])
    assert [each["problem"] for each in found] == problems


def test_decoding_passes_over_other_words():
    texts = [("a", "b"), ("the cat sat", "on the mat and slept"), ("x " * 15, "y"), ("one", "z " * 15)]
    widgets = [DecodeStepper(prompt.split(), new.split(), d_head=100) for prompt, new in texts]
    token = on_page(widgets[0]).layout["token"]
    calls = [[prompt.split(), new.split(), token] for prompt, new in texts]
    assert in_node("decoding_alone.js", "passesOf", calls) == [on_page(widget).frames for widget in widgets]


@pytest.mark.parametrize("typed", [["", "a"], ["a", "b" * 17], ["a " * 9, "b " * 9], ["é" * 17, "a"]])
def test_decoding_says_what_is_wrong_with_words(typed):
    widget = DecodeStepper(["a"], ["b"])
    typed = [text.strip() for text in typed]
    send(widget, typed=typed)
    assert in_node("decoding_alone.js", "wrongWords", [[typed, 16, 16]]) == [on_page(widget).problem] != [""]


@pytest.mark.parametrize(
    ("scores", "values"),
    [
        ([2.0, -1.0, 3.5, 0.125, 3.5], [[1, 0], [0, -1], [0.5, 2], [1, 1], [3, 3]]),
        ([2.0, -math.inf, 3.5, 0.1, -math.inf], None),
        ([-math.inf, -math.inf], [1, 2]),
        ([1200.0, 3e-5, 12.0], [[1e5], [1e-7], [0]]),
    ],
)
@pytest.mark.parametrize("block", [1, 2])
def test_softmax_in_another_order(scores, values, block):
    widget = OnlineSoftmaxStepper(scores, values, block=block)
    state = alone(widget)
    orders = [[*order] for order in itertools.permutations(range(len(scores)))][::7]
    expected = []
    for order in orders:
        widget.order = order
        expected.append({name: getattr(widget, name) for name in ("_keys", "_frames", "_ends")})
    found = in_node("online_softmax_alone.js", "arranged", [[state, order] for order in orders])
    assert found == expected


@pytest.mark.parametrize("sizes", [{"n": 8, "d": 3}, {"n": 7, "m": 10}, {"n": 10, "m": 7}], ids=str)
def test_walks_through_other_tiles(sizes):
    widget = TileWalker(**sizes, seed=3)
    state = alone(widget)
    calls = []
    walks = []
    for causal, block_q, block_k in itertools.product([False, True], [1, 4, 16], [2, 3, 16]):
        widget.causal = causal
        widget.block_q = block_q
        widget.block_k = block_k
        walks.append(on_page(widget).walk)
        calls.append([state, on_page(widget).walk["settings"], 4])
    found = in_node("tile_walk_alone.js", "walkThrough", calls)
    for walk, expected in zip(found, walks, strict=True):
        assert walk == {name: part for name, part in expected.items() if name != "settings"}


def test_a_round_of_speculative_decoding():
    """Drafted tokens and coins, what becomes of them and what is said, wherever q lies between itself and p."""
    pairs = [
        ([0.4, 0.3, 0.2, 0.1, 0.0], [0.1, 0.2, 0.35, 0.25, 0.1]),
        ([0.9, 0.1], [0.5, 0.5]),
        ([0.3125, 0.6875], [0.5, 0.5]),  # the coin falls on the bound
        ([1 / 3] * 3, [1 / 3] * 3),
        ([1.0, 0.0, 0.0], [0.0, 0.5, 0.5]),
    ]
    calls = []
    texts = []
    rounds = []
    sums = []
    for (p, q), gamma, nearness in itertools.product(pairs, (1, 4), (0.0, 0.35, 1.0)):
        widget = SpeculativeStepper(p, q, [max(range(len(q)), key=q.__getitem__)] * gamma, [0.625] * (gamma + 1))
        for seed in (None, *range(12), 999_999):
            widget.nearness = nearness
            widget.seed = seed
            calls.append([on_page(widget).given, seed, nearness])
            result = widget.round
            rounds.append(result._asdict() | {"coins": [coin._asdict() for coin in result.coins]})
            texts.append([widget.describe(step) for step in range(widget.last + 1)])
            sums.append((widget.q.tolist(), widget.alpha, widget.expected, widget.remainder))
    found = in_node("speculative_round.js", "roundOf", calls)
    for mine, wanted in zip(found, rounds, strict=True):
        wanted["drafted"], wanted["tokens"] = [*wanted["drafted"]], [*wanted["tokens"]]
        wanted["lastCoin"] = wanted.pop("last_coin")
        assert mine == wanted
    words = [[f"token {i}" for i in range(len(given["p"]))] for given, _, _ in calls]
    assert in_node("speculative_round.js", "messageOf", list(zip(found, words, strict=True))) == texts
    moved = in_node("speculative_round.js", "movedTowards", [[given["p"], given["q"], t] for given, _, t in calls])
    alphas = in_node("speculative_round.js", "overlapOf", [[c[0]["p"], q] for c, q in zip(calls, moved, strict=True)])
    gammas = [len(given["drafted"]) for given, _, _ in calls]
    means = in_node("speculative_round.js", "expectedTokens", [[a, g] for a, g in zip(alphas, gammas, strict=True)])
    rests = in_node("speculative_round.js", "remainderOf", [[given["p"], given["q"]] for given, _, _ in calls])
    for q, alpha, mean, rest, wanted in zip(moved, alphas, means, rests, sums, strict=True):
        # Python 3.12 and later add floats with a correction, so the last digit of a sum may differ.
        assert q == pytest.approx(wanted[0], rel=1e-14)
        assert alpha == pytest.approx(wanted[1], rel=1e-14)
        assert mean == pytest.approx(wanted[2], rel=1e-14)
        assert (rest is None) == (wanted[3] is None)
        if rest is not None:
            assert rest == pytest.approx(wanted[3].tolist(), rel=1e-14)


def weights_after(q, k, v, mask):
    weights = torch.softmax(q @ k.T / 8**0.5, dim=-1) * mask
    return weights @ v, weights


def nan_where_empty(q, k, v, mask):
    weights = torch.softmax((q @ k.T).masked_fill(~mask, -math.inf), dim=-1)
    return weights @ v


def finite_fill(q, k, v, mask):
    weights = torch.softmax((q @ k.T).masked_fill(~mask, -1e4), dim=-1)
    return weights @ v + 1, weights


@pytest.mark.parametrize("attention", [None, weights_after, nan_where_empty, finite_fill, tensors.attention])
@pytest.mark.parametrize("keys", [None, ["a", "long key of many letters", "c", "a"]], ids=["square", "crossed"])
def test_a_painted_mask_is_measured_row_by_row(attention, keys):
    tokens = ["the", "cat", "the"]
    widget = MaskPainter(tokens, keys=keys, attention=attention)
    state = page_state(widget)
    chance = np.random.default_rng(1)
    calls = []
    results = []
    sizes = (len(tokens), len(keys or tokens))
    drawn = chance.random((4, *sizes)) < 0.5
    for mask in [np.zeros(sizes, bool), np.ones(sizes, bool), np.eye(*sizes, dtype=bool), *drawn]:
        widget.mask = mask
        known = {"tokens": tokens, "keys": keys or tokens, **state["_alone"]}
        calls.append([on_page(widget).mask, state["_alone"]["rows"], known])
        results.append(on_page(widget).result)
    assert in_node("painter_alone.js", "resultOf", calls) == results


def test_an_attention_that_looks_at_other_rows_is_not_put_together():
    def cleverer(q, k, v, mask):
        return tensors.attention(q, k, v, mask & mask[-1:])

    assert alone(MaskPainter(["a", "b", "c"], attention=cleverer))["rows"] is None
    assert alone(MaskPainter([str(i) for i in range(9)]))["rows"] is None, "too many to measure before"


@pytest.mark.thorough("every set of heads is switched off")
def test_the_ablation_knows_every_set_of_few_heads():
    from course_utils.models.decoder import Decoder

    torch.manual_seed(0)
    widget = HeadAblation(Decoder(8, 16, 2, 2), [1, 2, 3, 4, 5])
    known = alone(widget)
    assert len(known["answers"]) == 16
    for places, answer in known["answers"].items():
        widget.off = [divmod(int(place), 2) for place in places.split(",") if place]
        result = on_page(widget).result
        assert {name: result[name] for name in answer} == answer
    widget.each_alone()
    assert known["rises"] == on_page(widget).rises


@pytest.mark.parametrize("kind", KINDS)
def test_practice_is_judged_as_python_judges(kind):
    """Right answers, known missteps and what follows from them; also an answer that nobody knows."""
    widget = Practice(kind)
    calls = []
    expected = []
    for posed in alone(widget)["problems"][:3]:
        posed_problem = problem(kind, posed["number"])
        entries = [posed_problem.worked(), posed_problem.solution()]
        entries += [posed_problem.worked({step.name: misstep}) for step, misstep in posed_problem.known_missteps()]
        entries.append(
            posed_problem.worked()
            | {posed_problem.steps[-1].name: posed_problem.solution()[posed_problem.steps[-1].name] * 7 + 1}
        )
        widget.number = posed["number"]
        for values in entries:
            widget.entries = ["; ".join(" ".join(map(repr, row)) for row in np.atleast_2d(values[step.name]).tolist())
                              for step in posed_problem.steps]  # fmt: skip
            calls.append([posed["steps"], widget.entries])
            expected.append({"judged": on_page(widget).judged, "summary": on_page(widget).summary})
        for filled in reversed(range(len(posed_problem.steps))):
            widget.entries = [*widget.entries[:filled], *[""] * (len(posed_problem.steps) - filled)]
            calls.append([posed["steps"], widget.entries])
            expected.append({"judged": on_page(widget).judged, "summary": on_page(widget).summary})
    assert in_node("practice_alone.js", "judgeSteps", calls) == expected


def test_entries_are_read_as_python_reads_them():
    texts = ["1/3", "2e9", "4*512**2", "−2", "1 2; 3 4", "[1, 2], [3, 4]", "12,345", "-2^2", "2^-1", "(1+2)*3/4", "",
             "1 2; 3", "x", "1/0", "1+", "0.5 .25", "2**3**2", "--1", ",", "[;]", "1e999", "-1e999"]  # fmt: skip

    def read(text):
        try:
            value = read_entry(text)
        except ValueError as error:
            return {"error": str(error)}
        return None if value is None else np.atleast_2d(value).tolist()

    assert in_node("practice_alone.js", "readEntry", [[text] for text in texts]) == [read(text) for text in texts]


def test_masks_changes_are_what_the_leak_is_picked_from():
    def layer(x):
        return tensors.attention(x, x, x)[0]

    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    leak = masks.future_leak(layer, x)
    changes = masks.future_changes(layer, x)
    assert leak.amount == changes.triu(1).max() == changes[leak.i, leak.j]


def test_a_page_schedules_as_the_library_does():
    """Every cell with its reason, what each step uses, the sentences and the measures, over much that can be set."""
    rows = [("A", 0, 3, 6), ("B", 0, 9, 1), ("C", 2.5, 1, 9), ("D", 3, 7, 4), ("E", 30, 2, 2)]
    calls, walks, steps, summed, cells, told = [], [], [], [], [], []
    for size, rule in itertools.product((1, 3), ("continuous", "static")):
        widget = ServingTimeline(requests=rows, block_size=size)
        given = alone(widget)["sets"]
        for budget, blocks, name in itertools.product((1, 16), (4, 7), given):
            with widget.hold_trait_notifications():
                widget.rule = rule
                widget.budget = budget
                widget.blocks = blocks
                widget.arrivals = name
            walk = dict(on_page(widget).walk)
            calls.append([given[name], size, walk.pop("settings")])
            walks.append(walk)
            widget.step = half = widget.last // 2
            steps.append([walk, half, budget, blocks])
            summed.append({**widget.measures, "first": [*widget.measures["first"].values()]})
            for row in range(len(walk["requests"])) if half else ():
                cells.append([walk, half, row])
                told.append(widget.describe(half, row))
    assert in_node("timeline_alone.js", "scheduledRun", calls) == walks
    did = {cell[0] for walk in walks for step in walk["steps"] for cell in step["cells"]}
    assert did == {"", "prefill", "decode", "wait", "preempted", "finished", "refused"}
    assert in_node("timeline.js", "measuresOf", steps) == summed
    assert in_node("timeline.js", "messageOfCell", cells) == told


def test_a_page_hands_out_blocks_as_the_pool_does():
    """Tables, references, slots and what is said after calls at random, with copies and pools that are full."""
    chance = random.Random(0)
    calls = []
    expected = []
    for n_blocks, block_size in itertools.product((1, 3, 8), (1, 2, 4)):
        for _ in range(20):
            made = []
            known = {}
            for _ in range(chance.randrange(40)):
                name, new = chance.sample("abc", 2)
                kinds = ["append", *(["free", "fork"][: 1 + (new not in known)] if name in known else [])]
                kind = chance.choice([*kinds, "append"])
                made.append([kind, name, new] if kind == "fork" else [kind, name])
                known = replay(made, n_blocks, block_size).tables
            widget = PageTable(n_blocks, block_size, made)
            calls.append([made, n_blocks, block_size])
            found = replay(*calls[-1])
            expected.append({"tables": widget.tables, "lengths": widget.lengths, "references": widget.references,
                           "slots": found.slots, "changed": found.changed, "message": widget.message})  # fmt: skip
    assert in_node("page_table.js", "pagesOf", calls) == expected
    said = " ".join(each["message"] for each in expected)
    assert "copy on write" in said and "no block is free" in said and "stays" in said


def drawn(seed, rows, columns, size=1.0):
    return (size * np.random.default_rng(seed).normal(size=(rows, columns))).round(2)


@pytest.mark.parametrize("mask", [None, np.tri(4), [[0, 0, 0, 0], *np.tri(4)[1:]]], ids=["free", "causal", "empty row"])
@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("attention", [None, finite_fill], ids=["arithmetic", "theirs"])
def test_the_stages_of_attention_are_the_same(attention, size, mask):
    """Names, formulas, shapes, numbers, shades and what differs, of each matrix of each stage."""
    w = [drawn(seed, 3, 2, size) for seed in (1, 2, 3)]
    widget = AttentionStepper(torch.tensor(drawn(0, 4, 3)), *w, list("abcd"), mask=mask, attention=attention)
    sent = on_page(widget)
    (stages,) = in_node("stepper_in_node.mjs", "told", [[sent.numbers, sent.labels, sent.theirs]])
    shown = ("name", "shape", "role", "rows", "columns", "text", "differs", "levels")
    assert stages == [
        {
            "name": stage["name"],
            "formula": stage["formula"],
            "steps": stage["steps"],
            "matrices": [
                {name: widget._matrices[item["matrix"]][name] for name in shown}
                for item in stage["line"]
                if "matrix" in item
            ],
        }
        for stage in widget._stages
    ]


def test_a_memory_that_is_written_and_read():
    """The state and what each key reads, by both rules, after any writes."""
    board = MemoryBoard([[1, 0], [0, 1], [0.6, 0.8], [1, 0]], [[2, 0, 1], [0, 3, 0], [1, 1, -1], [0, 1, 0.5]])
    rng = random.Random(0)
    calls, wanted = [], []
    for rule, count in itertools.product(("add", "delta"), range(12)):
        board.rule = rule
        board.writes = [rng.randrange(4) for _ in range(count)]
        calls.append([on_page(board).pairs, list(board.writes), rule])
        wanted.append((board.state, board.reads))
    for found, (state, reads) in zip(in_node("memory_board_state.js", "stateOf", calls), wanted, strict=True):
        assert np.allclose(found["S"], state, rtol=0, atol=1e-12)
        for (read, value, error), mine in zip(found["reads"], reads, strict=True):
            assert np.allclose(read, mine.read, rtol=0, atol=1e-12) and error == pytest.approx(mine.error, abs=1e-12)
            assert (value is None) == (mine.wanted is None) and (value is None or value == [*mine.wanted])
