"""The decode stepper and the memory calculator, in JupyterLab and on pages of their own."""

import pytest
from as_page import on_page

from course_utils.views import DecodeStepper, MemoryCalculator

CELLS = [
    "from course_utils.views import DecodeStepper, MemoryCalculator",
    "walk = DecodeStepper('the cat sat'.split(), 'on the mat .'.split())\nwalk",
    "memory = MemoryCalculator()\nmemory",
    "long = DecodeStepper([f'token{i}' for i in range(8)], [f'word{i}' for i in range(8)])\nlong",
]
WALK = ".course-decoding >> nth=0"
MEMORY = ".course-calculator"
LONG = ".course-decoding >> nth=1"
PLAIN = """
walk.write('the cat sat'.split(), 'on the mat .'.split())
walk.step, walk.cached = 0, True
memory.model, memory.context, memory.batch, memory.bytes_per_value, memory.card = 'LLaMA 7B', 4096, 1, 2, '80 GiB'
memory.n_kv_heads = None
"""


@pytest.fixture
def notebook(opened):
    """The notebook with both widgets as they began."""
    opened.run(PLAIN)
    opened.wait(
        lambda: status_text(opened.find(WALK)).startswith("Pass 1 of 4. All 3 tokens of the prompt"),
        "the first pass shows",
    )
    opened.wait(
        lambda: "4,096 tokens × 1 sequence" in status_text(opened.find(MEMORY)), "the calculator is as it began"
    )
    return opened


def status_text(place):
    return place.get_by_role("status").inner_text()


def counted(place, state):
    """How many cells of the grid have a state."""
    return place.locator(f".course-decoding-grid .course-decoding-{state}").count()


def counters(place):
    return [row.split("\t")[1:] for row in place.get_by_role("table").locator("tbody tr").all_inner_texts()]


class TestStepper:
    def test_the_page_shows_the_counts_of_python(self, notebook):
        place = notebook.find(WALK)
        for step in range(4):
            for cached in (True, False):
                notebook.run(f"walk.step, walk.cached = {step}, {cached}")
                here = DecodeStepper(["the", "cat", "sat"], ["on", "the", "mat", "."], cached)
                here.step = step
                expected = on_page(here).frames[step]["message"]["with" if cached else "without"]
                notebook.wait(lambda text=expected: status_text(place) == text, f"the page shows pass {step}")
                work = here.work["with" if cached else "without"]
                assert counted(place, "now") + counted(place, "masked") == work.scores + 3 * work.rows
                assert counted(place, "read") == 2 * (3 + step - work.rows)
                assert counters(place) == on_page(here).frames[step]["table"]

    def test_buttons_keys_and_slider_step_and_python_follows(self, notebook):
        place = notebook.find(WALK)
        place.get_by_role("button", name="step").click()
        notebook.expect("walk.step", "1")
        notebook.page.keyboard.press("ArrowRight")
        notebook.expect("walk.step", "2")
        notebook.page.keyboard.press("Home")
        notebook.expect("walk.step", "0")
        notebook.page.keyboard.press("End")
        notebook.expect("walk.step", "3")
        place.get_by_role("button", name="back").click()
        notebook.expect("walk.step", "2")
        place.get_by_role("slider").press("ArrowLeft")
        notebook.expect("walk.step", "1")
        place.get_by_role("checkbox").uncheck()
        notebook.expect("walk.cached", "False")

    def test_it_plays_to_the_end_and_stops(self, notebook):
        place = notebook.find(WALK)
        with notebook.hand_clock() as tick:
            place.get_by_role("button", name="play").click()
            assert place.get_by_role("button", name="pause").count() == 1
            for step in (1, 2):
                tick()
                notebook.expect("walk.step", f"{step}")
            assert place.get_by_role("button", name="pause").count() == 1
            tick()
            assert status_text(place).endswith("That row decides on “.”.")
            assert place.get_by_role("button", name="play").count() == 1
            tick(2)
            notebook.expect("walk.step", "3")

    def test_a_pause_keeps_the_pass(self, notebook):
        place = notebook.find(WALK)
        with notebook.hand_clock() as tick:
            place.get_by_role("button", name="play").click()
            tick()
            place.get_by_role("button", name="pause").click()
            before = status_text(place)
            tick(2)
            assert status_text(place) == before
        notebook.expect("walk.step", "1")

    def test_nothing_moves_while_it_steps(self, notebook):
        place = notebook.find(LONG)
        boxes = []
        for step in (0, 3, 7):
            notebook.run(f"long.step = {step}")
            notebook.wait(lambda n=step: status_text(place).startswith(f"Pass {n + 1} of 8."), "the step shows")
            result = [place.locator(part) for part in (".course-decoding-grid", "table.course-decoding-counters")]
            boxes.append([node.bounding_box() for node in result])
        assert boxes[0] == boxes[1] == boxes[2]

    def test_words_that_are_typed_become_the_tokens_and_back(self, notebook):
        place = notebook.find(WALK)
        place.get_by_role("button", name="step").click()
        place.get_by_role("textbox", name="prompt").fill("good")
        place.get_by_role("textbox", name="then it writes").fill("morning sunshine")
        place.get_by_role("textbox", name="then it writes").press("Enter")
        notebook.wait(lambda: status_text(place).startswith("Pass 1 of 2. The prompt's token"), "the new words show")
        assert place.locator(".course-decoding-grid tbody th").all_text_contents() == ["good", "morning", "sunshine"]
        notebook.expect("walk.step", "0")
        place.get_by_role("textbox", name="prompt").fill("")
        place.get_by_role("button", name="use these words").click()
        problem = place.locator(".course-decoding-problem")
        notebook.wait(
            lambda: problem.inner_text() == "Type at least one word into each field.", "it says what is wrong"
        )
        notebook.run("walk.write('the cat sat'.split(), 'on the mat .'.split())")
        notebook.wait(lambda: status_text(place).startswith("Pass 1 of 4."), "the old words are back")
        assert problem.inner_text() == ""


class TestCalculator:
    def test_menus_and_sliders_set_python_and_the_bar_follows(self, notebook):
        place = notebook.find(MEMORY)
        place.get_by_role("combobox", name="model").select_option("Llama 3 8B")
        notebook.expect("memory.model", "'Llama 3 8B'")
        place.get_by_role("combobox", name="numbers in the cache").select_option("1")
        notebook.expect("memory.bytes_per_value", "1")
        place.get_by_role("combobox", name="card").select_option("24 GiB")
        notebook.expect("memory.card", "'24 GiB'")
        place.get_by_role("slider", name="context").press("End")
        notebook.expect("memory.context", "131072")
        place.get_by_role("slider", name="batch").press("ArrowRight")
        notebook.expect("memory.batch", "2")
        place.get_by_role("slider", name="heads").press("Home")
        notebook.expect("memory.n_kv_heads", "1")
        here = MemoryCalculator("Llama 3 8B", 131072, 2, 1, 1, "24 GiB")
        bar = place.locator(".course-calculator-track .course-calculator-cache")
        notebook.wait(lambda: bar.get_attribute("data-value") == str(here.cache_bytes), "the bar shows the bytes")
        assert status_text(place) == "\n".join(on_page(here).shown["lines"])

    def test_bars_stand_to_scale_beside_the_card(self, notebook):
        place = notebook.find(MEMORY)
        notebook.run("memory.batch = 64")
        notebook.wait(lambda: "does not fit" in status_text(place), "it does not fit")
        boxes = [
            place.locator(f".course-calculator-track .course-calculator-{part}").bounding_box()
            for part in ("weights", "cache", "card")
        ]
        here = MemoryCalculator(batch=64)
        assert boxes[1]["width"] / boxes[0]["width"] == pytest.approx(here.cache_bytes / here.weight_bytes, rel=0.02)
        assert boxes[1]["x"] == pytest.approx(boxes[0]["x"] + boxes[0]["width"], abs=1)
        card = boxes[2]["x"] + boxes[2]["width"] / 2 - boxes[0]["x"]
        assert card / boxes[0]["width"] == pytest.approx(80 * 2**30 / here.weight_bytes, rel=0.02)

    def test_own_sizes_are_typed_and_what_is_wrong_is_said(self, notebook):
        place = notebook.find(MEMORY)
        layers = place.get_by_role("textbox", name="layers")
        assert not layers.is_visible()
        place.get_by_role("combobox", name="model").select_option("my own sizes")
        layers.wait_for()
        layers.fill("10")
        layers.press("Tab")
        notebook.expect("memory.own['layers']", "10")
        notebook.wait(lambda: "2 × 8 heads × 128 × 10 layers" in status_text(place), "the bytes follow")
        layers.fill("ten")
        layers.press("Tab")
        problem = place.locator(".course-calculator-problem")
        notebook.wait(lambda: problem.inner_text() == "layers is “ten”: give a whole number.", "it says what is wrong")
        assert layers.input_value() == "ten" and "10 layers" in status_text(place)
        layers.fill("10")
        layers.press("Tab")
        notebook.wait(lambda: problem.inner_text() == "", "it is mended")
        place.get_by_role("combobox", name="model").select_option("LLaMA 7B")
        layers.wait_for(state="hidden")

    def test_a_latent_cache_has_no_heads_to_choose(self, notebook):
        place = notebook.find(MEMORY)
        place.get_by_role("combobox", name="model").select_option("DeepSeek-V3")
        notebook.wait(lambda: "latent" in status_text(place), "the latent shows")
        assert place.get_by_role("slider", name="heads").is_disabled()


def test_no_axe_violations_in_either_theme(notebook):
    notebook.run("walk.step = 2; memory.batch = 64; memory.model = 'my own sizes'")
    notebook.check_accessible(".course-decoding", MEMORY)


@pytest.mark.parametrize(
    "make",
    [
        lambda: DecodeStepper(["the", "cat", "sat"], ["on"]),
        lambda: MemoryCalculator(batch=8),
        lambda: MemoryCalculator("my own sizes"),
    ],
    ids=["stepper", "calculator", "own sizes"],
)
def test_nothing_is_cut_off_on_a_page_of_its_own(alone, make):
    page = alone(make())
    for width in (1280, 800, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.reload()
        page.get_by_role("status").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{width} pixels"


def test_a_page_without_kernel_steps(alone):
    page = alone(DecodeStepper(["a", "b"], ["c", "d"]))
    place = page.locator(".course-decoding")
    place.get_by_role("button", name="step").click()
    assert status_text(place).startswith("Pass 2 of 2. Only “c” goes")
    place.get_by_role("checkbox").uncheck()
    assert status_text(place).startswith("Pass 2 of 2. All 3 tokens go")
    place.get_by_role("button", name="reset").click()
    place.get_by_role("button", name="play").click()
    page.clock.run_for(1000)
    assert status_text(place).startswith("Pass 2 of 2.")
    assert place.get_by_role("button", name="play").count() == 1
