"""Exercises answered on their page in Chromium: Python runs in a worker, the course's checks judge, faults are said."""

import contextlib
import itertools
import json
import re

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from in_process import course
from needs import PYODIDE
from page_verdicts import cells_of
from without_torch import WITHOUT_TORCH

from course_utils.answer_key.strip_answers import is_answer
from course_utils.checks import in_page
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.course import EXERCISES, ROOT, SOLUTIONS, day_numbered
from course_utils.site.build import build_site
from course_utils.site.python_files import ANSWERS
from course_utils.site.serve import serving

pytestmark = PYODIDE
LOADED = 90_000  # milliseconds for Python to load and to check, on a busy machine
NAIVE = """import math

def softmax_row(row):
    exps = [math.exp(x) for x in row]
    return [e / sum(exps) for e in exps]
"""
RIGHT = NAIVE.replace("math.exp(x)", "math.exp(x - max(row))")
TYPE = """(sources) => {  // into cells of the notebook that is open in JupyterLab
  for (const { model } of window.courseNotebook.content.widgets)
    if (model.id in sources) model.sharedModel.setSource(sources[model.id]);
}"""
KEPT = """async (names) => {  // whether the service worker keeps files of these names
  const requests = await Promise.all((await caches.keys()).map(async (name) => (await caches.open(name)).keys()));
  const kept = requests.flat().map(({ url }) => url);
  return names.every((name) => kept.some((url) => url.endsWith(`/${name}`)));
}"""
STUB = "def softmax_row(row):\n    {}\n"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The address of the course's site with Python beside its pages, served on this machine."""
    folder = build_site(ROOT, tmp_path_factory.mktemp("site") / "html", python=True).out
    with serving(folder) as address:
        yield folder, address


@pytest.fixture
def opened(chromium, pages):
    """`opened(name, **options)` is a page of the site in a browser of its own. In the end no error is left on any."""
    contexts = []
    errors = []

    def opened(name, script="", **options):
        context = chromium.new_context(**options)
        contexts.append(context)
        if script:
            context.add_init_script(script)
        return visited(context, name)

    def visited(context, name):
        page = context.new_page()
        page.set_default_timeout(LOADED)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{pages[1]}/{name}.html")
        page.locator(".course-check").first.wait_for()
        return page

    opened.again = visited
    yield opened
    for context in contexts:
        context.close()
    assert errors == []


DAY1 = "exercises/day1_attention_by_hand"


@pytest.fixture(scope="module")
def day1(chromium, pages):
    """Day 1's exercises on one page for tests that begin by writing an answer, where Python starts once."""
    errors = []
    page = chromium.new_page()
    page.set_default_timeout(LOADED)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{pages[1]}/{DAY1}.html")
    page.locator(".course-check").first.wait_for()
    yield page
    page.close()
    assert errors == []


def place_of(page, grade_id="softmax_row"):
    return page.locator(f".course-answer[data-exercise={grade_id}]")


def write(place, source):
    """Type an answer in place of what its editor holds."""
    if not place.locator(".cm-content").count():
        place.locator(".course-code").click()
    editor = place.locator(".cm-content")
    editor.press("Control+a")
    place.page.keyboard.insert_text(source)


def result_of(place, button="Check"):
    """What a button brings, once Python is done."""
    return result_after(place, lambda: place.get_by_role("button", name=button, exact=True).click())


def result_after(place, act):
    """What an act brings, once Python is done."""
    count = int(place.get_attribute("data-finished") or 0)
    act()
    place.and_(place.page.locator(f"[data-finished='{count + 1}']")).wait_for()
    return place.locator(".course-result").inner_text()


def points(place):
    return place.locator(".course-points").inner_text()


def answer(page, source):
    """What the check of the first exercise says of this text."""
    write(place_of(page), source)
    return result_of(place_of(page))


def test_a_bug_is_named_on_the_start_page_and_python_loads_no_earlier(opened):
    page = opened("index")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.mouse.wheel(0, 4000)
    page.wait_for_timeout(500)
    assert not [url for url in asked if "python" in url or "codemirror" in url]
    message = answer(page, NAIVE)
    assert "math.exp overflows above 709" in message
    assert "row = [1000.0]" in message and "at line 4 of your cell" in message
    assert "✓" in answer(page, RIGHT)
    assert points(place_of(page)) == "✓ 2 of 2 points"
    assert all(url.startswith(page.url.rsplit("/", 1)[0]) for url in asked if not url.startswith(("data:", "blob:")))


def test_it_works_by_keyboard_alone(opened):
    page = opened("index")
    place = place_of(page)
    code = page.locator(".course-code")
    code.focus()
    page.keyboard.press("PageDown")
    page.keyboard.press("Control+c")
    assert not place.locator(".cm-content").count()  # these keys are no wish to write
    code.press("Enter")
    place.locator(".cm-content").wait_for()
    # what is typed takes the place of the line that is to be written; lines after a colon are indented
    page.keyboard.type("result = []\nfor x in row:\nresult.append(x)")
    text = place.locator(".cm-content").inner_text()
    assert (
        "\n    result = []\n    for x in row:\n        result.append(x)" in text and "your code goes here" not in text
    )
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(RIGHT)
    assert "✓" in result_after(place, lambda: page.keyboard.press("Shift+Enter"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className").startswith("cm-content")
    page.get_by_text("Escape, then Tab leaves the editor.").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    focused = "document.activeElement.textContent"
    assert page.evaluate(focused) == "Check"
    result_after(place, lambda: page.keyboard.press("Enter"))
    assert page.evaluate(focused) == "Check"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "Run"


def test_what_is_typed_while_the_editor_loads_is_kept(opened):
    page = opened("index")
    page.locator(".course-code").focus()
    page.keyboard.type("m = max(row)")
    editor = place_of(page).locator(".cm-content")
    editor.wait_for()
    text = editor.inner_text()
    assert "    m = max(row)" in text and "your code goes here" not in text


SLIPS = {  # what replaces what in the course's answer
    (1, "scale_scores"): ("math.sqrt(d_k)", "d_k"),
    (1, "attention_lists"): ("scale_scores(scores(Q, K), len(K[0]))", "scores(Q, K)"),
    (2, "stable_softmax"): ("x.max(axis=axis, keepdims=True)", "x.max()"),
    (3, "by_hand_row"): ("0.378, 0.622", "0.622, 0.378"),
    (4, "count_flops"): ("core = T * T * d_model + T * T * d_model", "core = T * T * d_model"),
    (5, "cache_bytes"): ("2 * n_layers", "n_layers"),
    (6, "online_softmax"): ("l * math.exp(m - m_new)", "l"),
    (7, "chunks"): ("todo[i] > 1", "todo[i] <= 1"),
    (8, "delta_step"): ("v - k @ state", "v"),
}


def slip(day, grade_id):
    """The course's answer to an exercise with the slip in it."""
    solution = cells_of(day)[2][grade_id]
    source = solution.replace(*SLIPS[day, grade_id], 1)
    assert source != solution
    return source


@pytest.mark.parametrize("day", list(WITHOUT_TORCH))
def test_stubs_get_nothing_a_slip_the_message_of_the_notebook_and_solutions_all_points(opened, day):
    solutions = day_numbered(day).notebook(SOLUTIONS)
    page = opened(f"exercises/{solutions.stem}")
    page.on("dialog", lambda dialog: dialog.accept())  # the solutions replace the slips
    # each exercise has an editor, or says that it needs PyTorch
    places = page.locator(".course-answer").evaluate_all("all => all.map(each => each.dataset.exercise)")
    assert places == list(WITHOUT_TORCH[day])
    assert page.locator(".course-needs-torch").count() == len(all_exercises(day)) - len(places)
    # the stub of the first, slips, and the solutions
    total = page.locator(".course-sum")
    full = sum(all_exercises(day)[grade_id].points for grade_id in WITHOUT_TORCH[day])
    assert total.inner_text() == f"0 of {full} points"
    assert "0 of" in result_of(place_of(page, WITHOUT_TORCH[day][0]))
    for grade_id in [grade_id for of_day, grade_id in SLIPS if of_day == day]:
        records = []
        in_page.check(day, grade_id, cells_of(day)[0], {}, slip(day, grade_id), records.append)
        write(place_of(page, grade_id), slip(day, grade_id))
        message = result_of(place_of(page, grade_id))
        assert points(place_of(page, grade_id)).startswith(f"{records[0]['points']:g} of")
        says = records[0]["text"].split("\n\n")[1]  # after the line with the points
        assert " ".join(says.split()) in " ".join(message.split())
    page.locator(".course-total input").set_input_files(solutions)
    page.get_by_text(f"{len(WITHOUT_TORCH[day])} answers were loaded").wait_for()
    for grade_id in WITHOUT_TORCH[day]:
        message = result_of(place_of(page, grade_id))
        assert points(place_of(page, grade_id)).startswith("✓"), message
    assert total.inner_text() == f"{full} of {full} points"


def test_the_pages_of_a_build_ask_for_its_own_python(opened, pages):
    page = opened("index")
    python = page.locator(".course-answer").get_attribute("data-python")
    assert (pages[0] / "_static" / python / "python_worker.js").exists()
    assert python in (pages[0] / "service_worker.js").read_text(encoding="utf-8")


FAULTS = {
    "a syntax error": ("def softmax_row(row):\n    return (row\n", "This is not valid Python", "at line 2"),
    "a return outside": ("return 1\n", "This is not valid Python: 'return' outside function"),
    "an exit": ("raise SystemExit\n", "SystemExit"),
    "an error in the cell": ("1 / 0\n", "ZeroDivisionError: division by zero, at line 1"),
    "another name": ("def soft(row):\n    return row\n", "Your code does not define softmax_row."),
    "PyTorch": (STUB.format("import torch\n    return torch.softmax(row)"), "PyTorch is not on this page"),
    "input": (STUB.format("return input()"), "input() does not work here"),
    "a newer NumPy": ("import numpy as np\n" + STUB.format("return np.matvec(row, row)"), "This page has NumPy 2.0.2"),
    "prints without end": (STUB.format("while True: print('x' * 999)"), "Stopped after printing 1,048,576 characters"),
    "too much memory": (STUB.format("text = 'x'\n    while True: text += text"), "MemoryError"),
}


def test_what_goes_wrong_in_an_answer_is_said(day1):
    for fault, (source, *texts) in FAULTS.items():
        message = answer(day1, source)
        assert all(text in message for text in texts), f"{fault}: {message}"
    assert "✓" in answer(day1, RIGHT)


def hurry(route):
    """Give the page Python in which an answer may work for a second: the usual time is that of a notebook or more."""
    source = (ANSWERS / "python_worker.js").read_text(encoding="utf-8")
    before = "  const module = python.pyimport("
    assert source.count(before) == 1
    limit = 'python.runPython("from course_utils.checks.judge import time_limit; time_limit.ANSWER_SECONDS = 1");'
    route.fulfill(body=source.replace(before, f"{limit}\n{before}"), content_type="text/javascript")


def test_a_loop_without_end_is_stopped_at_its_line_and_the_text_stays(opened):
    page = opened(DAY1)
    page.context.route("**/python_worker.js", hurry)
    endless = STUB.format("total = 0\n    while True:\n        total += 1")
    message = answer(page, endless)
    assert re.search(r"after 1 seconds of work.* line [34]", message), message
    # Stop ends it at once, and a new worker takes over
    place = place_of(page)
    place.get_by_role("button", name="Check", exact=True).click()
    place.get_by_role("button", name="Stop").click()
    place.get_by_text("Stopped. Your code is unchanged.").wait_for()
    assert "total += 1" in place.locator(".cm-content").inner_text()
    assert "✓" in answer(page, RIGHT)


def test_a_text_that_changes_during_its_check_gets_no_points(day1):
    place = place_of(day1)
    write(place, RIGHT)

    def check_and_type():
        place.get_by_role("button", name="Check", exact=True).click()
        write(place, NAIVE)

    assert "✓" in result_after(place, check_and_type)
    assert points(place) == "0 of 2 points"


def test_run_shows_what_a_cell_prints(day1):
    write(place_of(day1), "print('sum')\nsum([1, 2])\n")
    assert result_of(place_of(day1), "Run").split() == ["sum", "3"]


def test_reset_puts_the_stub_back(day1):
    write(place_of(day1), NAIVE)
    place_of(day1).get_by_role("button", name="Reset").click()
    assert "your code goes here" in place_of(day1).locator(".cm-content").inner_text()


def test_an_earlier_answer_is_used_and_lent_where_it_fails(opened):
    page = opened(DAY1)
    solutions = nbformat.read(day_numbered(1).notebook(SOLUTIONS), 4).cells
    layer = next(cell.source for cell in solutions if cell.get("id") == "attention_lists")
    write(place_of(page), STUB.format("return [0.0 for _ in row]"))
    result_of(place_of(page))
    write(place_of(page, "attention_lists"), layer)
    assert "✓" in result_of(place_of(page, "attention_lists"))


def test_what_is_written_survives_closing_and_is_shown_in_another_tab(opened):
    first = opened(DAY1)
    second = opened.again(first.context, DAY1)
    write(place_of(second), "# here too\n")
    answer(first, RIGHT)
    second.get_by_text("This answer was changed in another tab.").first.wait_for()
    second.get_by_role("button", name="Take that text").click()
    assert "max(row)" in place_of(second).locator(".cm-content").inner_text()
    first.close()
    third = opened.again(second.context, DAY1)
    place_of(third).get_by_text("✓ 2 of 2 points").wait_for()
    course_map = second.context.new_page()
    course_map.goto(second.url.replace(DAY1, "notebooks/course_map"))
    course_map.get_by_text(re.compile(r"Day 1: Attention by hand, 2 of \d+ points")).wait_for()
    assert "max(row)" in place_of(third).locator(".course-code").inner_text()


def downloaded(page, folder):
    """The file that a page gives, saved in a folder under the name that the page gives it."""
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as a notebook").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_a_downloaded_notebook_is_the_exercises_with_the_answers_in_it(opened, tmp_path):
    page = opened(DAY1)
    answer(page, RIGHT)
    path = downloaded(page, tmp_path)
    expected = nbformat.read(day_numbered(1).notebook(EXERCISES), 4)
    assert path.name == day_numbered(1).notebook(EXERCISES).name
    next(cell for cell in expected.cells if cell.id == "softmax_row").source = RIGHT
    assert nbformat.read(path, 4) == expected


def test_a_downloaded_notebook_gets_the_points_that_the_page_showed(opened, tmp_path):
    """Right answers, wrong ones, one that fails at its first line, and exercises that nobody touched."""
    page = opened(DAY1)
    solutions = cells_of(1)[2]
    right = ("softmax_row", "by_hand_two", "scores", "attention_batched")
    wrong = {  # an answer that is half right, one that uses it, a number by hand, a cell that is not Python
        "soft_lookup": solutions["soft_lookup"].replace("return", "return 2 *", 1),
        "scale_scores": slip(1, "scale_scores"),
        "attention_lists": slip(1, "attention_lists"),
        "by_hand_three": solutions["by_hand_three"].replace("0.", "1.", 1),
        "find_the_bug": "def (",
    }
    shown = dict.fromkeys(all_exercises(1), 0.0)
    for grade_id, source in ({name: solutions[name] for name in right} | wrong).items():
        assert source != solutions[grade_id] or grade_id in right
        write(place_of(page, grade_id), source)
        result_of(place_of(page, grade_id))
        shown[grade_id] = float(points(place_of(page, grade_id)).removeprefix("✓ ").partition(" ")[0])
    path = downloaded(page, tmp_path)
    code, _, complaint = course("grade", path.name, "--out", "grades", "--cold", cwd=tmp_path)
    assert code == 0, complaint
    (graded,) = json.loads((tmp_path / "grades" / "grades.json").read_text(encoding="utf-8"))["submissions"]
    assert {each["id"]: each["score"] for each in graded["exercises"]} == shown
    assert all(shown[name] == all_exercises(1)[name].points for name in right)
    assert all(shown[name] < all_exercises(1)[name].points for name in wrong)
    assert page.locator(".course-sum").inner_text().startswith(f"{graded['score']:g} of ")


def test_a_page_takes_back_what_jupyterlab_saved(opened, lab, tmp_path):
    page = opened(DAY1)
    page.on("dialog", lambda dialog: dialog.accept())  # what was saved replaces what the page has
    write(place_of(page), NAIVE)
    path = downloaded(page, tmp_path)
    changed = {"softmax_row": RIGHT, "scores": cells_of(1)[2]["scores"]}
    with lab.open_file(path, [0]) as notebook:
        lab.page.evaluate(TYPE, changed)
        saved = notebook.save()
        assert {cell.id: cell.source for cell in saved.cells if cell.id in changed} == changed
        page.locator(".course-total input").set_input_files(lab.folder / notebook.path)
    page.get_by_text("2 answers were loaded").wait_for()
    for name, source in changed.items():
        place_of(page, name).locator(".course-code").click()
        assert place_of(page, name).locator(".cm-content").inner_text().split() == source.split()
        assert "✓" in result_of(place_of(page, name))
    again = opened.again(page.context, DAY1)
    for name in changed:
        place_of(again, name).get_by_text("✓").wait_for()


def test_answers_that_need_torch_come_back_with_the_download(opened, tmp_path):
    """A notebook goes through the page, and nothing in it is lost."""
    page = opened(DAY1)
    solutions = day_numbered(1).notebook(SOLUTIONS)
    page.locator(".course-total input").set_input_files(solutions)
    page.get_by_text("answers were loaded").wait_for()
    got, expected = ({cell.id: cell.source for cell in nbformat.read(path, 4).cells if is_answer(cell)}
                     for path in (downloaded(page, tmp_path), solutions))  # fmt: skip
    assert got == expected


def test_an_answer_is_replaced_only_if_one_agrees(opened):
    page = opened(DAY1)
    answer(page, RIGHT)
    page.on("dialog", lambda dialog: dialog.dismiss())
    page.locator(".course-total input").set_input_files(day_numbered(1).notebook(SOLUTIONS))
    page.wait_for_timeout(500)
    assert "max(row)" in place_of(page).locator(".cm-content").inner_text()


def test_a_file_that_is_no_notebook_of_the_day_is_refused(opened, tmp_path):
    page = opened(DAY1)
    for text, reason in (("no notebook", "This file is not a notebook."), ("{}", "This file has no answers to")):
        (tmp_path / "a.ipynb").write_text(text)
        page.locator(".course-total input").set_input_files(tmp_path / "a.ipynb")
        page.get_by_text(reason).wait_for()


def test_a_page_without_a_network_still_checks_after_its_first_visit(opened):
    page = opened("index")
    answer(page, NAIVE)
    page.wait_for_function(KEPT, arg=["index.html", "codemirror.js", "pyodide.asm.wasm", "packages.pack"])
    page.context.set_offline(True)
    page.reload()
    assert "✓" in answer(page, RIGHT)
    page.context.set_offline(False)


def test_a_page_without_a_network_says_that_python_cannot_load(opened):
    page = opened("index")
    page.context.route("**/_static/python/**", lambda route: route.abort())
    assert "Are you online?" in result_of(place_of(page))


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("delete window.WebAssembly", "This browser has no WebAssembly"),
        ("delete window.Worker", "This browser does not let the page run Python here."),
    ],
)
def test_a_browser_that_cannot_run_python_says_so(opened, script, text):
    page = opened("index", script)
    place_of(page).locator(".course-code").click()
    page.get_by_text(text).wait_for()


def test_a_page_that_is_opened_as_a_file_says_how_to_serve_it(chromium, pages):
    page = chromium.new_page()
    page.goto((pages[0] / "index.html").as_uri())
    page.locator(".course-code").click()
    page.get_by_text('make site ARGS="--python --serve"').wait_for()
    page.close()


def test_a_page_in_the_viewer_of_jupyterlab_says_how_to_serve_it(chromium, pages):
    """The viewer shows a page in a frame that has no origin, in which no worker runs."""
    page = chromium.new_page()
    page.goto(f"{pages[1]}/404.html")
    page.set_content(f"<iframe sandbox='allow-scripts' width=1200 height=800 src='{pages[1]}/index.html'></iframe>")
    frame = page.frame_locator("iframe")
    frame.locator(".course-code").click()
    frame.get_by_text('make site ARGS="--python --serve"').wait_for()
    page.close()


def test_where_storage_is_refused_it_says_so_and_still_checks(opened):
    page = opened("index", "IDBFactory.prototype.open = () => { throw new DOMException('refused') }")
    write(place_of(page), RIGHT)
    page.get_by_text("Your browser keeps nothing of this page").first.wait_for()
    assert "✓" in result_of(place_of(page))


def test_where_storage_is_refused_a_later_answer_finds_an_earlier_one(opened):
    page = opened(DAY1, "IDBFactory.prototype.open = () => { throw new DOMException('refused') }")
    write(place_of(page), RIGHT)
    write(place_of(page, "scores"), "print(softmax_row([0.0, 0.0]))\n")
    assert "[0.5, 0.5]" in result_of(place_of(page, "scores"), "Run")


KEYS = [  # what is typed, key by key; the editor indents a new line and closes brackets and quotes
    'import math  # e^x / sum: 8 // 2, 7 % 2? "quotes", {braces} & ~a | b < c > @ \\\\ !',
    "Enter",
    "def softmax_row(row):",
    *("Enter", "Backspace", "Tab"),
    "'''One row / its sum.'''",  # at the end the first quote passes all three, and the others add nothing
    "Enter",
    "exps = [math.exp(x - max(row)) for x in row]",
    "Enter",
    "return [e / sum(exps) for e in exps][0 // 1:] # or (e",
    "NumpadDivide",
    "s)",
    *("ArrowLeft", "ArrowLeft"),
    "'",
    *("Delete", "Delete", "Delete", "Delete"),
]
TYPED = [
    'import math  # e^x / sum: 8 // 2, 7 % 2? "quotes", {braces} & ~a | b < c > @ \\\\ !',
    "def softmax_row(row):",
    "    '''One row / its sum.'''",
    "    exps = [math.exp(x - max(row)) for x in row]",
]


@pytest.mark.parametrize("name", ["index", DAY1])
def test_every_character_of_an_answer_can_be_typed(opened, name):
    """By the keyboard, since a page's shortcuts take keys, and no text that is inserted: "/" was lost to a search."""
    page = opened(name)
    place_of(page).locator(".course-code").click()
    editor = place_of(page).locator(".cm-content")
    editor.press("Control+a")
    address = page.url
    for keys in KEYS:
        if keys[1:].isalpha() and keys[0].isupper():
            page.keyboard.press(keys)
        else:
            page.keyboard.type(keys)
    lines = editor.inner_text().splitlines()
    assert lines[:4] == TYPED
    assert lines[4].startswith("    return [e / sum(exps) for e in exps][0 // 1:] # or (e/")
    assert page.url == address
    assert "\u2713" in result_after(place_of(page), lambda: page.keyboard.press("Shift+Enter"))


def test_no_page_takes_keys_for_itself(pages):
    options = (pages[0] / "_static" / "documentation_options.js").read_text(encoding="utf-8")
    assert "NAVIGATION_WITH_KEYS: false" in options and "ENABLE_SEARCH_SHORTCUTS: false" in options


def test_a_pass_comes_back_with_its_text(opened):
    page = opened(DAY1)
    answer(page, RIGHT)
    place = place_of(page)
    place.locator(".cm-content").press("Control+End")
    page.keyboard.type("# note")
    assert points(place) == "0 of 2 points" and place.locator(".course-state").inner_text() == "not checked yet"
    place.get_by_text("You have changed the text since this check.").wait_for()
    for _ in "# note":
        page.keyboard.press("Backspace")
    assert points(place) == "\u2713 2 of 2 points" and place.locator(".course-state").inner_text() == ""
    assert not place.locator(".course-outdated").is_visible()
    page.keyboard.type("#")
    page.reload()
    place_of(page).locator(".course-code").click()
    place_of(page).locator(".cm-content").press("Control+End")
    page.keyboard.press("Backspace")
    assert points(place_of(page)) == "\u2713 2 of 2 points"


def test_stop_keeps_what_was_printed_and_another_exercise_says_why_it_stops_the_first(opened):
    page = opened(DAY1)
    place, other = place_of(page), place_of(page, "scores")
    write(place, "print('hello')\nwhile True: pass\n")
    for stop_it in (
        lambda: place.get_by_role("button", name="Stop").click(),
        lambda: other.get_by_role("button", name="Run").click(),
    ):
        place.get_by_role("button", name="Run").click()
        page.wait_for_function("!document.querySelector('.course-loading:not([hidden])')")
        page.wait_for_timeout(3000)
        text = result_after(place, stop_it)
        assert text.startswith("hello") and "Stopped" in text
    assert "another exercise was started" in text
    other.get_by_text("It ran and printed nothing.").wait_for()


def test_a_check_says_at_which_step_it_is_while_it_runs(opened):
    page = opened(DAY1)
    place = place_of(page)
    slow = STUB.format("import time\n    time.sleep(1)\n    return row")
    write(place, slow)
    place.get_by_role("button", name="Check", exact=True).click()
    place.locator(".course-state").get_by_text(re.compile(r"^Checking … step \d+ of \d+, \d+ s\b")).wait_for()
    place.get_by_role("button", name="Stop").click()
    assert place.locator(".course-state").inner_text() == "not checked yet"


def test_a_result_below_the_window_comes_into_view(day1):
    day1.set_viewport_size({"width": 1280, "height": 400})
    place = place_of(day1)
    write(place, NAIVE + "\n" * 25)
    day1.keyboard.press("Control+Home")
    result_after(place, lambda: day1.keyboard.press("Shift+Enter"))
    box = place.locator(".course-result").bounding_box()
    assert box["y"] + min(box["height"], 200) <= 400 + 1
    day1.set_viewport_size({"width": 1280, "height": 720})


def test_an_older_tab_does_not_overwrite_what_a_newer_one_kept(opened):
    first = opened(DAY1)
    place = place_of(first)
    write(place, "# mine\n")
    second = opened.again(first.context, DAY1)
    write(place_of(second), "# newer\n")
    first.get_by_text("This answer was changed in another tab.").first.wait_for()
    write(place, "# mine, typed on\n")
    first.wait_for_timeout(500)
    third = opened.again(first.context, DAY1)
    place_of(third).get_by_text("# newer").wait_for()
    third.close()
    first.get_by_role("button", name="Keep this text").click()
    second.get_by_text("This answer was changed in another tab.").first.wait_for()
    second.get_by_role("button", name="Take that text").click()
    assert "typed on" in place_of(second).locator(".cm-content").inner_text()
    assert not second.get_by_text("This answer was changed in another tab.").first.is_visible()


LUMINANCE = """(of) => {  // the contrast of an editor's text with what is selected, as WCAG counts it
  const rgb = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((each) => each / 255)
    .map((each) => (each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
    .reduce((sum, each, i) => sum + each * [0.2126, 0.7152, 0.0722][i], 0);
  const over = (top, below) => top.slice(0, 3).map((each, i) => each * (top[3] ?? 1) + below[i] * (1 - (top[3] ?? 1)));
  const style = (name) => getComputedStyle(document.querySelector(name));
  const ground = rgb(style(".course-code").backgroundColor);
  const chosen = over(rgb(style(`${of} .cm-selectionBackground`).backgroundColor), ground);
  const [one, other] = [light(rgb(style(`${of} .cm-editor`).color)), light(chosen)].sort();
  return (other + 0.05) / (one + 0.05);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_selected_can_be_read_and_no_line_passes_over_its_number(opened, scheme):
    page = opened(DAY1, color_scheme=scheme, viewport={"width": 390, "height": 800})
    place_of(page).locator(".course-code").click()  # the line that is to be written is selected
    page.locator(".cm-selectionBackground").first.wait_for()
    assert page.evaluate(LUMINANCE, ".course-code") > 4.5
    write(place_of(page), f"def softmax_row(row):\n    return [{'x, ' * 60}]\n")
    scroller = place_of(page).locator(".cm-scroller")
    assert scroller.evaluate("each => each.scrollWidth <= each.clientWidth")  # long lines are broken
    alpha = place_of(page).locator(".cm-gutters").evaluate("each => getComputedStyle(each).backgroundColor")
    assert alpha.startswith("rgb(")  # opaque


def test_on_a_phone_no_button_lies_on_a_result(opened):
    page = opened(DAY1, viewport={"width": 390, "height": 800})
    page.mouse.wheel(0, 3000)
    page.wait_for_timeout(300)
    page.mouse.wheel(0, -300)
    page.wait_for_timeout(500)
    assert not page.locator("#pst-back-to-top").is_visible()


def test_the_contents_mark_what_needs_torch(opened):
    page = opened("exercises/day3_causal_masking")
    marked = page.locator("nav.page-toc li").filter(has_text="(PyTorch)")
    assert marked.count() == len(all_exercises(3)) - len(WITHOUT_TORCH[3])


def test_axe_finds_nothing_before_and_after_a_check_in_both_themes_and_on_a_phone(opened):
    page = opened(DAY1)
    for is_checked in (False, True):
        if is_checked:
            answer(page, NAIVE)
        for scheme, width in itertools.product(("light", "dark"), (1280, 390)):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_function("(theme) => document.documentElement.dataset.theme === theme", arg=scheme)
            found = Axe().run(page, {"include": [[".course-answer"], [".course-total"]]}, {"preload": False})
            assert [(each["id"], each["nodes"][0]["html"]) for each in found.response["violations"]] == []
            wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert wide[0] <= wide[1], (scheme, width)


def test_a_class_gets_no_exercises_in_pages(tmp_path):
    from course_utils.errors import CourseError

    with pytest.raises(CourseError, match="hold the course's answers"):
        build_site(tmp_path, tmp_path / "out", python=True)
    with contextlib.suppress(CourseError):
        build_site(tmp_path, tmp_path / "out")
    assert json.dumps(sorted(path.name for path in tmp_path.iterdir())) == "[]"
