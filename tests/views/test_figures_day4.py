"""The drawings of day 4 show the numbers that they are given, and put each mark where it belongs."""

import numpy as np
import pytest
from drawing_rules import is_whole
from matplotlib.colors import to_hex
from matplotlib.text import Annotation

from course_utils.costs.configurations import model
from course_utils.days.day4 import figures as figures
from course_utils.views import palette
from course_utils.views.picture import png

NUMBERED = 10 * np.arange(3)[:, None] + np.arange(4)
WRONG = NUMBERED.reshape(2, 3, 2)
LENGTHS = [1024, 4096, 16384, 131072]
FLOPS = {"core": [t * t for t in LENGTHS], "feed-forward": [4096 * t for t in LENGTHS]}
STEPS = [0, 20, 40, 60]
LOSSES = {"in training": [3.6, 3.0, 1.2, 0.8], "second copy": [3.6, 3.3, 0.8, 0.1]}
SCORES = {"induction": [0.0, 0.1, 0.7, 0.9], "previous token": [0.1, 0.1, 0.8, 0.95]}
LOOKS = {"layer 0, head 1": [0.1, 0.9, 0.0], "layer 1, head 0": [1.0, 0.0, 0.0]}
MARGINS = {"whole model": 2.3, "without head (1, 0)": 2.31, "without head (0, 1)": 1.6}
SCORES_OF_HEADS = np.array([[0.1, 0.0], [0.2, 0.7], [0.8, 0.05]])  # three layers of two heads
TABLES = {"score": [[0.9, 0.0, 0.25], [0.1, 0.2, 0.3]], "rise": [[-0.02, 0.4, 3.58], [-0.001, 0.0, 0.1]]}


DRAWINGS = {
    "numbered": lambda: figures.numbered_grids(
        {"x": {"a row is a token": NUMBERED}, "view alone": {"head 0": WRONG[0], "head 1": WRONG[1]}}
    ),
    "sharing": lambda: figures.sharing(8, {"multi-head": 8, "grouped-query": 2, "multi-query": 1}),
    "block": lambda: figures.decoder_block(model("Qwen3 0.6B"), qk_norm=True, rope=True),
    "crossover": lambda: figures.crossover_lines(LENGTHS, FLOPS, {"feed-forward": 4096}),
    "looks": lambda: figures.looks_of_a_word(["The", "parcel", "arrived"], LOOKS),
    "turned": lambda: figures.turned_pairs((1.0, 0.0), (0.7, 0.7), 0.6, [(2, 0), (5, 3)]),
    "clocks": lambda: figures.clock_hands([1.0, 0.1, 0.01], (0, 1, 2, 3, 4)),
    "heads": lambda: figures.heads_of_a_model(SCORES_OF_HEADS, [(2, 0), (1, 1)], "induction score"),
    "margins": lambda: figures.margins_without(MARGINS),
    "path": lambda: figures.induction_path([*"KDQAKDQ"], 4),
    "training": lambda: figures.training_curves(STEPS, LOSSES, SCORES, 3.47, "blind guessing"),
    "tables": lambda: figures.head_tables(TABLES),
}


def drawn(name):
    return DRAWINGS[name]()


def words(ax):
    return [text.get_text() for text in ax.texts]


def filled(ax):
    """The colour of each square that is filled, by (column, row)."""
    squares = [patch for patch in ax.patches if patch.get_facecolor()[3]]
    return {tuple(map(int, patch.get_xy())): to_hex(patch.get_facecolor()) for patch in squares}


def test_every_numbered_entry_is_written_where_it_lies_in_the_colour_of_its_token():
    x, head_0, head_1 = drawn("numbered").axes
    for ax, grid in ((x, NUMBERED), (head_0, WRONG[0]), (head_1, WRONG[1])):
        assert words(ax) == [f"{number:02d}" for number in grid.ravel()]
        assert ax.yaxis_inverted()  # row 0 on top
        rows, columns = np.indices(grid.shape)
        places = [text.get_position()[0] for text in ax.texts]
        assert places == list(columns.ravel() + 0.5)
        colours = [filled(ax)[column, row] for row, column in zip(rows.ravel(), columns.ravel(), strict=True)]
        tokens = [palette.INDIGO, palette.OLIVE, palette.BROWN]
        assert colours == [tokens[number // 10].lower() for number in grid.ravel()]


def test_a_number_that_names_no_token_is_refused():
    with pytest.raises(ValueError, match="41 names token 4"):
        figures.numbered_grids({"x": {"": [[0, 41]]}})


def test_entries_are_equally_large_in_every_grid():
    fig = drawn("numbered")
    for ax, (rows, columns) in zip(fig.axes, ((3, 4), (3, 2), (3, 2)), strict=True):
        box = ax.get_window_extent()
        assert box.width * 96 / fig.dpi == pytest.approx(34 * columns)
        assert box.height * 96 / fig.dpi == pytest.approx(34 * rows)


@pytest.mark.parametrize(("place", "few"), [(0, 8), (1, 2), (2, 1)])
def test_a_line_leads_from_each_query_head_to_the_key_head_that_it_reads(place, few):
    ax = drawn("sharing").axes[place]
    places = {(text.get_position()[1], int(text.get_text())): text.get_position()[0] for text in ax.texts}
    assert len(places) == 8 + few
    assert len(ax.lines) == 8
    for head, line in enumerate(ax.lines):
        top, bottom = line.get_xdata()
        assert top == places[0.75, head]
        assert bottom == places[0.2, head // (8 // few)]


def test_the_shapes_of_a_block_are_those_of_its_model():
    (ax,) = drawn("block").axes
    shapes = [text for text in words(ax) if "T," in text]
    assert "q (16, T, 128)" in shapes and "k (8, T, 128)" in shapes and "v (8, T, 128)" in shapes
    assert shapes.count("(T, 2,048)") == 1  # merged: more than the 1,024 of a token
    assert shapes.count("(T, 1,024)") == 4 and shapes.count("(T, 3,072)") == 3  # of up, of gate, and their product
    with pytest.raises(ValueError, match="gpt-oss-120b has experts"):
        figures.decoder_block(model("gpt-oss-120b"))


def test_gate_stands_beside_up_and_only_queries_and_keys_are_normed_and_turned():
    (ax,) = drawn("block").axes
    at = {text.get_text(): text.get_position() for text in ax.texts}
    assert at["up"][1] == at["gate"][1] and at["up"][0] < at["×"][0] < at["gate"][0]  # neither behind the other
    assert at["up"][1] < at["SiLU"][1] < at["×"][1] < at["down"][1]
    assert words(ax).count("norm") == 2 and words(ax).count("RMSNorm") == 2 and words(ax).count("RoPE") == 2
    plain = figures.decoder_block(model("GPT-2 XL"))
    assert "activation" in words(plain.axes[0]) and not {"gate", "RoPE"} & set(words(plain.axes[0]))
    assert words(plain.axes[0]).count("norm") == 2 and "q and k are" not in plain.get_label()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("block", "q and k are normalised and turned by position; 16 heads"),
        ("block", "up and gate each widen it to (T, 3,072), gate goes through SiLU"),
        ("numbered", "head 0 has rows of token 0, 0, 1;"),
        ("sharing", "grouped-query: 2 key/value heads, each read by 4;"),
        ("block", "merged to (T, 2,048)"),
        ("crossover", "It meets the feed-forward at 4,096 tokens."),
        ("looks", "layer 0, head 1 gives 0.90 to parcel; layer 1, head 0 gives 1.00 to The."),
        ("turned", "The angle from the key to the query is 24° in every plane."),
        ("clocks", "pair 1 rotates by 5.7° per position"),
        ("heads", "are framed: (2, 0) 0.80, (1, 1) 0.70."),
        ("margins", "without head (0, 1) 1.60."),
        ("path", "so the guess is A."),
        ("training", "second copy from 3.60 to 0.10"),
        ("tables", "rise: layer 0 has −0.02; 0.40; 3.58"),
    ],
)
def test_what_a_figure_says_of_itself_is_what_it_draws(name, message):
    assert message in drawn(name).get_label()


def test_a_crossing_is_marked_on_the_core_at_its_length():
    (ax,) = drawn("crossover").axes
    *lines, mark = ax.lines
    for line, (name, counts) in zip(lines, FLOPS.items(), strict=True):
        assert line.get_label() == name
        assert list(line.get_ydata()) == counts
    assert mark.get_xdata()[0] == 4096
    assert mark.get_ydata()[0] == pytest.approx(4096**2)
    assert words(ax) == ["equal to the feed-forward at T = 4,096"]


def test_a_crossing_between_two_lengths_still_lies_on_the_core():
    (ax,) = figures.crossover_lines(LENGTHS, FLOPS, {"the rest": 3000}).axes
    assert ax.lines[-1].get_ydata()[0] == pytest.approx(3000**2)


def test_a_square_of_a_strip_says_its_weight_and_is_as_dark():
    (ax,) = drawn("looks").axes
    assert words(ax) == ["0.10", "0.90", "0.00", "1.00", "0.00", "0.00"]
    assert to_hex(ax.patches[3].get_facecolor()) == to_hex(palette.colormap()(255))
    assert ax.yaxis_inverted()


def test_turned_arrows_keep_their_lengths_and_the_angle_between_them():
    for ax in drawn("turned").axes:
        query, key = (np.array(text.xy) for text in ax.texts if isinstance(text, Annotation))
        assert np.hypot(*query) == pytest.approx(1) and np.hypot(*key) == pytest.approx(np.hypot(0.7, 0.7))
        assert query @ key == pytest.approx(0.7 * (np.cos(1.2) + np.sin(1.2)))


def test_clock_hands_turn_by_their_speed():
    (ax,) = drawn("clocks").axes
    assert len(ax.lines) == 15
    (x, end), (y, tip) = ax.lines[3].get_data()  # pair 0, place 3
    assert (x, y) == (3, 0) and np.arctan2(y - tip, end - x) == pytest.approx(3)


def test_frames_lie_around_the_best_heads():
    (ax,) = drawn("heads").axes
    assert [tuple(np.array(patch.get_xy()) + 0.5) for patch in ax.patches] == [(2, 0), (1, 1)]


def test_a_bar_is_as_long_as_its_margin():
    (ax,) = drawn("margins").axes
    assert [bar.get_width() for bar in ax.patches] == list(MARGINS.values())
    assert words(ax) == ["2.30", "2.31", "1.60"]


def test_layer_0_points_at_the_token_after_and_layer_1_from_there_to_the_one_that_asks():
    (ax,) = drawn("path").axes
    arrows = [text for text in ax.texts if isinstance(text, Annotation)]
    ends = [(arrow.xyann[0], arrow.xy[0]) for arrow in arrows]
    assert ends == [(2, 3), (3, 6)]  # the first Q to A, A to the last Q
    assert "layer 0: “before me came Q”" in words(ax)
    assert "layer 1: “who had Q before it?”" in words(ax)
    assert "so guess A" in words(ax)


def test_loss_and_score_are_drawn_over_the_same_steps_and_the_floor_is_dotted():
    above, below = drawn("training").axes
    *losses, floor = above.lines
    for lines, curves in ((losses, LOSSES), (below.lines, SCORES)):
        for line, (name, curve) in zip(lines, curves.items(), strict=True):
            assert line.get_label() == name
            assert list(line.get_xdata()) == STEPS
            assert list(line.get_ydata()) == curve
    assert set(floor.get_ydata()) == {3.47}
    assert floor.get_linestyle() == ":"
    assert above.get_xlim() == below.get_xlim() == (0, 60)
    assert below.get_ylim()[1] >= 1


def test_names_lie_beside_the_curves_not_on_them():
    fig = drawn("training")
    fig.canvas.draw()
    assert len(fig.texts) == sum(len(ax.lines) for ax in fig.axes)
    assert min(text.get_window_extent().x0 for text in fig.texts) >= fig.axes[0].get_window_extent().x1


def test_tables_have_layers_as_rows_and_write_no_minus_zero():
    score, rise = drawn("tables").axes
    assert words(score) == ["0.90", "0.00", "0.25", "0.10", "0.20", "0.30"]
    assert words(rise) == ["−0.02", "0.40", "3.58", "0.00", "0.00", "0.10"]
    assert [label.get_text() for label in rise.get_yticklabels()] == ["layer 0", "layer 1"]
    assert rise.yaxis_inverted()


def test_a_table_is_shaded_within_itself_and_what_is_not_positive_is_white():
    score, rise = (filled(ax) for ax in drawn("tables").axes)
    assert score[0, 0] == rise[2, 0]  # the largest of each
    assert rise[0, 0] == rise[1, 1] == to_hex(palette.colormap()(0))
    assert len({score[0, 0], score[2, 1], score[2, 0], score[1, 1], score[0, 1], score[1, 0]}) == 6


@pytest.mark.parametrize("name", DRAWINGS)
def test_nothing_is_cut_off(name):
    assert is_whole(drawn(name))


@pytest.mark.parametrize("name", DRAWINGS)
def test_no_label_lies_on_another(name):
    fig = drawn(name)
    fig.canvas.draw()
    texts = [*fig.texts]
    for ax in fig.axes:
        labels = [*ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label] if ax.axison else []
        texts += [*ax.texts, ax.title, ax._left_title, *labels]
    boxes = [text.get_window_extent() for text in texts if text.get_text() and text.get_visible()]
    assert len(boxes) > 3
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


@pytest.mark.thorough("every figure is drawn twice, to the same bytes")
@pytest.mark.parametrize("name", DRAWINGS)
def test_a_figure_is_the_same_bytes_every_time(name):
    assert png(drawn(name)) == png(drawn(name))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("numbered", "; view alone breaks this"),
        ("sharing", "8 tables of weights. Only the key/value heads become fewer: 8, 2 and 1."),
        ("heads", "The darker a square, the higher its induction score."),
        ("margins", "The shortest: without head (0, 1)."),
        ("training", "in training between steps 20 and 40 and second copy between steps 20 and 40"),
        ("tables", "score, 0.90 in layer 0, head 0; rise, 3.58 in layer 0, head 2"),
    ],
)
def test_captions_say_the_numbers_that_are_drawn(name, text):
    assert text in drawn(name).get_gid()


def test_the_caption_of_slopes_counts_leaks_and_blind_spots():
    text = figures.dependence_maps({"causal": np.tri(3), "blind": np.eye(3), "open": np.ones((3, 3))}).get_gid()
    leaks = "causal 0, blind 0, open 3."
    zeros = "causal 0, blind 3, open 0."
    assert f"Leaks, slopes above the diagonal: {leaks}" in text and text.endswith(f"zeros there: {zeros}")


def test_maps_of_slopes_share_one_colour_scale_and_say_so():
    faint, strong = figures.dependence_maps({"faint": np.eye(2), "strong": 4 * np.eye(2)}).axes
    colours = [{patch.get_facecolor() for patch in ax.patches} for ax in (faint, strong)]
    assert not colours[0] & colours[1] - {(0, 0, 0, 0)}
    fig = figures.dependence_maps({"faint": np.eye(2), "strong": 4 * np.eye(2)})
    assert "one colour scale: 0 to 4.00" in [text.get_text() for text in fig.texts]
