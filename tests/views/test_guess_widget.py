"""Guess first: what a question refuses, says, draws and keeps, how near a guess comes, and what many have in common."""

import json
import math

import pytest
import torch
from as_page import on_page, send

from course_utils.errors import CourseError
from course_utils.guesses import Question, StoredGuess, brief, judge, keep, read, summed_up, tendency
from course_utils.guesses.nearness import as_places, ticks
from course_utils.guesses.store import subscribe
from course_utils.views import Guess, Guesses, ProgressMap

QUESTION = "How large is the largest of 8 weights?"


def number(root, name="largest", truth=0.5, low=0, high=1, **more):
    return Guess.number(2, name, more.pop("question", QUESTION), truth=truth, low=low, high=high, root=root, **more)


def curve(root, name="grown", truth=(0.2, 0.4, 0.8), **more):
    return Guess.curve(2, name, "How does it grow?", [4, 16, 64], truth=truth, low=0, high=1, root=root, **more)


def choice(root, name="first", truth="b", **more):
    return Guess.choice(2, name, "Which is first?", choices=["a", "b", "c"], truth=truth, root=root, **more)


MAKERS = {"number": number, "curve": curve, "choice": choice}


def make_question(kind="number", truth=(0.5,), **more):
    return Question(2, more.pop("name", "it"), "How much?", kind, truth, **more)


@pytest.mark.parametrize(
    ("guess", "more", "text"),
    [
        (0.4, {}, "too low by 10% of the range"),
        (0.9, {}, "too high by 40% of the range"),
        (0.51, {}, "near: within 2% of the range"),
        (100, {"truth": (20,), "low": 1, "high": 1000, "scale": "log"}, "too high by a factor of 5"),
        (11, {"truth": (20,), "low": 1, "high": 1000, "scale": "log"}, "too low by a factor of 1.8"),
        (20.5, {"truth": (20,), "low": 1, "high": 1000, "scale": "log"}, "near: within a factor of 1.05"),
    ],
)
def test_a_number_is_off_by_a_share_of_the_range_or_by_a_factor(guess, more, text):
    assert judge(make_question(**more), [guess]).text == text


@pytest.mark.parametrize(
    ("guess", "more", "text", "lean"),
    [
        ((0.3, 0.5, 0.9), {}, "10% of the range away on average, too high at 3 of 3 places", 1),
        ((0.3, 0.4, 0.6), {}, "10% of the range away on average, too high at 1 of 3 places and too low at 1", -1),
        ((0.2, 0.41, 0.8), {}, "near: within 2% of the range at all 3 places", 0),
        ((4, 4, 8), {"truth": (1, 4, 16), "low": 1, "high": 100, "scale": "log"},
         "a factor of 2 away on average, too high at 1 of 3 places and too low at 1", 1),
    ],
)  # fmt: skip
def test_a_curve_is_off_by_the_mean_over_its_places(guess, more, text, lean):
    more = {"truth": (0.2, 0.4, 0.8), "places": ("4", "16", "64")} | more
    verdict = judge(make_question("curve", **more), guess)
    assert (verdict.text, verdict.lean, verdict.right) == (text, lean, None)


def test_a_choice_is_right_or_not():
    question = make_question("choice", (1.0,), choices=("a", "b"))
    assert judge(question, [1]).right and judge(question, [1]).text == "right"
    assert judge(question, [0]).right is False and judge(question, [0]).text == "not right"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.25, "0.25"), (1, "1"), (12345, "12,300"), (-0.5, "−0.5"), (4.1e9, "4.1e9"), (2.3e-5, "2.3e−5"),
     (0.1234, "0.123"), (1e7, "1e7"), (999999, "1,000,000")],
)  # fmt: skip
def test_numbers_are_written_briefly(value, text):
    assert brief(value) == text


def test_axes_have_round_numbers():
    assert ticks(0, 1, "linear") == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert ticks(1, 1e5, "log") == [1, 10, 100, 1000, 10_000, 100_000]
    assert ticks(1, 1e6, "log") == [1, 100, 10_000, 1_000_000]
    assert ticks(1, 20, "log") == [1, 2, 5, 10, 20]
    assert as_places([4, 16, 64], "log") == pytest.approx([0, 0.5, 1])
    assert as_places([0, 1, 4], "linear") == [0, 0.25, 1] and as_places(["a", "b", "c"], "log") == [0, 0.5, 1]


WRONG = {
    "bounds the wrong way round": (lambda root: number(root, low=1, high=0), "low is 1 and high is 0"),
    "bounds that are no numbers": (lambda root: number(root, low="a"), "low is 'a' and high is 1: give two numbers"),
    "an endless range": (lambda root: number(root, high=math.inf), "both ends have to be finite"),
    "a log scale from 0": (lambda root: number(root, scale="log"), "on a log scale it has to be above 0"),
    "an unknown scale": (lambda root: number(root, scale="log2"), "there is no scale 'log2'; there is linear and log"),
    "a truth outside": (lambda root: number(root, truth=2), "truth is 2, outside of the range from 0 to 1; widen"),
    "NaN": (lambda root: number(root, truth=math.nan), "truth is nan: it has to be finite"),
    "NaN in a curve": (lambda root: curve(root, truth=[0.1, math.nan, 0.2]), "truth at 16 is nan"),
    "a truth that is a text": (lambda root: number(root, truth="much"), "is not the numbers that are asked for"),
    "several numbers": (lambda root: number(root, truth=[1, 2]), "guess 'largest'"),
    "too few values": (lambda root: curve(root, truth=[0.1]), "truth has 1 values and x 3 places: one each"),
    "no such day": (lambda root: Guess.number(12, "it", "?", truth=0, low=0, high=1, root=root), "no day 12"),
    "no name": (lambda root: number(root, name=" "), "a guess of day 2 has no name"),
    "no question": (lambda root: number(root, question=""), "a guess of day 2 has no question"),
    "x that goes back": (
        lambda root: Guess.curve(2, "back", "?", [2, 1], truth=[0, 1], low=0, high=1, root=root),
        "each place has to be beyond the one before",
    ),
    "one place": (lambda root: Guess.curve(2, "one", "?", [2], truth=[0], low=0, high=1, root=root), "2 to 24"),
    "an unknown x_scale": (lambda root: curve(root, x_scale="log2"), "there is no x_scale 'log2'"),
    "a truth that is no choice": (lambda root: choice(root, truth="d"), "truth is not one of the choices"),
    "one choice": (lambda root: Guess.choice(2, "one", "?", choices=["a"], truth="a", root=root), "two texts or more"),
    "the same choice twice": (
        lambda root: Guess.choice(2, "two", "?", choices=["a", "a"], truth="a", root=root), "two choices read the same"
    ),
    "an unknown kind": (
        lambda root: make_question("guess"),
        "there is no kind 'guess'; there is number, choice, curve",
    ),
    "a day of summaries": (lambda root: Guesses(0, root=root), "there is no day 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_asked_is_refused_in_words(case, tmp_path):
    make, message = WRONG[case]
    with pytest.raises(ValueError) as raised:
        make(tmp_path)
    assert message in str(raised.value)


def test_a_name_stands_for_one_question(tmp_path):
    number(tmp_path)
    number(tmp_path, truth=0.6)  # the cell ran again
    with pytest.raises(ValueError, match="guess 'largest' of day 2 already asks 'How large is the largest of 8"):
        number(tmp_path, question="Another?")


def test_truths_are_numbers_of_any_make_or_functions(tmp_path):
    assert number(tmp_path, "a", truth=torch.tensor(0.25)).question.truth == (0.25,)
    assert number(tmp_path, "b", truth=lambda: 0.25).question.truth == (0.25,)
    assert curve(tmp_path, "c", truth=lambda x: x / 64).question.truth == (1 / 16, 1 / 4, 1)
    assert curve(tmp_path, "d", truth=torch.tensor([0.0, 0.5, 1])).question.truth == (0, 0.5, 1)
    assert choice(tmp_path, "e", truth=lambda: "c").question.truth == (2.0,)


@pytest.mark.parametrize("kind", MAKERS)
def test_text_and_picture_are_the_question_alone_whatever_the_truth_is_and_whatever_was_guessed(kind, tmp_path):
    truths = {"number": (0.25, 0.75), "curve": ((0.1, 0.2, 0.3), (0.9, 0.8, 0.7)), "choice": ("a", "c")}[kind]
    before, other = (MAKERS[kind](tmp_path / str(place), truth=truth) for place, truth in enumerate(truths))
    displayed = before._repr_mimebundle_()[0]
    alt = before.alt()
    guessed = MAKERS[kind](tmp_path / "0", truth=truths[0])
    guessed.take({"number": 0.3, "curve": [0.3] * 3, "choice": "b"}[kind])
    for widget in (other, guessed, MAKERS[kind](tmp_path / "0", truth=truths[0])):
        again = widget._repr_mimebundle_()[0]
        assert (again["text/plain"], again["image/png"], widget.alt()) == (
            displayed["text/plain"],
            displayed["image/png"],
            alt,
        )
    assert "Run this cell to guess" in alt


def test_the_text_says_what_is_asked(tmp_path):
    assert number(tmp_path, unit="MB", low=1, high=1e4, truth=3, scale="log").as_text() == (
        f"Guess first: {QUESTION}\na number from 1 to 10,000 MB, logarithmic\n"
        "Run this cell to guess; what was computed is shown after your guess."
    )
    assert "  a) a\n  b) b\n  c) c\n" in choice(tmp_path).as_text()
    assert "weight against d_k at 4, 16, 64; from 0 to 1" in curve(tmp_path, x_label="d_k", y_label="weight").as_text()


def test_the_first_guess_counts_and_later_ones_are_kept_beside_it(tmp_path):
    widget = number(tmp_path)
    send(widget, guess=[0.9])
    send(widget, guess=[])
    send(widget, guess=[0.6])
    assert widget.first == [0.9] and widget.guess == [0.6] and widget.verdict.text == "too high by 10% of the range"
    (make_guess,) = read(2, tmp_path).values()
    assert (make_guess.first, make_guess.last, make_guess.count) == ((0.9,), (0.6,), 2)
    assert on_page(widget).kept == "Kept in guesses/day2.json on this machine."
    assert [path.name for path in tmp_path.rglob("*.json")] == ["day2.json"]


def test_two_guesses_that_a_busy_kernel_hears_of_together_are_both_kept(tmp_path):
    send(number(tmp_path), first=[0.9], guess=[0.6])
    (guesses,) = read(2, tmp_path).values()
    assert (guesses.first, guesses.last, guesses.count) == ((0.9,), (0.6,), 2)


def test_another_day_the_page_shows_what_was_guessed_once_it_is_drawn(tmp_path):
    number(tmp_path).take(0.9)
    later = number(tmp_path, truth=0.55)  # computed on another machine
    assert on_page(later).guess == [] == on_page(later).first, "the state alone holds nobody's guess"
    send(later, asked=1)
    assert later.guess == [0.9] == later.first and "Guessed on 2" in on_page(later).kept
    assert read(2, tmp_path)["largest"].count == 1, "to read is not to guess"
    send(later, guess=[])
    send(later, asked=2)
    assert later.guess == [], "a second view of the page does not end guessing again"


@pytest.mark.parametrize("guess", [[1.5], [math.nan], [0.1, 0.2]])
def test_a_guess_that_does_not_fit_is_refused(guess, tmp_path):
    widget = number(tmp_path)
    with pytest.raises(ValueError, match="guess 'largest' of day 2"):
        widget.guess = guess
    assert widget.guess == [] and not (tmp_path / "guesses").exists()


def test_a_choice_is_taken_by_its_text(tmp_path):
    widget = choice(tmp_path)
    with pytest.raises(ValueError, match="'d' is not one of the choices: a, b, c"):
        widget.take("d")
    widget.take("b")
    assert widget.verdict.right and read(2, tmp_path)["first"].first == (1.0,)


BROKEN = ["", "{", "[]", '{"schema": 2}', '{"schema": 1, "guesses": [{}], "earlier": []}', "ENDLESS", "TEXT"]


@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_file_is_put_aside_said_and_replaced(content, tmp_path):
    path = tmp_path / "guesses" / "day2.json"
    if content in ("ENDLESS", "TEXT"):
        number(tmp_path).take(0.3)
        wrong = f"[1{'0' * 400}]" if content == "ENDLESS" else '["a"]'
        content = path.read_text().replace("[\n    0.3\n   ]", wrong)
        assert wrong in content
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    with pytest.raises(
        CourseError, match=r"guesses/day2\.json is not a record of guesses; the next guess sets it aside"
    ):
        read(2, tmp_path)
    widget = number(tmp_path)
    send(widget, asked=1)
    assert "is not a record of guesses" in on_page(widget).kept
    widget.take(0.3)
    assert "It is now in guesses/kept/day2-1.json" in on_page(widget).kept
    assert (tmp_path / "guesses" / "kept" / "day2-1.json").read_text() == content
    assert list(read(2, tmp_path)) == ["largest"]


def test_what_cannot_be_written_is_said_and_the_truth_is_shown_all_the_same(tmp_path):
    (tmp_path / "guesses").write_text("a file where the folder should be")
    widget = number(tmp_path)
    widget.take(0.3)
    assert widget.guess == widget.first == [0.3]
    assert on_page(widget).kept.startswith("This guess is not kept: ")


def test_a_question_that_changed_is_guessed_anew_and_the_old_guess_stays_in_the_file(tmp_path):
    old = make_question(name="changed", low=0, high=1)
    keep(old, [0.3], tmp_path)
    make_guess, remark = keep(make_question(name="changed", low=0, high=2), [1.5], tmp_path)
    assert (make_guess.first, make_guess.count, remark) == ((1.5,), 1, "")
    record = json.loads((tmp_path / "guesses" / "day2.json").read_text())
    assert [each["first"] for each in record["earlier"]] == [[0.3]]


def make_guess(lean, scale="linear"):
    """A guess that is 10% of the range or a factor of 2 too high (1), too low (−1), or exact (0)."""
    question = make_question(truth=(10,), low=1, high=101, scale=scale)
    guess = 10 * 2**lean if scale == "log" else 20 if lean > 0 else 10
    return StoredGuess(question, (float(guess),), (float(guess),), 1, "2026-11-24")


def test_a_summary_counts_measures_and_tells_a_tendency():
    right = StoredGuess(make_question("choice", (1.0,), choices=("a", "b")), (1.0,), (1.0,), 1, "2026-11-24")
    assert summed_up([]) == ["No guess yet."]
    assert summed_up([right]) == ["1 guess.", "1 of 1 choice right."]
    guesses = [right, make_guess(1), make_guess(1, "log"), make_guess(1, "log"), make_guess(-1, "log"), make_guess(0)]
    assert summed_up(guesses) == [
        "6 guesses.",
        "1 of 1 choice right.",
        "Of 5 numbers and curves: 3 too high, 1 too low, 1 neither.",
        "Their median error is 5% of the range on linear scales, and a factor of 2 on logarithmic ones.",
        "Your guesses tend to be too high: 3 of 4 that missed.",
    ]
    assert tendency([make_guess(1)] * 3) == "That is too few to show a tendency."
    assert tendency([make_guess(1, "log"), make_guess(-1, "log")] * 3) == "Your guesses lean neither way."
    assert tendency([make_guess(-1, "log")] * 4) == "Your guesses tend to be too low: 4 of 4 that missed."


def test_a_day_is_summed_up_live_and_its_text_says_nothing_of_it(tmp_path):
    summary = Guesses(2, root=tmp_path)
    text = summary.as_text()
    picture = summary._repr_mimebundle_()[0]["image/png"]
    assert on_page(summary).shown["rows"] == []
    number(tmp_path, unit="%").take(0.9)
    curve(tmp_path).take([0.1, 0.2, 0.3])
    choice(tmp_path).take("a")
    rows = on_page(summary).shown["rows"]
    assert rows[0] == [QUESTION, "0.9%", "0.5%", "too high by 40% of the range"]
    assert rows[1][1:3] == ["0.1 … 0.3", "0.2 … 0.8"] and rows[2][1:] == ["a", "b", "not right"]
    assert on_page(summary).shown["lines"][0] == "3 guesses."
    assert list(summary.kept) == ["largest", "grown", "first"]
    assert (summary.as_text(), summary._repr_mimebundle_()[0]["image/png"]) == (text, picture)
    later = Guesses(2, root=tmp_path)
    assert on_page(later).shown["rows"] == []
    send(later, asked=1)
    assert len(on_page(later).shown["rows"]) == 3


def test_a_guess_kept_while_another_one_is_reported_costs_neither(tmp_path):
    class Hearer:
        def subscribe(self, day):
            if "other" not in read(day, tmp_path):
                number(tmp_path, "other").take(0.3)

    there = Hearer()
    subscribe(there.subscribe)
    subscribe(Hearer().subscribe)  # is gone at once: both guesses meet it
    number(tmp_path).take(0.9)
    assert list(read(2, tmp_path)) == ["largest", "other"]


def test_a_broken_file_is_said_by_the_summary(tmp_path):
    (tmp_path / "guesses").mkdir()
    (tmp_path / "guesses" / "day2.json").write_text("{")
    summary = Guesses(2, root=tmp_path)
    summary.read()
    assert on_page(summary).shown["lines"] == [
        "guesses/day2.json is not a record of guesses; the next guess sets it aside, or you can delete it."
    ]


def test_the_course_map_shows_guesses_across_days_and_what_cannot_be_read(tmp_path):
    course_map = ProgressMap(tmp_path)
    text = course_map.as_text()
    assert not any("guess" in line for line in on_page(course_map).shown["lines"])
    for day, guess in ((1, 0.9), (2, 0.2), (3, 0.9)):
        Guess.number(day, "it", "How much?", truth=0.5, low=0, high=1, root=tmp_path).take(guess)
    (tmp_path / "guesses" / "day3.json").write_text("{")
    course_map.read()
    state = on_page(course_map).shown
    assert [card["lines"][-1] for card in state["cards"][:2]] == ["1 guess: 1 too high", "1 guess: 1 too low"]
    assert state["lines"][-1].startswith("Your guesses: 2 guesses. Of 2 numbers and curves: 1 too high, 1 too low, 0 ")
    assert state["lines"][-2].startswith("guesses/day3.json is not a record of guesses")
    assert course_map.as_text() == text


def test_places_are_written_with_all_their_digits(tmp_path):
    widget = Guess.curve(2, "p", "?", [0.5, 16384, 131072], truth=[0, 0, 0], low=0, high=1, root=tmp_path)
    assert widget.question.places == ("0.5", "16,384", "131,072")
