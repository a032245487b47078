"""Every widget for a page without a kernel, and what a mouse and a keyboard do with each there."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from course_utils import views
from course_utils.course import ROOT
from course_utils.models.decoder import Decoder
from course_utils.views.shared.base import CourseWidget

PLANE = {"query": [1, 1], "keys": [[1, 0], [0, 1], [1, 1]], "values": [[1, 0], [0, 1], [0, 0]]}
TILES = [
    {"right": True, "held": True, "name": "loops", "message": "Kept.", "hints": []},
    {"right": False, "held": False, "name": "x", "message": "", "hints": ["Large scores.", "Try 1e4."]},
]
QUESTION = {
    "question": "Which one?",
    "choices": [{"text": "yes", "right": True, "why": "It is."}, {"text": "no", "right": False, "why": "It is not."}],
}
TRACE = {
    "name": "PrefixCache",
    "made": "cache = PrefixCache(2, 1)",
    "calls": [
        {"code": "cache.admit('a', (0, 1))", "gave": "(0, [0, 1])"},
        {"code": "cache.commit('a')", "gave": ""},
        {"code": "cache.admit('b', (1,))", "gave": "(0, [0])"},
    ],
    "pictures": [
        {"n_blocks": 2, "block_size": 1, "tables": tables, "texts": texts, "prompts": {name: [0, 1] for name in tables}}
        for tables, texts in (({}, {}), ({"a": [0, 1]}, {}), ({"a": [0, 1]}, {"0": [0], "1": [0, 1]}))
    ],
    "promise": "a block has one owner",
    "said": "block 0 was handed to b to be written, and a has it",
}
ROUND = ([0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.4, 0.3], [1, 2, 0], [0.5, 0.7, 0.2, 0.8], ["the", "cat", "sat", "down"])
LADDER = (
    [(1, 5.6), (20, 3.4), (60, 2.6), (200, 2.1), (400, 1.7)],
    [5.55, 3.31, 2.45],
    [(20, 3.4, "eo t  nha"), (80, 2.5, "thend ore"), (200, 2.1, "the kind sore"), (400, 1.7, "the king is sore")],
)
CURVE = {"x": [4, 16, 64], "truth": [0.2, 0.5, 0.8], "low": 0, "high": 1, "x_label": "d_k", "y_label": "weight"}


def small_model():
    torch.manual_seed(0)
    return Decoder(8, 16, 2, 2)


class Reader:
    examples = ("xyz", "xxxx")

    def __call__(self, text):
        n = len(text)
        return [*text], torch.full((1, 2, n, n), 1 / n)


class Moved(NamedTuple):
    """How a widget is made, and what moves it.

    Attributes:
        make: returns a new widget.
        mouse: moves it on a page, and says what has to change there.
        keys: what has the focus, the key, and what changes; None if nothing has to.
    """

    make: Callable[[], CourseWidget]
    mouse: Callable[[Any], None]
    keys: tuple[tuple[str, str, str | None], ...]


ALONE: dict[str, Moved] = {}  # by the name of the class, and the kind of a guess


def moved(name, make, *keys):
    """Let all tests of every widget try this one, which the function below moves by mouse."""

    def take(mouse):
        ALONE[name] = Moved(make, mouse, keys)
        return mouse

    return take


def text(page, selector):
    return page.locator(selector).first.inner_text()


def button(page, name, **more):
    return page.get_by_role("button", name=name, **more)


def changes(page, act, *selectors):
    """Each of these says something else after the act than before, at once."""
    before = [text(page, selector) for selector in selectors]
    act()
    after = [text(page, selector) for selector in selectors]
    assert all(was != now for was, now in zip(before, after, strict=True)), (before, after)


def select(page, label, choice):
    page.get_by_role("combobox", name=re.compile(f"^{label}")).select_option(choice)


@moved(
    "HeadAblation",
    lambda: views.HeadAblation(small_model(), [1, 2, 3, 4, 5]),
    ("[role=switch]", "Space", ".course-ablation-message"),
    ("[role=listbox]", "End", ".course-ablation-reading"),
)
def ablation(page):
    message = ".course-ablation-message"
    mean = ".course-ablation-value"
    changes(page, lambda: page.get_by_role("switch", name="layer 0, head 1").click(), message, mean)
    button(page, "keep as A").click()
    changes(page, lambda: button(page, "all off").click(), message, mean, ".course-ablation-against")
    changes(page, lambda: button(page, "each alone").click(), "[role=switch] .course-ablation-rise")
    changes(page, lambda: button(page, "all on").click(), message)
    assert page.locator(".course-ablation-late").count() == 0 and text(page, ".course-ablation-waits") == ""
    changes(page, lambda: button(page, "forget A").click(), ".course-ablation-against")


@moved(
    "MemoryCalculator",
    lambda: views.MemoryCalculator(context=2048, batch=8, card="24 GiB"),
    ("select >> nth=0", "ArrowDown", ".course-calculator-how"),
    ("input[type=range]", "ArrowLeft", ".course-calculator-how"),
)
def calculator(page):
    how = ".course-calculator-how"
    fit = ".course-calculator-fit"
    changes(page, lambda: select(page, "model", "Mistral 7B"), how, fit)
    changes(page, lambda: select(page, "numbers in the cache", "4"), how)
    changes(page, lambda: select(page, "card", "80 GiB"), fit)
    changes(page, lambda: page.get_by_role("slider").nth(2).click(position={"x": 4, "y": 4}), how)
    select(page, "model", "my own sizes")
    page.get_by_label("layers").fill("0")
    page.get_by_label("d_head").click()
    assert text(page, ".course-calculator-problem") == "layers is 0: it must be at least 1."
    page.get_by_label("layers").fill("10")
    changes(page, lambda: page.get_by_label("d_head").click(), how)
    assert page.locator(".course-calculator-problem").is_hidden()


@moved(
    "Guess, a choice",
    lambda: views.Guess.choice(2, "c", "Which is first?", choices=["a", "b", "c"], truth="b"),
    ("input[type=radio]", "Space", None),
    (".course-guess-take", "Enter", ".course-guess-message"),
)
def choice(page):
    page.get_by_text("b", exact=True).click()
    button(page, "Guess").click()
    assert text(page, ".course-guess-message") == "Your guess is right."
    button(page, "Guess again").click()
    assert button(page, "Guess", exact=True).is_visible()


@moved(
    "Guess, a curve",
    lambda: views.Guess.curve(2, "k", "How does it grow?", **CURVE),
    ("[role=slider]", "ArrowUp", ".course-guess-hint"),
)
def curve(page):
    box = page.locator("svg.course-guess-plot").bounding_box()
    page.mouse.move(box["x"] + 40, box["y"] + 150)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + 60, steps=12)
    page.mouse.up()
    button(page, "Guess").click()
    assert "on average" in text(page, ".course-guess-message")
    page.get_by_text("The numbers").click()
    assert page.get_by_role("row").count() == 4


@moved(
    "DecodeStepper",
    lambda: views.DecodeStepper(["the", "cat"], ["sat", "down"]),
    (".course-decoding-words input", "x", None),
    (".course-decoding-words input", "Enter", ".course-decoding-grid"),
    (".course-player input", "ArrowRight", ".course-player-place"),
)
def decoding(page):
    changes(page, lambda: button(page, "step", exact=True).click(), ".course-decoding-message [role=status]")
    page.get_by_label("then it writes").fill("one two three")
    button(page, "use these words").click()
    assert text(page, ".course-player-place") == "1 of 3"
    page.get_by_role("textbox", name="prompt").fill("w" * 17)
    button(page, "use these words").click()
    assert "at most 16 fit" in text(page, ".course-decoding-problem")


@moved("DuelBoard", lambda: views.DuelBoard(TILES), (".course-duel-tile", "Enter", ".course-duel-detail"))
def duel_board(page):
    changes(page, lambda: button(page, "wrong implementation 1").click(), ".course-duel-detail")
    changes(page, lambda: button(page, "A hint").click(), ".course-duel-detail")


@moved(
    "HeadExplorer",
    views.HeadExplorer,
    (".course-explorer-offered button >> nth=1", "Enter", ".course-explorer-words"),
    (".course-explorer-word[tabindex='0']", "ArrowLeft", ".course-explorer-message"),
    ("td[tabindex='0']", "ArrowUp", ".course-explorer-line"),
    (".course-explorer-line[tabindex='0']", "ArrowDown", ".course-explorer-message"),
    (".course-explorer-head[tabindex='0']", "ArrowUp", ".course-explorer-message"),
    ("select", "ArrowDown", ".course-explorer-line"),
)
def explorer(page):
    message = ".course-explorer-message"
    first = ".course-explorer-line"
    changes(
        page,
        lambda: button(page, "layer 16, head 0").click(),
        message,
        ".course-explorer-weights .course-explorer-heading",
    )
    changes(page, lambda: page.get_by_role("radio", name="3 we").click(), message, first, ".course-explorer-next")
    changes(page, lambda: page.locator(".course-explorer-weights td >> nth=24").click(), message, first)
    changes(page, lambda: select(page, "heads by", "before"), first)
    changes(page, lambda: page.locator(first).nth(1).click(), message, ".course-explorer-rank")
    button(page, "The small red fox saw the small red").click()
    changes(page, lambda: select(page, "heads by", "again"), first)
    assert text(page, first).startswith("layer 18, head 6") and page.get_by_role("radio").count() == 8
    assert page.get_by_role("textbox").is_disabled()
    assert page.get_by_text("A sentence of your own needs Python and the model").is_visible()


@moved(
    "HeadGallery",
    lambda: views.HeadGallery(torch.full((1, 2, 2, 2), 0.5), ["a", "b"], read=Reader(), readable="letters"),
    (".course-gallery-strip button", "ArrowRight", ".course-gallery-reading"),
    (":text('xxxx')", "Enter", ".course-gallery-strip"),
)
def gallery(page):
    button(page, "layer 0, head 1").click()
    button(page, "query 1: b").click()
    assert text(page, ".course-gallery-state") == "query 1 “b”, pinned"
    button(page, "xyz").click()
    assert page.locator(".course-gallery-strip button").all_inner_texts() == ["x", "y", "z"]
    assert text(page, ".course-gallery-heading b") == "layer 0, head 1" and text(page, ".course-gallery-state") != ""
    assert page.get_by_role("textbox").count() == 0
    assert page.get_by_text("A text of your own needs Python: run this lesson in JupyterLab.").is_visible()


@moved(
    "Guess, a number",
    lambda: views.Guess.number(2, "n", "How large?", truth=0.8, low=0, high=1),
    ("input[type=range]", "ArrowRight", None),
    (".course-guess-take", "Enter", ".course-guess-message"),
)
def guess(page):
    page.get_by_role("slider").click(position={"x": 8, "y": 8})
    button(page, "Guess").click()
    assert text(page, ".course-guess-message") == "Computed: 0.8. Your guess is too low by 80% of the range."
    assert text(page, ".course-guess-kept") == "Kept in this browser; it is sent nowhere."


@moved("Guesses", lambda: views.Guesses(2))
def guesses(page):
    assert re.match(r"No guess yet\.|\d guess", text(page, ".course-guesses-message"))


@moved(
    "AttentionHeatmap",
    lambda: views.AttentionHeatmap([[0.75, 0.25], [0.5, 0.5]], ["a", "b"]),
    ("[tabindex='0'][role=gridcell]", "ArrowDown", ".course-heatmap-state"),
)
def heatmap(page):
    changes(page, lambda: page.get_by_role("gridcell").first.click(), ".course-heatmap-state")


@moved("ProgressMap", views.ProgressMap)
def course_map(page):
    assert page.get_by_role("button").count() == 0
    assert page.get_by_role("link", name="lesson of Day 1").get_attribute("href").endswith(".html")
    assert page.get_by_role("listitem").count() == 9
    assert str(ROOT) not in page.content()


@moved(
    "OnlineSoftmaxStepper",
    lambda: views.OnlineSoftmaxStepper([2.0, -1, 3.5, 0.5], [[1, 0], [0, 1], [1, 1], [0, 0]]),
    (".course-online-name", "ArrowRight", ".course-online-name"),
    (".course-player input", "ArrowRight", ".course-player-place"),
)
def online_softmax(page):
    handle, to = (button(page, re.compile(f"^key {key}, ")).bounding_box() for key in (0, 2))
    page.mouse.move(handle["x"] + 5, handle["y"] + 5)
    page.mouse.down()
    page.mouse.move(to["x"] + to["width"] / 2, to["y"] + 5, steps=5)
    page.mouse.up()
    assert page.locator(".course-online-name").all_inner_texts() == ["key 1", "key 2", "key 0", "key 3"]
    changes(page, lambda: button(page, "step", exact=True).click(), ".course-online-message [role=status]")
    assert text(page, "tr[data-state=now] th") == "key 1"


@moved(
    "PageTable",
    views.PageTable,
    ("tbody button >> nth=0", "Enter", ".course-pages-message"),
    ("tbody button >> nth=1", "Space", ".course-pages-message"),
    ("tbody button >> nth=2", "Enter", "[data-sum=alone]"),
    (".course-pages-lot button >> nth=1", "Enter", "[data-sum=alone]"),
)
def page_table(page):
    message = ".course-pages-message"
    used = "[data-sum=used]"
    changes(page, lambda: button(page, "fork a").click(), message, "[data-sum=alone]")
    changes(page, lambda: button(page, "append a token to b").click(), message, used)
    assert "a copy of block 1" in text(page, message)
    changes(page, lambda: button(page, "free a").click(), message, used)
    changes(page, lambda: button(page, "new sequence").click(), message)
    changes(page, lambda: button(page, "back").click(), message)
    changes(page, lambda: button(page, "as given").click(), message)
    button(page, "fork a").click()


@moved(
    "MaskPainter",
    lambda: views.MaskPainter(["the", "cat", "sat"]),
    ("[role=checkbox]", "Space", "td[data-mark]"),
    ("input[type=radio] >> nth=1", "ArrowRight", ".course-painter-verdict [role=status]"),
)
def painter(page):
    verdict = ".course-painter-verdict [role=status]"
    weight = "td[data-mark]"
    page.get_by_role("checkbox", name="the may attend to sat").click()
    assert text(page, verdict).startswith("looks ahead: the output of “the” changes when “sat” changes")
    changes(page, lambda: page.get_by_role("checkbox", name="the may attend to the").click(), weight)
    changes(page, lambda: page.get_by_role("radio", name="sliding window").click(), verdict)
    assert text(page, ".course-painter-late") == "" == page.locator(".course-painter-late").last.inner_text()
    button(page, "Copy as code").click()
    assert "torch.ones(3, 3" in page.get_by_role("textbox").input_value()


@moved(
    "Practice",
    lambda: views.Practice("softmax"),
    ("input[type=text]", "1", None),
    ("input[type=text]", "Enter", ".course-practice-said"),
    ("input[type=number]", "ArrowUp", ".course-practice-message"),
)
def practice(page):
    assert "This page has 10 problems" in text(page, ".course-practice-few")
    button(page, "Check").click()
    assert text(page, ".course-practice-summary").startswith("All fields are empty.")
    assert page.locator("[aria-invalid=true]").count() == 0
    page.get_by_role("textbox").first.fill("1000")
    changes(page, lambda: button(page, "Check").click(), ".course-practice-said")
    button(page, "Show the right values").click()
    right = text(page, ".course-practice-right").removeprefix("right: ")
    page.get_by_role("textbox").first.fill(right)
    button(page, "Check").click()
    assert text(page, ".course-practice-said") == "right"
    changes(page, lambda: button(page, "Another problem").click(), ".course-practice-message")
    assert page.get_by_label("softmax, number").input_value() == "2"


@moved("QueryPlane", lambda: views.QueryPlane(**PLANE), ("g[role=slider]", "ArrowLeft", ".course-plane-said"))
def query_plane(page):
    changes(page, lambda: button(page, "key 2").click(), ".course-plane-said", ".course-plane-number")
    changes(page, lambda: button(page, "twice as long").click(), ".course-plane-said")


@moved("Quiz", lambda: views.Quiz([QUESTION]), ("input[type=radio]", "Space", ".course-quiz-message"))
def quiz(page):
    changes(page, lambda: page.get_by_text("no", exact=True).click(), ".course-quiz-message")
    assert text(page, ".course-quiz-message") == "Not so. It is not."
    changes(page, lambda: button(page, "Start again").click(), ".course-quiz-score", ".course-quiz-message")


@moved(
    "SaturationExplorer",
    lambda: views.SaturationExplorer(seed=5),
    ("input[type=range]", "ArrowLeft", ".course-bars-message"),
    (".course-saturation-lot button", "Enter", ".course-saturation-seed"),
)
def saturation(page):
    message = ".course-bars-message"
    changes(page, lambda: page.get_by_label("divide the scores by √d_k").click(), message)
    for _ in range(9):  # eight draws come with the page, in a circle
        changes(page, lambda: button(page, "Draw again").click(), message, ".course-saturation-seed")
    page.get_by_label("show the trace").click()
    assert page.locator("[data-row=trace]").first.is_visible()


@moved(
    "SpeculativeStepper",
    lambda: views.SpeculativeStepper(*ROUND),
    (".course-player input", "ArrowRight", ".course-spec-message [role=status]"),
    (".course-bars-slider input", "ArrowRight", ".course-spec-alpha b"),
    (".course-spec-lot button", "Enter", ".course-spec-seed"),
)
def speculative(page):
    message = ".course-spec-message [role=status]"
    chips = ".course-spec-chips"
    changes(page, lambda: button(page, "step", exact=True).click(), message, chips, ".course-spec-head")
    changes(
        page,
        lambda: page.locator(".course-bars-slider input").click(position={"x": 150, "y": 8}),
        ".course-spec-alpha b",
    )
    changes(page, lambda: button(page, "New coins").click(), ".course-spec-seed", chips)
    changes(page, lambda: button(page, "New coins").click(), ".course-spec-seed")
    changes(page, lambda: button(page, "As given").click(), ".course-spec-seed")
    page.locator(".course-bars-slider input").fill("0")
    page.locator(".course-player input").fill("3")
    assert text(page, ".course-spec-got b") == "2"


@moved(
    "AttentionStepper",
    lambda: views.AttentionStepper.from_qkv([[1, 0]], [[1, 0], [0, 1]], [[1], [2]], ["a"], ["k", "l"]),
    (".course-player input", "ArrowLeft", "[role=status]"),
    ("[role=tab][aria-selected=true]", "ArrowLeft", "[role=status]"),
)
def stepper(page):
    page.get_by_role("tab", name="scores").click()
    changes(page, lambda: page.locator(".course-stepper-current td[role=gridcell]").first.click(), "[role=status]")
    button(page, re.compile("plus 0.5")).click()
    assert button(page, "all as given").get_attribute("aria-disabled") == "false"


@moved(
    "RopeClock",
    views.RopeClock,
    ("input[type=range]", "ArrowRight", ".course-clock-message"),
)
def rope_clock(page):
    cosine = ".course-clock-cos >> nth=1"
    changes(page, lambda: button(page, "base 100", exact=True).click(), ".course-clock-message", cosine)
    before = text(page, ".course-clock-message")
    button(page, "move both by +10").click()
    assert text(page, ".course-clock-message") == before


@moved(
    "TemperatureExplorer",
    lambda: views.TemperatureExplorer([2, 1, 0.5], d_ks=[4]),
    ("input[type=range]", "ArrowRight", ".course-temperature-number >> nth=1"),
)
def temperature(page):
    changes(page, lambda: button(page, "√4").click(), ".course-temperature-number >> nth=1")


@moved(
    "ServingTimeline",
    views.ServingTimeline,
    ("select >> nth=1", "ArrowDown", ".course-player-place"),
    (".course-player input", "End", "[data-sum=first]"),
    ("td[tabindex='0']", "ArrowRight", ".course-timeline-message [role=status]"),
    ("td[tabindex='0']", "ArrowDown", ".course-timeline-message [role=status]"),
)
def timeline(page):
    message = ".course-timeline-message [role=status]"
    place = ".course-player-place"
    changes(page, lambda: button(page, "step", exact=True).click(), message, "[data-sum=steps]", "[data-sum=budget]")
    changes(page, lambda: page.locator("td[data-row='4'][data-column='0']").hover(), message)
    assert text(page, message) == "Step 1: C waits: the budget of 4 tokens is used."
    changes(page, lambda: select(page, "scheduler", "static"), message, place)
    changes(page, lambda: select(page, "budget", "1"), place)
    changes(page, lambda: select(page, "requests", "too few blocks"), place)
    changes(page, lambda: select(page, "blocks", "3"), place)
    assert text(page, ".course-timeline-waits") == ""
    page.get_by_role("slider").fill("5")


@moved(
    "TracePlayer",
    lambda: views.TracePlayer(TRACE),
    (".course-trace-call", "ArrowRight", ".course-trace-message [role=status]"),
    (".course-trace-call >> nth=3", "Enter", ".course-trace-message [role=status]"),
    (".course-player input", "Home", ".course-trace-caption"),
)
def trace(page):
    message = ".course-trace-message [role=status]"
    changes(page, lambda: button(page, "step", exact=True).click(), message, ".course-trace-caption")
    changes(page, lambda: button(page, "cache.admit('b', (1,))").click(), message, ".course-player-place")
    assert text(page, message).startswith("✗ Broken promise: “a block has one owner”.")


@moved(
    "TileWalker",
    lambda: views.TileWalker(8, d=3),
    ("input[type=checkbox]", "Space", ".course-player-place"),
    ("input[type=range]", "ArrowRight", ".course-tiles-message [role=status]"),
)
def walker(page):
    changes(page, lambda: page.get_by_label("causal").click(), ".course-player-place")
    changes(page, lambda: select(page, "keys in a block", "1"), ".course-player-place")
    assert text(page, ".course-tiles-waits") == ""
    changes(page, lambda: page.locator(".course-tiles-tile").nth(3).click(), ".course-tiles-message [role=status]")


@moved(
    "WindowLoss",
    lambda: views.WindowLoss(128, 0),
    ("input[type=range] >> nth=0", "ArrowRight", "[role=status]"),
    ("input[type=range] >> nth=1", "ArrowRight", "[role=status]"),
)
def window_loss(page):
    message = "[role=status]"
    changes(page, lambda: page.get_by_role("slider").nth(1).fill("1"), message)
    assert text(page, message).startswith("Room for 128 keys: the first, and the last 127.")
    changes(page, lambda: page.get_by_role("slider").nth(0).click(position={"x": 4, "y": 8}), message)
    assert text(page, message).startswith("Room for 32 keys")


@moved(
    "MemoryBoard",
    lambda: views.MemoryBoard([[1, 0], [0.6, 0.8], [1, 0]], [[2, 0], [1, 1], [0, 1]], ["lamp", "door", "moved"]),
    ("button[aria-label='write lamp']", "Enter", ".course-memory-read"),
)
def memory_board(page):
    message, read = "[role=status]", ".course-memory-read"
    changes(page, lambda: button(page, "write lamp").click(), message, read, ".course-memory-state td")
    changes(page, lambda: button(page, "write moved").click(), message, read)
    assert text(page, message) == "Written last: moved. Not read back as written: lamp, moved."
    changes(page, lambda: button(page, re.compile("^delta rule")).click(), message, read)
    assert text(page, message) == "Written last: moved. Every key reads what it last wrote."
    changes(page, lambda: button(page, "Undo").click(), message, read)
    changes(page, lambda: button(page, "Clear").click(), message, read)


@moved(
    "MergeStepper",
    lambda: views.MergeStepper("the cat, the hat, the café"),
    ("button[aria-label='to the end']", "Enter", ".course-merges-message [role=status]"),
    (".course-player input", "ArrowLeft", ".course-merges-sums b >> nth=1"),
    (".course-player input", "Home", ".course-merges-list tbody"),
    ("textarea", "x", ".course-merges-sums b"),
)
def merges(page):
    message, sums = ".course-merges-message [role=status]", ".course-merges-sums b >> nth=1"
    assert text(page, message).startswith("Each byte is a token: 27 tokens. Most frequent now: “e” + “␣”, 3 times")
    changes(page, lambda: button(page, "step", exact=True).click(), message, sums, ".course-merges-list")
    changes(page, lambda: button(page, "to the end").click(), message, sums, ".course-merges-list")
    assert text(page, message).endswith("No pair occurs twice now, so merging ends.")
    changes(page, lambda: button(page, "back").click(), message)
    page.get_by_role("textbox").fill("é" * 201)
    problem = ".course-merges-problem"
    assert text(page, problem) == "These are 201 characters: at most 200 fit. Shown is the text before."
    page.get_by_role("textbox").fill("aaa")
    assert text(page, message) == "Each byte is a token: 3 tokens. Most frequent now: “a” + “a”, 2 times."
    changes(page, lambda: button(page, "step", exact=True).click(), message, sums)
    assert page.locator(".course-merges-tokens > *").all_inner_texts() == ["aa", "a"]
    assert text(page, problem) == ""
    page.get_by_role("textbox").fill("🌍🌍")
    assert page.locator(".course-merges-tokens > *").all_inner_texts() == ["<F0>", "<9F>", "<8C>", "<8D>"] * 2


@moved(
    "LossLadder",
    lambda: views.LossLadder(*LADDER),
    ("input[type=range]", "End", "[role=status]"),
    ("input[type=range]", "ArrowLeft", ".course-ladder-text.course-ladder-chosen"),
)
def ladder(page):
    message, written = "[role=status]", ".course-ladder-text.course-ladder-chosen"
    assert text(page, message).endswith("character, below ln V (5.55) and above the unigram floor (3.31).")
    changes(page, lambda: page.get_by_role("slider").fill("3"), message, written)
    assert text(page, message) == "Step 400: loss 1.70 nats per character, below the bigram floor (2.45)."
    assert text(page, written) == "the king is sore"
    changes(page, lambda: page.get_by_role("slider").click(position={"x": 4, "y": 8}), message, written)
