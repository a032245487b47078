"""The head gallery and the head ablation without a browser: what they take, refuse, measure, say and draw."""

import json

import numpy as np
import pytest
import torch
from as_page import on_page, send

from course_utils.models import induction
from course_utils.models.decoder import Decoder
from course_utils.views import HeadAblation, HeadGallery
from course_utils.views.static_page import static_page

TOKENS = ["the", "cat", "sat"]
PERIOD = 12


def weights(n_layers=2, h=3, n=3, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(n), size=(n_layers, h, n))


def gallery(**more):
    return HeadGallery(weights(), TOKENS, **more)


@pytest.fixture
def model():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Decoder(32, 64, 2, 4, d_ff=0)


@pytest.fixture(scope="module")
def trained():
    return induction.load()


class TestGallery:
    def test_the_page_gets_every_weight_in_thousandths_layer_by_layer(self):
        all_weights = weights(4, 2, 3)
        sent = np.frombuffer(on_page(HeadGallery(all_weights, TOKENS)).thousandths, dtype="<u2").reshape(
            all_weights.shape
        )
        np.testing.assert_allclose(sent / 1000, all_weights, atol=0.0005001)
        assert (sent.sum(-1) > 995).all()

    def test_it_takes_what_a_decoder_returns_with_its_tokens(self, model):
        tokens = induction.repeated(1, PERIOD)
        by_layer = model(tokens, return_weights=True)[1]
        stacked = torch.stack(by_layer)
        galleries = [
            HeadGallery(arguments, tokens) for arguments in (by_layer, stacked, stacked[:, 0], stacked.tolist())
        ]
        for each in galleries:
            assert each.weights.shape == (2, 4, 24, 24)
            np.testing.assert_allclose(each.weights, stacked[:, 0].detach().numpy(), atol=1e-6)
            assert on_page(each).tokens == [str(token) for token in tokens[0].tolist()]

    def test_scores_are_reported_to_two_decimals_with_the_place_of_the_largest(self):
        scores = {"rise": torch.tensor([[0.125, -0.004, 1.0], [-2.5, 3.456, 0.0]]), "other": np.eye(2, 3)}
        widget = gallery(scores=scores)
        assert [entry["name"] for entry in on_page(widget).scores] == ["rise", "other"]
        assert on_page(widget).scores[0]["values"] == ["0.13", "0.00", "1.00", "−2.50", "3.46", "0.00"]
        assert [entry["most"] for entry in on_page(widget).scores] == [4, 0]
        widget.scores = {"rise": np.zeros((2, 3)), "other": [[0, 0, 0], [1, 0, 0.5]]}
        assert on_page(widget).scores[1]["most"] == 3 and widget.scores["other"][1, 0] == 1

    def test_head_and_row_are_read_and_set_with_any_whole_numbers(self):
        widget = gallery()
        assert widget.row is None
        for head in ((1, 2), [1, 2], np.array([1, 2]), torch.tensor([1, 2]), divmod(np.int64(5), 3)):
            widget.head = head
            assert widget.head == (1, 2) and type(widget.head[0]) is int
        widget.set_state({"head": [0, 1], "row": 2})
        assert (widget.head, widget.row) == ((0, 1), 2)
        widget.set_state({"head": None, "row": None})
        assert (widget.head, widget.row) == (None, None)

    def test_at_first_the_head_of_the_largest_score_is_enlarged_or_the_sharpest_of_the_last_layer(self):
        uniform = np.full((3, 3), 1 / 3)
        sharp = np.eye(3)
        assert HeadGallery([[sharp, uniform], [uniform, sharp]], TOKENS).head == (1, 1)
        assert HeadGallery([[sharp, uniform], [sharp, uniform]], TOKENS).head == (1, 0)
        assert gallery(scores={"s": [[0, 3, 1], [0, 1, 2]], "t": [[9, 0, 0], [0, 0, 0]]}).head == (0, 1)

    def test_new_weights_keep_the_enlarged_head_and_the_pinned_row(self):
        widget = gallery()
        widget.head = (1, 0)
        widget.row = 2
        before = on_page(widget).thousandths
        widget.weights = weights(seed=1)
        assert (widget.head, widget.row) == ((1, 0), 2) and on_page(widget).thousandths != before
        np.testing.assert_array_equal(widget.weights, weights(seed=1))

    def test_what_it_gives_out_are_copies(self):
        widget = gallery(scores={"s": np.zeros((2, 3))})
        widget.weights[:] = 0
        widget.scores["s"][:] = 9
        assert widget.weights.sum() == pytest.approx(18) and widget.scores["s"].sum() == 0

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"weights": weights()[0]}, r"weights has shape \(3, 3, 3\): \(n_layers, h, n, n\) is needed"),
            ({"weights": np.zeros((2, 2, 3, 3, 3))}, "pick one sequence of the batch first"),
            ({"weights": weights(n=4)}, "there are 3 tokens: the last two sizes have to be 3"),
            ({"weights": weights() - 1}, r"weights\[0, 0, 0, 0\] is -.*: a weight lies between 0 and 1"),
            (
                {"weights": np.full((1, 1, 3, 3), np.nan)},
                r"weights\[0, 0, 0, 0\] is nan: every number has to be finite",
            ),
            ({"weights": [[1], [1, 2]]}, "weights does not hold numbers in equal rows"),
            ({"weights": np.zeros((17, 1, 3, 3))}, "shows up to 16 layers, 16 heads and 64 tokens"),
            ({"weights": weights(1, 1, 65), "tokens": range(65)}, "64 tokens"),
            ({"tokens": "the cat sat"}, "tokens is one string"),
            ({"tokens": ["the", "cat"]}, "there are 2 tokens"),
            ({"scores": {"induction": np.zeros((3, 2))}}, r"scores\['induction'\] is for \(3, 2\) but there are 2 lay"),
            ({"scores": {"induction": np.full((2, 3), np.inf)}}, r"scores\['induction'\]\[0, 0\] is inf"),
            ({"scores": np.zeros((2, 3))}, "scores is ndarray: give a dict"),
        ],
    )
    def test_what_does_not_fit_is_reported(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            HeadGallery(**{"weights": weights(), "tokens": TOKENS, **arguments})

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("head", (2, 0), r"head is \(2, 0\): layers go from 0 to 1, heads from 0 to 2"),
            ("head", (0, -1), "head is"),
            ("head", 3, r"head is 3: give a pair \(layer, head\)"),
            ("head", (0, 1, 2), "give a pair"),
            ("head", (0.0, 1), "give a pair"),
            ("row", 3, "row is 3 but there are 3 tokens: 0 to 2, or None to unpin"),
            ("row", -1, "row is -1"),
            ("weights", weights(2, 2), r"weights is for \(2, 2\) but there are 2 layers of 3 heads"),
            ("weights", weights(n=2), "there are 3 tokens"),
            ("scores", {"other": np.zeros((2, 3))}, "scores are named other but those shown are induction"),
        ],
    )
    def test_what_is_set_has_to_fit_too_and_changes_nothing_otherwise(self, name, value, message):
        widget = gallery(scores={"induction": np.zeros((2, 3))})
        widget.head = (1, 1)
        widget.row = 1
        before = widget.get_state(["head", "row", "_thousandths", "_scores"])
        with pytest.raises(ValueError, match=message):
            setattr(widget, name, value)
        assert widget.get_state(["head", "row", "_thousandths", "_scores"]) == before

    @pytest.mark.parametrize(("h", "n"), [(1, 1), (2, 8), (4, 24), (8, 32), (12, 32), (12, 48), (16, 64)])
    def test_every_weight_is_at_least_a_pixel_and_all_of_a_map_are_equally_large(self, h, n):
        layout = on_page(HeadGallery(weights(1, h, n), range(n))).layout
        assert layout["wide"] % n == layout["small"] % n == 0
        assert n <= layout["small"] <= layout["wide"] <= max(n, 132) and layout["cell"] * n <= 324

    def test_the_text_tells_the_scores_the_enlarged_head_and_where_the_pinned_row_attends(self):
        all_weights = np.tile(np.tri(3) / np.tri(3).sum(1, keepdims=True), (1, 2, 1, 1))
        all_weights[0, 1, 2] = [0.25, 0.75, 0]
        widget = HeadGallery(all_weights, TOKENS, {"score": [[0.5, 1]]}, title="heads of a toy")
        widget.head = None
        lines = ["heads of a toy: 1 layer × 2 heads, 3 tokens", "", "score", "         head 0  head 1"]
        assert widget.as_text().splitlines() == [*lines, "layer 0    0.50    1.00"]
        widget.row = 2
        assert widget.as_text().splitlines()[-3:] == [
            "row 2, the query “sat”, attends most to",
            "layer 0, head 0: key 0 “the”, 0.33",
            "layer 0, head 1: key 1 “cat”, 0.75",
        ]
        widget.head = (0, 1)
        assert widget.as_text().splitlines()[-4:] == [
            "enlarged: layer 0, head 1",
            "",
            "row 2, the query “sat”, attends most to",
            "layer 0, head 1: key 1 “cat”, 0.75",
        ]
        assert widget.alt().endswith(
            "Score is largest in layer 0, head 1, 1.00. Enlarged: layer 0, head 1. "
            "Row 2 is marked: “sat” attends in layer 0, head 1 most to key 1 “cat”, 0.75."
        )

    def test_without_scores_the_text_tells_how_sharp_each_head_is(self):
        uniform = np.full((3, 3), 1 / 3)
        sharp = np.eye(3)
        lines = HeadGallery([[uniform, sharp]], TOKENS).as_text().splitlines()
        assert lines[2] == "largest weight of a row, mean over the rows" and lines[4] == "layer 0    0.33    1.00"

    def test_the_picture_has_a_map_for_each_head_one_more_when_enlarged_and_frames_the_row_in_all(self):
        widget = gallery(scores={"s": np.zeros((2, 3))})
        widget.head = None
        (ax,) = widget.figure().axes
        assert len(ax.images) == len(ax.patches) == 6
        widget.head = (0, 0)
        widget.row = 1
        (ax,) = widget.figure().axes
        assert len(ax.images) == 7 and len(ax.patches) == 14
        np.testing.assert_array_equal(ax.images[-1].get_array(), widget.weights[0, 0])
        for image, (edge, frame) in zip(ax.images, zip(ax.patches[::2], ax.patches[1::2], strict=True), strict=True):
            left, right, bottom, top = image.get_extent()
            assert edge.get_bbox().bounds == pytest.approx((left, top, right - left, bottom - top))
            third = (bottom - top) / 3  # the second of three rows
            assert frame.get_bbox().bounds == pytest.approx((left, top + third, right - left, third))

    def test_the_heads_of_the_trained_model_are_where_its_scores_say(self, trained):
        tokens = induction.repeated(1, PERIOD)
        scores = {"induction": induction.induction_scores(trained, PERIOD)}
        widget = HeadGallery(induction.head_weights(trained, tokens), tokens, scores)
        widget.head = divmod(int(scores["induction"].argmax()), trained.n_heads)
        row = widget.weights[widget.head][PERIOD + 4]
        assert row.argmax() == 5  # the token after the first occurrence
        assert "Enlarged: layer 1" in widget.alt()


class TestOwnText:
    def read(self, text):
        if "?" in text:
            raise ValueError("no word for “?”\nhere")
        words = text.split()
        print("read")
        return words, weights(n=len(words))

    def test_a_text_that_the_page_sends_is_read_and_shown_with_the_scores_as_they_were(self, capsys):
        widget = gallery(scores={"s": np.eye(2, 3)}, read=self.read, readable="any words")
        widget.head = (1, 2)
        widget.row = 2
        send(widget, typed={"text": "one two three four", "number": 1})
        assert on_page(widget).tokens == ["one", "two", "three", "four"] and widget.weights.shape == (2, 3, 4, 4)
        assert on_page(widget).said == {"text": "Shown: your text of 4 tokens.", "number": 1}
        assert (widget.head, widget.row) == ((1, 2), None) and widget.scores["s"][1, 1] == 1
        assert len(on_page(widget).thousandths) == 2 * widget.weights.size and "4 tokens" in widget.as_text()
        assert capsys.readouterr().out == ""

    def test_tokens_weights_and_sizes_reach_the_page_in_one_message(self, monkeypatch):
        widget = gallery(read=self.read)
        sent = []
        monkeypatch.setattr(widget, "_send", lambda message, buffers=None: sent.append(message))
        widget.read("a b")
        assert [set(message["state"]) >= {"_tokens", "_layout"} for message in sent] == [True]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("why ?", "no word for “?” here"),
            ("", "weights has shape (2, 3, 0, 0): (n_layers, h, n, n) is needed"),
            ("a " * 65, "weights is (2, 3, 65, 65): the gallery shows up to"),
        ],
    )
    def test_what_cannot_be_read_is_said_and_what_was_shown_stays(self, text, message):
        widget = gallery(read=self.read)
        send(widget, typed={"text": text, "number": 3})
        assert on_page(widget).said["text"].startswith(message) and on_page(widget).said["number"] == 3
        assert on_page(widget).tokens == TOKENS

    def test_another_number_of_heads_is_refused(self):
        widget = gallery(read=lambda text: (["a"], weights(1, 1, 1)))
        with pytest.raises(ValueError, match="there are 2 layers of 3 heads"):
            widget.read("a")

    def test_without_a_reader_there_is_no_field(self):
        assert on_page(gallery()).own is None
        with pytest.raises(ValueError, match="this gallery reads no text"):
            gallery().read("a")
        with pytest.raises(ValueError, match="read is str: give a function"):
            gallery(read="a text")

    def test_the_model_s_reader_knows_its_letters_and_says_so(self, trained):
        read = induction.reader(trained)
        letters, maps = read("AB ABf")
        assert letters == [*"ABABf"] and maps.shape == (2, 4, 5, 5)
        tokens = torch.tensor([[0, 1, 0, 1, 31]])
        assert torch.equal(maps, induction.head_weights(trained, tokens)[:, 0])
        for text, message in (
            ("Ag", "no token for “g”. It knows the letters A to Z"),
            ("A", "has 1 letters: give 2 to"),
        ):
            with pytest.raises(ValueError, match=message):
                read(text)


class TestAblation:
    def test_a_setting_is_kept_and_others_are_compared_with_it(self, trained):
        widget = HeadAblation(trained, induction.repeated(1, PERIOD), from_token=PERIOD + 1)
        assert widget.kept is None and "A:" not in widget.as_text()
        widget.off = [(1, 0)]
        widget.keep()
        of_a = widget.loss
        losses = widget.losses
        widget.off = [(1, 0), (1, 1)]
        assert widget.kept == [[1, 0]]
        text = f"A: layer 1 head 0 off, {of_a:.2f} nats. Now +{widget.loss - of_a:.2f} against A."
        assert widget.as_text().endswith(text) and widget.alt().endswith(text)
        marks = next(line for line in widget.figure().axes[1].lines if line.get_label() == "A, kept")
        np.testing.assert_allclose(marks.get_ydata(), losses, atol=1e-4)
        widget.forget()
        assert widget.kept is None and "A:" not in widget.as_text()

    def test_the_page_keeps_what_it_shows(self, model):
        widget = HeadAblation(model, [1, 2, 3])
        result = on_page(widget).result
        send(widget, kept={name: result[name] for name in ("off", "losses", "means")})
        assert widget.kept == [] and "A: no head off, " in widget.as_text()

    def test_a_failed_setting_is_not_kept(self):
        class Moody(Toy):
            def __call__(self, tokens, head_masks):
                raise RuntimeError("never")

        with pytest.raises(ValueError, match="nothing to keep: the model raised RuntimeError: never"):
            HeadAblation(Moody(), [1, 2, 3]).keep()

    def test_with_every_head_on_the_loss_is_that_of_the_model(self, trained):
        tokens = induction.repeated(1, PERIOD)
        widget = HeadAblation(trained, tokens, from_token=PERIOD + 1)
        assert widget.loss == widget.whole_loss
        assert widget.loss == pytest.approx(induction.repeat_loss(trained, tokens, PERIOD), abs=1e-5)
        np.testing.assert_allclose(widget.losses, induction.token_losses(trained, tokens)[0], atol=1e-4)
        assert HeadAblation(trained, tokens[0]).loss == pytest.approx(widget.losses.mean())

    def test_heads_switched_off_are_those_of_head_masks(self, model):
        tokens = induction.repeated(1, 4)
        on = torch.ones(2, 4)
        widget = HeadAblation(model, tokens, from_token=3)
        widget.off = [(1, 2), (0, 3)]
        on[1, 2] = on[0, 3] = 0
        expected = induction.token_losses(model, tokens, on)[0].numpy()
        np.testing.assert_allclose(widget.losses, expected, atol=1e-5)
        assert widget.loss == pytest.approx(expected[2:].mean(), abs=1e-5)
        np.testing.assert_allclose(widget.whole_losses, induction.token_losses(model, tokens)[0], atol=1e-5)
        widget.off = []
        assert widget.loss == widget.whole_loss

    def test_off_is_a_sorted_list_without_doubles_of_plain_pairs(self, model):
        widget = HeadAblation(model, [1, 2, 3])
        widget.off = [[1, 0], (np.int64(0), torch.tensor(2)), (1, 0)]
        assert widget.off == [(0, 2), (1, 0)] and type(widget.off[0][0]) is int
        widget.set_state({"off": [[1, 3]]})  # as the page does
        assert widget.off == [(1, 3)] and on_page(widget).result["off"] == [[1, 3]]

    def test_each_alone_is_the_ablation_of_the_library_and_leaves_the_switches(self, trained):
        tokens = induction.repeated(1, PERIOD)
        widget = HeadAblation(trained, tokens, from_token=PERIOD + 1)
        assert widget.rises is None
        widget.off = [(0, 0)]
        np.testing.assert_allclose(widget.each_alone(), induction.ablation(trained, tokens, PERIOD), atol=1e-4)
        assert widget.off == [(0, 0)] and on_page(widget).rises[3].startswith("+3.")
        assert "rise when it alone is off" in widget.as_text()

    def test_the_button_of_the_page_asks_for_each_alone(self, model):
        widget = HeadAblation(model, [1, 2, 3])
        widget.set_state({"_asked": 1})
        assert widget.rises.shape == (2, 4) and len(on_page(widget).rises) == 8
        assert on_page(widget).answered == on_page(widget).asked

    def test_the_model_is_not_changed_and_leaves_no_gradient(self, model):
        model.train()
        before = {name: value.clone() for name, value in model.state_dict().items()}
        random = torch.random.get_rng_state()
        widget = HeadAblation(model, induction.repeated(1, 4))
        widget.off = [(0, 0)]
        widget.each_alone()
        assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
        assert model.training and all(part.grad is None for part in model.parameters())
        assert torch.equal(random, torch.random.get_rng_state())

    def test_the_model_is_live(self, model):
        widget = HeadAblation(model, [1, 2, 3])
        before = widget.whole_loss
        with torch.no_grad():
            model.unembedding.weight.zero_()  # now every token is as likely as every other
        widget.off = [(0, 0)]
        assert before != pytest.approx(np.log(32), abs=1e-3)
        assert (widget.loss, widget.whole_loss) == (pytest.approx(np.log(32)), pytest.approx(np.log(32)))

    def test_a_change_and_its_losses_reach_the_page_in_one_message(self, model, monkeypatch):
        widget = HeadAblation(model, [1, 2, 3])
        sent = []
        monkeypatch.setattr(widget, "_send", lambda message, buffers=None: sent.append(message))
        widget.off = [(0, 0)]
        assert [set(message["state"]) for message in sent] == [{"off", "_result"}]

    def test_the_axis_of_the_bars_holds_every_loss_and_never_shrinks(self, trained):
        widget = HeadAblation(trained, induction.repeated(1, PERIOD))
        tops = []
        for off in ([], [(0, 3)], [(layer, head) for layer in range(2) for head in range(4)], []):
            widget.off = off
            tops.append(on_page(widget).result["top"])
            assert max(*widget.losses, *widget.whole_losses, np.log(32)) <= tops[-1]
        assert tops == sorted(tops)

    def test_the_line_says_how_many_are_off_and_how_the_loss_moved(self, trained):
        widget = HeadAblation(trained, induction.repeated(1, PERIOD), from_token=PERIOD + 1)
        text = f"Every head is on. Mean loss of tokens 13 to 23: {widget.loss:.2f} nats."
        assert on_page(widget).result["line"] == text
        widget.off = [(0, 3)]
        more = widget.loss - widget.whole_loss
        assert on_page(widget).result["line"] == (
            f"1 head off. Mean loss of tokens 13 to 23: {widget.loss:.2f} nats, {more:.2f} more than the whole model."
        )
        widget = HeadAblation(trained, [1, 2, 3], from_token=2)
        assert "Loss of token 2: " in on_page(widget).result["line"]

    def test_a_loss_that_falls_or_stays_is_said_so(self):
        class Fixed(Toy):
            def __call__(self, tokens, head_masks):
                logits = torch.zeros(1, tokens.shape[1], 4)
                logits[..., 0] = 1 - head_masks[0, 0]  # token 0 becomes likelier without head 0
                return logits

        widget = HeadAblation(Fixed(), [0, 0, 0])
        widget.off = [(0, 0)]
        assert on_page(widget).result["line"].endswith("0.74 nats, 0.64 less than the whole model.")
        widget.off = [(0, 1)]
        assert on_page(widget).result["line"].endswith("1.39 nats, as the whole model.")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"model": torch.nn.Linear(2, 2)}, "model is Linear: a Decoder is needed"),
            ({"model": None}, "model is NoneType"),
            ({"model": Decoder(4, 8, 0, 2)}, "the model has no layers"),
            ({"model": Decoder(4, 8, 17, 2, d_ff=0)}, "17 layers of 2 heads: up to 16"),
            ({"tokens": [[1, 2], [3, 1]]}, r"tokens is \(2, 2\): one sequence is needed"),
            ({"tokens": [1.0, 2.0]}, "tokens is torch.float32"),
            ({"tokens": ["a", "b"]}, "tokens do not make a tensor"),
            ({"tokens": [1]}, "there are 1 tokens: the widget shows 2 to 96"),
            ({"tokens": [0] * 97}, "there are 97 tokens"),
            ({"tokens_as": ["a"]}, "tokens_as has 1 labels but there are 3 tokens"),
            ({"tokens_as": "abc"}, "tokens_as is one string"),
            ({"from_token": 0}, "from_token is 0: give a whole number from 1 to 2"),
            ({"from_token": 3}, "from_token is 3"),
            ({"from_token": 1.0}, "from_token is 1.0"),
        ],
    )
    def test_what_does_not_fit_is_reported(self, model, arguments, message):
        with pytest.raises(ValueError, match=message):
            HeadAblation(**{"model": model, "tokens": [1, 2, 3], **arguments})

    @pytest.mark.parametrize("off", [[(2, 0)], [(0, 4)], [0], [(0, 1, 2)], [(-1, 0)]])
    def test_heads_that_are_not_there_change_nothing(self, model, off):
        widget = HeadAblation(model, [1, 2, 3])
        widget.off = [(0, 1)]
        with pytest.raises(ValueError, match="a head in off is"):
            widget.off = off
        assert widget.off == [(0, 1)] == [tuple(head) for head in on_page(widget).result["off"]]

    def test_what_the_model_raises_is_a_message_and_the_next_switch_runs_it_again(self):
        class Moody(Toy):
            def __call__(self, tokens, head_masks):
                print("called")
                if head_masks[0, 0] == 0:
                    raise RuntimeError("head 0 is needed\nfor this")
                return torch.zeros(1, tokens.shape[1], 4)

        widget = HeadAblation(Moody(), [1, 2, 3])
        assert widget.problem == "" and widget.loss == pytest.approx(np.log(4))
        widget.off = [(0, 0)]
        assert widget.problem == "the model raised RuntimeError: head 0 is needed for this"
        assert widget.problem == on_page(widget).result["line"]
        assert np.isnan(widget.loss) and widget.whole_loss == pytest.approx(np.log(4))
        assert on_page(widget).result["losses"] == [None, None] and widget.problem in widget.as_text()
        widget._repr_mimebundle_()
        assert widget.each_alone().tolist()[0][1] == 0 and on_page(widget).rises == ["–", "0.00"]
        widget.off = [(0, 1)]
        assert widget.problem == "" and widget.loss == pytest.approx(np.log(4))

    def test_a_loss_that_is_not_finite_is_a_message_too(self):
        class Broken(Toy):
            def __call__(self, tokens, head_masks):
                return torch.full((1, tokens.shape[1], 4), torch.nan)

        widget = HeadAblation(Broken(), [1, 2, 3])
        assert widget.problem == "the loss of token 1 is nan: no mean can be told"
        widget._repr_mimebundle_()

    def test_a_model_that_prints_is_not_heard(self, capsys):
        observed = []

        class Loud(Toy):
            def __call__(self, tokens, head_masks):
                print("called")
                observed.append(tokens.tolist())
                tokens[:] = 0  # and writes into its input
                return torch.zeros(1, tokens.shape[1], 4)

        widget = HeadAblation(Loud(), [1, 2, 3])
        widget.each_alone()
        assert capsys.readouterr().out == "" and len(observed) > 2
        assert all(tokens == [[1, 2, 3]] for tokens in observed)

    def test_the_text_has_the_switches_and_both_losses(self, model):
        widget = HeadAblation(model, [1, 2, 3], title="a toy")
        widget.off = [(0, 1)]
        lines = widget.as_text().splitlines()
        assert lines[:4] == [
            "a toy: 2 × 4 heads, 3 tokens",
            "         head 0  head 1  head 2  head 3",
            "layer 0      on     off      on      on",
            "layer 1      on      on      on      on",
        ]
        assert lines[4:] == [on_page(widget).result["line"], f"The whole model: {widget.whole_loss:.2f} nats."]
        assert "off: layer 0 head 1." in widget.alt() and on_page(widget).result["line"] in widget.alt()

    def test_the_picture_has_a_bar_and_an_outline_for_each_token(self, model):
        widget = HeadAblation(model, induction.repeated(1, 3), from_token=4)
        widget.off = [(1, 1)]
        switches, bars = widget.figure().axes
        assert len(switches.patches) == 8
        here = [patch for patch in bars.patches if patch.get_fill()]
        outlines = bars.patches[-5:]
        assert len(bars.patches) == 10 and len(here) >= 5
        heights = [patch.get_height() for patch in bars.patches]
        np.testing.assert_allclose(sorted(heights[:5]), sorted(widget.losses), atol=1e-9)
        np.testing.assert_allclose([patch.get_height() for patch in outlines], widget.whole_losses, atol=1e-9)


class Toy:
    """A model without parameters: one layer of two heads."""

    blocks = (None,)
    n_heads = 2

    def parameters(self):
        return []


def an_ablation():
    torch.manual_seed(0)
    widget = HeadAblation(Decoder(32, 64, 2, 4, d_ff=0), induction.repeated(1, 4))
    widget.keep()
    widget.off = [(0, 0)]
    widget.each_alone()
    return widget


def a_gallery():
    widget = gallery(scores={"induction": np.linspace(0, 1, 6).reshape(2, 3)}, read=lambda text: ([], []))
    widget.head = (1, 1)
    widget.row = 2
    return widget


@pytest.mark.parametrize("make", [a_gallery, an_ablation], ids=["gallery", "ablation"])
class TestWithoutAKernel:
    def test_all_it_sends_is_json_and_its_page_needs_nothing_from_elsewhere(self, make):
        state = {name: value for name, value in make().get_state().items() if name != "layout"}
        json.dumps(state, allow_nan=False, default=bytes.hex)  # bytes travel beside the JSON
        page = static_page(make(), "a page")
        assert page == static_page(make(), "a page") and "http" not in page
