"""The drawings of day 6 show what they are given, and what the records of a GPU say."""

import ast
from pathlib import Path

import pytest
from drawing_rules import is_whole
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from course_utils.attention import tiled
from course_utils.costs import records, roofline
from course_utils.days.day6 import figures as figures
from course_utils.models import long_text
from course_utils.views import palette
from course_utils.views.picture import png

ROOT = Path(__file__).parents[2]
LINES = {"naive": ([512, 2048], [1e6, 16e6]), "tiled": ([512, 2048], [1e5, 4e5])}
PANELS = {
    "full": {"naive": ([1024, 2048], [10.0, 12.0]), "ours": ([1024, 2048, 4096], [300.0, 400.0, 450.0])},
    "causal": {"ours": ([1024, 2048, 4096], [200.0, 300.0, 700.0])},
}
CARD = roofline.MACHINES["NVIDIA H100 SXM"]
NEW = ["two memories", "forward and back"]
CEILINGS = {"matrix product": 780, "no overlap": {"full": 500, "causal": 600}}


def causal_visits(T, block_q, block_k):
    return [
        (queries, *visit)
        for queries in tiled.query_blocks(T, T, block_q, True)
        for visit in tiled.key_blocks(queries, T, T, block_k, True)
    ]


def drawn(name):
    drawings = {
        "growth": lambda: figures.growth(
            LINES, "tokens T", "bytes", {"tiled": LINES["tiled"]}, (141e9, "memory of a card")
        ),
        "curves": lambda: figures.curves(PANELS, "TFLOP/s", CEILINGS),
        "four": lambda: figures.curves(dict.fromkeys("abcd", PANELS["full"]), "TFLOP/s", {"matrix product": 780}),
        "tricks": lambda: figures.tricks(records.recorded("tricks-gpu")[0]),
        "bandwidth": lambda: figures.bandwidth(records.recorded("decoding-gpu")[0]),
        "long text": lambda: figures.growth(long_text.lines(), "tokens T", "bytes, one layer"),
        "tiles": lambda: figures.tile_map(16, 16, causal_visits(16, 4, 4)),
        "gpu": lambda: figures.gpu(CARD),
        "two memories": lambda: figures.two_memories(CARD),
        "forward and back": lambda: figures.forward_and_back(records.recorded("attention-gpu")[0], 8192, 128),
    }
    return drawings[name]()


def gpu_record():
    """Rows as benchmarks/gpu/attention.py writes them."""
    rows = [
        {"measured": "time", "direction": direction, "d": d, "causal": causal, "T": T, "implementation": name}
        | {"tflops": d + T / 1000 + (direction == "both")}
        for direction in ("forward", "both")
        for d in (64, 128)
        for causal in (False, True)
        for T in (1024, 2048)
        for name in ("ours", "flash", "naive")
        if name != "naive" or T < 2048
    ]
    rows.append({"measured": "memory", "d": 64, "T": 1024, "implementation": "ours", "peak_bytes": 7})
    return {"rows": rows}


# --- drawings -------------------------------------------------------------------------------------------------------


def test_growth_draws_every_line_its_points_and_the_level():
    (ax,) = figures.growth(LINES, "tokens T", "bytes", {"tiled": ([512], [9e4])}, (1e7, "memory")).axes
    drawn_lines = {line.get_label(): line for line in ax.lines}
    for name, (x, y) in LINES.items():
        assert drawn_lines[name].get_xdata().tolist() == x
        assert drawn_lines[name].get_ydata().tolist() == y
    (points,) = [line for line in ax.lines if line.get_linestyle() == "None"]
    assert points.get_ydata().tolist() == [9e4]
    assert points.get_color() == drawn_lines["tiled"].get_color()
    assert set(drawn_lines["memory"].get_ydata()) == {1e7}
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_points_of_no_line_and_too_many_lines_are_refused():
    with pytest.raises(ValueError, match="points has libary, but no line of that name"):
        figures.growth(LINES, "x", "y", {"libary": ([1], [1])})
    with pytest.raises(ValueError, match="8 lines are given: there are 7"):
        figures.growth({str(i): ([1, 2], [1, 2]) for i in range(8)}, "x", "y")
    with pytest.raises(ValueError, match="5 names without a colour are given: there are 4"):
        figures.growth({str(i): ([1, 2], [1, 2]) for i in range(5)}, "x", "y")
    with pytest.raises(ValueError, match="4 levels are given: there are 3"):
        figures.curves(PANELS, "y", dict.fromkeys("abcd", 1))


def test_every_panel_shows_its_lines_over_axes_that_hold_all_of_them():
    full, causal = figures.curves(PANELS, "TFLOP/s", CEILINGS).axes
    for ax, (title, lines) in zip((full, causal), PANELS.items(), strict=True):
        assert ax.get_title(loc="left") == title
        drawn = {line.get_label(): line for line in ax.lines}
        for name, (lengths, amounts) in lines.items():
            assert drawn[name].get_xdata().tolist() == lengths
            assert drawn[name].get_ydata().tolist() == amounts
        low, high = ax.get_ylim()
        assert low == 0
        assert high > 780  # the largest amount and level of either chart


def test_a_name_has_one_colour_in_all_panels():
    full, causal = figures.curves(PANELS, "TFLOP/s").axes
    ours = [next(line for line in ax.lines if line.get_label() == "ours") for ax in (full, causal)]
    assert ours[0].get_color() == ours[1].get_color()
    assert len({line.get_color() for line in full.lines}) == 2


def test_an_implementation_has_its_colour_whatever_stands_beside_it_and_none_has_that_of_keys():
    alone, pair = (figures.growth({name: LINES[name] for name in names}, "x", "y") for names in (["tiled"], LINES))
    assert alone.axes[0].lines[0].get_color() == pair.axes[0].lines[1].get_color()
    assert palette.KEY not in {colour for colour, *_ in figures.STYLES.values()}


def test_figures_say_in_words_what_they_draw():
    points = {"tiled": LINES["tiled"]}
    text = figures.growth(LINES, "tokens T", "bytes", points, (5e6, "memory of a card")).get_label()
    assert "naive from 1M at 512 to 16M at 2k." in text and "The counted marks lie on the lines." in text
    assert "naive pass memory of a card between 512 and 2k." in text and "tiled pass" not in text
    assert "marks" not in figures.growth(LINES, "x", "y", {"tiled": ([512], [9e4])}).get_label()
    assert "causal: ours from 200 at 1k to 700 at 4k." in figures.curves(PANELS, "TFLOP/s").get_label()
    text = figures.tile_map(16, 16, causal_visits(16, 4, 4)).get_label()
    assert "6 tiles are computed without a mask, 4 are computed and masked" in text


def test_the_picture_of_a_gpu_shows_the_sizes_of_the_card():
    fig = figures.gpu(CARD)
    words = " ".join(text.get_text() for text in fig.axes[0].texts)
    for word in ("SM", "tensor core", "registers", "warps", "shared memory", "L2", "HBM", "TMA", "thread block (CTA)"):
        assert word in words
    assert "3.35 TB/s" in words and "80 GiB" in words and "3.35 TB/s" in fig.get_label()
    small = [patch for patch in fig.axes[0].patches if isinstance(patch, Rectangle) and patch.get_width() == 15]
    assert len(small) == 132


def test_a_level_may_be_one_number_or_one_for_each_panel():
    for ax, overlap in zip(figures.curves(PANELS, "TFLOP/s", CEILINGS).axes, (500, 600), strict=True):
        heights = {line.get_label(): line.get_ydata()[0] for line in ax.lines}
        assert heights["matrix product"] == 780
        assert heights["no overlap"] == overlap


def test_each_visited_tile_is_coloured_and_the_masked_ones_are_lighter():
    visits = causal_visits(16, 4, 4)
    (ax,) = figures.tile_map(16, 16, visits).axes
    tiles = [patch for patch in ax.patches if isinstance(patch, Rectangle) and not patch.get_hatch()]
    assert len(tiles) == 10
    visited = {(patch.get_y(), patch.get_x()): to_hex(patch.get_facecolor()) for patch in tiles}
    light, dark = (to_hex(palette.colormap()(level)) for level in (0.28, 0.72))
    for queries, keys, masked in visits:
        assert visited[queries.start, keys.start] == (light if masked else dark)
    assert [colour for (i, j), colour in visited.items() if i == j] == [light] * 4
    assert ax.yaxis_inverted()


def test_ragged_tiles_are_as_large_as_their_slices():
    (ax,) = figures.tile_map(10, 10, causal_visits(10, 4, 3)).axes
    tiles = [patch for patch in ax.patches if not patch.get_hatch()]
    area = sum(patch.get_width() * patch.get_height() for patch in tiles)
    assert area == sum((q.stop - q.start) * (k.stop - k.start) for q, k, _ in causal_visits(10, 4, 3))


@pytest.mark.parametrize(
    ("number", "words"), [(512, "512"), (1024, "1k"), (131072, "128k"), (128_000, "128k"), (1500, "1,500")]
)
def test_lengths_are_written_as_people_say_them(number, words):
    assert figures.in_words(number) == words


@pytest.mark.parametrize("name", ["growth", "curves", "four", "tricks", "bandwidth", "long text", "tiles", "gpu", *NEW])
def test_nothing_is_cut_off(name):
    assert is_whole(drawn(name))


@pytest.mark.parametrize("name", ["growth", "curves", "four", "tricks", "bandwidth", "long text", "tiles", "gpu", *NEW])
def test_no_label_lies_on_another(name):
    fig = drawn(name)
    fig.canvas.draw()
    boxes = [text.get_window_extent() for text in texts_of(fig) if text.get_text() and text.get_visible()]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def texts_of(fig):
    for ax in fig.axes:
        yield from (*ax.texts, ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels())
        yield from ax.get_legend().get_texts() if ax.get_legend() else ()
    for legend in fig.legends:
        yield from legend.get_texts()
    yield from fig.texts


@pytest.mark.thorough("every figure is drawn twice, to the same bytes")
@pytest.mark.parametrize("name", ["growth", "curves", "tricks", "tiles", "gpu"])
def test_a_figure_is_the_same_bytes_every_time(name):
    assert png(drawn(name)) == png(drawn(name))


# --- records --------------------------------------------------------------------------------------------------------


def test_a_gpu_record_makes_one_panel_for_each_head_size_and_mask():
    titles = {f"{d} {causal}": {"d": d, "causal": causal} for d in (64, 128) for causal in (False, True)}
    panels = figures.panels_of(gpu_record(), "tflops", titles, measured="time", direction="forward")
    assert list(panels) == ["64 False", "64 True", "128 False", "128 True"]
    assert panels["128 True"] == {
        "ours": ([1024, 2048], [129.024, 130.048]),
        "flash": ([1024, 2048], [129.024, 130.048]),
        "naive": ([1024], [129.024]),
    }


def test_a_panel_without_rows_is_left_out():
    titles = {"d 64": {"d": 64}, "d 256": {"d": 256}}
    assert list(figures.panels_of(gpu_record(), "peak_bytes", titles, measured="memory")) == ["d 64"]


def test_the_columns_that_the_lesson_reads_are_those_that_the_gpu_benchmark_writes():
    source = (ROOT / "benchmarks" / "gpu" / "attention.py").read_text(encoding="utf-8")
    words = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
    assert {"attention-gpu", "matmul_flops_per_second", "tflops", "direction", "forward"} <= words
    assert {"measured", "time", "error", "memory", "d", "causal", "T", "implementation"} <= words
    assert "'decoding-gpu'" in (ROOT / "benchmarks" / "gpu" / "decoding.py").read_text(encoding="utf-8")


def test_provenance_names_the_device_the_versions_and_the_day():
    text = figures.provenance(records.recorded("attention-cpu")[0])
    where = records.recorded("attention-cpu")[0]["environment"]
    assert text.startswith(where["device"])
    assert f"torch {where['torch']}" in text
    assert text.endswith(where["date"][:10])


def test_a_version_that_is_not_there_is_not_named():
    record = {"environment": {"device": "a chip", "torch": "2", "triton": None, "date": "2026-11-21T09:00:00+00:00"}}
    assert figures.provenance(record) == "a chip, torch 2, 2026-11-21"


def test_each_change_of_the_kernel_has_a_bar_for_both_widths_and_the_number_of_the_record():
    record = records.recorded("tricks-gpu")[0]
    times = figures.times_as_long(record)
    assert list(times) == list(dict.fromkeys(figures.CHANGES.values())) and all(
        set(of) == {64, 128} for of in times.values()
    )
    slower = {(row["d"], row["variant"]): row["slower"] for row in record["rows"] if row["causal"]}
    assert times["powers of e"][64] == slower[64, "exp instead of exp2 with the scale folded in"]
    assert times["one more tile loaded ahead"] == {
        64: slower[64, "128 × 64, 8 warps, 4 stages"],
        128: slower[128, "128 × 64, 8 warps, 3 stages"],
    }
    ax, *_ = figures.tricks(record).axes
    assert sorted(bar.get_width() for bar in ax.patches) == sorted(
        time for of in times.values() for time in of.values()
    )


def test_the_bandwidth_of_decoding_is_that_of_the_record():
    record = records.recorded("decoding-gpu")[0]
    one, many = figures.bandwidth(record).axes
    split, unsplit, *_ = one.lines
    shares = [row["of_copy"] for row in record["rows"]
              if row["measured"] == "time" and row["implementation"] == "unsplit" and row["B"] == 1]  # fmt: skip
    assert unsplit.get_ydata().tolist() == [100 * share for share in shares]
    assert max(unsplit.get_ydata()) < 14 < 88 < max(split.get_ydata())
    assert 103 < max(many.lines[0].get_ydata()) < 104


def test_errors_are_those_of_one_row_of_the_record():
    record = records.recorded("attention-gpu")[0]
    of_naive, ours = figures.errors_of(record, ("naive", "ours"))
    assert of_naive > 2 * ours > 0


def test_captions_say_the_slope_the_gap_and_the_share_that_are_drawn():
    lines = {"naive": ([1024, 2048, 8192], [1, 4, 64]), "tiled": ([1024, 2048], [1, 2])}
    assert "4.0 times as much (naive) and 2.0 times as much (tiled)" in figures.growth(lines, "T", "y").get_gid()
    text = figures.curves({"full": lines}, "y").get_gid()  # at 2048, which both have
    assert text.endswith("stands at 2.0 times the lowest (full: naive over tiled).")
    assert drawn("tiles").get_gid() == (
        "62% of the square is computed, and of 10 tiles only the 4 on the edge need a mask."
    )
