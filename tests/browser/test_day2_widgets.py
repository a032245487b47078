"""The two widgets of day 2 in JupyterLab and on pages of their own."""

import itertools
import json
import math

import pytest

from course_utils.attention import scaling
from course_utils.views import SaturationExplorer, TemperatureExplorer

CELLS = [
    "from course_utils.views import SaturationExplorer, TemperatureExplorer",
    "explorer = SaturationExplorer()\nexplorer",
    "heat = TemperatureExplorer([2, 1, 0.5, -1], ['the', 'cat', 'sat', 'down'], d_ks=[16, 20])\nheat",
    "two = SaturationExplorer()\ntwo",
]
SATURATION = ".course-saturation >> nth=0"
TEMPERATURE = ".course-temperature"
SECOND = ".course-saturation >> nth=1"
PLAIN = "explorer.d_k, explorer.n_keys, explorer.scaled, explorer.seed, explorer.trace = 64, 8, False, 0, False"
COOL = "heat.scores, heat.temperature = [2, 1, 0.5, -1], 1"


@pytest.fixture(scope="module")
def notebook(opened):
    return opened


@pytest.fixture(autouse=True)
def from_the_start(request):
    if "notebook" in request.fixturenames:
        notebook = request.getfixturevalue("notebook")
        notebook.run(f"{PLAIN}; {COOL}")
        wait_for(notebook, "seed 0", ("64", "8"), "1")


def wait_for(notebook, seed, values, temperature):
    place = notebook.find(SATURATION)
    heat = notebook.find(TEMPERATURE)
    texts = place.locator(".course-bars-value")
    notebook.wait(lambda: texts.all_inner_texts() == [*values], "the sliders show what Python has")
    notebook.wait(lambda: heat.locator(".course-bars-value").inner_text() == temperature, "the temperature shows")
    notebook.wait(lambda: place.locator(".course-saturation-seed").inner_text() == seed, "the seed shows")


def slider(place, name):
    return place.get_by_role("slider", name=name)


def values(place, selector):
    return [
        float(value) for value in place.locator(selector).evaluate_all("nodes => nodes.map((n) => n.dataset.value)")
    ]


def displayed_weights(place, widget="saturation"):
    kind = ".course-saturation-key:not([hidden]) .course-saturation-weight"
    return values(place, kind if widget == "saturation" else "tbody .course-temperature-number")


def readouts(place, measures, column):
    """What the table says in a column, a measure each."""
    values = place.locator(f"[data-measure][data-column={column}]").evaluate_all(
        "nodes => Object.fromEntries(nodes.map((node) => [node.dataset.measure, Number(node.dataset.value)]))"
    )
    return [values[measure] for measure in measures]


def wait_for_weights(notebook, place, weights, widget="saturation"):
    close = pytest.approx(weights, rel=1e-12, abs=1e-300)
    notebook.wait(lambda: displayed_weights(place, widget) == close, f"the page shows {weights[:4]} …")


def python(notebook, expression):
    return json.loads(notebook.run(f"import json; print(json.dumps({expression}))"))


class TestSaturation:
    def test_the_pages_numbers_are_pythons(self, notebook):
        """Softmax, entropy and trace of the page against the library's, at the ends and in the middle."""
        place = notebook.find(SATURATION)
        for d_k, n_keys, on, seed in [
            *itertools.product((1, 64, 4096), (2, 32), (False, True), (0, 9)),
            (512, 8, True, 999_999),
        ]:
            notebook.run(
                f"explorer.d_k, explorer.n_keys, explorer.scaled, explorer.seed = {d_k}, {n_keys}, {on}, {seed}"
            )
            here = SaturationExplorer(d_k, n_keys, on, seed)
            wait_for_weights(notebook, place, here.weights.tolist())
            measured = scaling.entropy(here.weights).item(), scaling.jacobian_trace(here.weights).item()
            names = "largest", "entropy", "trace"
            assert readouts(place, names, "draw") == pytest.approx([here.weights.max(), *measured], rel=1e-9, abs=1e-12)
            assert readouts(place, names, "most") == pytest.approx([1, math.log(n_keys), 1 - 1 / n_keys])
            assert readouts(place, names, "unscaled") == list(here.means["no scale"])
            assert readouts(place, names, "scaled") == list(here.means["scaled"])

    def test_a_dragged_slider_changes_bars_and_python(self, notebook):
        place = notebook.find(SATURATION)
        handle = slider(place, "d_k")
        handle.scroll_into_view_if_needed()
        box = handle.bounding_box()
        y = box["y"] + box["height"] / 2

        def at(part):
            return box["x"] + 8 + (box["width"] - 16) * part

        notebook.page.mouse.move(at(6 / 12), y)
        notebook.page.mouse.down()
        for position in range(6, 13):
            notebook.page.mouse.move(at(position / 12), y)
        wait_for_weights(notebook, place, SaturationExplorer(d_k=4096).weights.tolist())
        notebook.page.mouse.up()
        notebook.expect("explorer.d_k", "4096")

    def test_a_press_of_a_key_changes_the_bars_before_python_answers(self, notebook, tmp_path):
        """The kernel sleeps meanwhile, until a file is there."""
        place = notebook.find(SATURATION)
        woken = tmp_path / "woken"
        slider(place, "d_k").focus()
        sleep = f"import pathlib, time\nwhile not pathlib.Path({str(woken)!r}).exists():\n    time.sleep(0.01)"
        notebook.page.evaluate(
            "(code) => { window.asleep = window.courseNotebook.sessionContext.session.kernel.requestExecute({ code })"
            ".done; window.awake = false; window.asleep.then(() => { window.awake = true; }); }",
            sleep,
        )
        try:
            notebook.page.keyboard.press("End")
            notebook.page.keyboard.press("ArrowLeft")
            assert displayed_weights(place) == pytest.approx(
                SaturationExplorer(d_k=2048).weights.tolist(), rel=1e-12, abs=1e-300
            )
            assert notebook.page.evaluate("window.awake") is False
        finally:
            woken.touch()
            notebook.page.evaluate("window.asleep")
        notebook.expect("explorer.d_k", "2048")

    def test_the_keyboard_does_all_and_jupyterlab_hears_nothing(self, notebook):
        place = notebook.find(SATURATION)
        keyboard = notebook.page.keyboard
        slider(place, "d_k").focus()
        active = notebook.page.evaluate("window.courseNotebook.content.activeCellIndex")
        for key in (
            "Home",
            "ArrowRight",
            "ArrowUp",
            "Enter",
            "Tab",
            "End",
            "ArrowDown",
            "Tab",
            "Space",
            "Tab",
            "Enter",
        ):
            keyboard.press(key)
        notebook.expect("explorer.d_k, explorer.n_keys, explorer.scaled, explorer.seed", "(4, 16, True, 1)")
        assert notebook.page.evaluate("window.courseNotebook.content.activeCellIndex") == active
        assert notebook.page.evaluate("document.activeElement.textContent") == "Draw again"
        wait_for_weights(notebook, place, SaturationExplorer(4, 16, True, 1).weights.tolist())

    def test_controls_tell_their_names_and_values(self, notebook):
        place = notebook.find(SATURATION)
        notebook.run("explorer.d_k = 1024; explorer.n_keys = 16; explorer.scaled = True")
        notebook.wait(lambda: slider(place, "d_k").get_attribute("aria-valuetext") == "1024", "d_k tells its value")
        assert slider(place, "number of keys").get_attribute("aria-valuetext") == "16"
        assert place.get_by_role("checkbox", name="divide the scores by √d_k").is_checked()
        chart = place.get_by_role("img", name="weights of 16 keys: ").get_attribute("aria-label")
        assert chart.endswith(", ".join(f"{w:.2f}" for w in SaturationExplorer(1024, 16, True).weights))

    def test_the_scale_marks_its_mean_and_leaves_the_other_in_place(self, notebook):
        place = notebook.find(SATURATION)
        current = place.locator("thead th.course-bars-current")
        assert current.inner_text().split() == ["mean,", "no", "scale"]
        marks = place.locator(".course-bars-mark:not(.course-bars-dot)")
        before = marks.evaluate_all("nodes => nodes.map((node) => node.style.left)")
        place.get_by_role("checkbox", name="divide").check()
        assert current.inner_text().split() == ["mean,", "scaled"]
        assert marks.evaluate_all("nodes => nodes.map((node) => node.style.left)") == before
        notebook.expect("explorer.scaled", "True")

    def test_the_curves_run_through_the_means_and_the_marks_stand_at_this_d_k(self, notebook):
        place = notebook.find(SATURATION)
        notebook.run("explorer.d_k = 512")
        notebook.wait(lambda: slider(place, "d_k").get_attribute("aria-valuetext") == "512", "d_k shows")
        field = place.locator(".course-saturation-curve[data-row=largest] .course-saturation-field")
        points = field.locator("polyline").evaluate_all("nodes => nodes.map((node) => node.getAttribute('points'))")
        for drawn, on in zip(points, ("no scale", "scaled"), strict=True):
            heights = [1 - float(point.split(",")[1]) for point in drawn.split()]
            expected = [SaturationExplorer(2**power).means[on].largest for power in range(13)]
            assert heights == pytest.approx(expected, abs=1e-9)
        marks = field.locator(".course-bars-mark")
        assert marks.evaluate_all("nodes => nodes.map((node) => node.style.left)") == ["75%"] * 3
        tops = marks.evaluate_all("nodes => nodes.map((node) => 1 - parseFloat(node.style.top) / 100)")
        here = SaturationExplorer(512)
        heights = [here.means["no scale"].largest, here.means["scaled"].largest, here.weights.max()]
        assert tops == pytest.approx(heights, abs=1e-5)
        assert field.get_attribute("aria-label").startswith("mean largest weight for d_k from 1 to 4096: 0.3")

    def test_the_trace_shows_once_asked_for(self, notebook):
        place = notebook.find(SATURATION)
        rows = place.locator("tr[data-row=trace]")
        curves = place.locator("div[data-row=trace]")
        assert not rows.is_visible() and not curves.is_visible()
        place.get_by_role("checkbox", name="show the trace").check()
        assert rows.is_visible() and curves.is_visible()
        notebook.expect("explorer.trace", "True")

    def test_drawing_again_goes_round_without_python(self, notebook):
        place = notebook.find(SATURATION)
        again = place.get_by_role("button", name="Draw again")
        seed = place.locator(".course-saturation-seed")
        notebook.run("explorer.seed = 14")
        notebook.wait(lambda: seed.inner_text() == "seed 14", "the seed of Python shows")
        for expected in (15, 8, 9):
            again.click()
            assert seed.inner_text() == f"seed {expected}"
        wait_for_weights(notebook, place, SaturationExplorer(seed=9).weights.tolist())
        notebook.expect("explorer.seed", "9")

    def test_the_sentence_names_the_winner(self, notebook):
        text = notebook.find(SATURATION).get_by_role("status").inner_text()
        scores = SaturationExplorer().scores
        weights = SaturationExplorer().weights
        low, high = (f"{score:.1f}".replace("-", "−") for score in (scores.min(), scores.max()))
        assert text.startswith(
            f"The scores run from {low} to {high}. Key {weights.argmax() + 1} gets {weights.max():.2f} of"
        )


class TestTemperature:
    def test_the_pages_numbers_are_pythons(self, notebook):
        place = notebook.find(TEMPERATURE)
        for temperature, scores in ((0.01, [2, 1, 0.5, -1]), (7.3, [1000, -1000, 3, 3]), (100, [0, 0, 0, 0])):
            notebook.run(f"heat.scores, heat.temperature = {scores}, {temperature}")
            here = TemperatureExplorer(scores, temperature=temperature)
            wait_for_weights(notebook, place, here.weights.tolist(), "temperature")
            for column, at in (("now", temperature), ("one", 1)):
                here.temperature = at
                H = scaling.entropy(here.weights).item()
                result = readouts(place, ("largest", "entropy", "keys"), column)
                assert result == pytest.approx([here.weights.max(), H, math.exp(H)], rel=1e-9, abs=1e-12)

    def test_the_slider_is_logarithmic_with_one_in_the_middle(self, notebook):
        handle = slider(notebook.find(TEMPERATURE), "temperature")
        assert handle.input_value() == "107"
        handle.focus()
        result = []
        for key in ("Home", "ArrowRight", "End", "ArrowLeft"):
            notebook.page.keyboard.press(key)
            result.append(float(handle.get_attribute("aria-valuetext")))
        assert result == [0.01, 0.0101, 100, 98.7]
        notebook.expect("heat.temperature", "98.7")

    def test_every_power_of_two_is_a_stop_of_the_slider(self, notebook):
        handle = slider(notebook.find(TEMPERATURE), "temperature")
        result = []
        for power in range(-4, 7):
            handle.fill(f"{107 + 16 * power}")
            result.append(float(handle.get_attribute("aria-valuetext")))
        assert result == [2**power for power in range(-4, 7)]
        notebook.expect("heat.temperature", "64.0")

    def test_a_button_jumps_to_the_root_of_d_k_and_says_so(self, notebook):
        place = notebook.find(TEMPERATURE)
        jumps = place.get_by_role("group", name="jump to a temperature").get_by_role("button")
        assert jumps.all_inner_texts() == ["1, no scale", "√16 = 4", "√20 = 4.47"]
        for button, expected in ((1, "4.0"), (2, f"{math.sqrt(20)}"), (0, "1.0")):
            jumps.nth(button).press("Enter")
            notebook.expect("float(heat.temperature)", expected)
            pressed = jumps.evaluate_all("nodes => nodes.map((node) => node.getAttribute('aria-pressed'))")
            assert pressed == ["true" if i == button else "false" for i in range(3)]

    @pytest.mark.parametrize("temperature", [0.01, 0.0101, 98.7, 100])
    def test_the_ends_have_a_stop_of_their_own(self, notebook, temperature):
        handle = slider(notebook.find(TEMPERATURE), "temperature")
        notebook.run(f"heat.temperature = {temperature}")
        stop = {0.01: "0", 0.0101: "1", 98.7: "213", 100: "214"}[temperature]
        notebook.wait(lambda: handle.input_value() == stop, f"{temperature} is stop {stop}")

    def test_a_temperature_set_in_python_shows_as_it_is(self, notebook):
        place = notebook.find(TEMPERATURE)
        notebook.run("heat.temperature = 8")
        notebook.wait(lambda: place.locator(".course-bars-value").inner_text() == "8", "8 shows")
        assert slider(place, "temperature").get_attribute("aria-valuetext") == "8"

    def test_a_score_typed_on_the_page_reaches_bars_and_python(self, notebook):
        place = notebook.find(TEMPERATURE)
        keyboard = notebook.page.keyboard
        cells = notebook.page.evaluate("window.courseNotebook.content.widgets.length")
        place.get_by_role("spinbutton", name="score of cat").focus()
        for key in ("Control+a", "-", "3", ".", "5"):
            keyboard.press(key)
        notebook.expect("heat.scores", "[2.0, -3.5, 0.5, -1.0]")
        keyboard.press("ArrowUp")
        notebook.expect("heat.scores", "[2.0, -3.0, 0.5, -1.0]")
        keyboard.type("abxdd")  # commands of JupyterLab that add, cut and delete cells
        assert notebook.page.evaluate("window.courseNotebook.content.widgets.length") == cells
        wait_for_weights(notebook, place, TemperatureExplorer([2, -3, 0.5, -1]).weights.tolist(), "temperature")

    def test_what_is_no_score_is_marked_and_forgotten(self, notebook):
        place = notebook.find(TEMPERATURE)
        field = place.get_by_role("spinbutton", name="score of the")
        for text in ("", "5000"):
            field.fill(text)
            assert field.get_attribute("aria-invalid") == "true"
        notebook.expect("heat.scores", "[2.0, 1.0, 0.5, -1.0]")
        field.blur()
        assert field.input_value() == "2" and field.get_attribute("aria-invalid") == "false"

    def test_a_score_set_in_python_shows_even_in_the_field_with_the_focus(self, notebook):
        field = notebook.find(TEMPERATURE).get_by_role("spinbutton", name="score of sat")
        field.focus()
        notebook.run("heat.scores = [0, 0, 1 / 3, 0]")
        notebook.wait(lambda: field.input_value() == "0.3333", "the score shows")


@pytest.mark.parametrize("width", [1280, 640])
def test_nothing_moves_when_values_change(notebook, width):
    notebook.page.set_viewport_size({"width": width, "height": 1000})
    try:
        for selector, settings in (
            (SATURATION, [f"explorer.d_k, explorer.n_keys, explorer.scaled, explorer.seed = {values}" for values in
                          ((4096, 32, False, 1), (1, 2, True, 123456), (4096, 8, False, 5), (64, 16, True, 0))]),
            (TEMPERATURE, [f"heat.temperature, heat.scores = {values}" for values in
                           ((0.0123, [-1000, 1000, 0.123, 5]), (100, [0, 0, 0, 0]))]),
        ):  # fmt: skip
            parts = notebook.find(selector).locator(
                ":is(input, button, thead, tbody, .course-bars-message, .course-bars-note)"
            )
            whole = notebook.find(selector)
            notebook.settle()
            before = [whole.bounding_box()["height"], parts.evaluate_all(BOXES)]
            for setting in settings:
                observed = notebook.find(selector).inner_text()
                notebook.run(setting)
                notebook.wait(lambda: notebook.find(selector).inner_text() != observed, f"{setting} shows")  # noqa: B023
                assert [whole.bounding_box()["height"], parts.evaluate_all(BOXES)] == before, setting
    finally:
        notebook.page.set_viewport_size({"width": 1280, "height": 1000})


@pytest.mark.parametrize("width", [1280, 640])
@pytest.mark.parametrize("selector", [SATURATION, TEMPERATURE])
def test_nothing_is_cut_off_or_wider_than_the_page(notebook, width, selector):
    notebook.page.set_viewport_size({"width": width, "height": 1000})
    try:
        notebook.run("explorer.d_k, explorer.seed, heat.temperature = 4096, 5, 0.0123")
        widget = notebook.find(SATURATION).locator(".course-bars-value")
        notebook.wait(lambda: "4096" in widget.all_inner_texts(), "it shows")
        place = notebook.find(selector)
        assert place.evaluate("node => node.scrollWidth <= node.clientWidth")
        overlaps = place.locator(
            ".course-saturation-weight, .course-saturation-score, .course-bars-readouts th, .course-saturation-title"
        ).evaluate_all(OVERLAPS)
        assert overlaps == []
    finally:
        notebook.page.set_viewport_size({"width": 1280, "height": 1000})


BOXES = """(nodes) => nodes.map((node) => {
  const box = node.getBoundingClientRect();
  return [box.x, box.y, box.width, box.height];
})"""

# The text of visible nodes, as drawn, must not touch.
OVERLAPS = """(nodes) => {
  const visible = (node) => node.offsetParent && getComputedStyle(node).visibility === "visible";
  const seen = nodes.filter((node) => node.textContent && visible(node));
  const boxes = seen.map((node) => { const range = document.createRange(); range.selectNodeContents(node);
    return [node.textContent, range.getBoundingClientRect()]; });
  const found = [];
  boxes.forEach(([one, a], i) => boxes.slice(i + 1).forEach(([two, b]) => {
    if (a.left < b.right && b.left < a.right && a.top + 1 < b.bottom && b.top + 1 < a.bottom) found.push([one, two]);
  }));
  return found;
}"""


def test_no_axe_violations_in_either_theme(notebook):
    notebook.run("explorer.n_keys, explorer.scaled, explorer.trace, heat.temperature = 32, True, True, 0.2")
    notebook.check_accessible(".course-saturation", TEMPERATURE)


@pytest.mark.parametrize(
    "make", [lambda: SaturationExplorer(seed=6), lambda: TemperatureExplorer([1, 2])], ids=["saturation", "temperature"]
)
def test_a_page_without_kernel_does_the_arithmetic(alone, make):
    widget = make()
    page = alone(widget)
    if isinstance(widget, SaturationExplorer):
        slider(page, "d_k").press("End")
        slider(page, "number of keys").press("End")
        page.get_by_role("checkbox", name="divide").check()
        for _ in range(3):
            page.get_by_role("button", name="Draw again").click()
        expected = SaturationExplorer(4096, 32, True, 1)  # after 6 and 7 come 0 and 1
        assert displayed_weights(page) == pytest.approx(expected.weights.tolist(), rel=1e-12)
    else:
        slider(page, "temperature").press("Home")
        page.get_by_role("spinbutton", name="score of key 2").fill("1.01")
        expected = TemperatureExplorer([1, 1.01], temperature=0.01)
        assert displayed_weights(page, "temperature") == pytest.approx(expected.weights.tolist(), rel=1e-9)


def test_two_on_a_page_have_controls_of_their_own(notebook):
    second = notebook.find(SECOND)
    second.get_by_text("d_k, numbers").click()
    notebook.page.keyboard.press("End")
    notebook.expect("two.d_k, explorer.d_k", "(4096, 64)")
    assert slider(second, "d_k").get_attribute("aria-valuetext") == "4096"
    second.get_by_text("divide the scores").click()
    notebook.expect("two.scaled, explorer.scaled", "(True, False)")
