"""Every lesson in JupyterLab: its widgets run, and are found again when the notebook is opened another day.

What its other cells give is nbval's to test, and solutions are nbval's alone: their widgets are those of the lessons.
"""

import re

import nbformat
import pytest

from course_utils import views
from course_utils.course import LESSONS as FOLDER
from course_utils.course import SOURCES, day_of, is_there

from .lab import REPOSITORY
from .needed import needed_cells, widget_cells

LESSONS = {path.stem: path for path in sorted(REPOSITORY.glob("notebooks/*.ipynb"))}
VIEW = "application/vnd.jupyter.widget-view+json"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
ALTS = "(images) => images.map(({ alt }) => alt)"


def read(name):
    return nbformat.read(LESSONS[name], as_version=4)


def texts(notebook, places):
    """What the cells at these places show or print, as text."""
    return [[part.get("text") or part.data["text/plain"] for part in notebook.cells[place].outputs] for place in places]


def alts(notebook):
    """What a lesson's pictures show, in words, from its first to its last."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.metadata["image/png"]["alt"] for output in outputs if "image/png" in output.get("data", {})]


def live(notebook, place):
    return notebook.output(place).locator("[class^='course-']").first.is_visible()


def test_every_widget_of_the_course_is_in_a_lesson_but_for_those_that_a_check_shows():
    lessons = [read(name) for name in LESSONS]
    sources = "\n".join(lesson.cells[place].source for lesson in lessons for place in widget_cells(lesson))
    drafts = [path for path in (REPOSITORY / SOURCES[FOLDER]).glob("day*.md") if not is_there(day_of(path.name))]
    asked = REPOSITORY.glob("course_utils/days/*/guesses.py")
    sources += "".join(path.read_text(encoding="utf-8") for path in [*drafts, *asked])
    missing = [name for name in views.__all__ if not re.search(rf"\b{name}(\.\w+)?\(", sources)]
    assert missing == ["DuelBoard"]


@pytest.mark.parametrize(
    "name", [name for name in LESSONS if widget_cells(read(name))]
)  # the page of references has none
def test_a_lesson_that_was_run_and_saved_shows_every_widget_when_it_is_opened_again(lab, name):
    built = read(name)
    widgets = [place for place in widget_cells(built) if "image/png" in built.cells[place].outputs[0].get("data", {})]
    with lab.open_file(LESSONS[name], needed_cells(built)) as notebook:
        for place in widgets:
            notebook.wait(lambda place=place: live(notebook, place), f"cell {place} shows its widget")
        notebook.check_clean()
        saved = notebook.save()
        assert saved.metadata == built.metadata
        assert texts(saved, widgets) == texts(built, widgets), "needed_cells left a cell out that the widgets need"
        assert all(live(notebook, place) for place in widgets)
        notebook.check_clean()
        notebook.reopen()
        for place in widgets:
            picture = notebook.output(place).locator("img")
            notebook.wait(lambda picture=picture: picture.count() == 1, f"cell {place} shows its picture")
            assert picture.evaluate("async (image) => { await image.decode(); return image.naturalWidth; }") > 100
        assert notebook.find(".jp-OutputArea-output:has-text('Error displaying widget')").count() == 0
        assert all(alts(saved))
        assert notebook.find(".jp-OutputArea-output img").evaluate_all(ALTS) == alts(saved)
        notebook.check_clean()


@pytest.mark.parametrize("name", ["course_map", "day1_attention_by_hand"])
def test_a_notebook_is_marked_as_changed_by_a_change_and_not_by_being_opened(lab, name):
    with lab.open_file(LESSONS[name], [0]) as notebook:
        notebook.reopen()
        model = "window.courseNotebook.context.model"
        has_version = f"{model}.getMetadata('language_info').version !== undefined"
        notebook.wait(lambda: notebook.page.evaluate(has_version), "JupyterLab writes which Python the kernel is")
        assert not notebook.page.evaluate(f"{model}.dirty")
        notebook.page.evaluate(f"{model}.cells.get(0).sharedModel.setSource('Mine.')")
        assert notebook.page.evaluate(f"{model}.dirty")


def test_a_widget_whose_script_comes_late_hears_the_kernel_nevertheless(lab):
    late = (
        "from course_utils.views import AttentionHeatmap",
        "wait = 'await new Promise((go) => { window.courseGo = go; });\\n'",
        "Late = type('Late', (AttentionHeatmap,), {'_esm': wait + str(AttentionHeatmap._esm)})",
        "heatmap = Late([[0.5, 0.5]] * 2, ['a', 'b'])\nheatmap",
    )
    with lab.open_cells(["\n".join(late)]) as notebook:
        notebook.wait(lambda: notebook.page.evaluate("'courseGo' in window"), "the script has begun")
        notebook.page.wait_for_timeout(2500)  # anywidget gives a script two seconds
        notebook.page.evaluate("window.courseGo()")
        row = notebook.find(".course-heatmap-side")
        row.wait_for()
        notebook.run("heatmap.row = 1")
        notebook.wait(lambda: row.get_attribute("data-row") == "1", "the widget hears Python")
        notebook.check_clean()


def test_a_page_that_was_saved_stays_live_and_saves_again(lab):
    made = "import ipywidgets\nfrom course_utils.views import AttentionHeatmap"
    cells = ["heatmap = AttentionHeatmap([[0.5, 0.5]] * 2, ['a', 'b'])\nheatmap", "ipywidgets.IntSlider()"]
    with lab.open_cells([made, *cells]) as notebook:
        row = notebook.find(".course-heatmap-side")
        for number in ("0", "1"):
            saved = notebook.save()
            notebook.run(f"heatmap.row = {number}")
            notebook.wait(lambda number=number: row.get_attribute("data-row") == number, "the widget hears Python")
        _, (heatmap,), (slider,) = [cell.outputs for cell in saved.cells]
        assert set(heatmap.data) == {"text/plain", "image/png"}
        assert VIEW in slider.data, "without a picture the name is all there is"
        notebook.check_clean()


def test_a_guess_is_there_when_the_cell_runs_again_and_not_in_the_saved_notebook(lab, tmp_path):
    made = f"Guess.number(1, 'n', 'How large?', truth=0.8, low=0, high=1, root={str(tmp_path)!r})"
    with lab.open_cells([f"from course_utils.views import Guess\n{made}.take(0.3)", made]) as notebook:
        notebook.wait(lambda: "Computed: 0.8." in notebook.output(1).inner_text(), "the guess is shown")
        assert "Guessed on 2" in notebook.output(1).inner_text()
        saved = notebook.save()
        assert "0.8" not in str(saved.cells[1].outputs[0].data["text/plain"])
        notebook.reopen()
        picture = notebook.output(1).locator("img")
        notebook.wait(lambda: picture.count() == 1, "the question's picture is there")
        assert notebook.output(1).locator(".jp-RenderedImage").inner_text() == "picture: run the cell"
        assert "How large?" in picture.get_attribute("alt")
        notebook.check_clean()


def test_a_picture_keeps_what_jupyterlab_gives_it_with_an_alt_text_and_without(lab):
    pixel = f"from IPython.display import display\npixel = {{'image/png': '{PIXEL}'}}"
    own = {"width": 30, "height": 20, "unconfined": True}
    metadata = [
        {"image/png": picture, "needs_background": "light"}
        for picture in (own, own | {"alt": "A pixel", "caption": "One"})
    ]
    figure = "display({**pixel, 'text/plain': 'A pixel'}, raw=True, metadata={'image/png': {'alt': 'A pixel'}})"
    image = (
        "from IPython.display import Image\nimport base64\nImage(base64.b64decode(pixel['image/png']), alt='A pixel')"
    )
    calls = [f"display(pixel, raw=True, metadata={one})" for one in metadata]
    with lab.open_cells([pixel, *calls, figure, image]) as notebook:
        plain, described = (notebook.output(place).locator(".jp-RenderedImage img") for place in (1, 2))
        assert described.get_attribute("alt") == "A pixel"
        assert plain.get_attribute("alt") is None
        below = [notebook.output(place).locator(".jp-RenderedImage").inner_text() for place in (1, 2, 3, 4)]
        assert below == ["", "One", "", ""], "only a widget's picture says that its cell has not run"
        for image in (plain, described):
            assert [image.get_attribute(name) for name in ("width", "height")] == ["30", "20"]
            assert image.get_attribute("class") == "jp-needs-light-background jp-mod-unconfined"
        notebook.check_clean()
