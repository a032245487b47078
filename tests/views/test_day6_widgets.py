"""The tile walker and the online-softmax stepper without a browser: their arithmetic, their bytes, what they refuse."""

import itertools
import json
import math
import re

import numpy as np
import pytest
import torch
from as_page import on_page

from course_utils.attention import masks, tensors, tiled, traffic
from course_utils.views import OnlineSoftmaxStepper, TileWalker

INF = math.inf
ROW = [0.5, 2.0, 1.0, -1.0, 3.0, 2.5, 0.0, 1.5]
CORNERS = [[1, 0], [0, 1], [-1, 0], [0, -1]] * 2
SIZES = [  # n, m, block_q, block_k, causal
    (16, 16, 4, 4, False),
    (16, 16, 4, 4, True),
    (7, 5, 3, 2, False),
    (5, 9, 2, 4, True),
    (9, 5, 2, 2, True),  # the first four queries see no key
    (6, 6, 1, 4, True),
    (6, 6, 32, 32, True),
    (1, 1, 1, 1, False),
]
sizes = pytest.mark.parametrize(("n", "m", "block_q", "block_k", "causal"), SIZES)


def walker(n=7, m=5, block_q=3, block_k=2, causal=False, **more):
    return TileWalker(n, m, 6, block_q, block_k, causal, **more)


def at_each_step(widget):
    for step in range(widget.last + 1):
        widget.step = step
        yield on_page(widget).walk["frames"][step] if isinstance(widget, TileWalker) else on_page(widget).frames[step]


def inputs(widget):
    return [torch.from_numpy(x) for x in widget.inputs]


class TestTileWalker:
    @sizes
    def test_the_walk_ends_in_attention(self, n, m, block_q, block_k, causal):
        widget = walker(n, m, block_q, block_k, causal)
        q, k, v = inputs(widget)
        mask = masks.causal(n, m) if causal else None
        output, _ = tensors.attention(q, k, v, mask=mask)
        lse = tiled.forward(q, k, v, causal)[1]
        sees_a_key = np.isfinite(lse.numpy())
        np.testing.assert_allclose(widget.output[sees_a_key], output.numpy()[sees_a_key], atol=1e-12)
        np.testing.assert_allclose(widget.lse, lse.numpy(), atol=1e-12)
        assert (widget.output[~sees_a_key] == 0).all()

    @sizes
    def test_the_bytes_are_those_that_the_meter_and_the_formula_count(self, n, m, block_q, block_k, causal):
        widget = walker(n, m, block_q, block_k, causal)
        memory = traffic.FastMemory(10**6)
        q, k, v = (x.float() for x in inputs(widget))
        traffic.metered_forward(q, k, v, memory, causal, block_q=block_q, block_k=block_k)
        moved = [widget.bytes for _ in at_each_step(widget)]
        assert moved[0] == {"read": 0, "written": 0}
        assert moved[-1] == {"read": memory.read, "written": memory.written}
        assert moved[-1] == traffic.tiled_traffic(n, m, 6, 6, block_q, block_k, 4, causal)
        assert widget.naive_bytes == traffic.naive_traffic(n, m, 6, 6, 4)
        for one, other in itertools.pairwise(moved):  # every step moves something, none takes back
            assert one["read"] <= other["read"] and one["written"] <= other["written"] and one != other

    def test_half_precision_halves_the_bytes(self):
        wide = walker(bytes_per_value=4)
        narrow = walker(bytes_per_value=2)
        wide.step = wide.last
        narrow.step = narrow.last
        assert wide.bytes == {name: 2 * count for name, count in narrow.bytes.items()}
        assert wide.naive_bytes["read"] == 2 * narrow.naive_bytes["read"]

    def test_a_full_tile_holds_the_footprint_and_the_other_steps_less(self):
        widget = walker(16, 16, 4, 2)
        footprint = traffic.footprint(4, 2, 6, 6, 4)
        for frame in at_each_step(widget):
            assert frame["held_bytes"] == footprint if frame["tile"] is not None else frame["held_bytes"] < footprint
        assert on_page(widget).walk["frames"][0]["held_bytes"] == 0
        assert on_page(widget).walk["frames"][2]["held"] == ["4×6", "2×6", "2×6", "4×2", "4×2", "4×2", "4×6"]
        assert on_page(widget).layout["parts"][4:6] == ["m, l", "new m, sum"]  # two numbers per query in each

    @sizes
    def test_every_tile_leaves_the_partial_result_of_the_keys_so_far(self, n, m, block_q, block_k, causal):
        widget = walker(n, m, block_q, block_k, causal)
        q, k, v = inputs(widget)
        mask = masks.causal(n, m) if causal else torch.ones(n, m, dtype=torch.bool)
        for frame in on_page(widget).walk["frames"]:
            if frame["tile"] is None:
                continue
            top, bottom, _, stop = on_page(widget).walk["tiles"][frame["tile"]]
            rows = slice(top, bottom)
            keys = slice(0, stop)
            expected = tiled.partial_attention(q[rows], k[keys], v[keys], mask[rows, keys])
            assert [int(row["query"]) for row in frame["rows"]] == list(range(top, bottom))
            for row, m_now, l_now, o_now in zip(frame["rows"], *expected, strict=True):
                assert as_number(row["m"][1]) == pytest.approx(m_now.item(), abs=6e-4)
                assert as_number(row["l"][1]) == pytest.approx(l_now.item(), abs=6e-4)
                np.testing.assert_allclose(row["o"], o_now.numpy(), atol=6e-5)

    def test_what_was_is_multiplied_by_the_factor_before_the_tile_is_added(self):
        widget = walker(16, 16, 4, 4)
        shrunk = 0
        for before, frame in itertools.pairwise(on_page(widget).walk["frames"]):
            if frame["tile"] is None:
                continue
            for old, row in zip(before["rows"], frame["rows"], strict=True):
                assert row["m"][0] == old["m"][1] and row["l"][0] == old["l"][1]
                factor = math.exp(as_number(row["m"][0]) - as_number(row["m"][1]))
                assert as_number(row["factor"]) == pytest.approx(factor, abs=2e-3)
                np.testing.assert_allclose(row["kept"], np.multiply(old["o"], factor), atol=1e-2)
                shrunk += 0 < factor < 0.9
                check_arithmetic(row["why"])
        assert shrunk > 5

    def test_the_last_step_of_a_block_divides_and_stores(self):
        widget = walker(8, 8, 4, 4)
        frames = on_page(widget).walk["frames"]
        stores = [step for step, frame in enumerate(frames) if frame["stored"] > frames[step - 1]["stored"]]
        assert [frames[step]["stored"] for step in stores] == [4, 8] and stores[-1] == widget.last
        for step, start in zip(stores, (0, 4), strict=True):
            np.testing.assert_allclose([r["o"] for r in frames[step]["rows"]], widget.output[start:][:4], atol=6e-5)
            assert "Divide o by l. Store 4 outputs" in frames[step]["message"]

    @sizes
    def test_tiles_skips_and_crosses_cover_every_score_once(self, n, m, block_q, block_k, causal):
        walk = on_page(walker(n, m, block_q, block_k, causal)).walk
        covered = np.zeros((n, m), int)
        may = np.zeros((n, m), bool)
        for top, bottom, first, end in walk["tiles"]:
            covered[top:bottom, first:end] += 1
            may[top:bottom, first:end] = True
        for top, bottom, first, end in walk["skipped"]:
            covered[top:bottom, first:end] += 1
        for row, first, end in walk["masked"]:
            assert may[row, first:end].all()
            may[row, first:end] = False
        assert (covered == 1).all()
        expected = masks.causal(n, m).numpy() if causal else np.ones((n, m), bool)
        np.testing.assert_array_equal(may, expected)

    def test_the_text_says_what_is_skipped_and_what_is_masked(self):
        causal = " ".join(frame["message"] for frame in on_page(walker(8, 8, 4, 4, True)).walk["frames"])
        assert "Keys 4 to 7, above the diagonal: skipped, never loaded." in causal
        assert causal.count("The diagonal runs through: 6 of them are masked.") == 2
        plain = " ".join(frame["message"] for frame in on_page(walker(8, 8, 4, 4)).walk["frames"])
        assert "skipped" not in plain and "diagonal" not in plain
        assert "Queries 0 to 3 may attend to no key" in on_page(walker(9, 5, 2, 2, True)).walk["frames"][0]["message"]

    def test_given_matrices_go_before_sizes(self):
        q, k, v = np.eye(3, 2), np.ones((4, 2)), np.arange(12.0).reshape(4, 3)
        for kind in (np.asarray, torch.tensor, lambda x: x.tolist()):
            widget = TileWalker(q=kind(q), k=kind(k), v=kind(v), block_q=2, block_k=3)
            np.testing.assert_allclose(widget.output, np.tile(v.mean(0), (3, 1)))
        widget.step = widget.last
        assert widget.bytes == traffic.tiled_traffic(3, 4, 2, 3, 2, 3, 4)

    def test_the_seed_draws_the_numbers(self):
        assert walker(seed=1).as_text() == walker(seed=1).as_text()
        assert (walker(seed=1).output != walker(seed=2).output).all()

    @pytest.mark.parametrize(("name", "value"), [("causal", True), ("block_q", 2), ("block_k", 5)])
    def test_a_new_setting_starts_a_new_walk_in_one_message(self, name, value, monkeypatch):
        widget = walker()
        sent = []
        widget.step = 4
        monkeypatch.setattr(widget, "_send", lambda message, buffers=None: sent.append(message))
        setattr(widget, name, value)
        assert widget.step == 0 and on_page(widget).walk["settings"][name] == value
        assert [{name, "step", "_walk"}] == [set(message["state"]) for message in sent]
        fresh = walker(**{name: value})
        assert on_page(fresh).walk == on_page(widget).walk
        widget.step = widget.last
        fresh.step = fresh.last
        assert widget.bytes == fresh.bytes

    def test_larger_blocks_of_queries_move_less_and_blocks_of_keys_change_nothing(self):
        totals = {}
        for block_q in (2, 4, 8):
            for block_k in (1, 4, 16):
                widget = walker(16, 16, block_q, block_k)
                widget.step = widget.last
                totals[block_q, block_k] = sum(widget.bytes.values())
        assert len({totals[2, block_k] for block_k in (1, 4, 16)}) == 1
        assert totals[2, 4] > totals[4, 4] > totals[8, 4]

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"n": 33}, ValueError, "n is 33: the walker shows up to 32"),
            ({"m": 40}, ValueError, "m is 40: the walker shows up to 32"),
            ({"d": 17}, ValueError, "d is 17: the walker shows up to 16"),
            ({"n": 0}, ValueError, "n is 0: it must be at least 1"),
            ({"n": 2.5}, TypeError, "n is 2.5: give a whole number"),
            ({"block_q": 0}, ValueError, "block_q is 0: it must be at least 1"),
            ({"block_k": 33}, ValueError, "block_k is 33: give 1 to 32 rows"),
            ({"causal": "yes"}, TypeError, "causal is str, not a bool"),
            ({"q": [[1.0]]}, ValueError, "k and v are missing: give q, k and v"),
            ({"q": [[1.0]], "k": [[1.0, 2.0]], "v": [[1.0]]}, ValueError, "same d_k"),
            ({"q": [[1.0]], "k": [[1.0]], "v": [[1.0]] * 2}, ValueError, "one value for each key"),
            ({"q": np.ones((33, 2)), "k": np.ones((3, 2)), "v": np.ones((3, 2))}, ValueError, "take a slice"),
            ({"q": [[math.nan]], "k": [[1.0]], "v": [[1.0]]}, ValueError, r"q\[0, 0\] is nan"),
        ],
    )
    def test_what_cannot_be_shown_is_reported(self, arguments, error, message):
        with pytest.raises(error, match=message):
            TileWalker(**arguments)

    @pytest.mark.parametrize(
        ("name", "value", "error", "message"),
        [
            ("step", 99, ValueError, "step is 99: give a number from 0 to 15"),
            ("step", -1, ValueError, "step is -1"),
            ("block_q", 0, ValueError, "block_q is 0"),
            ("block_k", "4", TypeError, "block_k is '4': give a whole number"),
            ("causal", 1, TypeError, "causal is int, not a bool"),
        ],
    )
    def test_what_is_set_has_to_fit(self, name, value, error, message):
        widget = walker()
        before = widget.as_text()
        with pytest.raises(error, match=message):
            setattr(widget, name, value)
        assert widget.as_text() == before

    def test_the_text_is_the_map_the_rows_and_the_bytes(self):
        widget = TileWalker(
            q=[[0.0], [0], [0]], k=[[0.0], [0], [0]], v=[[1.0], [2], [3]], block_q=2, block_k=2, causal=True
        )
        widget.step = 5
        assert widget.as_text().splitlines() == [
            "attention in tiles: 3 queries × 3 keys, causal, d = 1, blocks of 2 queries and 2 keys",
            "step 5 of 7: Load K and V block 0 (keys 0 to 1): 16 bytes. Scores 1×2. There was nothing to keep: the "
            "factor e^(−∞ − m) is 0.",
            "tiles: # done, @ now, . to come, x skipped",
            "#xx",
            "##x",
            "@@.",
            "query   m  new m  factor      l  new l",
            "    2  −∞  0.000   0.000  0.000  2.000",
            "moved so far:   44 loaded + 16 stored = 60 bytes",
            "tiled in all:   52 loaded + 24 stored = 76 bytes",
            "naive at least: 108 loaded + 84 stored = 192 bytes",
        ]


class TestOnlineSoftmaxStepper:
    @pytest.mark.parametrize("block", [1, 3, 8, 20])
    def test_every_step_is_the_softmax_of_the_keys_so_far(self, block):
        widget = OnlineSoftmaxStepper(ROW, CORNERS, block=block)
        assert widget.last == math.ceil(8 / block) and on_page(widget).frames[-1]["stop"] == 8
        for step, _ in enumerate(at_each_step(widget)):
            scores = np.array(ROW[: step * block])
            if step == 0:
                assert (widget.m, widget.l, widget.o.tolist()) == (-INF, 0, [0, 0])
                continue
            powers = np.exp(scores - scores.max())
            assert widget.m == scores.max() and widget.l == pytest.approx(powers.sum(), abs=1e-12)
            np.testing.assert_allclose(widget.o, powers @ np.array(CORNERS)[: len(scores)], atol=1e-12)

    def test_another_order_of_the_keys_ends_with_the_same_m_l_and_o(self):
        widget = OnlineSoftmaxStepper(ROW, CORNERS)
        widget.step = widget.last
        ended = (widget.m, widget.l, widget.o.tolist())
        first_row = on_page(widget).frames[1]
        widget.order = list(range(len(ROW)))[::-1]
        assert [key["index"] for key in on_page(widget).keys] == widget.order
        assert on_page(widget).frames[1] != first_row and widget.step == widget.last
        assert widget.m == ended[0] and widget.l == pytest.approx(ended[1]) and widget.o == pytest.approx(ended[2])
        assert widget.as_text().splitlines()[3].split()[:3] == ["key", str(len(ROW) - 1), f"{ROW[-1]:.3f}"]

    @pytest.mark.parametrize("order", [[0, 1], [0] * 8, [1, 2, 3, 4, 5, 6, 7, 8], "01234567"])
    def test_an_order_that_leaves_keys_out_is_refused(self, order):
        with pytest.raises((ValueError, TypeError)):
            OnlineSoftmaxStepper(ROW, CORNERS).order = order

    def test_the_end_compares_with_softmax(self):
        lines = OnlineSoftmaxStepper(ROW, CORNERS).as_text().splitlines()
        expected = np.exp(ROW) @ np.array(CORNERS) / np.exp(ROW).sum()
        numbers = "({:.3f}, {:.3f})".format(*expected)
        m, l = max(ROW), np.exp(np.array(ROW) - max(ROW)).sum()
        lse = f"m + log l = {np.log(np.exp(ROW).sum()):.3f}, the log-sum-exp of the scores, in any order"
        assert lines[-3] == f"m = {m:.3f}, l = {l:.3f}; {lse}"
        assert lines[-2:] == [f"o / l                    = {numbers}", f"softmax(scores) · values = {numbers}"]

    def test_the_two_sides_of_the_comparison_come_from_different_code(self, monkeypatch):
        wrong = lambda row: torch.full_like(row, 1 / 8)  # noqa: E731
        monkeypatch.setattr("course_utils.views.widgets.online_softmax.softmax", wrong)
        lines = OnlineSoftmaxStepper(ROW, CORNERS).as_text().splitlines()
        assert lines[-2].split("=")[1] != lines[-1].split("=")[1] == " (0.000, 0.000)"

    def test_without_values_the_weights_are_compared(self):
        widget = OnlineSoftmaxStepper([1.0, -INF, 2.0])
        assert widget.o is None and on_page(widget).columns == ["m", "e^(m_old − m_new)", "l"]
        assert widget.as_text().splitlines()[-2:] == [
            "e^(score − m) / l = (0.269, 0.000, 0.731)",
            "softmax(scores)   = (0.269, 0.000, 0.731)",
        ]

    def test_the_factor_is_below_one_where_a_new_maximum_arrives_and_only_there(self):
        frames = on_page(OnlineSoftmaxStepper(ROW, CORNERS)).frames
        factors = [as_number(frame["cells"][1]) for frame in frames[1:]]
        assert factors == [0, 0.223, 1, 1, 0.368, 1, 1, 1]
        first = on_page(OnlineSoftmaxStepper(sorted(ROW, reverse=True), CORNERS)).frames
        assert [frame["cells"][1] for frame in first[2:]] == ["1.000"] * 7

    def test_masked_keys_change_nothing_and_make_no_nan(self):
        widget = OnlineSoftmaxStepper([-INF, -INF, 1.0, -INF, 2.0], [5, 5, 1, 5, 2])
        cells = [frame["cells"] for frame in on_page(widget).frames]
        assert cells[1] == cells[2] == ["−∞", "0.000", "0.000", "0.000"]
        assert cells[3] == ["1.000", "0.000", "1.000", "1.000"]
        assert cells[4] == ["1.000", "1.000", "1.000", "1.000"]
        assert "Masked" in on_page(widget).frames[2]["message"]
        assert "nan" not in json.dumps([on_page(widget).frames, on_page(widget).ends], ensure_ascii=False).replace(
            "not a number", ""
        )

    def test_with_every_key_masked_the_output_is_zero(self):
        lines = OnlineSoftmaxStepper([-INF, -INF], [[1, 2], [3, 4]]).as_text().splitlines()
        assert lines[-3].startswith("Every key is masked: l is 0")
        assert [line.split("= ")[1] for line in lines[-2:]] == ["(0.000, 0.000)"] * 2

    @pytest.mark.parametrize("block", [1, 2])
    def test_every_number_tells_arithmetic_that_holds(self, block):
        scores = [*ROW, -INF, 0.25]
        values = [*CORNERS, [3, -4], [0.5, 1]]
        frames = on_page(OnlineSoftmaxStepper(scores, values, block=block)).frames
        for frame in frames[1:]:
            assert len(frame["why"]) == len(frame["cells"])
            for cell, (_, sums, _) in zip(frame["cells"], frame["why"], strict=True):
                assert sums.split("= ")[1] == cell
            check_arithmetic([sums for _, sums, _ in frame["why"]])

    def test_the_bars_are_the_powers_and_shrink_when_m_grows(self):
        frames = on_page(OnlineSoftmaxStepper([0.0, 1.0, 0.5])).frames
        assert frames[1]["bars"] == [1.0] and frames[2]["bars"] == [0.3679, 1.0]
        assert frames[3]["bars"] == [0.3679, 1.0, 0.6065]

    @pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
    def test_lists_arrays_and_tensors_are_the_same(self, kind):
        widget = OnlineSoftmaxStepper(kind(ROW), kind(CORNERS))
        assert widget.as_text() == OnlineSoftmaxStepper(ROW, CORNERS).as_text()

    def test_a_row_of_values_is_a_column(self):
        widget = OnlineSoftmaxStepper([0, 0], [1, 3])
        assert on_page(widget).columns[-1] == "o" and widget.as_text().endswith("softmax(scores) · values = (2.000)")

    def test_small_factors_are_not_called_zero(self):
        cells = on_page(OnlineSoftmaxStepper([0, 10])).frames[2]["cells"]
        assert cells[1] == "4.54e−5"

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"scores": []}, ValueError, r"scores has shape \(0,\): give one row of 1 to 32 numbers"),
            ({"scores": [0] * 33}, ValueError, "1 to 32"),
            ({"scores": [[1, 2]]}, ValueError, "give one row"),
            ({"scores": ["a"]}, ValueError, "give a list of numbers"),
            ({"scores": [0, math.nan]}, ValueError, r"scores\[1\] is nan: give finite numbers, or −inf"),
            ({"scores": [INF]}, ValueError, r"scores\[0\] is inf"),
            ({"scores": [1, 2], "values": [[1]]}, ValueError, "there are 2 scores: one row each"),
            ({"scores": [1], "values": [[1] * 9]}, ValueError, "up to 8 columns"),
            ({"scores": [1], "values": [[INF]]}, ValueError, "has to be finite"),
            ({"scores": [1], "values": []}, ValueError, "values"),
            ({"scores": [1, 2], "labels": ["a"]}, ValueError, "there are 1 labels but 2 scores: one each"),
            ({"scores": [1, 2], "labels": "ab"}, ValueError, "labels is one string"),
            ({"scores": [1], "block": 0}, ValueError, "block is 0"),
            ({"scores": [1], "block": 1.5}, TypeError, "give a whole number"),
        ],
    )
    def test_what_cannot_be_shown_is_reported(self, arguments, error, message):
        with pytest.raises(error, match=message):
            OnlineSoftmaxStepper(**arguments)

    def test_a_step_has_to_exist(self):
        widget = OnlineSoftmaxStepper(ROW, block=3)
        with pytest.raises(ValueError, match="step is 4: give a number from 0 to 3"):
            widget.step = 4
        assert widget.step == 0


@pytest.mark.parametrize(
    "make", [lambda: walker(8, 8, 4, 4, True), lambda: OnlineSoftmaxStepper(ROW, CORNERS)], ids=["walker", "online"]
)
class TestBoth:
    def test_the_picture_and_its_words_follow_the_step(self, make):
        widget = make()
        widget.step = 1
        early = widget._repr_mimebundle_()[0]
        widget.step = widget.last
        late = widget._repr_mimebundle_()[0]
        assert early["image/png"] != late["image/png"] and early["text/plain"] != late["text/plain"]

    def test_what_travels_is_plain_json(self, make):
        widget = make()
        state = {name: value for name, value in widget.get_state().items() if name.startswith("_") and name != "_css"}
        text = json.dumps({name: state[name] for name in state if name in ("_walk", "_frames", "_ends", "_layout")})
        assert "NaN" not in text and "Infinity" not in text


def test_before_the_first_step_the_walker_pictures_the_middle():
    widget = walker(8, 8, 4, 4)
    assert "at step 7 of 8" in widget.alt() and "l and o shrink" in widget.alt()
    widget.step = 2
    assert "at step 2 of 8" in widget.alt()


def as_number(text):
    return float(text.replace("−", "-").replace("∞", "inf"))


def check_arithmetic(lines):
    """Both sides of the last = of each line are equal, but for the rounding of what is shown."""
    for line in lines:
        if "not a number" in line or "=" not in line:
            continue
        sums, text = line.split("=", 1)[-1].rsplit("=", 1) if line.count("=") > 1 else line.rsplit("=", 1)
        plain = sums.replace("−", "-").replace("∞", "math.inf").replace("·", "*").replace("^", "**").replace("×", "*")
        plain = re.sub(r"\be\*\*", "math.e**", plain)
        assert eval(plain, {"math": math, "max": max}) == pytest.approx(as_number(text), abs=6e-3), line
