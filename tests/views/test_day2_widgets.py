"""The two widgets of day 2 without a browser: what they refuse, print, draw, send and claim."""

import itertools
import math

import numpy as np
import pytest
import torch
from as_page import on_page

from course_utils.attention import arrays, scaling
from course_utils.views import SaturationExplorer, TemperatureExplorer
from course_utils.views.widgets import saturation

SIZES = [2**power for power in range(1, 6)]
STEPS = [2**power for power in range(13)]
SCORES = [2, 1, 0.5, -1]
LABELS = ["the", "cat", "sat", "down"]


def temperature(**more):
    return TemperatureExplorer(SCORES, LABELS, **more)


class TestSaturation:
    def test_scores_are_dot_products_of_standard_normals_drawn_from_the_seed(self):
        rng = np.random.default_rng(7)
        q, k = rng.standard_normal(4096), rng.standard_normal((32, 4096))
        explorer = SaturationExplorer(d_k=512, n_keys=4, seed=7)
        np.testing.assert_allclose(explorer.scores, k[:4, :512] @ q[:512], rtol=1e-12, atol=1e-12)

    def test_the_scale_divides_by_the_root_of_d_k(self):
        raw, scaled = (SaturationExplorer(d_k=16, scaled=on) for on in (False, True))
        np.testing.assert_allclose(scaled.scores * 4, raw.scores)
        np.testing.assert_allclose(scaled.weights, arrays.softmax(raw.scores / 4))

    def test_what_is_read_cannot_spoil_the_next_draw(self):
        explorer = SaturationExplorer()
        before = explorer.weights
        explorer.scores[:] = 0
        np.testing.assert_array_equal(explorer.weights, before)

    @pytest.mark.parametrize("seed", [0, 7, 8, 12345, 999_999])
    def test_the_page_gets_the_scores_of_this_seed_for_every_d_k(self, seed):
        explorer = SaturationExplorer(n_keys=32)
        explorer.seed = seed
        table = sent(explorer)
        place = seed - on_page(explorer).draws["first"]
        for step in range(13):
            explorer.d_k = 2**step
            np.testing.assert_array_equal(table[place, step], explorer.scores)

    def test_the_page_gets_a_block_once(self):
        explorer = SaturationExplorer(seed=3)
        before = on_page(explorer).draws
        explorer.seed = 7
        assert on_page(explorer).draws is before
        explorer.seed = 8
        assert on_page(explorer).draws["first"] == 8

    @pytest.mark.parametrize("d_k", [1, 4, 64, 512])
    @pytest.mark.parametrize("keys", [2, 8, 32])
    @pytest.mark.parametrize("on", [0, 1], ids=["no scale", "scaled"])
    def test_stored_means_are_what_the_library_measures(self, d_k, keys, on):
        measured = scaling.saturation(d_k, keys, samples=2000, scale=None if on else 1.0, seed=5)
        stored = SaturationExplorer(d_k, keys).means["scaled" if on else "no scale"]
        for value, estimate in zip(stored, measured, strict=True):
            assert abs(value - estimate.value) < 4.5 * estimate.error + 0.001

    def test_stored_means_come_from_the_function_that_says_so(self):
        means, errors = saturation.measure_means(1000, seed=1)
        assert means.shape == errors.shape == stored_means().shape == (2, 5, 13, 3)
        assert (abs(means - stored_means()) < 5 * errors + 0.001).all()
        assert errors.min() > 0 and errors.max() < 0.03

    @pytest.mark.thorough("errors of the stored means shrink with the root of the samples")
    def test_an_error_shrinks_with_the_root_of_the_samples(self):
        (_, few), (_, many) = (saturation.measure_means(samples, seed=1) for samples in (8192, 4 * 8192))
        assert np.median(few / many) == pytest.approx(2, rel=0.05)

    def test_the_figures_of_the_lesson(self):
        """The syllabus has them for 8 keys; .87 and .18 at d_k = 64 are .8748 and .1776."""
        raw, scaled = stored_means()[:, SIZES.index(8)]
        at = {d_k: raw[STEPS.index(d_k)].round(2).tolist() for d_k in (4, 64, 512)}
        assert {d_k: row[0] for d_k, row in at.items()} == {4: 0.53, 64: 0.87, 512: 0.96}
        assert {d_k: row[2] for d_k, row in at.items()} == {4: 0.60, 64: 0.18, 512: 0.06}
        from_4 = scaled[STEPS.index(4) :]
        assert from_4[:, 0].min() > 0.34 and from_4[:, 0].max() < 0.3615
        assert abs(from_4[:, 2] - 0.77).max() < 0.006

    def test_means_are_those_of_the_table(self):
        explorer = SaturationExplorer(d_k=64, n_keys=8, scaled=True)
        assert list(explorer.means) == ["no scale", "scaled"]
        table = stored_means()[:, SIZES.index(8), STEPS.index(64)]
        for mean, (largest, entropy, trace) in zip(explorer.means.values(), table, strict=True):
            assert (mean.largest, mean.entropy, mean.trace) == (largest, entropy, trace)
        explorer.d_k = 4096
        assert explorer.means["no scale"].largest > 0.98 > 0.37 > explorer.means["scaled"].largest

    @pytest.mark.parametrize("d_k", [4, 4096])
    def test_the_numbers_over_the_bars_do_not_touch(self, d_k):
        fig = SaturationExplorer(d_k=d_k, n_keys=8, seed=5).figure()
        fig.canvas.draw()
        boxes = [label.get_window_extent() for label in fig.axes[0].texts]
        assert len(boxes) == 8
        assert all(left.x1 + 4 < right.x0 for left, right in itertools.pairwise(boxes))

    def test_the_text_is_the_table_on_the_page(self):
        lines = SaturationExplorer(d_k=512, n_keys=8, seed=0).as_text().splitlines()
        assert lines[0] == "saturation explorer: d_k = 512, 8 keys, scores not scaled, seed 0"
        assert lines[2].split() == ["this", "draw", "mean,", "no", "scale", "mean,", "scaled", "at", "most"]
        largest = SaturationExplorer(d_k=512, n_keys=8, seed=0).weights.max()
        assert lines[3].split() == ["largest", "weight", f"{largest:.2f}", "0.96", "0.36", "1.00"]
        assert lines[4].split()[-1] == f"{math.log(8):.2f}"
        assert len(lines) == 6 and lines[5].startswith("Means over")
        assert "scores divided by √d_k" in SaturationExplorer(scaled=True).as_text()

    def test_pictures_and_text_of_the_ends_of_both_sliders(self):
        for d_k in (1, 4096):
            for n_keys in (2, 32):
                explorer = SaturationExplorer(d_k=d_k, n_keys=n_keys, seed=2)
                assert f"d_k = {d_k}" in explorer.alt() and "-0.00" not in explorer.as_text()
                assert len(explorer.figure().axes) == 3

    def test_the_trace_is_reported_and_drawn_only_where_asked_for(self):
        plain = SaturationExplorer(512)
        traced = SaturationExplorer(512, trace=True)
        assert "trace" not in plain.as_text() + plain.alt()
        assert "trace of Jacobian" in traced.as_text() and "the trace of the Jacobian fall" in traced.alt()
        assert len(traced.figure().axes) == 4

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"d_k": 100}, ValueError, "d_k is 100: give a power of two from 1 to 4096; course_utils.*takes any d_k"),
            ({"d_k": 8192}, ValueError, "d_k is 8192"),
            ({"d_k": 0}, ValueError, "d_k is 0: it must be at least 1"),
            ({"d_k": 64.0}, TypeError, "d_k is 64.0: give a whole number"),
            ({"d_k": True}, TypeError, "d_k is True"),
            ({"n_keys": 1}, ValueError, "n_keys is 1: give a power of two from 2 to 32"),
            ({"n_keys": 64}, ValueError, "n_keys is 64"),
            ({"n_keys": "8"}, TypeError, "n_keys is '8'"),
            ({"seed": -1}, ValueError, "seed is -1: it must be at least 0"),
            ({"seed": 1_000_000}, ValueError, "seed is 1000000: give a whole number from 0 to 999999"),
            ({"scaled": "yes"}, Exception, "expected a boolean"),
        ],
    )
    def test_what_is_not_there_is_refused_at_once_and_later(self, change, error, message):
        with pytest.raises(error, match=message):
            SaturationExplorer(**change)
        explorer = SaturationExplorer()
        before = repr(explorer)
        with pytest.raises(error, match=message):
            setattr(explorer, *next(iter(change.items())))
        assert repr(explorer) == before

    def test_whole_numbers_of_numpy_are_whole_numbers(self):
        explorer = SaturationExplorer(d_k=np.int64(128), n_keys=np.int32(4))
        assert (type(explorer.d_k), explorer.d_k, explorer.n_keys) == (int, 128, 4)


class TestTemperature:
    @pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
    def test_lists_arrays_and_tensors_are_the_same(self, kind):
        assert TemperatureExplorer(kind(SCORES), LABELS).as_text() == temperature().as_text()

    def test_weights_are_the_softmax_of_scores_over_temperature(self):
        explorer = temperature(temperature=0.3)
        np.testing.assert_allclose(explorer.weights, arrays.softmax(np.array(SCORES) / 0.3))
        explorer.temperature = 16
        np.testing.assert_allclose(explorer.weights, arrays.softmax(np.array(SCORES) / 16))
        explorer.scores = torch.zeros(4)
        np.testing.assert_allclose(explorer.weights, 0.25)

    @pytest.mark.parametrize("least_or_most", [0.01, 100])
    def test_the_ends_of_all_ranges_give_finite_weights(self, least_or_most):
        explorer = TemperatureExplorer([1000, -1000, 0], temperature=least_or_most)
        assert np.isfinite(explorer.weights).all() and explorer.weights.sum() == pytest.approx(1)

    def test_the_text_is_the_table_on_the_page(self):
        lines = TemperatureExplorer([0, 0, -1e-9], temperature=5).as_text().splitlines()
        assert lines[0] == "softmax at temperature 5"
        assert lines[4].split() == ["key", "3", "0.00", "0.33"]
        assert lines[7].split() == ["entropy", "H", "(nats)", "1.10", "1.10", "1.10"]
        assert lines[8].split() == ["effective", "keys", "e^H", "3.00", "3.00", "3.00"]

    def test_the_picture_shows_low_plain_and_high_and_the_one_in_use(self):
        titles = [axes.get_title(loc="left") for axes in temperature(temperature=2).figure().axes]
        assert titles == [f"temperature {t}" for t in ("0.25", "1", "2", "4", "16")]
        assert len(temperature().figure().axes) == 4
        assert "at 2 “the” has most, 0.43" in temperature(temperature=2).alt()

    def test_each_d_k_has_a_button_for_its_root(self):
        assert on_page(TemperatureExplorer([1, 2])).jumps == []
        jumps = on_page(TemperatureExplorer([1, 2], d_ks=[16, np.int64(10_000)])).jumps
        assert jumps == [["1, no scale", 1], ["√16 = 4", 4], ["√10000 = 100", 100]]
        with pytest.raises(ValueError, match="d_k is 10001: give a whole number from 1 to 10000"):
            TemperatureExplorer([1, 2], d_ks=[10_001])
        with pytest.raises(ValueError, match="d_k is 0: it must be at least 1"):
            TemperatureExplorer([1, 2], d_ks=[0])

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([1],), r"scores has shape \(1,\): give one row of 2 to 12 numbers"),
            ((range(13),), r"scores has shape \(13,\)"),
            (([[1, 2]],), r"scores has shape \(1, 2\)"),
            (([1, [2]],), "give a list of numbers"),
            (("ab",), "scores is 'ab'"),
            (([1, float("nan")],), r"scores\[1\] is nan: every score has to be finite"),
            (([1, -2000],), r"scores\[1\] is -2000: give numbers from -1000 to 1000"),
            (([1, 2], ["a"]), "there are 1 labels but 2 scores: one each"),
            (([1, 2], "ab"), "labels is one string"),
            (([1, 2], None, 0), "temperature is 0: give a number from 0.01 to 100; at 0 softmax would divide by 0"),
            (([1, 2], None, 101), "temperature is 101: give a number from 0.01 to 100$"),
            (([1, 2], None, float("nan")), "temperature is nan"),
            (([1, 2], None, "hot"), "temperature is 'hot'"),
        ],
    )
    def test_what_does_not_fit_is_reported(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            TemperatureExplorer(*arguments)

    def test_what_is_set_later_is_checked_too(self):
        explorer = temperature()
        before = repr(explorer)
        for name, value, message in (
            ("temperature", -1, "temperature is -1"),
            ("scores", [1, 2], "scores holds 2 numbers but there are 4 keys"),
            ("scores", [1, 2, 3, math.inf], r"scores\[3\] is inf"),
        ):
            with pytest.raises(ValueError, match=message):
                setattr(explorer, name, value)
            assert repr(explorer) == before


def stored_means():
    """The means that the page has, without the scale and with it: (2, 5, 13, 3)."""
    return np.frombuffer(on_page(SaturationExplorer()).mean_table, "<f8").reshape(2, len(SIZES), len(STEPS), 3)


def sent(explorer):
    """The scores that the page has: (draws, 13, 32)."""
    return np.frombuffer(on_page(explorer).draws["scores"], "<f8").reshape(on_page(explorer).draws["count"], 13, 32)
