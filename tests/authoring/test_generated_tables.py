"""Tables and counts are written from the course itself, and a wrong one is found."""

import re
import shutil

import pytest
from schemas import faults

from course_utils import course
from course_utils.authoring.generated_tables import spell_minutes, write_counts, wrong_counts
from course_utils.course import DAYS, ROOT
from course_utils.progress import read_progress


@pytest.fixture
def texts(tmp_path):
    """The course's texts in a folder of their own."""
    shutil.copytree(ROOT / "sources", tmp_path / "sources")
    for path in ROOT.glob("course_utils/days/day*/references.md"):
        folder = tmp_path / path.relative_to(ROOT).parent
        folder.mkdir(parents=True)
        shutil.copy(path, folder)
    shutil.copytree(ROOT / ".github", tmp_path / ".github")
    for name in ("README.md", "CITATION.cff"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def change(path, pattern, put):
    text = path.read_text(encoding="utf-8")
    assert len(re.findall(pattern, text, re.MULTILINE)) >= 1, pattern
    path.write_text(re.sub(pattern, put, text, count=1, flags=re.MULTILINE), encoding="utf-8")


WRONG = {
    "minutes in the readme": ("README.md", r"\| \d+ \+ \d+, exercises", "| 80 + 40, exercises"),
    "minutes of exercises in the readme": ("README.md", r"exercises \d{3}", "exercises 100"),
    "a title in the readme": ("README.md", r"\[Multi-head\]", "[Many heads]"),
    "a day too few in the map": ("sources/lessons/course_map.md", r"^\| 9 \|.*\n", ""),
    "a number in the map": ("sources/lessons/course_map.md", r"\[twelve\]", "[nine]"),
    "what one does in the map": ("sources/lessons/course_map.md", r"Hide the future", "Hide the past"),
    "the time of a lesson": ("sources/lessons/day4_multi_head.md", r"about \d+ \+ \d+ minutes", "about an hour"),
    "the points of an exercise": ("sources/exercises/day1_attention_by_hand.md", r"^2 points · ", "3 points · "),
    "all points": ("sources/exercises/day2_why_sqrt_dk.md", r"36 points", "25 points"),
    "how many exercises": ("sources/exercises/day3_causal_masking.md", r"Fourteen exercises", "Ten exercises"),
    "the version in the cell for Colab": ("sources/lessons/day2_why_sqrt_dk.md", r"@v[\d.]+\"\)", '@v0.0.9")'),
    "the address in an exercise's": (
        "sources/exercises/day2_why_sqrt_dk.md",
        r"git\+https://[^@]+",
        "git+https://x.org/y",
    ),
    "all minutes": (
        "sources/exercises/day5_kv_cache.md",
        r"six core, about 100 minutes",
        "six core, about two hours",
    ),
}


def test_each_wrong_count_is_found_and_written_anew(texts):
    names = sorted({name for name, *_ in WRONG.values()})
    right = [(texts / name).read_text(encoding="utf-8") for name in names]
    for name, pattern, put in WRONG.values():
        change(texts / name, pattern, put)
    problems = sorted(wrong_counts(texts))
    assert [line.partition(":")[0] for line in problems] == names and all("course build" in line for line in problems)
    assert sorted(write_counts(texts)) == names
    assert [(texts / name).read_text(encoding="utf-8") for name in names] == right
    assert wrong_counts(texts) == write_counts(texts) == []


NEED_THE_ADDRESS = {"README.md", "CITATION.cff", ".github/ISSUE_TEMPLATE/config.yml"}
SET = "https://github.com/Somebody/attention"


def set_project(monkeypatch, address, version):
    monkeypatch.setattr(course, "_settings", lambda: {"urls": {"Repository": address}, "version": version})


def test_the_address_and_the_version_of_pyproject_are_written_wherever_they_belong(texts, monkeypatch):
    there = [path for path in texts.rglob("*") if path.suffix in (".md", ".yml", ".cff")]
    old = course.repository()
    files = {path.relative_to(texts).as_posix() for path in there if old in path.read_text(encoding="utf-8")}
    forms = {path.relative_to(texts).as_posix() for path in texts.glob(".github/ISSUE_TEMPLATE/[0-9]-*.yml")}
    set_project(monkeypatch, SET, "9.8.7")
    assert files and forms and set(write_counts(texts)) == files | forms | NEED_THE_ADDRESS
    assert not [path for path in there if old in path.read_text(encoding="utf-8")]
    assert all("course 9.8.7" in (texts / name).read_text(encoding="utf-8") for name in forms)
    assert "\nversion: 9.8.7\n" in (texts / "CITATION.cff").read_text(encoding="utf-8")


def test_what_needs_an_address_is_there_with_one_and_nothing_of_it_without(texts, monkeypatch):
    set_project(monkeypatch, "https://github.com/OWNER/attention", "9.8.7")
    write_counts(texts)
    contents = {name: (texts / name).read_text(encoding="utf-8") for name in NEED_THE_ADDRESS}
    assert not [name for name, text in contents.items() if "OWNER" in text or "github.com" in text or "badge" in text]
    assert not faults("github-issue-config", texts / ".github/ISSUE_TEMPLATE/config.yml")
    assert not faults("citation-file-format", texts / "CITATION.cff")
    set_project(monkeypatch, SET, "9.8.7")
    assert set(write_counts(texts)) >= NEED_THE_ADDRESS and wrong_counts(texts) == []
    readme = (texts / "README.md").read_text(encoding="utf-8")
    assert f"[![tests]({SET}/actions/workflows/test.yml/badge.svg)]({SET}/actions/workflows/test.yml)\n" in readme
    assert "**[Play with it](https://somebody.github.io/attention/)**" in readme
    colab = re.search(r"\(https://colab\.research\.google\.com/github/Somebody/attention/blob/v9\.8\.7/(.*?)\)", readme)
    assert (ROOT / colab[1]).is_file()
    assert f"\nrepository-code: {SET}\n" in (texts / "CITATION.cff").read_text(encoding="utf-8")
    assert f"{SET}/security/advisories/new\n" in (texts / ".github/ISSUE_TEMPLATE/config.yml").read_text(
        encoding="utf-8"
    )
    assert not faults("github-issue-config", texts / ".github/ISSUE_TEMPLATE/config.yml")
    assert not faults("citation-file-format", texts / "CITATION.cff")
    set_project(monkeypatch, "https://github.com/OWNER/attention", "9.8.7")
    write_counts(texts)
    assert contents == {name: (texts / name).read_text(encoding="utf-8") for name in NEED_THE_ADDRESS}


def test_elsewhere_than_on_github_the_readme_has_no_badges(texts, monkeypatch):
    set_project(monkeypatch, "https://gitlab.com/somebody/attention", "9.8.7")
    write_counts(texts)
    assert "<!-- address -->\n<!-- end -->" in (texts / "README.md").read_text(encoding="utf-8")


def test_the_points_come_from_the_checks(texts):
    source = texts / "sources/exercises/day1_attention_by_hand.md"
    change(source, r"^  points: 2$", "  points: 7")
    write_counts(texts)
    text = source.read_text(encoding="utf-8")
    assert "Twelve exercises, 36 points: nine core, about 90 minutes, and three further, about 50 minutes." in text
    assert re.search(r"^7 points · difficulty", text, re.MULTILINE)


def test_an_exercise_of_the_first_sitting_may_come_after_those_of_the_second(texts):
    write_counts(texts)
    text = (texts / "sources/exercises/day6_flash_attention.md").read_text(encoding="utf-8")
    sentence = re.search(r"^Exercises 1 to [^.]*\.", text, re.MULTILINE)[0]
    assert " ".join(sentence.split()) == (
        "Exercises 1 to 6 and 11 belong to the first sitting, with about an hour of core work, and the others to the "
        "second, with about an hour."
    )


def test_what_is_written_is_what_the_built_notebooks_hold():
    for day, known in zip(read_progress().days, DAYS, strict=True):
        if day.exercises:
            text = (ROOT / f"sources/exercises/{day.name}.md").read_text(encoding="utf-8")
            sentence = re.search(r"^\w+ exercises?, (\d+) points?[,:] [^.]*\.", text, re.MULTILINE)
            further = sum(map(int, re.findall(r"(\d+) minutes · lesson .* · further$", text, re.MULTILINE)))
            spelled = [spell_minutes(minutes) for minutes in (day.minutes - further, further) if minutes]
            assert int(sentence[1]) == day.points and re.findall(r"about ([^.,]*)", sentence[0]) == spelled
            assert text.count(" · difficulty ") == len(day.exercises) and day.title == known.title


def test_a_text_without_counts_is_left_alone(tmp_path):
    (tmp_path / "sources/exercises").mkdir(parents=True)
    (tmp_path / "sources/exercises/day1_tiny.md").write_text("# Tiny\n\nOne exercise.\n")
    (tmp_path / "README.md").write_text("| day | title |\n")
    assert wrong_counts(tmp_path) == write_counts(tmp_path) == []


def test_minutes_are_spelt_as_people_say_them():
    spellings = {spell_minutes(minutes) for minutes in (57, 60, 90, 97, 113, 119, 128, 149, 160, 165, 180)}
    assert spellings == {"an hour", "90 minutes", "100 minutes", "110 minutes", "two hours", "130 minutes"} | {
        "two and a half hours",
        "160 minutes",
        "170 minutes",
        "three hours",
    }
