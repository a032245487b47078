"""The site: whole, light, without answers, and the same bytes each time."""

import csv
import html
import io
import itertools
import json
import re
import shutil
from collections import Counter

import nbformat
import pytest
from docutils import nodes
from docutils.utils import new_document
from in_process import course as course_command
from PIL import Image
from site_pages import pages_of

from course_utils import loader, views
from course_utils.answer_key.key import COURSE
from course_utils.answer_key.strip_answers import squeeze
from course_utils.authoring.edition import find_traces, lines_of_answers, write_student_edition
from course_utils.authoring.widget_states import read_states, states_path
from course_utils.course import (
    DAYS,
    EXERCISES,
    LESSONS,
    ROOT,
    duration,
    in_sittings,
    is_published,
    is_there,
    repository,
    version,
)
from course_utils.errors import CourseError
from course_utils.site import page_wording, start_pages
from course_utils.site.build import build_site
from course_utils.site.mathml import KeepPunctuation
from course_utils.site.pages import Play
from course_utils.site.search import MARK
from course_utils.site.widget_gallery import plays_page

THERE = [day.number for day in DAYS if day.notebook(LESSONS)]
AGAIN = pytest.mark.thorough("another site is built: a second time, or that of a class")
MOST = 3_100_000  # bytes of a page with all that it loads


def test_there_is_a_page_for_everything(pages):
    for number in THERE:
        for folder in (LESSONS, EXERCISES):
            assert f"{folder}/{DAYS[number - 1].notebook(folder).stem}.html" in pages
    others = {
        "404",
        "index",
        "start",
        "plays",
        "search",
        "notebooks/course_map",
        "notebooks/references",
        "docs/teaching",
    }
    assert {f"{name}.html" for name in others} <= set(pages)


def test_every_widget_of_a_lesson_is_on_its_page(pages):
    for number in THERE:
        lesson = DAYS[number - 1].notebook(LESSONS)
        stored = [each["widget"] for widgets in read_states(lesson).values() for each in widgets]
        displayed = [widget for widget, _ in pages[f"{LESSONS}/{lesson.stem}.html"].widgets]
        assert sorted(stored) == sorted(displayed) and len(displayed) >= 9


def test_kept_states_are_those_that_widgets_have_today():
    """A trait that a widget got or lost since the lesson was built would leave its page dead."""
    for path in sorted((ROOT / LESSONS).glob("*.ipynb")):
        for widgets in read_states(path).values():
            for each in widgets:
                traits = getattr(views, each["widget"]).class_traits(sync=True)
                own = {name for name in traits if not name.startswith(("_model", "_view", "_dom", "_esm", "_css"))}
                own -= {"layout", "tabbable", "tooltip", "_anywidget_id"}
                assert set(each["state"]) - {"_alone"} == own, (
                    f"{states_path(path).name}: {each['widget']}; make build ARGS=--force"
                )


def test_every_link_leads_somewhere(pages, site):
    dead = []
    for name, page in pages.items():
        for link in page.links:
            dead += [f"{name}: {link}"] if not leads_somewhere(link, page, pages, site) else []
    assert dead == []


def test_no_page_tells_an_address_that_is_not_set(pages):
    unset = [name for name, page in pages.items() if "/OWNER/" in page.path.read_text(encoding="utf-8")]
    assert is_published() or unset == []
    assert ("The rocket" in pages["start.html"].text) == is_published()


def test_a_page_tells_how_to_clone_what_is_published_and_to_start_it_elsewhere(monkeypatch):
    text = (ROOT / "sources" / "site" / "start.md").read_text(encoding="utf-8")
    for there, expected in ((True, f"git clone {repository()}\n"), (False, "which you clone. In its folder,\n")):
        monkeypatch.setattr(start_pages, "is_published", lambda there=there: there)
        filled = start_pages.fill_marks(text, [])
        assert expected in filled and ("The rocket" in filled) == there and "<!--" not in filled
        assert re.search(r"\n\n    .*make lab\n\n", filled, re.DOTALL) and "\n\n## What you get" in filled


def leads_somewhere(link, page, pages, site):
    """Whether a link leads to a page and a place on it, or to a file of the repository; others are not tried."""
    inside = re.match(re.escape(repository()) + r"/(?:blob|tree|raw)/main/([^#?]*)", link)
    if inside:
        return (ROOT / inside[1]).exists()
    if re.match(r"[a-z]+:", link):
        return link.startswith(("https://", "mailto:"))
    file, _, anchor = link.partition("#")
    target = (page.path.parent / file).resolve() if file else page.path
    if target.suffix != ".html":
        return target.exists()
    target_page = pages.get(target.relative_to(site.resolve()).as_posix())
    return target_page is not None and (not anchor or anchor in target_page.ids)


def test_a_page_loads_only_what_lies_in_the_site_and_little_of_it(pages):
    for name, page in pages.items():
        assert not [file for file in page.loads if re.match(r"([a-z]+:)?//", file)], name
        files = {path for path in page.files() if path != page.path}
        assert all(path.exists() for path in files), name
        weight = page.path.stat().st_size + sum(path.stat().st_size for path in files)
        assert weight < MOST, f"{name}: {weight}"


def test_every_page_says_its_version_and_every_picture_what_it_shows(pages):
    for name, page in pages.items():
        assert f"Version {version()}" in page.text, name
        for picture in re.findall(r"<img [^>]*>", page.path.read_text(encoding="utf-8")):
            assert re.search(r'alt="[^"]+', picture), f"{name}: {picture[:120]}"


def test_captions_of_a_lesson_stand_below_its_figures(pages):
    path = DAYS[0].notebook(LESSONS)
    lesson = nbformat.read(path, as_version=4)
    pictures = [output.metadata["image/png"] for cell in lesson.cells for output in cell.get("outputs", [])
            if "image/png" in output.get("data", {})]  # fmt: skip
    captions = [html.escape(each.caption) for each in pictures if "caption" in each]
    page = pages[f"{LESSONS}/{path.stem}.html"].path.read_text(encoding="utf-8")
    below = re.findall(r'<img class="course-picture"[^>]*></div><div class="course-caption">(.*?)</div>', page)
    assert below == captions != []


def test_the_search_knows_each_section_and_each_term_by_its_own_title(pages, site):
    titles, texts, formulas = (
        json.loads((site / "_static" / f"{name}.js").read_text(encoding="utf-8").partition("(")[2].removesuffix(");\n"))
        for name in ("titles", "texts", "formulas")
    )
    sections = {
        name: [(*place, text) for place, text in zip(titles[name], texts[name], strict=True)] for name in titles
    }
    everything = "".join(f"{title} {text}" for each in sections.values() for _, title, text in each)
    assert set(everything.split(MARK)[1::2]) == set(formulas) and all("<math" in each for each in formulas.values())
    assert f"{MARK}e^(s−m){MARK}" in everything
    assert {f"{name}.html" for name in sections} == set(pages) - {"search.html", "404.html"}
    for name, of_page in sections.items():
        page = pages[f"{name}.html"]
        assert {anchor for anchor, _, _ in of_page} <= {"", *page.ids}, name
        assert [title for _, title, _ in of_page if not title.strip()] == []
    terms = {anchor: (title, text) for anchor, title, text in sections["glossary"] if anchor.startswith("term-")}
    assert terms["term-KV-cache"][0] == "KV cache" and "keys and values" in terms["term-KV-cache"][1]
    assert [text for anchor, _, text in sections["glossary"] if anchor == "terms"] == [""]  # its entries have their own
    lesson = {title: text for _, title, text in sections["notebooks/day3_causal_masking"]}
    assert "\\" not in lesson["A model that cheats cannot write"] and len(lesson) > 20
    assert "searchindex" not in pages["search.html"].path.read_text(encoding="utf-8")


def test_the_first_page_shows_each_day_by_a_small_picture_of_its_own_with_its_minutes(pages, site):
    page = pages["index.html"]
    pictures = [site / file for file in page.loads if "/days/" in file]
    assert [path.stem for path in pictures] == [f"day{number}" for number in THERE]
    assert len({path.read_bytes() for path in pictures}) == len(THERE)
    assert sum(path.stat().st_size for path in pictures) < 15_000 * len(THERE)
    for number in THERE:
        day = DAYS[number - 1]
        time = f"Two sittings, {in_sittings(day)} min" if day.sittings else f"Lesson {duration(day.minutes)}"
        assert day.doing in " ".join(page.text.split()) and time in page.text
        head = pages[f"{EXERCISES}/{day.notebook(EXERCISES).stem}.html"].text
        for minutes in re.findall(r"further, about (\d+) minutes", head):
            assert f"further {duration(int(minutes))}" in page.text, number
        for folder in (LESSONS, EXERCISES):
            assert f"{folder}/{day.notebook(folder).stem}.html#" in page.links


def test_the_gallery_has_widgets_with_a_question_and_their_place_and_all_else_as_small_pictures(pages, site):
    page = pages["plays.html"]
    text = page.path.read_text(encoding="utf-8")
    parts = [part.partition("<h2>")[0] for part in text.split("<h3>")[1:]]
    entries = sorted(filter(None, (getattr(views, name).in_gallery for name in views.__all__)), key=lambda e: e.place)
    assert [part.partition("<a ")[0] for part in parts] == [each.title for each in entries if each.question]
    for part, (kind, key) in zip(parts, page.widgets, strict=True):
        question = re.search(r'<p class="course-asked">(.*?)</p>.*data-widget="(\w+)"', part, re.DOTALL)
        assert re.sub(r"<.*?>", "", question[1]).endswith("?") and question[2] == kind
        assert re.search(rf'href="notebooks/day\d_\w+\.html#{key}"', part), kind
    pictures = [file for file in page.loads if "/small/" in file]
    figures = re.findall(r"day\d-\w+-\w+-\d", " ".join(pictures))
    assert len(pictures) == len(set(pictures)) >= len(entries) - len(parts) + 30 and len(figures) > 40
    for file in pictures:
        with Image.open(io.BytesIO((site / file).read_bytes())) as picture:
            assert max(picture.size) <= 300


def test_the_page_of_the_cards_has_those_of_the_deck_with_its_formulas_set(site):
    with (site / "_static" / "cards" / "attention.csv").open(encoding="utf-8", newline="") as table:
        days = Counter(int(row["day"]) for row in csv.DictReader(table))
    for day, cards in days.items():
        text = (site / "_static" / "cards" / f"day{day}.js").read_text(encoding="utf-8")
        deck = json.loads(text.removeprefix(f"course.deck({day}, ").removesuffix(");\n"))
        assert len(deck) == cards and all(front and back for _, front, back in deck)
        kinds = [kind for kind, _ in itertools.groupby(kind for kind, _, _ in deck)]
        assert kinds == ["a claim to defend", "a known mistake", "a question", "a symbol"], day
        assert "<math>" in text and not re.search(r"\$|\\\\[(\[]", re.sub(r"<code>.*?</code>", "", text)), day
    options = re.findall(r'<option value="(\d+)"', (site / "cards.html").read_text(encoding="utf-8"))
    assert [*map(int, options)] == sorted(days)


def test_a_widget_without_plain_words_is_named():
    play = Play(page="notebooks/day1_x", anchor="day1-a", heading="Heading", alt="", width=100, widget="DuelBoard")
    with pytest.raises(CourseError, match="the class DuelBoard has no `in_gallery`"):
        plays_page([play], {})


def test_a_page_says_what_holds_without_a_kernel(pages):
    lessons = {name: " ".join(page.text.split()) for name, page in pages.items() if name.startswith(LESSONS)}
    untrue = r"Shift\+|[Rr]un the cell|running kernel|Run the cells|picks one of ten thousand|without a kernel"
    assert {name: matches for name, text in lessons.items() if (matches := re.findall(untrue, text))} == {}
    practised = [text for text in lessons.values() if "takes the next of the ten that this page has" in text]
    assert len(practised) == len(THERE)
    assert "the guesses that this browser keeps" in lessons["notebooks/course_map.html"]


def test_a_lesson_that_no_longer_says_a_sentence_stops_the_build():
    there, here = loader.wording("shared")["each_day"][0].values()
    wrapped = there.replace(" ", "\n", 1)
    assert page_wording.page_texts("day2_x", 2, ["Before.", f"{wrapped} After."]) == [
        "Before.",
        f"{here} After.",
    ]
    for texts in (["Something else."], [there, there]):
        with pytest.raises(CourseError, match=r"day2_x: does not say .* once"):
            page_wording.page_texts("day2_x", 2, texts)


def test_each_sentence_that_the_pages_of_exercises_replace_is_in_one_of_them():
    paths = [path for day in DAYS if (path := day.notebook(EXERCISES))]
    texts = [" ".join(cell.source.split()) for path in paths for cell in nbformat.read(path, 4).cells]
    for change in loader.wording("shared")["exercises"]:
        assert any(change["lesson"] in text for text in texts), change["lesson"]


def test_a_subscript_is_one_in_headings_and_links(pages):
    for name, page in pages.items():
        texts = re.findall(r"<(a|h\d)\b[^>]*>([^<]*)", page.path.read_text(encoding="utf-8"))
        assert not [text for _, text in texts if "√dₖ" in text], name


def test_what_touches_a_formula_is_kept_with_it(pages):
    torn = re.compile(r'[(\[“‘]<span class="formula">|</math></span>[^\s<]')
    for name, page in pages.items():
        loose = re.sub(r'<span class="course-kept">[^<]?<span class="formula">.*?</math></span>[^<]*</span>', "",
                      page.path.read_text(encoding="utf-8"), flags=re.DOTALL)  # fmt: skip
        assert not torn.findall(loose), name


def test_keeping_punctuation_with_a_formula_takes_it_from_nowhere_else():
    parts = [nodes.emphasis("", "One"), nodes.Text("."), nodes.Text(" Two is "), nodes.math("", "x"), nodes.Text(".")]
    document = new_document("text")
    document += nodes.paragraph("", "", *parts)
    KeepPunctuation(document).apply()
    assert document.astext() == "One. Two is x." and document[0][-2].astext() == "x."


def test_exercises_are_read_with_hints_and_what_the_check_tries_and_without_answers(pages):
    lines = {squeeze(line) for _, line in lines_of_answers(COURSE)}
    for number in THERE:
        exercise = DAYS[number - 1].notebook(EXERCISES)
        page = pages[f"{EXERCISES}/{exercise.stem}.html"]
        assert "The check will try" in page.text and "Hint" in page.text
        source = squeeze("\n".join(cell.source for cell in nbformat.read(exercise, as_version=4).cells))
        text = squeeze(page.text)
        assert not [line for line in lines if line in text and line not in source]


@AGAIN
def test_the_same_course_gives_the_same_bytes_in_the_place_of_the_first_site(site, tmp_path):
    shutil.copytree(site, tmp_path / "again", ignore=shutil.ignore_patterns("index.html", "_static"))
    again = build_site(ROOT, tmp_path / "again").out
    one, other = ({p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in (site, again))
    assert [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)] == []


@AGAIN
def test_the_site_of_a_class_tells_no_answer(tmp_path):
    edition = tmp_path / "edition"
    site_folder = tmp_path / "told"
    edition.mkdir()
    write_student_edition(edition, [1, 2])
    made = build_site(edition, tmp_path / "site")
    assert made.widgets > 20
    pages = pages_of(made.out)
    for day in DAYS[2:]:  # the edition leaves these out, except for the days that are only planned
        assert (day.doing in pages["index.html"].text) == (not is_there(day.number))
    for name, page in pages.items():
        text = site_folder / f"{name.removesuffix('.html')}.txt"
        text.parent.mkdir(parents=True, exist_ok=True)
        text.write_text(page.text, encoding="utf-8")
    for script in (made.out / "_static" / "states").glob("*.js"):
        (site_folder / script.name).write_bytes(script.read_bytes())
    originals = squeeze("\n".join(_visible_sources(edition, 1) + _visible_sources(edition, 2)))
    faults = [(fault, squeeze(fault.rpartition(": ")[2])) for fault in find_traces(site_folder).faults]
    faults = [fault for fault, line in faults if line not in originals]
    assert faults == [] and not (made.out / "exercises" / "day3_causal_masking.html").exists()


def _visible_sources(edition, day):
    """The code that an exercise gives, some of it to be mended: it resembles an answer on purpose."""
    cells = nbformat.read(DAYS[day - 1].notebook(EXERCISES, edition), as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


@pytest.mark.parametrize("there", ["nothing else", "a page", "a site"])
def test_what_no_site_build_wrote_is_not_replaced(there, site, tmp_path):
    if there == "a site":
        shutil.copytree(site, tmp_path, dirs_exist_ok=True)
    elif there == "a page":
        (tmp_path / "index.html").write_text("my page")
    (tmp_path / "thesis.txt").write_text("years of work")
    wrong = "thesis.txt: was changed or added since its site build" if there == "a site" else "no site build made it"
    with pytest.raises(CourseError, match=wrong):
        build_site(ROOT, tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_folder_without_a_course_is_said_in_a_line(tmp_path):
    status, out, err = course_command("site", "--root", tmp_path, "--out", tmp_path / "out")
    assert (status, out) == (2, "") and "no notebooks in notebooks/" in err and "Traceback" not in err
