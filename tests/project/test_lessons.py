"""What every lesson promises: an early play, places to stop, cells that fit a narrow window, links to somewhere."""

import re

import nbformat
import pytest

from course_utils.authoring.generated_tables import spell_minutes
from course_utils.authoring.reading_time import (
    MAX_SITTING_MINUTES,
    MOST,
    SITTING,
    minutes,
    sittings,
    stretches,
    widgets_in,
)
from course_utils.authoring.sources import read_source
from course_utils.course import ROOT, day_numbered, day_of, is_there

LESSONS, EXERCISES = (
    sorted(path for path in (ROOT / folder).glob("day*.md") if is_there(day_of(path.name)))
    for folder in ("sources/lessons", "sources/exercises")
)
AGREE = 10  # minutes at most between what is stated, which readers measured too, and the rule
MORE = 15  # minutes that the folds and appendices of a lesson may take
SHOWN = {2: 77, 5: 78}  # the most cells that may show their code, where not 45
COLUMNS = 79  # of code that fit into JupyterLab at 800 pixels, without the file browser
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?:---\n.*?\n---\n)?(.*?)^```$", re.MULTILINE | re.DOTALL)
FOLDED = re.compile(r"^## Appendix.*?(?=^## |\Z)|^<details>.*?</details>", re.MULTILINE | re.DOTALL)
FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
ROWS = re.compile(r"\[\[|^ *\[.*\]\n *\[.*\]$", re.MULTILINE)  # of a printed matrix
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
lessons = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
both = pytest.mark.parametrize("path", [*LESSONS, *EXERCISES], ids=lambda path: f"{path.parent.name}-{path.stem}")


def read_lesson(path):
    return path.read_text(encoding="utf-8")


def headings(path):
    return HEADING.findall(CELL.sub("", read_lesson(path)))


@lessons
def test_one_plays_within_the_first_600_words(path):
    cells = read_source(path).cells
    plays = [any(widget.plays for widget in widgets_in(f"\n{cell.source}\n")) for cell in cells]
    prose = " ".join(cell.source for cell in cells[: plays.index(True)] if cell.cell_type == "markdown")
    assert len(re.findall(r"\w[\w'’-]*", prose)) <= 600


@lessons
def test_places_to_stop_are_at_most_45_minutes_apart_where_there_are_sittings(path):
    longest = MOST if SITTING.search(read_lesson(path)) else MAX_SITTING_MINUTES
    assert max(stretches(read_lesson(path))) <= longest, [round(each) for each in stretches(read_lesson(path))]


@lessons
def test_a_sitting_takes_at_most_75_minutes_and_asks_the_question_of_the_table(path):
    day = day_numbered(day_of(path.name))
    assert [each.question for each in day.sittings] == SITTING.findall(read_lesson(path))
    if day.sittings:
        stated, counted = [each.minutes for each in day.sittings], sittings(read_lesson(path))
        assert max(*stated, *counted) <= MAX_SITTING_MINUTES and all(minutes % 5 == 0 for minutes in stated)
        off = [told - by_rule for told, by_rule in zip(stated, counted, strict=True)]
        assert all(abs(minutes) <= AGREE for minutes in off), f"{stated} are stated, the rule counts {counted}"


@lessons
def test_the_minutes_that_are_told_are_those_of_the_text(path):
    day = day_numbered(day_of(path.name))
    counted = minutes(read_lesson(path))
    advice = f"minutes = {counted} in days.toml, and in the lesson, by make build: about {spell_minutes(counted)}"
    assert day.sittings or day.minutes == counted, advice


@lessons
def test_folds_and_appendices_take_at_most_15_minutes(path):
    text = read_lesson(path)
    assert sum(stretches(text)) - sum(stretches(FOLDED.sub("", text))) <= MORE


@lessons
def test_a_lesson_shows_no_more_cells_of_code_than_its_day_may(path):
    cells = [cell for cell in read_source(path).cells if cell.cell_type == "code"]
    shown = [cell for cell in cells if not cell.metadata.get("jupyter", {}).get("source_hidden")]
    assert len(shown) <= SHOWN.get(day_of(path.name), 45)


@lessons
def test_the_cell_for_colab_takes_no_minutes(path):
    text = read_lesson(path)
    (cell,) = re.findall(r"^```\{code-cell\} ipython3\n[^`]*?tags: \[setup.*?^```\n\n", text, re.MULTILINE | re.DOTALL)
    without = text.replace(cell, "")
    assert without != text and stretches(without) == stretches(text)


@lessons
def test_code_does_not_scroll_sideways(path):
    cells = [
        cell for cell in CELL.findall(read_lesson(path)) if "google.colab" not in cell
    ]  # that one holds an address
    lines = [line for cell in cells for line in cell.splitlines()]
    assert [line for line in lines if len(line) > COLUMNS] == []


@lessons
def test_a_matrix_is_drawn_and_not_printed(path):
    for cell in nbformat.read(ROOT / f"notebooks/{path.stem}.ipynb", as_version=4).cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            printed = "" if "text/html" in data else output.get("text") or data.get("text/plain", "")
            assert not ROWS.search(printed), f"{cell.source}\n\n{printed}\nshow(...) draws it"


@pytest.mark.parametrize(
    ("printed", "is_matrix"),
    [
        ("tensor([[1., 0.]])", True),
        ("A = [[0.4 0.2]\n [0.2 0.4]]", True),
        ("[0.4, 0.2]\n[0.2, 0.4]\n", True),
        ("[0.4, 0.2]\n", False),
        ("before [0.4, 0.2]\nafter [0.2, 0.4]", False),
    ],
)
def test_rows_in_brackets_are_a_printed_matrix(printed, is_matrix):
    assert bool(ROWS.search(printed)) == is_matrix


@lessons
def test_figures_bring_their_own_alt_texts_and_captions(path):
    assert "alt=" not in "".join(CELL.findall(read_lesson(path)))
    for cell in nbformat.read(ROOT / "notebooks" / f"{path.stem}.ipynb", as_version=4).cells:
        if cell.cell_type == "code" and "picture(figures." in cell.source:
            pictures = [
                output.metadata["image/png"] for output in cell.outputs if "image/png" in output.get("data", {})
            ]
            assert pictures and all(picture.get("caption") for picture in pictures), cell.source


@lessons
def test_five_to_ten_references_with_links_say_what_to_read_and_what_to_skip(path):
    of_the_day = ROOT / "course_utils" / "days" / f"day{day_of(path.name)}" / "references.md"
    items = re.split(r"^- ", read_lesson(of_the_day), flags=re.MULTILINE)[1:]
    assert 5 <= len(items) <= 10
    for item in items:
        assert re.match(r"\[[^]]+\]\(https://[^)\s]+\)\.\s", item), item
        assert re.search(r"\*(Read|Watch)\*", item) and "*Skip*" in item, item


@both
def test_links_lead_to_what_lies_around_from_the_top_and_from_the_end(path):
    text = FRONT.sub("", read_lesson(path))
    places = [match.start() / len(text) for match in re.finditer(r"^\*\*Go to\*\* ", text, re.MULTILINE)]
    assert len(places) == 2 and places[0] < 0.05 and places[1] > 0.8, places


@both
def test_relative_links_and_their_anchors_exist(path):
    folder = ROOT / ("notebooks" if path in LESSONS else "solutions")
    for target, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", CELL.sub("", read_lesson(path))):
        file = folder / target if target else folder / f"{path.stem}.ipynb"
        assert file.is_file(), target
        kind = "exercises" if file.parent.resolve().name in ("exercises", "solutions") else "lessons"
        of_docs = file.suffix == ".md"  # GitHub makes their anchors
        source = file if of_docs else ROOT / "sources" / kind / f"{file.stem}.md"
        named = {(each.lower() if of_docs else each).replace(" ", "-") for each in headings(source)}
        assert not anchor or anchor in named, f"{target}#{anchor}"


@pytest.mark.parametrize("path", EXERCISES, ids=lambda path: path.stem)
def test_every_exercise_names_a_part_of_its_lesson(path):
    parts = {heading.partition(". ")[0] for heading in headings(ROOT / "sources/lessons" / path.name)}
    for line in re.findall(r"^\d+ points? · difficulty.*$", read_lesson(path), re.MULTILINE):
        named = re.search(r" · lesson (parts? [\d, ]+(?:(?:and|to) \d+)?|appendix)( · further)?$", line)
        assert named, line
        assert set(re.findall(r"\d+", named[1])) <= parts, line
        assert named[1] != "appendix" or named[2], f"{line}: nothing that only an appendix teaches is core"


@pytest.mark.parametrize("day", [1, 3, 4, 6, 7, 8])  # the days that part their exercises so far
def test_exercises_follow_the_parts_of_the_lesson_and_the_core_takes_110_minutes_at_most(day):
    (path,) = (path for path in EXERCISES if path.name.startswith(f"day{day}_"))
    *lines, last = re.findall(r"^\d+ points? · difficulty.*$", read_lesson(path), re.MULTILINE)
    needs = [max(map(int, re.findall(r"\d+", line.partition("lesson ")[2])), default=99) for line in lines]
    assert needs == sorted(needs), lines
    assert sum(int(re.search(r"(\d+) minutes", line)[1]) for line in (*lines, last) if "further" not in line) <= 110
