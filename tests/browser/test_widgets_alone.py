"""Every widget on a page without a kernel, moved by mouse and by keyboard: each control does something there."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from course_utils.attention import arrays
from course_utils.views import AttentionStepper, Guess, MaskPainter, ProgressMap

from .alone_pages import ALONE, button, changes, text


@pytest.mark.parametrize("name", ALONE)
def test_a_mouse_moves_it(alone, name):
    ALONE[name].mouse(alone(ALONE[name].make()))


@pytest.mark.parametrize("name", ALONE)
def test_a_keyboard_moves_it(alone, name):
    page = alone(ALONE[name].make())
    for selector, key, changed in ALONE[name].keys:
        page.locator(f"#widget {selector}").first.focus()
        if changed is None:
            page.keyboard.press(key)
        else:
            changes(page, lambda key=key: page.keyboard.press(key), changed)


def test_guesses_stay_in_the_browser_and_the_first_counts(alone, tmp_path):
    page = alone(ALONE["Guess, a number"].make())
    for guess in ("0.3", "0.7"):
        page.get_by_role("textbox").fill(guess)
        button(page, "Guess", exact=True).click()
        assert "Computed: 0.8." in text(page, ".course-guess-message")
        button(page, "Guess again").click()
    page = alone(ALONE["Guess, a number"].make(), keep=True)
    assert "Your first guess counts. It was too low by 50% of the range." in text(page, ".course-guess-message")
    assert re.fullmatch(r"Guessed on \d{4}-\d\d-\d\d, kept in this browser\.", text(page, ".course-guess-kept"))
    page = alone(ALONE["Guesses"].make(), keep=True)
    assert "1 guess. Of 1 number or curve: 0 too high, 1 too low, 0 neither." in text(page, ".course-guesses-message")
    assert "0.3; computed 0.8: too low by 50% of the range" in page.get_by_role("listitem").inner_text()
    page.evaluate(
        "localStorage.clear(), window.dispatchEvent(new CustomEvent('course-guesses'))"
    )  # as a guess beside it
    assert text(page, ".course-guesses-message") == "No guess yet." and page.get_by_role("listitem").count() == 0
    page = alone(ALONE["Guess, a number"].make())
    page.get_by_role("textbox").fill("0.3")
    button(page, "Guess", exact=True).click()
    page = alone(ProgressMap(), keep=True)
    assert "1 guess: 1 too low" in page.get_by_role("listitem").nth(1).inner_text()
    assert text(page, ".course-map-message").startswith("Your guesses in this browser: 1 guess.")
    page = alone(Guess.number(2, "n", "How large is it now?", truth=0.8, low=0, high=1, root=tmp_path), keep=True)
    assert text(page, ".course-guess-message") == "", "another question"


def test_a_page_holds_nobodys_guesses(alone, tmp_path):
    widget = Guess.number(2, "n", "How large?", truth=0.8, low=0, high=1, root=tmp_path)
    widget.take(0.123)
    page = alone(widget)
    assert button(page, "Guess", exact=True).is_visible() and "0.123" not in page.content()


def test_where_the_browser_keeps_nothing_a_guess_lasts_as_long_as_the_page(alone):
    page = alone(ALONE["Guess, a number"].make())
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    page.get_by_role("textbox").fill("0.3")
    button(page, "Guess", exact=True).click()
    assert text(page, ".course-guess-kept") == "Kept until this page is left; this browser keeps no longer."
    page.evaluate("localStorage.clear()")
    page.evaluate("localStorage['course-guesses'] = 'something else'")
    page.reload()
    page.get_by_role("textbox").wait_for()
    assert text(page, ".course-guess-message") == ""


def test_what_python_alone_can_answer_is_said_in_a_line(alone):
    def theirs(q, k, v):
        return arrays.attention(q, k, v)

    page = alone(AttentionStepper.from_qkv([[1, 0]], [[1, 0]], [[1]], ["a"], ["k"], attention=theirs))
    page.locator(".course-stepper button", has_text="+").click()
    page.clock.run_for(1)
    assert text(page, ".course-stepper-silent") == (
        "theirs has not answered for these numbers: that needs Python, in JupyterLab."
    )
    page = alone(MaskPainter([f"t{i}" for i in range(9)]))
    page.get_by_role("checkbox", name="t0 may attend to t1").click()
    assert page.get_by_text("of the mask before; another needs Python, in JupyterLab").is_visible()
    assert page.locator(".course-painter-waits").count() == 2


# ---- for everyone


@pytest.fixture(scope="module")
def gathered(chromium, tmp_path_factory):
    """One page with every widget as it looks after a mouse has moved it."""
    from course_utils.views.static_page import static_page

    context = chromium.new_context(offline=True)
    parts = []
    context.set_default_timeout(5000)
    page = context.new_page()
    file = tmp_path_factory.mktemp("gathered") / "page.html"
    for name, one in ALONE.items():
        widget = one.make()
        file.write_text(static_page(widget, name), encoding="utf-8")
        page.goto(file.as_uri())
        page.locator("#widget > :not(img)").first.wait_for()
        one.mouse(page)
        displayed = page.locator("#widget").evaluate("""(root) => {
          for (const node of root.querySelectorAll("input, textarea")) {
            node.setAttribute(node.tagName === "INPUT" ? "value" : "data-value", node.value);
            node.toggleAttribute("checked", Boolean(node.checked));
          }
          return root.innerHTML;
        }""")
        parts.append(f"<style>{widget._css}</style><section>{displayed}</section>")
    frame = static_page(ALONE["Quiz"].make(), "All of them")
    file.write_text(re.sub(r'<div id="widget">.*</script>', lambda _: "".join(parts) + "</main>", frame, flags=re.S))
    page.goto(file.as_uri())
    yield page
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 900])
def test_axe_finds_nothing_and_nothing_is_cut(gathered, theme, width):
    gathered.emulate_media(color_scheme=theme)
    gathered.set_viewport_size({"width": width, "height": 900})
    tall = gathered.evaluate("document.documentElement.scrollHeight")
    gathered.set_viewport_size({"width": width, "height": tall + 200})
    assert gathered.evaluate("document.documentElement.scrollWidth") <= width
    response = Axe().run(gathered).response
    message = [f"{result['id']}: {result['help']}: {node['html'][:200]} {node['failureSummary']}"
            for result in response["violations"] for node in result["nodes"]]  # fmt: skip
    assert not message, "\n".join(message)
