"""The player of calls and the speculative stepper in JupyterLab, by mouse and keyboard, and without a kernel."""

import pytest

from course_utils.views import SpeculativeStepper, TracePlayer

from .alone_pages import ROUND, TRACE

REQUESTS = [{}, {"a": 0}, {"a": 3}, {"a": 3, "b": 0}, {"a": 0, "b": 2}]
SCHEDULER = {
    "name": "Scheduler",
    "made": "scheduler = Scheduler(3, 2, 3)",
    "calls": [{"code": f"scheduler.step({place})", "gave": "({'a': 3}, [])"} for place in range(5)],
    "pictures": [
        {
            "n_blocks": 3,
            "block_size": 2,
            "budget": 3,
            "requests": {
                name: {"prompt": 4, "new": 3, "computed": computed, "generated": 0} for name, computed in each.items()
            },
        }
        for each in REQUESTS
    ],
    "promise": "no starvation",
    "said": "nothing is planned, and a waits",
}
CELLS = [
    "from course_utils.views import SpeculativeStepper, TracePlayer",
    f"trace = TracePlayer({TRACE!r})\ntrace",
    f"spec = SpeculativeStepper(*{ROUND!r})\nspec",
]
TRACED = ".course-trace"
SPEC = ".course-spec"
SHOWN = {"trace": TRACED, "spec": SPEC}
every = pytest.mark.parametrize("name", SHOWN)


@pytest.fixture
def notebook(opened):
    """The notebook with both widgets at their start."""
    opened.run("spec.seed, spec.nearness = None, 0.0\ntrace.step = spec.step = 0")
    opened.wait(lambda: all(slider(opened, widget).input_value() == "0" for widget in SHOWN.values()), "at their start")
    opened.wait(lambda: moved(opened).input_value() == "0", "q is as given")
    return opened


def slider(notebook, selector):
    return notebook.find(selector).locator(".course-player input")


def moved(notebook):
    return notebook.find(SPEC).locator(".course-bars-slider input")


def button(notebook, selector, name):
    return notebook.find(selector).get_by_role("button", name=name, exact=True)


def text(notebook, selector):
    return notebook.find(selector).first.inner_text()


def chips(page):
    return [name.replace("\n", " ") for name in page.locator(".course-spec-chip").all_inner_texts()]


def visible_picture(page):
    """The picture that is shown of a trace."""
    return page.locator(".course-trace-picture:not(.course-trace-unseen)")


@every
def test_buttons_keys_and_slider_step(notebook, name):
    selector = SHOWN[name]
    keyboard = notebook.page.keyboard
    button(notebook, selector, "step").click()
    notebook.expect(f"{name}.step", "1")
    active = notebook.page.evaluate("window.courseNotebook.content.activeCellIndex")
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        keyboard.press(key)
    notebook.expect(f"{name}.step", "2")
    keyboard.press("End")
    notebook.expect(f"{name}.step == {name}.last", "True")
    assert button(notebook, selector, "step").get_attribute("aria-disabled") == "true"
    keyboard.press("Home")
    notebook.expect(f"{name}.step", "0")
    slider(notebook, selector).fill("2")
    notebook.expect(f"{name}.step", "2")
    notebook.run(f"{name}.step = 1")
    notebook.wait(lambda: slider(notebook, selector).input_value() == "1", "what Python sets shows")
    assert notebook.page.evaluate("window.courseNotebook.content.activeCellIndex") == active


@every
def test_space_plays_to_the_end(notebook, name):
    selector = SHOWN[name]
    slider(notebook, selector).focus()
    with notebook.hand_clock() as tick:
        notebook.page.keyboard.press("Space")
        tick()
        assert slider(notebook, selector).input_value() == "1"
        tick(4)
        assert button(notebook, selector, "play").count() == 1
    notebook.expect(f"{name}.step == {name}.last", "True")


def test_a_call_that_is_clicked_is_the_current_one(notebook):
    page = notebook.find(TRACED)
    page.get_by_role("button", name="cache.commit('a')").click()
    notebook.expect("trace.step", "2")
    assert page.locator("[aria-current=step]").all_inner_texts() == ["▸\ncache.commit('a')"]
    assert (
        text(notebook, ".course-trace-message [role=status]") == "Call 2 of 3 returns nothing. All promises are kept."
    )
    page.get_by_role("button", name="cache.admit('b', (1,))").focus()
    notebook.page.keyboard.press("Enter")
    notebook.expect("trace.step", "3")
    message = text(notebook, ".course-trace-message [role=status]")
    assert message.startswith("✗ Broken promise: “a block has one owner”. At the last call: block 0 was handed")
    assert page.locator("[aria-current=step]").inner_text().startswith("✗")


def test_new_coins_and_a_q_nearer_to_p_are_heard_in_python(notebook):
    page = notebook.find(SPEC)
    button(notebook, SPEC, "New coins").click()
    notebook.expect("spec.seed", "0")
    button(notebook, SPEC, "New coins").click()
    notebook.expect("spec.seed", "1")
    slider(notebook, SPEC).fill("99")
    message = notebook.python("spec.describe(spec.last)").strip("'\"")
    notebook.wait(lambda: text(notebook, ".course-spec-message [role=status]") == message, "Python says the same")
    button(notebook, SPEC, "As given").click()
    notebook.expect("spec.seed, spec.step", "(None, 0)")
    moved(notebook).focus()
    for _ in range(5):
        notebook.page.keyboard.press("ArrowRight")
    notebook.expect("spec.nearness", "0.25")
    assert float(page.locator(".course-spec-alpha").get_attribute("data-value")) == pytest.approx(0.7)
    notebook.expect("round(spec.alpha, 9)", "0.7")
    notebook.run("spec.nearness = 1.0")
    notebook.wait(lambda: text(notebook, ".course-spec-expected b") == "4.00", "at p all are kept")


@every
def test_it_is_accessible_in_both_themes(notebook, name):
    notebook.run(f"{name}.step = {name}.last")
    notebook.check_accessible(SHOWN[name])


# ---- without a kernel


def test_blocks_show_owners_text_and_tables_at_each_call(alone):
    page = alone(TracePlayer(TRACE))
    assert visible_picture(page).locator(".course-trace-free").all_inner_texts() == ["free", "free", "no sequence"]
    page.get_by_role("button", name="step").click()
    assert visible_picture(page).locator(".course-trace-tag").all_inner_texts() == ["a", "a"]
    assert visible_picture(page).locator("li .course-trace-open").all_inner_texts() == ["0", "1"]
    assert visible_picture(page).locator(".course-trace-changed").count() == 2
    page.get_by_role("button", name="step").click()
    assert visible_picture(page).locator("li .course-trace-known").all_inner_texts() == ["0", "1"]
    assert visible_picture(page).locator("li .course-trace-led").all_inner_texts() == ["", "after 0"]
    assert visible_picture(page).locator("tbody tr").all_inner_texts() == ["a\t0, 1\t0 1"]
    page.get_by_role("button", name="step").click()
    assert page.locator(".course-trace-caption").inner_text().startswith("before the last call")


def test_a_shared_block_has_a_tag_for_each_owner(alone):
    picture = {"n_blocks": 2, "block_size": 2, "tables": {"a": [0], "b": [0]}, "lengths": {"a": 1, "b": 1}}
    page = alone(TracePlayer({**TRACE, "calls": TRACE["calls"][:1], "pictures": [picture]}))
    assert visible_picture(page).locator(".course-trace-tag").all_inner_texts() == ["a", "b"]
    assert visible_picture(page).locator("li .course-trace-slot").all_inner_texts() == ["•", "", "", ""]


def test_requests_have_bars_of_what_is_computed_and_left(alone):
    page = alone(TracePlayer(SCHEDULER))

    def bars(step):
        page.locator(".course-player input").fill(str(step))
        row = visible_picture(page).locator("tbody tr:first-child")
        counts = [row.locator(f".course-trace-{kind}").count() for kind in ("done", "left", "later", "now")]
        return counts, row.locator(".course-trace-words").inner_text()

    assert bars(1) == ([0, 4, 2, 0], "0 computed, 4 left")
    assert bars(2) == ([3, 1, 2, 3], "3 computed, 1 left")
    assert bars(3) == ([3, 1, 2, 0], "3 computed, 1 left")
    assert bars(4) == ([0, 4, 2, 0], "preempted: 3 computed before, 0 now")
    assert (
        visible_picture(page).locator(".course-trace-head").inner_text()
        == "1 of 3 blocks in use · budget 3 tokens a step"
    )
    gone = {**SCHEDULER, "pictures": [*SCHEDULER["pictures"][:4], {**SCHEDULER["pictures"][4], "requests": {}}]}
    page = alone(TracePlayer(gone))
    assert bars(4) == ([6, 0, 0, 3], "finished")


def test_without_a_picture_the_calls_stand_alone(alone):
    page = alone(TracePlayer({**TRACE, "pictures": [{}] * 3}))
    assert page.locator(".course-trace-scene").is_hidden()
    page.get_by_role("button", name="step").click()
    assert page.locator(".course-player-place").inner_text() == "1 of 3"


def test_a_round_is_shown_token_by_token(alone):
    page = alone(SpeculativeStepper(*ROUND))
    step = page.get_by_role("button", name="step")
    here = page.locator(".course-spec-marked th")
    assert chips(page) == ["cat drafted", "sat drafted", "the drafted"] and here.count() == 0
    assert page.locator(".course-spec-scale").is_hidden()
    step.click()
    assert chips(page)[0] == "✓ cat kept" and here.inner_text() == "▸cat"
    assert page.locator(".course-spec-part").all_inner_texts() == ["kept"]
    step.click()
    assert chips(page) == ["✓ cat kept", "✗ sat rejected", "– the dropped"]
    assert page.locator(".course-spec-part").all_inner_texts() == ["kept", "rejected"]
    assert page.locator(".course-spec-needle").get_attribute("style") == "left: 70%;"
    step.click()
    assert chips(page)[3] == "+ cat from the rest" and here.inner_text() == "+cat"
    rest = page.locator(".course-spec-words tbody td:nth-child(3)").all_inner_texts()
    assert rest == ["0.75", "0.25", "0.00", "0.00"]
    assert page.locator(".course-spec-head").inner_text() == "coin u = 0.80 on the remainder, laid out from 0 to 1"
    assert page.locator(".course-spec-got b").inner_text() == "2"
    page.get_by_role("button", name="back").click()
    assert page.locator(".course-spec-got b").inner_text() == "–"


def test_after_all_are_kept_a_token_comes_from_p(alone):
    p, q, drafted, _, words = ROUND
    page = alone(SpeculativeStepper(p, q, drafted, [0.1, 0.2, 0.3, 0.95], words))
    page.locator(".course-player input").fill("4")
    assert chips(page)[3] == "+ down from p"
    assert page.locator(".course-spec-part").all_inner_texts() == ["the", "cat", "sat", "down"]


def test_no_step_moves_what_one_looks_at_and_motion_may_be_reduced(alone):
    for widget, end in ((TracePlayer(TRACE), TRACED), (SpeculativeStepper(*ROUND), ".course-spec-words")):
        page = alone(widget)
        page.emulate_media(reduced_motion="reduce")
        ends = set()
        for step in range(widget.last + 1):
            page.locator(".course-player input").fill(str(step))
            box = page.locator(end).bounding_box()
            ends.add(box["y"] + box["height"])
        assert len(ends) == 1
    page.emulate_media(reduced_motion="no-preference")
    assert page.locator(".course-spec-p").first.evaluate("node => getComputedStyle(node).transitionDuration") != "0s"
    page.emulate_media(reduced_motion="reduce")
    assert page.locator(".course-spec-p").first.evaluate("node => getComputedStyle(node).transitionDuration") == "0s"


@pytest.mark.parametrize("widget", [lambda: TracePlayer(SCHEDULER), lambda: SpeculativeStepper(
    [0.125] * 8, [0.125] * 8, [0] * 8, [0.5] * 9, [f"a long word {i}" for i in range(8)])])  # fmt: skip
def test_a_narrow_page_holds_it(alone, widget):
    page = alone(widget())
    page.set_viewport_size({"width": 390, "height": 800})
    for step in (0, 1, widget().last):
        page.locator(".course-player input").fill(str(step))
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
