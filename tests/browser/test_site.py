"""The built site in a browser, from the file system and with the network cut: widgets live, nothing asked for, axe."""

import contextlib
import threading
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from site_pages import pages_of

from course_utils.course import DAYS, LESSONS, ROOT, day_of
from course_utils.site.build import build_site
from course_utils.site.serve import FileHandler, serving

POINTED = (
    "input[type=range], [class*=quiz] label, [class*=guess] label, button:not([disabled]):not([class*=copy]), "
    "[role=switch], [role=gridcell], [role=radio], select, canvas, svg"
)
KEYED = "input, select, button:not([disabled]), [tabindex='0']"
SEEN = """(place) => place.innerHTML
  + [...place.querySelectorAll("input, select, textarea")].map((node) => node.value + node.checked).join()"""
SHOWN = ("ProgressMap", "Guesses")
MODES = {"light": ("light", 1200), "dark": ("dark", 1200), "phone": ("light", 390)}
PARTS = [0, *(day.number for day in DAYS if day.notebook(LESSONS))]
AXE = {"preload": False, "resultTypes": ["violations"]}  # else it takes twice as long, to tell what is right
BY_COLOUR = ["color-contrast", "link-in-text-block"]  # what a dark page may change
BY_WIDTH = ["target-size", "scrollable-region-focusable", "meta-viewport"]  # what a narrow window may change


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the course's own site."""
    return build_site(ROOT, tmp_path_factory.mktemp("site") / "html").out


@pytest.fixture
def opened(chromium, site):
    """`opened(name, mode)` is a page of the site. At the end nothing went wrong on it, and it asked for no more."""
    contexts = []
    recorded = []

    def opened(name, mode="light"):
        scheme, width = MODES[mode]
        context = chromium.new_context(offline=True, color_scheme=scheme, viewport={"width": width, "height": 900},
                                       reduced_motion="reduce")  # fmt: skip
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: recorded.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: recorded.append(str(error)))
        page.on("request", lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else recorded.append(r.url))
        page.goto((site / f"{name}.html").as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert recorded == []


def woken(page, key):
    """A widget of a page, come to life since it came near."""
    place = page.locator(f"#{key}")
    place.scroll_into_view_if_needed()
    page.locator(f"#{key}[data-alive=yes]").wait_for()
    return place


def moved(place, controls, acts):
    """Whether one of these controls changes what the widget shows, by one of these acts."""
    for control in place.locator(controls).all()[:14]:
        if not control.is_visible():
            continue
        for act in acts:
            before = place.evaluate(SEEN)
            act(control)
            if place.evaluate(SEEN) != before:
                return True
    return False


def by_mouse(control):
    box = control.bounding_box()
    control.click(position={"x": box["width"] * 0.7, "y": box["height"] * 0.4}, force=True)


def by_key(key):
    return lambda control: control.press(key)


def of_part(site, part):
    """The pages of a day, or those of none."""
    return {name: page for name, page in pages_of(site).items() if (day_of(name) or 0) == part}


KEYS = tuple(map(by_key, ("ArrowRight", "ArrowDown", "Enter", " ", "ArrowLeft")))


@pytest.mark.parametrize("part", PARTS)
def test_every_widget_wakes_and_is_moved_by_mouse_and_by_keyboard(opened, site, part):
    pages = {name: read.widgets for name, read in of_part(site, part).items() if read.widgets}
    assert pages
    for name, widgets in pages.items():
        page = opened(name.removesuffix(".html"))
        for kind, key in widgets:
            place = woken(page, key)
            assert place.locator("img.course-picture").count() == 0, f"{name}: {kind} is still a picture"
            while (lift := page.locator(".course-guess-lift:visible")).count():  # it veils what stands below
                lift.first.click()
            if kind in SHOWN:  # they tell of what was done elsewhere
                assert len(place.inner_text()) > 40
                continue
            assert moved(place, POINTED, [by_mouse]), f"{name}: {kind} {key} by mouse"
            assert moved(place, KEYED, KEYS), f"{name}: {kind} {key} by keyboard"


def faults(page, rules=()):
    """What axe finds by all of its rules, or by some, with the first widgets of the page alive."""
    for place in page.locator(".course-alive").all()[:4]:
        woken(page, place.get_attribute("id"))
    options = AXE | ({"runOnly": list(rules)} if rules else {})
    result = Axe().run(page, {"exclude": [["math"]]}, options).response["violations"]
    wrong = [(each["id"], node["html"]) for each in result for node in each["nodes"]]
    # axe reads no MathML, so it is left out; a heading that is a formula alone seems empty then
    return [f"{rule}: {code[:200]}" for rule, code in wrong if not (rule == "empty-table-header" and "<math" in code)]


@pytest.mark.parametrize("part", PARTS)
def test_axe_finds_nothing_on_any_page_and_none_is_wider_than_a_phone(opened, site, part):
    for name, read in of_part(site, part).items():
        page = opened(name.removesuffix(".html"))
        assert faults(page) == [], name
        special = read.widgets or part == 1  # pages of other days without widgets are like those of day 1
        if special:
            page.emulate_media(color_scheme="dark")
            page.wait_for_function("document.documentElement.dataset.theme !== 'light'")
            assert faults(page, BY_COLOUR) == [], f"{name}, dark"
        page = opened(name.removesuffix(".html"), "phone")
        if special:
            assert faults(page, BY_WIDTH) == [], f"{name}, on a phone"
        wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], f"{name} is wider than the window"


def search_results(opened, query, mode="light"):
    """What a search lists: a title, the page, the excerpt and the address of each."""
    page = opened("search", mode)
    page.goto(f"{page.url}?q={query}")
    page.locator("#search-results [role=status]").wait_for()
    places = page.locator("#search-results li")
    return page, [(*(place.locator(part).inner_text() for part in ("a", ".course-found-in", "p")),
                   place.locator("a").get_attribute("href")) for place in places.all()]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "term"), [("causal+mask", "causal mask"), ("softmax", "softmax"), ("KV+cache", "KV cache")]
)
def test_a_search_lists_terms_and_sections_by_their_titles_without_a_network(opened, query, term):
    page, result = search_results(opened, query)
    assert result[0][0] == term and result[0][1] == "Glossary"
    assert result[0][3].endswith(f"/glossary.html#term-{term.replace(' ', '-')}")
    assert sum("notebooks/day" in place[3] for place in result) >= 3
    assert "Glossary" not in {title for title, *_ in result}
    assert all(len(excerpt) > 20 for _, _, excerpt, _ in result)
    assert Axe().run(page, options=AXE).response["violations"] == []
    page.locator("#search-results a").first.click()
    assert page.url.endswith(f"#term-{term.replace(' ', '-')}")


def test_a_search_leads_to_a_section_and_says_when_nothing_is_found(opened):
    _, result = search_results(opened, "residual+stream")
    assert any("day4_multi_head.html#" in address for *_, address in result)
    page, result = search_results(opened, "zeppelin")
    assert result == [] and "No section has all of these words." in page.locator("#search-results").inner_text()


def test_a_result_has_its_formulas_set_and_a_section_without_words_tells_its_first_part(opened):
    page, result = search_results(opened, "online+softmax")
    assert page.locator("#search-results li:first-child p math msup").count() >= 2
    assert [
        excerpt for title, of, excerpt, _ in result if title == "2. Online softmax" and of == "Day 6: FlashAttention"
    ]
    page, result = search_results(opened, "all+heads+at+once")
    message = next(excerpt for title, _, excerpt, _ in result if title == "2. All heads at once")
    assert len(message) > 20
    assert "\u2063" not in page.locator("#search-results").inner_text()


def test_a_formula_among_the_results_that_is_wider_than_a_phone_scrolls_by_itself(opened):
    page, _ = search_results(opened, "softmax", "phone")
    assert page.locator("#search-results mark.formula.course-wide[tabindex='0']").count() > 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("mode", ["light", "dark", "phone"])
def test_a_search_suggests_titles_while_one_types_and_keys_choose_among_them(opened, mode):
    page = opened("notebooks/day1_attention_by_hand", mode)
    page.wait_for_load_state()
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Search...")
    options = page.get_by_role("option")
    page.locator("#pst-search-dialog input").fill("causal ma")
    options.first.wait_for()
    assert options.first.inner_text().startswith("causal mask") and 1 < options.count() <= 8
    assert field.get_attribute("aria-expanded") == "true" and not field.get_attribute("aria-activedescendant")
    page.keyboard.press("ArrowUp")  # from none to the last
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("[role=option][aria-selected=true]")
    assert chosen.inner_text() == options.first.inner_text()
    assert chosen.get_attribute("id") == field.get_attribute("aria-activedescendant")
    assert Axe().run(page, {"include": [["#pst-search-dialog"]]}, AXE).response["violations"] == []
    page.keyboard.press("Escape")
    assert options.count() == 0
    page.keyboard.press("Control+k")
    page.keyboard.press("End")
    page.keyboard.type("s")
    options.first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/glossary.html#term-causal-mask")


def test_without_a_choice_enter_searches_for_what_was_typed(opened):
    page = opened("notebooks/day1_attention_by_hand")
    page.wait_for_load_state()
    page.keyboard.press("Control+k")
    page.keyboard.type("causal ma")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=causal*")


@pytest.mark.parametrize("mode", ["light", "phone"])
def test_a_term_tells_its_meaning_under_the_mouse_and_at_the_focus(opened, mode):
    page = opened("notebooks/day1_attention_by_hand", mode)
    term = page.locator("a.course-term", has_text="softmax").first
    text = page.locator(f"#{term.get_attribute('aria-describedby')}")
    assert text.is_hidden() and text.text_content().startswith("The step from scores to weights")
    term.hover()
    text.wait_for()
    page.keyboard.press("Escape")
    assert text.is_hidden()
    page.mouse.move(0, 0)
    page.keyboard.press("Tab")  # from here on the focus is seen
    term.focus()
    text.wait_for()
    text.locator("math").first.wait_for()
    assert text.get_attribute("aria-label").startswith("The step from scores to weights: e to each score")
    box = text.bounding_box()
    width = page.viewport_size["width"]
    assert box["x"] >= 0 and box["x"] + box["width"] <= width
    assert Axe().run(page, options=AXE).response["violations"] == []
    page.keyboard.press("Tab")
    text.wait_for(state="hidden")


@pytest.mark.parametrize("mode", ["light", "dark", "phone"])
def test_a_card_is_turned_by_a_click_and_by_enter_and_shows_one_side(opened, mode):
    page = opened("cards", mode)
    card = page.locator(".course-flash-card")
    message = page.locator(".course-flash [role=status]")
    front, back = card.locator("> div").all()
    front.wait_for()
    asked = front.inner_text()
    assert asked and back.is_hidden() and message.inner_text().startswith("Card 1 of ")
    card.click()
    assert back.is_visible() and front.is_hidden() and message.inner_text().startswith("Answer 1 of ")
    assert Axe().run(page, {"include": [[".course-flash"]], "exclude": [["math"]]}, AXE).response["violations"] == []
    card.press("Enter")
    assert front.is_visible() and front.inner_text() == asked
    card.press("Enter")
    page.get_by_role("button", name="next").click()  # the next card lies with its question up
    assert front.is_visible() and message.inner_text().startswith("Card 2 of ") and front.inner_text() != asked
    card.press("ArrowLeft")
    page.get_by_role("button", name="previous").click()
    last = int(message.inner_text().split()[3].strip(","))
    assert message.inner_text().startswith(f"Card {last} of {last}")
    of_one_day = front.inner_text()
    page.get_by_label("Cards of").select_option("Day 2: Why √dₖ")
    page.wait_for_function("(text) => document.querySelector('.course-flash-side').innerText !== text", arg=of_one_day)
    page.get_by_label("Cards of").select_option("All days")
    page.wait_for_function(
        "(one) => parseInt(document.querySelector('.course-flash [role=status]').innerText.split(' ')[3]) > 4 * one",
        arg=last,
    )
    assert page.evaluate("[...Object.keys(localStorage)].filter((key) => key.includes('card'))") == []


def test_enter_turns_the_card_before_anything_has_the_focus_and_an_answer_looks_different(opened):
    page = opened("cards")
    front, back = page.locator(".course-flash-card > div").all()
    front.wait_for()
    page.keyboard.press("Enter")
    assert back.is_visible() and front.is_hidden()
    look = "(side) => getComputedStyle(side).borderColor"
    assert front.evaluate(look) != back.evaluate(look)


def test_the_next_card_lies_there_at_once_so_that_its_answer_is_never_seen_before_its_question(opened):
    page = opened("cards")
    page.emulate_media(reduced_motion="no-preference")
    card = page.locator(".course-flash-card")
    card.locator("> div").first.wait_for()
    moving = """(button) => {
      button.click();
      return document.querySelector(".course-flash-card").getAnimations({ subtree: true }).length;
    }"""
    assert card.evaluate(moving) > 0
    page.wait_for_function("() => !document.getAnimations().length")
    assert page.get_by_role("button", name="next").evaluate(moving) == 0


def test_a_term_leads_to_its_meaning_and_back_to_its_first_use(opened):
    page = opened("notebooks/day1_attention_by_hand")
    page.locator("a.course-term", has_text="softmax").first.click()
    assert page.url.endswith("glossary.html#term-softmax")
    page.locator("dt#term-softmax + dd a", has_text="day 1").last.click()
    page.wait_for_url("**/day1_attention_by_hand.html#cell-*")


def test_the_first_window_has_a_button_to_day_1_and_a_day_opens_wherever_its_card_is_clicked(opened):
    page = opened("index", "phone")
    button = page.get_by_role("link", name="Begin with day 1").bounding_box()
    assert button["height"] >= 40 and button["y"] + button["height"] < page.viewport_size["height"]
    card = page.locator(".course-days > li", has_text="Causal masking")
    card.locator("p", has_text="Two sittings").get_by_role("link").click()
    page.wait_for_url("**/exercises/day3_causal_masking.html*")
    page.go_back()
    card.locator("img").click(force=True)
    page.wait_for_url("**/notebooks/day3_causal_masking.html*")


def test_keys_alone_lead_to_the_text_and_to_the_next_page(opened):
    page = opened("notebooks/day1_attention_by_hand")
    page.keyboard.press("Tab")
    assert "skip" in page.evaluate("document.activeElement.textContent").lower()
    page.keyboard.press("Enter")
    page.locator("a.right-next").press("Enter")
    page.wait_for_url("**/exercises/day1_attention_by_hand.html")


def test_the_first_tab_wakes_what_keys_are_to_reach(opened):
    page = opened("notebooks/day1_attention_by_hand")
    assert page.locator(".course-alive:not([data-alive])").count() >= 9
    page.keyboard.press("Tab")
    page.wait_for_function(
        "[...document.querySelectorAll('.course-alive')].every((one) => one.dataset.alive === 'yes')"
    )


def test_the_gallery_opens_with_a_few_widgets_and_wakes_the_rest_as_they_come_near(opened):
    page = opened("plays")
    places = page.locator(".course-alive")
    alive = page.locator(".course-alive[data-alive=yes]")
    woken(page, places.first.get_attribute("id"))
    assert places.count() >= 12 and alive.count() < 6
    assert not page.evaluate("performance.getEntriesByType('resource').some(({ name }) => name.includes('PageTable'))")
    woken(page, page.locator("[data-widget=PageTable]").get_attribute("id"))
    column = page.locator(".bd-article section").first.bounding_box()["width"]
    assert all(abs(place.bounding_box()["width"] - column) < 1 for place in places.all())


READ = """() => {
  const passed = [...document.querySelectorAll("nav.page-toc a")]
    .filter((link) => document.getElementById(link.hash.slice(1)).getBoundingClientRect().top <= innerHeight / 3);
  return passed.at(-1)?.hash;
}"""


@pytest.mark.parametrize("name", ["notebooks/day1_attention_by_hand", "notebooks/day3_causal_masking", "plays"])
def test_the_contents_mark_the_part_that_is_read_when_widgets_have_come(opened, name):
    page = opened(name)
    page.keyboard.press("Tab")  # wakes all widgets, which change the height of the page
    page.wait_for_function(
        "[...document.querySelectorAll('.course-alive')].every((one) => one.dataset.alive === 'yes')"
    )
    marked = page.locator("nav.page-toc a.active")
    observed = set()
    headings = page.locator(".bd-article :is(h2, h3)")
    for at in range(0, headings.count(), 3):
        headings.nth(at).evaluate("(heading) => scrollBy(0, heading.getBoundingClientRect().top - 150)")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        if page.evaluate("scrollY + innerHeight < document.documentElement.scrollHeight - 2"):
            assert marked.count() == 1 and marked.evaluate("(link) => link.hash") == page.evaluate(READ)
            assert marked.get_attribute("aria-current") == "true"
            observed.add(page.evaluate(READ))
    assert len(observed) > 4
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.wait_for_function("document.querySelector('nav.page-toc li:last-child a.active')")


def test_of_the_contents_the_current_part_alone_is_open_and_in_sight(opened):
    page = opened("notebooks/day4_multi_head")
    page.set_viewport_size({"width": 1280, "height": 720})
    for heading in page.locator(".bd-article h2").all():
        heading.evaluate("(heading) => scrollBy(0, heading.getBoundingClientRect().top - 150)")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        opened_parts = page.locator("nav.page-toc > ul > li > ul:visible")
        assert opened_parts.count() <= 1
        current = page.locator("nav.page-toc a.active").bounding_box()
        assert current["y"] >= 48 and current["y"] + current["height"] <= 720


def test_a_veil_says_what_it_is_leads_to_the_guess_and_hides_what_is_to_be_tried(opened):
    page = opened("notebooks/day2_why_sqrt_dk")
    place = page.locator(".course-alive[data-widget=SaturationExplorer]").first
    place.scroll_into_view_if_needed()
    cover = page.get_by_role("button", name="Guess above to see this").first
    cover.wait_for()
    attempts = page.locator("p[data-course-veils]", has_text="Try: drag")
    assert attempts.count() == 1 and attempts.evaluate("(node) => node.inert")
    cover.click()
    focused = page.evaluate("Boolean(document.activeElement.closest('.course-guess'))")
    assert focused and page.evaluate("document.activeElement.getBoundingClientRect().top") > 0
    page.locator(".course-guess-lift:visible").first.click()
    assert page.locator("p[data-course-veils]", has_text="Try: drag").count() == 0
    assert not place.evaluate("(node) => Boolean(node.closest('[data-course-veils]'))")


def test_a_slider_is_as_wide_as_its_scale(opened):
    page = opened("index")
    woken(page, page.locator(".course-alive").first.get_attribute("id"))
    for slider in page.locator(".course-bars-slider").all():
        track, ticks = (slider.locator(part).bounding_box() for part in ("input", ".course-bars-ticks"))
        assert abs(track["width"] - ticks["width"]) <= 1


def test_a_wide_figure_is_readable_on_a_phone_and_scrolls_by_keys_too(opened):
    page = opened("notebooks/day4_multi_head", "phone")
    figures = page.locator(".course-figure").all()
    assert len(figures) > 5
    for figure in figures:
        own, displayed = figure.locator("img").evaluate("img => [Number(img.getAttribute('width')), img.clientWidth]")
        assert displayed >= min(own, 540)
        assert displayed < 380 or figure.get_attribute("tabindex") == "0"
        assert figure.get_attribute("role") == "group" and figure.get_attribute("aria-label")


@pytest.mark.parametrize("part", PARTS[1:])
def test_what_a_phone_cuts_and_nothing_else_says_that_it_scrolls_and_is_reached_by_keys(opened, site, part):
    for name in of_part(site, part):
        page = opened(name.removesuffix(".html"), "phone")
        page.evaluate("() => document.fonts.ready")
        wrong, text = page.evaluate("""() => {
          const still = [...document.querySelectorAll(".bd-article :not(.course-alive, .course-alive *)")];
          const says = (box) => getComputedStyle(box, "::after").content.includes("scrolls sideways") && !box.tabIndex;
          const said = new Map(still.map((box) => [box, says(box)]));
          const hinted = still.filter((box) => said.get(box) && !box.matches("span.formula"));
          for (const box of hinted) box.classList.remove("course-wide");  // its words have a width of their own
          const cuts = (box) => ["auto", "scroll"].includes(getComputedStyle(box).overflowX) && box.clientWidth > 0
            && box.scrollWidth - parseFloat(getComputedStyle(box).paddingRight) > box.clientWidth + 1;
          const cut = new Set(still.filter(cuts));
          for (const box of hinted) box.classList.add("course-wide");
          return [still.filter((box) => said.get(box) !== cut.has(box)).map((box) => box.outerHTML.slice(0, 200)),
            cut.size];
        }""")
        assert wrong == [] and text > 5, name
        out = page.evaluate("""() => [...document.querySelectorAll(".bd-article span.formula")]
          .filter((one) => one.getBoundingClientRect().right > innerWidth)
          .filter((one) => !one.closest(".course-wide, .pst-scrollable-table-container"))
          .map((one) => one.innerHTML)""")
        assert out == [], name


def test_no_line_begins_with_what_ends_a_formula_and_no_gap_follows_a_root(opened):
    page = opened("notebooks/day2_why_sqrt_dk", "phone")
    page.evaluate("() => document.fonts.ready")
    lines = page.evaluate("""() => [...document.querySelectorAll(".course-kept")].map((kept) => {
      const mark = document.createRange();
      mark.selectNodeContents(kept.lastChild);
      const formula = kept.querySelector("math").getBoundingClientRect(), after = mark.getBoundingClientRect();
      return after.top < formula.bottom && after.bottom > formula.top && after.left >= formula.left;
    })""")
    assert len(lines) > 100 and all(lines)
    gaps = page.evaluate("""() => [...document.querySelectorAll("p msqrt")].map((root) =>
      root.getBoundingClientRect().right + parseFloat(getComputedStyle(root).marginInlineEnd)
      - root.lastElementChild.getBoundingClientRect().right)""")
    assert len(gaps) > 10 and max(gaps) < 2


class Handler(FileHandler):
    def send_error(self, code, *_):
        """Show the site's page for what is not there, as hosts do: at whatever address was asked for."""
        page = next(Path(self.directory).rglob("404.html")).read_bytes()
        self.send_response(code)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)


class LateFont(Handler):
    """A server that keeps back the font of formulas, as a slow network does, while `come` is not set."""

    come = threading.Event()

    def do_GET(self):
        if "STIXTwoMath" in self.path:
            LateFont.come.wait()
        super().do_GET()


OUT_OF_ROOTS = """() => {
  const box = (node) => node.getBoundingClientRect();
  const out = (root, child) => Math.max(box(root).left - box(child).left, box(child).right - box(root).right,
    box(root).top - box(child).top, box(child).bottom - box(root).bottom);
  return [...document.querySelectorAll("msqrt")].filter((root) => root.getClientRects().length)
    .map((root) => [root.parentElement.textContent, Math.max(...[...root.children].map((child) => out(root, child)))]);
}"""


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_what_stands_under_a_root_stays_in_it_on_a_first_and_a_second_visit(chromium, site, scheme, width):
    roots = 0
    lessons = (name for part in PARTS[1:] for name in of_part(site, part) if name.startswith(LESSONS))
    with serving(site, LateFont) as address:
        for name in lessons:
            context = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
            page = context.new_page()
            for visit in ("first", "second"):
                if visit == "first":  # formulas are laid out before their font is there
                    LateFont.come.clear()
                page.goto(f"{address}/{name}", wait_until="domcontentloaded")
                page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
                LateFont.come.set()
                page.evaluate("document.fonts.load('1em \"STIX Two Math\"').then(() => document.fonts.ready)")
                page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
                result = page.evaluate(OUT_OF_ROOTS)
                assert [message for message, out in result if out > 0.5] == [], f"{name}, {visit} visit"
                roots += len(result)
            context.close()
    assert roots > 50


def test_a_picture_stands_on_the_page_itself_in_either_theme(opened):
    look = "img => ['filter', 'padding', 'backgroundColor'].map((name) => getComputedStyle(img)[name])"
    for name, picture in (("notebooks/day5_kv_cache", ".course-figure img"), ("plays", "img.course-small")):
        for mode in ("light", "dark"):
            result = opened(name, mode).locator(picture).first.evaluate(look)
            assert result == ["none", "0px", "rgba(0, 0, 0, 0)"], (name, mode)


def test_a_dark_page_is_printed_in_the_colours_of_a_light_one(opened):
    page = opened("notebooks/day1_attention_by_hand", "dark")
    theme = page.locator("html")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert theme.get_attribute("data-theme") == "light"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert theme.get_attribute("data-theme") == "dark"


def test_paper_has_the_code_that_is_folded_on_the_screen_and_nothing_to_click(opened):
    page = opened("notebooks/day1_attention_by_hand")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    folded = page.locator("details.hide")
    assert folded.count() > 3
    for code in folded.locator("pre").all():
        assert code.is_visible() and code.evaluate("(node) => node.closest('.cell_input').getAnimations().length") == 0
    assert not [one for one in page.locator("details.hide > summary, .course-here").all() if one.is_visible()]
    assert "Widgets move" not in page.locator(".bd-article").inner_text()


def test_headings_step_down_in_size_and_in_weight_and_all_stands_in_one_column(opened):
    page = opened("notebooks/day1_attention_by_hand")
    size = "(node) => [parseFloat(getComputedStyle(node).fontSize), Number(getComputedStyle(node).fontWeight)]"
    (one, first), (two, second), (three, third) = (
        page.locator(f".bd-article {heading}").first.evaluate(size) for heading in ("h1", "h2", "h3")
    )
    assert one > two > three > 19 and first >= second > third
    assert page.evaluate("document.fonts.load('1em \"Course Serif\"').then((faces) => faces.length)") == 1
    for box in page.locator(".bd-article :is(p, .cell_input, .course-figure, .course-alive)").all()[:40]:
        assert (box.bounding_box() or {"width": 0})["width"] <= 720


@pytest.mark.parametrize(
    ("name", "where"), [("index", ".bd-article a"), ("exercises/day1_attention_by_hand", ".prev-next-title")]
)
def test_a_link_is_underlined_below_its_subscript(opened, name, where):
    page = opened(name)
    link = page.locator(f"{where}:has(sub)").first
    line, foot = link.evaluate("""(link) => [getComputedStyle(link).textUnderlineOffset,
      getComputedStyle(link.querySelector("sub")).bottom].map(parseFloat)""")
    assert line > -foot > 0


def test_without_scripts_a_lesson_is_all_there(chromium, site):
    context = chromium.new_context(offline=True, java_script_enabled=False)
    page = context.new_page()
    page.goto((site / "notebooks/day1_attention_by_hand.html").as_uri())
    pictures = page.locator(".course-alive img")
    assert page.locator("a.course-term[title]").count() > 20
    assert pictures.count() >= 9 and page.locator("math").count() > 100
    assert all(picture.get_attribute("alt") for picture in pictures.all())
    context.close()


def test_a_web_server_gives_the_same_pages_from_a_folder_of_it(chromium, site):
    """As GitHub Pages does: below a repository's name, on the site of somebody who has others too."""
    with serving(site.parent, Handler) as address, contextlib.closing(chromium.new_context()) as context:
        page = context.new_page()
        lost = []
        page.on("response", lambda answer: lost.append(answer.url) if answer.status >= 400 else None)
        ended = "net::ERR_ABORTED"  # a picture that was still loading when its widget came in its place
        page.on("requestfailed", lambda request: lost.append(request.url) if request.failure != ended else None)
        page.on("request", lambda r: None if r.url.startswith((address, "data:", "blob:")) else lost.append(r.url))
        page.goto(f"{address}/{site.name}/index.html", wait_until="networkidle")  # else the click ends what still loads
        page.get_by_role("link", name="Begin with day 1").click()
        page.wait_for_url("**/day1_*.html*", wait_until="load")
        widgets = page.locator(".course-alive")
        assert widgets.count() > 5
        for place in widgets.all():
            woken(page, place.get_attribute("id"))
        page.wait_for_load_state("networkidle")
        page.goto(f"{address}/{site.name}/search.html?q=softmax")
        page.locator("#search-results li a").first.wait_for()
        assert lost == []


@pytest.mark.parametrize("lost", ["no-page.html", "notebooks/day99.html", "a/b/c/d.html", "a/b/"])
def test_a_page_that_is_not_there_leads_into_the_site_from_any_depth(chromium, site, lost):
    with serving(site.parent, Handler) as address, contextlib.closing(chromium.new_context()) as context:
        page = context.new_page()
        top = f"{address}/{site.name}/"
        page.goto(f"{top}{lost}")
        page.wait_for_function("document.documentElement.dataset.top")
        links = page.locator("a").evaluate_all("(links) => links.map((link) => link.href)")
        assert links == [f"{top}index.html", f"{top}index.html", f"{top}glossary.html"]
        page.get_by_label("Search the course").fill("softmax")
        page.get_by_role("button").click()
        page.locator("#search-results li a").first.wait_for()
        assert page.url.startswith(f"{top}search.html")
