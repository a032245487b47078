"""The lab report: one page of the learner's own, which asks for nothing, escapes everything and overwrites nothing."""

import json
import re
from datetime import date
from html.parser import HTMLParser
from pathlib import Path

import pytest
from own_notebook import written

from course_utils.cli import main
from course_utils.errors import CourseError
from course_utils.parts.lab_report import QUESTIONS, STUB, UNANSWERED, lab_report, read_answers, read_trainings

MERGED = "def merge_heads(x):\n    return x.transpose(1, 2).flatten(2)"
EVIL = '<script>alert(1)</script> & "quoted" \u202e'
HISTORY = {"losses": [4.2, 3.0, 2.5], "norms": [1.0, 0.5, 0.4], "rates": [1e-3] * 3, "seconds": 3.0}
HISTORY |= {"tokens_per_second": 5120.4, "bits_per_byte": 2.345}
DAY = date(2026, 11, 3)


class Page(HTMLParser):
    """Counts tags, and collects the addresses that a page names."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.addresses = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in ("meta", "img"):
            self.open.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "action", "data", "srcset")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def answer(name, text):
    metadata = {"course": {"report": name}}
    return {"cell_type": "markdown", "metadata": metadata, "source": text}


def train(root, name, **changes):
    folder = root / "training" / name
    folder.mkdir(parents=True)
    (folder / "history.json").write_text(json.dumps(HISTORY | changes))
    return folder


@pytest.fixture
def course(tmp_path):
    """A course in which somebody wrote one part, trained once, and answered one question of three."""
    written(tmp_path / "exercises", 4, MERGED)
    written(tmp_path / "exercises", 9, answer("report_1", EVIL), answer("report_2", f"*{STUB}*"), "x = 1")
    (train(tmp_path, "first") / "samples.json").write_text(json.dumps([{"loss": 2.5, "text": f"ROMEO:\n{EVIL}"}]))
    return tmp_path


def test_the_page_shows_parts_curves_samples_and_answers(course):
    text = lab_report(course, "Ada", DAY)
    page = Page(text)
    assert page.open == [] and page.tags.count("tr") == 21 and page.tags.count("img") == 1
    assert "1 of the 20 parts are mine." in text and "3 November 2026" in text and "<bdi>Ada</bdi>" in text
    assert "5,120" in text and "2.345" in text and "The loss is 4.20 nats a token at first and 2.50 at the end." in text
    assert "ROMEO:" in text and "at a loss of 2.50 nats a token" in text
    assert text.count(UNANSWERED) == 2
    assert all(question in text for question in QUESTIONS.values())


def test_everything_of_the_learners_is_escaped(course):
    (course / "exercises" / "day4_mine.ipynb").unlink()
    written(course / "exercises", 4, f"raise OSError({EVIL!r})\n{MERGED}")
    train(course, "<b>")
    text = lab_report(course, EVIL, DAY)
    page = Page(text)
    assert "script" not in page.tags and "b" not in page.tags
    assert text.count("&lt;script&gt;") == 5  # the name, twice; the error of a cell, a sample, an answer
    assert "\u202e" not in text and "⟦U+202E⟧" in text


def test_the_page_asks_for_nothing_from_anywhere(course):
    text = lab_report(course, "", DAY)
    assert all(address.startswith("data:image/png;base64,") for address in Page(text).addresses)
    assert not re.search(r"https?:|//[a-z]|url\(|@import", re.sub(r"base64,[^\"]*", "", text))
    assert "default-src 'none'" in text


def test_an_answer_is_shown_as_markdown_and_loads_nothing(course):
    text = "*Write your answer here.* **9.57** for `a < b`, ![a](http://x.org/a.png) [b](http://x.org)"
    written(course / "exercises", 9, answer("report_1", text))
    page = lab_report(course, "", DAY)
    assert "<p><strong>9.57</strong> for <code>a &lt; b</code>" in page
    assert "http://x.org" in page and not any("x.org" in address for address in Page(page).addresses)


def test_outside_the_course_there_is_no_report(tmp_path):
    with pytest.raises(CourseError, match="there is no folder exercises here"):
        lab_report(tmp_path, "", DAY)


def test_without_anything_of_the_learners_the_page_says_so(tmp_path):
    (tmp_path / "exercises").mkdir()
    text = lab_report(tmp_path, "", DAY)
    assert "0 of the 20 parts are mine." in text and "No training is recorded yet." in text
    assert text.count(UNANSWERED) == len(QUESTIONS) == 3 and 'class="blank"' in text


def test_an_answer_is_what_stands_in_its_cell(course):
    assert read_answers(course / "exercises") == {"report_1": EVIL.strip(), "report_2": "", "report_3": ""}


def test_several_trainings_are_told_apart_by_their_folders(course):
    train(course, "second/without warm-up", losses=[], bits_per_byte=None)
    first, second = read_trainings(course / "training")
    assert (first.name, second.name) == ("first", "second/without warm-up")
    assert first.picture.startswith(b"\x89PNG") and not second.picture
    assert first.facts["mean loss of the last 3 steps, nats a token"] == "3.233"
    assert second.facts == {"steps": "0", "tokens a second": "5,120", "bits per byte on held-out text": "not finished"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("history.json", "{", "history.json: cannot be read"),
        ("history.json", "[]", "history.json: not what a training writes"),
        ("history.json", "{}", "history.json: not the history of a training"),
        ("samples.json", '[{"loss": "low"}]', "samples.json: not the samples of a training"),
    ],
)
def test_a_file_that_no_training_wrote_is_named(course, name, content, message):
    (course / "training" / "first" / name).write_text(content)
    with pytest.raises(CourseError, match=message):
        read_trainings(course / "training")


def test_the_command_writes_the_page_and_nothing_else(course, capsys, monkeypatch):
    before = {path: path.read_bytes() for path in course.rglob("*") if path.is_file()}
    monkeypatch.setattr("sys.argv", ["course", "lab-report", "--root", str(course), "--out", str(course / "mine.html")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code and "your lab report: " in capsys.readouterr().out
    after = {path: path.read_bytes() for path in course.rglob("*") if path.is_file()}
    assert Page(after.pop(course / "mine.html").decode()).open == [] and after == before


def test_an_unreadable_notebook_ends_in_one_line(course, capsys, monkeypatch):
    Path(course, "exercises", "day9_mine.ipynb").write_text("{}")
    monkeypatch.setattr("sys.argv", ["course", "lab-report", "--root", str(course)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2 and "day9_mine.ipynb: not a notebook" in capsys.readouterr().err
