"""Figures and widgets without a browser: what they refuse, print, draw and explain."""

import base64
import functools
import importlib
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from as_page import on_page, send
from browser.alone_pages import ALONE
from in_node import in_node
from needs import NODE

from course_utils import views
from course_utils.views import AttentionHeatmap, AttentionStepper, Quiz, palette
from course_utils.views.picture import described, new_figure, picture
from course_utils.views.shared.base import CourseWidget
from course_utils.views.shared.number_text import number
from course_utils.views.static_page import static_page

WEIGHTS = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]
Q = K = [[1, 0], [0, 1], [1, 1]]
V = [[1, 0], [0, 1], [0, 0]]
TOKENS = ["a", "b", "c"]
ASKED = [
    {
        "question": "Over what does `softmax` run?",
        "choices": [
            {"text": "the keys", "right": True, "why": "Each row sums to 1."},
            {"text": "the queries", "right": False, "why": "Then the columns would."},
        ],
    }
]


def heatmap():
    return AttentionHeatmap(WEIGHTS, ["x", "y"], TOKENS)


def stepper(**more):
    return AttentionStepper.from_qkv(Q, K, V, TOKENS, **more)


def right_attention(q, k, v, mask=None):
    q, k, v = (np.asarray(matrix) for matrix in (q, k, v))
    scores = q @ k.T / np.sqrt(q.shape[1])
    if mask is not None:
        scores = np.where(np.asarray(mask, bool), scores, -np.inf)
    powers = np.exp(scores - scores.max(1, keepdims=True))
    weights = powers / powers.sum(1, keepdims=True)
    return weights @ v, weights


def softmax_over_queries(q, k, v):
    q, k, v = (np.asarray(matrix) for matrix in (q, k, v))
    powers = np.exp(q @ k.T / np.sqrt(q.shape[1]))
    weights = powers / powers.sum(0)
    return weights @ v, weights


def test_importing_views_loads_neither_matplotlib_nor_torch_nor_anywidget():
    code = (
        "import sys, course_utils.views; print([m for m in ('matplotlib', 'torch', 'anywidget') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_making_and_showing_widgets_leaves_pyplot_alone():
    code = (
        "import sys; from course_utils.views import AttentionHeatmap; "
        "AttentionHeatmap([[1.0]], ['a'])._repr_mimebundle_(); print('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_the_table_of_widgets_has_every_class_of_their_modules():
    classes = {}
    for path in (Path(views.__file__).parent / "widgets").glob("*.py"):
        module = importlib.import_module(f"course_utils.views.widgets.{path.stem}")
        own = [each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__]
        widgets = [each for each in own if isinstance(each, type) and issubclass(each, CourseWidget)]
        classes |= {each.__name__: path.stem for each in widgets}
    assert classes == views.WIDGETS


def test_every_widget_of_the_course_is_tried_here():
    assert sorted({name.partition(",")[0] for name in ALONE}) == views.__all__


def made(name):
    """The mimebundle and the page of a widget."""
    widget = ALONE[name].make()
    return widget._repr_mimebundle_(), static_page(widget, "T & <T>")


made_once = functools.cache(made)


def test_sizes_of_text_radii_and_colours_of_the_page_stand_in_widget_css_alone():
    own = re.compile(r"font-size: \d+px|border-radius: [2-9]px|var\(--jp-(content-font|layout|border)")
    files = {path.name: path.read_text(encoding="utf-8") for path in Path(views.__file__).parent.glob("*/*.css")}
    assert own.search(files.pop("widget.css"))
    rules = [f"{name}: {rule}" for name, text in files.items() for rule in text.split("}")]
    drawn = "-plot text"  # in units of a drawing, which is scaled
    assert [rule for rule in rules if own.search(rule) and drawn not in rule] == []


def test_the_css_of_every_widget_begins_with_the_shared_one():
    shared = (Path(views.__file__).parent / "shared/widget.css").read_text(encoding="utf-8")
    assert all(str(getattr(views, name)._css).startswith(shared) for name in views.__all__)


def test_a_page_holds_its_state_whatever_words_are_in_it():
    pages = [static_page(AttentionHeatmap(WEIGHTS, [name, "y"], TOKENS), "T") for name in ("CODE", "EDOC")]
    assert len({re.sub(r'base64,[^"]*', "", page).replace("EDOC", "CODE") for page in pages}) == 1


@pytest.mark.parametrize("name", ALONE)
class TestEveryWidget:
    @pytest.mark.thorough("every widget is made twice, with the same text, picture and page")
    def test_text_picture_and_page_are_the_same_on_every_run(self, name):
        ((first, _), page) = made_once(name)
        ((second, _), again) = made(name)
        assert page == again
        for mime in ("text/plain", "image/png"):
            assert first[mime] == second[mime]

    def test_text_and_picture_tell_what_it_shows(self, name):
        (bundle, observed), _ = made_once(name)
        assert "0x" not in bundle["text/plain"] and not re.search(r"[-−]0\.0+\b", bundle["text/plain"])
        assert set(bundle) == {"text/plain", "image/png", "application/vnd.jupyter.widget-view+json"}
        assert observed["image/png"]["alt"] and 100 < observed["image/png"]["width"] <= 960

    def test_the_picture_is_a_png_without_software_or_time(self, name):
        (bundle, _), _ = made_once(name)
        data = base64.b64decode(bundle["image/png"])
        assert data.startswith(b"\x89PNG")
        assert b"tEXt" not in data and b"tIME" not in data

    def test_its_page_needs_nothing_from_elsewhere(self, name):
        _, page = made_once(name)
        assert "<title>T &amp; &lt;T&gt;</title>" in page
        assert "http" not in page.replace("http://www.w3.org/2000/svg", "")  # the name of a namespace, never fetched

    def test_it_never_calls_remove_child(self, name):
        _, page = made_once(name)
        assert "removeChild" not in page  # browser/lab.py lets JupyterLab's own error of it pass


class TestHeatmap:
    @pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
    def test_lists_arrays_and_tensors_are_the_same(self, kind):
        assert AttentionHeatmap(kind(WEIGHTS), ["x", "y"], TOKENS).as_text() == heatmap().as_text()

    def test_the_text_is_the_matrix_with_labels(self):
        assert heatmap().as_text().splitlines() == [
            "attention weights: 2 queries (rows) × 3 keys (columns)",
            "         a     b     c",
            "   x  0.70  0.20  0.10",
            "   y  0.10  0.80  0.10",
        ]

    @pytest.mark.parametrize(
        ("weights", "queries", "keys", "message"),
        [
            (
                np.ones((3, 4)) / 4,
                TOKENS,
                None,
                r"weights is \(3, 4\) but there are 3 queries and 3 keys: one column per",
            ),
            (
                np.ones((2, 3)) / 3,
                TOKENS,
                None,
                r"weights is \(2, 3\) but there are 3 queries and 3 keys: one row per query",
            ),
            (
                np.ones((1, 3, 3)) / 3,
                TOKENS,
                None,
                "two dimensions are needed, rows and columns; pick one batch and head",
            ),
            ([0.5, 0.5], ["a"], None, r"weights has shape \(2,\): two dimensions"),
            ([[1, 0], [1]], ["a", "b"], None, "same number of numbers"),
            ([["a"]], ["a"], None, "not a matrix of numbers"),
            ([[float("nan")]], ["a"], None, r"weights\[0, 0\] is nan"),
            ([[2.0]], ["a"], None, "between 0 and 1. Are these scores"),
            (np.ones((0, 0)), [], None, "nothing to show"),
            ([[1.0]], "a", None, "queries is one string"),
            ([[1.0]], ["a"], 3, "keys is 3"),
        ],
    )
    def test_what_does_not_fit_is_reported(self, weights, queries, keys, message):
        with pytest.raises(ValueError, match=message):
            AttentionHeatmap(weights, queries, keys)

    def test_new_weights_must_fit_and_keep_the_pinned_row(self):
        widget = heatmap()
        widget.row = 1
        widget.weights = np.array(WEIGHTS)[::-1]
        assert widget.row == 1 and widget.weights[0, 1] == 0.8
        with pytest.raises(ValueError, match="one row per query"):
            widget.weights = np.ones((3, 3)) / 3

    def test_a_row_that_is_not_there_cannot_be_pinned(self):
        with pytest.raises(ValueError, match="row is 2 but there are 2 queries"):
            heatmap().row = 2

    def test_a_row_of_zeros_and_a_row_that_does_not_sum_to_one_are_named(self):
        captions = on_page(AttentionHeatmap([[0, 0], [0.5, 0.25]], TOKENS[:2])).frame["captions"]
        assert captions[0] == ["“a” attends to nothing: every weight is 0"]
        assert captions[1] == ["“b”: the weights sum to 0.75, not 1", "most to a 0.50, b 0.25"]

    def test_a_mask_draws_blocked_cells_as_blocked_and_not_as_zero(self):
        widget = AttentionHeatmap([[1, 0, 0], [0.25, 0.75, 0], [0.5, 0, 0.5]], TOKENS, mask=np.tri(3, dtype=bool))
        assert widget.as_text().splitlines()[2:] == [
            "   a  1.00     –     –",
            "   b  0.25  0.75     –",
            "   c  0.50  0.00  0.50",
            "– blocked: may not attend",
        ]
        assert on_page(widget).frame["marks"] == "wbbwwbwww"
        assert on_page(widget).frame["captions"][1] == [
            "“b”: the weights of the keys it may attend to sum to 1",
            "most to b 0.75, a 0.25",
        ]
        assert "3 queries by 3 keys, 3 of 9 cells blocked: a attends most to a (1.00)" in widget.alt()

    def test_without_a_mask_there_are_no_marks(self):
        assert on_page(heatmap()).frame["marks"] == "" and heatmap().mask is None and "blocked" not in heatmap().alt()

    def test_a_row_that_may_attend_to_nothing_says_so(self):
        widget = AttentionHeatmap([[0, 0], [0.5, 0.5]], TOKENS[:2], mask=[[0, 0], [1, 1]])
        assert on_page(widget).frame["captions"][0] == ["“a” may attend to nothing: every key is blocked"]
        assert "a may attend to nothing; b attends" in widget.alt()
        widget.weights = [[0.5, 0.5], [0.5, 0.5]]  # as a finite fill gives
        assert on_page(widget).frame["captions"][0] == [
            "“a” may attend to nothing: yet its weights sum to 1.00, a leak"
        ]

    def test_a_blocked_cell_with_a_weight_is_a_leak_everywhere(self):
        widget = AttentionHeatmap([[0.25, 0.75], [0.5, 0.5]], TOKENS[:2], mask=np.tri(2))
        assert on_page(widget).frame["marks"] == "wlww"
        assert on_page(widget).frame["captions"][0] == [
            "“a”: a leak, 0.75 of the weight is on blocked keys",
            "most to a 0.25",
        ]
        assert widget.as_text().splitlines()[2:] == [
            "    a   0.25  !0.75",
            "    b   0.50   0.50",
            "– blocked: may not attend",
            "! blocked, but has a weight: 1 cell",
        ]
        assert "a attends most to a (0.25)" in widget.alt() and widget.alt().endswith("A leak: 1 cell.")
        assert len(widget.figure().axes[0].patches) == 1

    def test_weights_that_were_zeroed_after_the_softmax_do_not_sum_to_one(self):
        widget = AttentionHeatmap([[0.25, 0], [0.5, 0.5]], TOKENS[:2], mask=np.tri(2))
        text = "“a”: the weights of the keys it may attend to sum to 0.25, not 1"
        assert on_page(widget).frame["captions"][0][0] == text

    def test_the_mask_can_be_set_and_taken_away_and_the_largest_keys_are_allowed_ones(self):
        widget = AttentionHeatmap(WEIGHTS, ["x", "y"], TOKENS)
        widget.mask = [[0, 1, 1], [1, 0, 1]]
        assert np.frombuffer(on_page(widget).frame["largest"], "<u2").reshape(2, 3)[:, 0].tolist() == [1, 0]
        widget.mask[:] = False
        assert widget.mask.sum() == 4
        widget.weights = np.array(WEIGHTS)[::-1]
        assert widget.mask.sum() == 4 and on_page(widget).frame["marks"] == "lwwwlw"
        widget.mask = None
        assert on_page(widget).frame["marks"] == "" and "blocked" not in widget.as_text()

    @pytest.mark.parametrize("size", [3, 60])
    def test_the_picture_with_a_mask_is_hatched_where_it_blocks(self, size):
        weights = np.tri(size) / np.arange(1, size + 1)[:, None]
        widget = AttentionHeatmap(weights, range(size), mask=np.tri(size))
        ax = widget.figure().axes[0]
        assert ax.patch.get_hatch()
        np.testing.assert_array_equal(np.ma.getmaskarray(ax.images[0].get_array()), np.tri(size) == 0)
        assert not AttentionHeatmap(weights, range(size)).figure().axes[0].patch.get_hatch()

    @pytest.mark.parametrize(
        ("mask", "message"),
        [
            (np.ones((3, 3)), r"mask is \(3, 3\) but there are 2 queries and 3 keys: one row per query"),
            (np.ones((2, 2)), "one column per key"),
            (np.full((2, 3), -1), "mask holds other numbers than 0 and 1: give booleans"),
        ],
    )
    def test_a_mask_that_does_not_fit_is_reported(self, mask, message):
        with pytest.raises(ValueError, match=message):
            AttentionHeatmap(WEIGHTS, ["x", "y"], TOKENS, mask=mask)
        with pytest.raises(ValueError, match=message):
            heatmap().mask = mask

    def test_labels_of_white_space_can_be_seen(self):
        assert on_page(AttentionHeatmap(np.eye(3), ["\n", " ", ""])).queries == ["⏎", "␣", "∅"]

    def test_a_table_up_to_400_cells_and_a_canvas_above(self):
        for n, canvas in ((20, False), (21, True)):
            assert on_page(AttentionHeatmap(np.eye(n), range(n))).layout["canvas"] is canvas


def arithmetic(widget, *cell):
    """The lines of arithmetic that the page tells of a cell, and the parts of other matrices that it comes from."""
    sent = on_page(widget)
    return in_node("stepper_in_node.mjs", "explained", [[sent.numbers, sent.labels, sent.theirs, cell]])[0]


def explained(widget, *cell):
    return arithmetic(widget, *cell)[0]


class TestStepper:
    @NODE
    def test_the_worked_example_by_arithmetic(self):
        widget = stepper()
        assert widget.stage_names == ["Q, K, V", "scores", "scaled", "weights", "output"]
        assert explained(widget, "scores", 2, 2)[1] == "1·1 + 1·1 = 2"
        assert explained(widget, "scaled", 0, 0)[1] == "1 / √2 = 1 / 1.4142 = 0.7071"
        assert explained(widget, "weights", 2, 2)[1].endswith("4.1133 / 8.1695 = 0.5035")
        assert explained(widget, "output", 0, 0)[1] == "0.4011·1 + 0.1978·0 + 0.4011·0 = 0.4011"

    @NODE
    def test_the_sources_of_a_score_are_a_row_of_q_and_a_column_of_k_transposed(self):
        assert arithmetic(stepper(), "scores", 2, 1)[1] == [["Q", "row", 2], ["Kᵀ", "column", 1]]

    @NODE
    def test_from_x_there_are_projections_and_with_a_mask_there_is_a_masked_stage(self):
        eye = np.eye(2)
        widget = AttentionStepper(torch.tensor(Q), eye, eye, eye, TOKENS, mask=np.tri(3, dtype=bool))
        assert widget.stage_names == ["X", "Q, K, V", "scores", "scaled", "masked", "weights", "output"]
        assert explained(widget, "Q", 2, 0)[1] == "1·1 + 1·0 = 1"
        assert widget._matrices["masked"]["text"][0] == ["0.7071", "−∞", "−∞"]

    @NODE
    def test_a_fully_masked_row_gives_zeros(self):
        widget = stepper(mask=[[0, 0, 0], [1, 1, 1], [1, 1, 1]])
        assert widget._matrices["weights"]["text"][0] == ["0", "0", "0"]
        assert widget._matrices["output"]["text"][0] == ["0", "0"]
        assert "every key is masked" in explained(widget, "weights", 0, 1)[2]

    @NODE
    def test_large_scores_are_shifted_and_nothing_overflows(self):
        widget = AttentionStepper.from_qkv([[1000.0]], [[1.0], [0.5]], [[1.0], [2.0]], ["a"], ["b", "c"])
        assert widget._matrices["weights"]["text"] == [["1", "0"]]
        assert "taken off first" in explained(widget, "weights", 0, 0)[2]

    @pytest.mark.parametrize("mask", [None, np.tri(3, dtype=bool)])
    def test_a_right_function_is_not_marked(self, mask):
        widget = stepper(attention=right_attention, mask=mask)
        assert not widget.problem and "!" not in widget.as_text()

    @NODE
    def test_a_wrong_function_is_shown_marked_and_explained(self):
        widget = stepper(attention=softmax_over_queries)
        assert widget._matrices["weights"]["text"][2][0] == "0.4011"
        assert explained(widget, "weights", 2, 0)[-1] == "your function gives 0.4011; the arithmetic gives 0.2483"
        assert "! where your function differs" in widget.as_text()

    @pytest.mark.parametrize("like", [list, np.array, lambda matrix: torch.tensor(matrix, dtype=torch.float64)])
    @pytest.mark.parametrize("wants", ["lists", "arrays", "tensors"])
    def test_functions_on_lists_arrays_and_tensors_all_work(self, like, wants):
        def on_lists(q, k, v):
            assert isinstance(q, list)
            output, weights = right_attention(q, k, v)
            return output.tolist(), weights.tolist()

        def on_arrays(q, k, v):
            return right_attention(q.copy(), k, v)

        def on_tensors(q, k, v):
            weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)
            return weights @ v, weights

        attention = {"lists": on_lists, "arrays": on_arrays, "tensors": on_tensors}[wants]
        widget = AttentionStepper.from_qkv(like(Q), like(K), like(V), TOKENS, attention=attention)
        assert widget.problem == "" and "!" not in widget.as_text()

    @pytest.mark.parametrize(
        ("returned", "message"),
        [
            (lambda: 1 / 0, "raised ZeroDivisionError"),
            (lambda: np.eye(3), "the pair (output, weights) was expected"),
            (lambda: (np.eye(3), np.eye(3)), "output of shape (3, 3): (3, 2) was expected"),
            (lambda: (np.ones((3, 2)), None), "weights"),
        ],
    )
    def test_a_function_that_fails_becomes_a_message(self, returned, message):
        widget = stepper(attention=lambda q, k, v: returned())
        assert message in widget.problem and widget.problem.endswith("The stages show the arithmetic instead.")
        assert widget.problem in widget.as_text()

    def test_a_function_not_written_yet_and_one_without_mask_are_named(self):
        def unwritten(q, k, v):
            raise NotImplementedError

        assert "unwritten is not written yet" in stepper(attention=unwritten).problem
        assert "takes no mask" in stepper(attention=softmax_over_queries, mask=np.tri(3)).problem

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"k": [[1, 0, 0]] * 3}, r"q is \(3, 2\) but k is \(3, 3\): both need the same number of columns"),
            ({"v": [[1, 0]] * 2}, r"v is \(2, 2\) but k is \(3, 2\): one row of v per row of k"),
            ({"tokens": ["a"]}, "there are 1 tokens but q has 3 rows"),
            ({"key_tokens": ["a"]}, "there are 1 key_tokens but k has 3 rows"),
            ({"mask": np.ones((3, 4))}, r"mask is \(3, 4\) but there are 3 queries and 3 keys: one column per key"),
            ({"mask": np.full((3, 3), 0.5)}, "mask holds other numbers"),
            ({"q": [[float("inf"), 0]] * 3}, r"q\[0, 0\] is inf"),
            ({"q": np.ones((17, 2)), "tokens": range(17), "key_tokens": TOKENS}, "shows up to 16"),
        ],
    )
    def test_what_does_not_fit_is_reported(self, change, message):
        with pytest.raises(ValueError, match=message):
            AttentionStepper.from_qkv(**{"q": Q, "k": K, "v": V, "tokens": TOKENS, **change})

    def test_a_projection_that_does_not_fit_is_reported(self):
        with pytest.raises(ValueError, match=r"w_k is \(3, 2\) but x is \(3, 2\): w_k needs 2 rows"):
            AttentionStepper(Q, np.eye(2), np.ones((3, 2)), np.eye(2), TOKENS)

    def test_it_starts_where_its_picture_has_the_most_to_tell(self):
        assert (stepper().stage_names[stepper().stage], stepper().cell) == ("weights", ("weights", 2, 2))
        small = AttentionStepper.from_qkv([[1.0]], [[1.0], [0.5]], [[1.0], [2.0]], ["a"], ["b", "c"])
        assert small.cell == ("weights", 0, 1)

    @NODE
    def test_a_changed_number_is_followed_by_everything_and_taken_back(self):
        eye = np.eye(2)
        changed = [[1, 0], [0, 1], [3, 1]]
        widget = AttentionStepper(np.array(Q), eye, eye, eye, TOKENS, mask=np.tri(3), attention=right_attention)
        before = widget.as_text()
        widget.edit("X", 2, 0, 3)
        assert widget.as_text() == AttentionStepper(changed, eye, eye, eye, TOKENS, mask=np.tri(3)).as_text()
        assert explained(widget, "Q", 2, 0)[1] == "3·1 + 1·0 = 3"
        assert on_page(widget).theirs["numbers"]["X"] == changed and "!" not in widget.as_text()
        widget.reset()
        assert widget.as_text() == before

    @NODE
    def test_the_page_changes_numbers_and_what_a_function_prints_then_is_not_shown(self, capsys):
        def loud(q, k, v):
            print("here")
            return softmax_over_queries(q, k, v)

        widget = stepper(attention=loud)
        send(widget, numbers={"Q": Q, "K": [[9, 0], *K[1:]], "V": V})
        assert widget._matrices["K"]["text"][0] == ["9", "0"] and capsys.readouterr().out == ""
        assert "your function gives" in explained(widget, "weights", 2, 0)[-1]

    def test_a_function_that_fails_on_new_numbers_is_reported_and_forgiven(self):
        def choosy(q, k, v):
            if np.max(q) > 5:
                raise OverflowError("too large")
            return right_attention(q, k, v)

        widget = stepper(attention=choosy)
        widget.edit("Q", 0, 0, 6)
        assert "choosy raised OverflowError: too large" in widget.problem and on_page(widget).theirs is None
        widget.edit("Q", 0, 0, 5)
        assert widget.problem == "" and on_page(widget).theirs["numbers"]["Q"][0] == [5, 0]

    @pytest.mark.parametrize(
        ("where", "message"),
        [
            (("scores", 0, 0, 1), "'scores' is not given: numbers of Q, K, V can be changed"),
            (("Q", 3, 0, 1), r"Q\[3, 0\] is not there: Q is \(3, 2\)"),
            (("Q", 0, 0, float("inf")), r"Q\[0, 0\] is inf: every number has to be finite"),
            (("Q", 0, 0, "abc"), "Q is not a matrix of numbers"),
            (("Q", 0, 0, -1e6), "Q holds -1e.06: give up to 1000"),
        ],
    )
    def test_a_change_that_does_not_fit_is_refused_and_the_old_number_stays(self, where, message):
        widget = stepper()
        with pytest.raises(ValueError, match=message):
            widget.edit(*where)
        assert widget.as_text() == stepper().as_text()

    def test_stage_and_cell_are_set_by_name_and_refuse_what_is_not_there(self):
        widget = stepper()
        widget.stage = "scores"
        assert widget.stage == 1
        widget.cell = ("output", 2, 1)
        assert widget.stage == 4
        widget.stage = 0
        assert widget.cell is None and widget.step == 0
        for name, value in (
            ("stage", 9),
            ("stage", "mask"),
            ("step", 19),
            ("step", -1),
            ("cell", ("scores", 3, 0)),
            ("cell", ("W", 0, 0)),
            ("cell", 3),
        ):
            with pytest.raises(ValueError, match=name):
                setattr(widget, name, value)

    def test_scores_come_cell_by_cell_and_other_matrices_row_by_row(self):
        widget = stepper()
        eye = np.eye(2)
        assert [stage["steps"] for stage in widget._stages] == [1, 9, 3, 3, 3]
        assert [stage["steps"] for stage in AttentionStepper(Q, eye, eye, eye, TOKENS)._stages][:2] == [1, 9]
        one = AttentionStepper.from_qkv([[1.0]], [[1.0], [0.5]], [[1.0], [2.0]], ["a"], ["b", "c"], mask=[[1, 0]])
        assert [stage["steps"] for stage in one._stages] == [1, 2, 1, 1, 1, 1]

    def test_a_step_brings_its_stage_and_a_stage_is_shown_complete(self):
        widget = stepper()
        for step, stage in ((0, 0), (1, 1), (9, 1), (10, 2), (18, 4)):
            widget.step = step
            assert (widget.step, widget.stage) == (step, stage)
        widget.stage = "scores"
        assert widget.step == 9
        widget.step = 4
        widget.stage = 1  # no change of stage: what is filled stays as it is
        assert widget.step == 4

    def test_all_it_sends_is_json(self):
        widget = stepper(mask=np.tri(3, dtype=bool), attention=right_attention)
        sent = on_page(widget)
        json.dumps([sent.numbers, sent.labels, sent.theirs], allow_nan=False)
        assert sent.theirs["numbers"] == sent.numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1"), (-0.0, "0"), (-1e-17, "0"), (1 / 3, "0.3333"), (-0.5, "−0.5"), (12.34567, "12.346"), (1e-5, "1e−5"),
     (123456.0, "1.235e5"), (float("-inf"), "−∞"), (float("nan"), "nan"), (-0.00004999, "−4.999e−5")],
)  # fmt: skip
def test_numbers_are_short_and_have_a_true_minus(value, text):
    assert number(value) == text


class TestQuiz:
    def test_the_text_shows_questions_and_choices_but_not_which_is_right(self):
        assert Quiz(ASKED).as_text() == "1. Over what does `softmax` run?\n   a) the keys\n   b) the queries"

    def test_the_score_counts_right_answers(self):
        quiz = Quiz(ASKED * 2)
        quiz.answers = [0, 1]
        assert quiz.score == 1
        with pytest.raises(ValueError, match="answer 2 is 5"):
            quiz.answers = [0, 5]

    @pytest.mark.parametrize(
        ("questions", "message"),
        [
            ([], "questions is empty"),
            ([{"question": "?", "choices": ASKED[0]["choices"][:1]}], "question 1 has fewer than two choices"),
            ([{"question": "?", "choices": ASKED[0]["choices"][1:] * 2}], "question 1 has no right choice"),
            ([{"choices": ASKED[0]["choices"]}], 'question 1 has no "question"'),
            ([{"question": "?", "choices": [{"text": "a", "right": True}] * 2}], 'question 1, choice a has no "why"'),
            (
                [{"question": "?", "choices": [{"text": "a", "why": "b", "right": 1}] * 2}],
                '"right" has to be True or False',
            ),
        ],
    )
    def test_what_is_missing_is_reported(self, questions, message):
        with pytest.raises(ValueError, match=message):
            Quiz(questions)


def test_a_picture_has_alt_text_and_closes_its_figure():
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    def draw():
        fig, ax = plt.subplots(figsize=(4, 3))
        ax.plot([0, 1])
        return picture(fig, "a rising line")

    first = draw()
    second = draw()
    assert first.data == second.data and plt.get_fignums() == []
    data, metadata = first._repr_mimebundle_()
    assert data["text/plain"] == repr(first) == "a rising line"
    assert metadata == {"image/png": {"alt": "a rising line", "width": 384}}
    with pytest.raises(ValueError, match="alt is empty"):
        picture(plt.figure(), " ")
    plt.close("all")


def test_a_figure_brings_its_own_alt_text_unless_another_is_given():
    figure = described(new_figure(96, 96), "an empty square")
    assert repr(picture(figure)) == "an empty square" and repr(picture(figure, "nothing")) == "nothing"
    with pytest.raises(ValueError, match="alt is empty"):
        picture(new_figure(96, 96))


def test_a_caption_goes_with_a_figure_that_has_one():
    figures = [described(new_figure(96, 96), "a square", *caption) for caption in ([], ["It is empty."])]
    images = [picture(figure)._repr_mimebundle_()[1]["image/png"] for figure in figures]
    assert images == [{"alt": "a square", "width": 96}, {"alt": "a square", "width": 96, "caption": "It is empty."}]


def test_text_on_the_ramp_has_contrast_and_the_ramp_darkens_evenly():
    light = [palette._luminance(colour) for colour in palette.ramp()]
    assert all(a >= b for a, b in itertools.pairwise(light))
    for level, own in enumerate(light):
        bright, dark = (1.05, own + 0.05) if palette.ink(level) == "#FFFFFF" else (own + 0.05, 0.05)
        assert bright / dark >= 4.5
