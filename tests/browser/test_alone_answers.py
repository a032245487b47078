"""What a page without a kernel computes itself is what Python computes."""

import itertools
import math
import random

import numpy as np
import pytest
import torch
from as_page import on_page, send

from course_utils.attention import masks, tensors
from course_utils.costs.configurations import MODELS
from course_utils.costs.memory import in_binary_units
from course_utils.guesses import Asked, Kept, brief, in_a_line, judge, summed_up
from course_utils.practice import KINDS, problem, read_entry
from course_utils.views import (
    DecodeStepper,
    Guesses,
    HeadAblation,
    MaskPainter,
    MemoryCalculator,
    OnlineSoftmaxStepper,
    PageTable,
    Practice,
    ServingTimeline,
    SpeculativeStepper,
    TileWalker,
)
from course_utils.views.static_page import page_state
from course_utils.views.widgets.calculator import CARDS, OWN
from course_utils.views.widgets.page_table import done

RUN = """async ([code, name, calls]) => {
  const url = URL.createObjectURL(new Blob([`${code}\\nexport { ${name} };`], { type: "text/javascript" }));
  const { [name]: run } = await import(url);
  return calls.map((call) => { try { return run(...call); } catch (error) { return { error: error.message }; } });
}"""


@pytest.fixture
def in_page(offline):
    """`in_page(Widget, name, calls)`: what a function of the widget's script returns for each list of arguments."""
    page, _ = offline
    page.goto("about:blank")
    return lambda widget, name, calls: page.evaluate(RUN, [str(widget._esm), name, calls])


def alone(widget):
    return page_state(widget)["_alone"]


def test_the_calculator_counts_every_model(in_page):
    chance, widgets = random.Random(0), []
    owns = [
        {"layers": 4, "n_kv_heads": 2, "d_head": 64},
        {"layers": 4, "n_kv_heads": 2, "d_head": 64, "window": 512, "billions": 0.5},
        {"layers": 60, "latent": 512, "rotary": 64, "billions": 236},
    ]
    for name in [*MODELS] * 6:
        context, batch = chance.choice([1, 300, 4096, 131072]), chance.choice([1, 7, 256])
        widgets.append(MemoryCalculator(name, context, batch, chance.choice([1, 2, 4]), card=chance.choice([*CARDS])))
        if groups := on_page(widgets[-1]).layout["groups"][name]:
            widgets[-1].n_kv_heads = chance.choice(groups)
    widgets += [MemoryCalculator(own=own, context=5000, card=card) for own in owns for card in CARDS]
    known, calls = alone(widgets[0]), []
    for widget in widgets:
        set_to = {name: getattr(widget, name) for name in ("context", "batch", "bytes_per_value", "n_kv_heads", "card")}
        calls.append([known | set_to | {"name": widget.model, "own": widget.own if widget.model == OWN else None}])
    assert in_page(MemoryCalculator, "memoryOf", calls) == [on_page(widget).shown for widget in widgets]


def test_sizes_of_ones_own_are_read_as_python_reads_them(in_page):
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
    found = in_page(MemoryCalculator, "ownSizes", [[each, alone(widget)] for each in typed])
    assert [each["problem"] for each in found] == problems


def test_bytes_are_written_alike(in_page):
    sizes = [0, 1, 999, 1023, 1024, 1025, 1536, 10234, 1048575, 1048576, 13_476_831_232, 5.5e13, 3 * 2**62]
    assert in_page(DecodeStepper, "inBinaryUnits", [[size] for size in sizes]) == [in_binary_units(s) for s in sizes]


def test_decoding_passes_over_other_words(in_page):
    texts = [("a", "b"), ("the cat sat", "on the mat and slept"), ("x " * 15, "y"), ("one", "z " * 15)]
    widgets = [DecodeStepper(prompt.split(), new.split(), d_head=100) for prompt, new in texts]
    token = on_page(widgets[0]).layout["token"]
    calls = [[prompt.split(), new.split(), token] for prompt, new in texts]
    assert in_page(DecodeStepper, "passesOf", calls) == [on_page(widget).frames for widget in widgets]


@pytest.mark.parametrize("typed", [["", "a"], ["a", "b" * 17], ["a " * 9, "b " * 9], ["é" * 17, "a"]])
def test_decoding_says_what_is_wrong_with_words(in_page, typed):
    widget = DecodeStepper(["a"], ["b"])
    typed = [text.strip() for text in typed]
    send(widget, typed=typed)
    assert in_page(DecodeStepper, "wrongWords", [[typed, 16, 16]]) == [on_page(widget).problem] != [""]


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
def test_softmax_in_another_order(in_page, scores, values, block):
    widget = OnlineSoftmaxStepper(scores, values, block=block)
    given = alone(widget)
    orders = [[*order] for order in itertools.permutations(range(len(scores)))][::7]
    expected = []
    for order in orders:
        widget.order = order
        expected.append({name: getattr(widget, name) for name in ("_keys", "_frames", "_ends")})
    found = in_page(OnlineSoftmaxStepper, "arranged", [[given, order] for order in orders])
    assert found == expected


@pytest.mark.parametrize("sizes", [{"n": 8, "d": 3}, {"n": 7, "m": 10}, {"n": 10, "m": 7}], ids=str)
def test_walks_through_other_tiles(in_page, sizes):
    widget = TileWalker(**sizes, seed=3)
    given, calls, walks = alone(widget), [], []
    for causal, block_q, block_k in itertools.product([False, True], [1, 4, 16], [2, 3, 16]):
        widget.causal, widget.block_q, widget.block_k = causal, block_q, block_k
        walks.append(on_page(widget).walk)
        calls.append([given, on_page(widget).walk["settings"], 4])
    found = in_page(TileWalker, "walkThrough", calls)
    for walk, expected in zip(found, walks, strict=True):
        assert walk == {name: part for name, part in expected.items() if name != "settings"}


def test_a_round_of_speculative_decoding(in_page):
    """Drafted tokens and coins, what becomes of them and what is said, wherever q lies between itself and p."""
    pairs = [
        ([0.4, 0.3, 0.2, 0.1, 0.0], [0.1, 0.2, 0.35, 0.25, 0.1]),
        ([0.9, 0.1], [0.5, 0.5]),
        ([0.3125, 0.6875], [0.5, 0.5]),  # the coin falls on the bound
        ([1 / 3] * 3, [1 / 3] * 3),
        ([1.0, 0.0, 0.0], [0.0, 0.5, 0.5]),
    ]
    calls, told, rounds, sums = [], [], [], []
    for (p, q), gamma, nearness in itertools.product(pairs, (1, 4), (0.0, 0.35, 1.0)):
        widget = SpeculativeStepper(p, q, [max(range(len(q)), key=q.__getitem__)] * gamma, [0.625] * (gamma + 1))
        for seed in (None, *range(12), 999_999):
            widget.nearness, widget.seed = nearness, seed
            calls.append([on_page(widget).given, seed, nearness])
            result = widget.round
            rounds.append(result._asdict() | {"coins": [coin._asdict() for coin in result.coins]})
            told.append([widget.told(step) for step in range(widget.last + 1)])
            sums.append((widget.q.tolist(), widget.alpha, widget.expected, widget.remainder))
    found = in_page(SpeculativeStepper, "roundOf", calls)
    for mine, wanted in zip(found, rounds, strict=True):
        wanted["drafted"], wanted["tokens"] = [*wanted["drafted"]], [*wanted["tokens"]]
        assert mine == wanted
    words = [[f"token {i}" for i in range(len(given["p"]))] for given, _, _ in calls]
    assert in_page(SpeculativeStepper, "toldOf", list(zip(found, words, strict=True))) == told
    moved = in_page(SpeculativeStepper, "movedTowards", [[given["p"], given["q"], t] for given, _, t in calls])
    alphas = in_page(SpeculativeStepper, "overlapOf", [[c[0]["p"], q] for c, q in zip(calls, moved, strict=True)])
    gammas = [len(given["drafted"]) for given, _, _ in calls]
    means = in_page(SpeculativeStepper, "expectedTokens", [[a, g] for a, g in zip(alphas, gammas, strict=True)])
    rests = in_page(SpeculativeStepper, "remainderOf", [[given["p"], given["q"]] for given, _, _ in calls])
    for q, alpha, mean, rest, wanted in zip(moved, alphas, means, rests, sums, strict=True):
        assert q == wanted[0] and alpha == wanted[1]
        assert mean == pytest.approx(wanted[2], rel=1e-14)
        assert rest == (None if wanted[3] is None else wanted[3].tolist())


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
def test_a_painted_mask_is_measured_row_by_row(in_page, attention, keys):
    tokens = ["the", "cat", "the"]
    widget = MaskPainter(tokens, keys=keys, attention=attention)
    state, chance, calls, results = page_state(widget), np.random.default_rng(1), [], []
    sizes = (len(tokens), len(keys or tokens))
    drawn = chance.random((20, *sizes)) < 0.5
    for mask in [np.zeros(sizes, bool), np.ones(sizes, bool), np.eye(*sizes, dtype=bool), *drawn]:
        widget.mask = mask
        known = {"tokens": tokens, "keys": keys or tokens, **state["_alone"]}
        calls.append([on_page(widget).mask, state["_alone"]["rows"], known])
        results.append(on_page(widget).result)
    assert in_page(MaskPainter, "resultOf", calls) == results


def test_an_attention_that_looks_at_other_rows_is_not_put_together():
    def cleverer(q, k, v, mask):
        return tensors.attention(q, k, v, mask & mask[-1:])

    assert alone(MaskPainter(["a", "b", "c"], attention=cleverer))["rows"] is None
    assert alone(MaskPainter([str(i) for i in range(9)]))["rows"] is None, "too many to measure before"


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
def test_practice_is_judged_as_python_judges(in_page, kind):
    """Right answers, known slips and what follows from them; also an answer that nobody knows."""
    widget, calls, expected = Practice(kind), [], []
    for posed in alone(widget)["problems"][:3]:
        given = problem(kind, posed["number"])
        entries = [given.worked(), given.solution()]
        entries += [given.with_slip(step.name, slip) for step, slip in given.known_slips()]
        entries.append(given.worked() | {given.steps[-1].name: given.solution()[given.steps[-1].name] * 7 + 1})
        widget.number = posed["number"]
        for values in entries:
            widget.entries = ["; ".join(" ".join(map(repr, row)) for row in np.atleast_2d(values[step.name]).tolist())
                              for step in given.steps]  # fmt: skip
            calls.append([posed["steps"], widget.entries])
            expected.append({"judged": on_page(widget).judged, "summary": on_page(widget).summary})
        for kept in reversed(range(len(given.steps))):
            widget.entries = [*widget.entries[:kept], *[""] * (len(given.steps) - kept)]
            calls.append([posed["steps"], widget.entries])
            expected.append({"judged": on_page(widget).judged, "summary": on_page(widget).summary})
    assert in_page(Practice, "judgeSteps", calls) == expected


def test_entries_are_read_as_python_reads_them(in_page):
    texts = ["1/3", "2e9", "4*512**2", "−2", "1 2; 3 4", "[1, 2], [3, 4]", "12,345", "-2^2", "2^-1", "(1+2)*3/4", "",
             "1 2; 3", "x", "1/0", "1+", "0.5 .25", "2**3**2", "--1", ",", "[;]", "1e999", "-1e999"]  # fmt: skip

    def read(text):
        try:
            value = read_entry(text)
        except ValueError as error:
            return {"error": str(error)}
        return None if value is None else np.atleast_2d(value).tolist()

    assert in_page(Practice, "readEntry", [[text] for text in texts]) == [read(text) for text in texts]


def test_guesses_are_judged_and_summed_up_as_python_does(in_page):
    chance, kept = random.Random(2), []
    for place in range(40):
        name = f"g{place}"
        low, high, scale = chance.choice([(0, 1, "linear"), (-5, 20, "linear"), (1, 1e6, "log"), (1e-8, 1, "log")])
        some = lambda: low * (high / low) ** chance.random() if scale == "log" else chance.uniform(low, high)  # noqa: B023, E731
        kind = ("number", "choice", "curve")[place % 3]
        more = {
            "number": {"truth": (some(),)},
            "choice": {"truth": (1.0,), "choices": ("a", "b", "c")},
            "curve": {"truth": tuple(some() for _ in range(5)), "places": tuple("vwxyz")},
        }[kind]
        ends = {} if kind == "choice" else {"low": low, "high": high, "scale": scale}
        asked = Asked(1, name, "How?", kind, **more, **ends)
        near = chance.choice([1, 1, 1.001])
        guess = (float(chance.randrange(3)),) if kind == "choice" else tuple(
            min(high, truth * near) if near > 1 else some() for truth in asked.truth)  # fmt: skip
        kept.append(Kept(asked, guess, guess, 1, "2026-01-01"))
    plain = [{"asked": vars(each.asked), "first": each.first} for each in kept]
    found = in_page(Guesses, "judge", [[each["asked"], each["first"]] for each in plain])
    for mine, each in zip(found, kept, strict=True):
        verdict = judge(each.asked, each.first)
        assert (mine["told"], mine["lean"], mine["right"]) == (verdict.told, verdict.lean, verdict.right)
        assert mine["off"] == pytest.approx(verdict.off)
    groups = [slice(0, count) for count in (0, 1, 2, 3, 7, 20, 40)]
    assert in_page(Guesses, "summedUp", [[plain[group]] for group in groups]) == [summed_up(kept[g]) for g in groups]
    assert in_page(Guesses, "inALine", [[plain[group]] for group in groups]) == [in_a_line(kept[g]) for g in groups]
    numbers = [0, 0.25, -12.345, 12345.6, 4.1e9, 2.5e-7, 999999.5, 0.05]
    assert in_page(Guesses, "brief", [[number] for number in numbers]) == [brief(number) for number in numbers]


def test_masks_changes_are_what_the_leak_is_picked_from():
    def layer(x):
        return tensors.attention(x, x, x)[0]

    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    leak, changes = masks.future_leak(layer, x), masks.future_changes(layer, x)
    assert leak.amount == changes.triu(1).max() == changes[leak.i, leak.j]


def test_a_page_schedules_as_the_library_does(in_page):
    """Every cell with its reason, what each step uses, the sentences and the measures, over much that can be set."""
    rows = [("A", 0, 3, 6), ("B", 0, 9, 1), ("C", 2.5, 1, 9), ("D", 3, 7, 4), ("E", 30, 2, 2)]
    calls, walks, steps, summed, cells, told = [], [], [], [], [], []
    for size, rule in itertools.product((1, 2, 3), ("continuous", "static")):
        widget = ServingTimeline(requests=rows, block_size=size)
        given = alone(widget)["sets"]
        for budget, blocks, name in itertools.product((1, 3, 16), (4, 7, 16), given):
            with widget.hold_trait_notifications():
                widget.rule, widget.budget, widget.blocks, widget.arrivals = rule, budget, blocks, name
            walk = dict(on_page(widget).walk)
            calls.append([given[name], size, walk.pop("settings")])
            walks.append(walk)
            widget.step = half = widget.last // 2
            steps.append([walk, half, budget, blocks])
            summed.append({**widget.measures, "first": [*widget.measures["first"].values()]})
            for row in range(len(walk["requests"])) if half else ():
                cells.append([walk, half, row])
                told.append(widget.told(half, row))
    assert in_page(ServingTimeline, "scheduledRun", calls) == walks
    did = {cell[0] for walk in walks for step in walk["steps"] for cell in step["cells"]}
    assert did == {"", "prefill", "decode", "wait", "preempted", "finished", "refused"}
    assert in_page(ServingTimeline, "measuresOf", steps) == summed
    assert in_page(ServingTimeline, "toldOfCell", cells) == told


def test_a_page_hands_out_blocks_as_the_pool_does(in_page):
    """Tables, references, slots and what is said after calls at random, with copies and pools that are full."""
    chance, calls, wanted = random.Random(0), [], []
    for n_blocks, block_size in itertools.product((1, 3, 8), (1, 2, 4)):
        for _ in range(20):
            made, known = [], {}
            for _ in range(chance.randrange(40)):
                name, new = chance.sample("abc", 2)
                kinds = ["append", *(["free", "fork"][: 1 + (new not in known)] if name in known else [])]
                kind = chance.choice([*kinds, "append"])
                made.append([kind, name, new] if kind == "fork" else [kind, name])
                known = PageTable(n_blocks, block_size, made).tables
            widget = PageTable(n_blocks, block_size, made)
            calls.append([made, n_blocks, block_size])
            found = done(*calls[-1])
            wanted.append({"tables": widget.tables, "lengths": widget.lengths, "references": widget.references,
                           "slots": found.slots, "changed": found.changed, "told": widget.told})  # fmt: skip
    assert in_page(PageTable, "pagesOf", calls) == wanted
    said = " ".join(each["told"] for each in wanted)
    assert "copy on write" in said and "no block is free" in said and "stays" in said
