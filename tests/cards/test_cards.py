"""Cards: what they are made of, how they are set, and the two files."""

import csv
import functools
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from collections import Counter
from xml.etree import ElementTree

import nbformat
import pytest

from course_utils import loader
from course_utils.answer_key.strip_answers import squeeze, telling_lines
from course_utils.cards import KINDS, NoCards, all_cards, collect, make_cards
from course_utils.cards.card import Card, literal
from course_utils.cards.deck import as_apkg
from course_utils.cards.lessons import claims, symbols
from course_utils.cards.make import EDITION, HEADER, last_changed
from course_utils.cards.text import as_html, as_plain
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.course import DAYS, ROOT, SOLUTIONS, notebook_paths
from course_utils.errors import CourseError

cards = functools.cache(all_cards)
THERE = [day.number for day in DAYS if day.minutes]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_cards(tmp_path_factory.mktemp("cards"))


def collection(apkg: bytes, folder) -> sqlite3.Connection:
    with zipfile.ZipFile(io.BytesIO(apkg)) as archive:
        assert archive.testzip() is None and json.loads(archive.read("media")) == {}
        archive.extract("collection.anki2", folder)
    return sqlite3.connect(folder / "collection.anki2")


@pytest.mark.parametrize("day", THERE)
def test_every_day_has_cards_of_every_kind(day):
    counts = Counter(card.kind for card in cards() if card.day == day)
    assert all(counts[kind] >= 4 for kind in KINDS), counts


def test_ids_are_unique_and_say_day_and_kind():
    ids = [card.id for card in cards()]
    assert len(set(ids)) == len(ids)
    for card in cards():
        assert re.fullmatch(rf"day{card.day}-{card.kind}(-[A-Za-z0-9]+)+", card.id), card.id


def test_a_card_keeps_its_id_when_its_words_change():
    choices = [{"text": "a", "right": True, "why": "b"}, {"text": "c", "why": "d"}]
    first = {"id": "One two three", "question": "One two three four?", "choices": choices}
    mended = {"id": "One two three", "question": "Two one three?", "choices": choices[::-1]}
    assert collect._quiz(1, first).id == collect._quiz(1, mended).id == "day1-quiz-One-two-three"


def test_a_card_shows_all_choices_and_the_back_says_why_to_each():
    question = {
        "id": "What is 5 3",
        "question": "What is $5 * 3$ in `a_b`?",
        "choices": [{"text": "15", "right": True, "why": "So."}, {"text": "<8>", "why": "A sum."}],
    }
    card = collect._quiz(1, question)
    assert as_plain(card.front) == "What is $5 * 3$ in `a_b`?\n\na) 15\nb) <8>"
    assert as_plain(card.back) == "15\n\nSo.\n\nWhy not the others:\n\n- <8>\n  A sum."
    assert "<li>&lt;8&gt;</li>" in as_html(card.front) and "<code>a_b</code>" in as_html(card.front)


def test_formulas_are_in_the_marks_of_mathjax_and_nothing_else_is_taken_for_one():
    assert as_html("If $a < b$ & so") == r"<p>If \(a &lt; b\) &amp; so</p>"
    assert as_html("$$\nx\n$$") == r"\[x\]" and as_plain("It is $x$:\n\n$$y_1$$") == "It is \\(x\\):\n\n\\[y_1\\]"
    assert as_html(literal("*not* _this_ [x](y) <b> `a*b`")) == "<p>*not* _this_ [x](y) &lt;b&gt; <code>a*b</code></p>"
    assert as_html("[day 1](day1.ipynb)") == "<p>day 1</p>"


@pytest.mark.parametrize("day", THERE)
def test_each_side_of_a_card_is_whole(day):
    for side in (side for card in cards() if card.day == day for side in (card.front, card.back)):
        page, plain = as_html(side), as_plain(side)
        prose = re.sub("`[^`]*`", "", plain)
        assert prose.strip() and "$" not in page + plain and "**" not in prose and "\\\\" not in prose, plain
        assert plain[0] not in "=+-@", "a spreadsheet would take it for a formula"
        for text in (page, plain):
            assert text.count(r"\(") == text.count(r"\)") and text.count(r"\[") == text.count(r"\]")
        ElementTree.fromstring(f"<div>{page}</div>")  # raises where a tag is not closed


def test_no_card_gives_a_line_of_an_answer_away():
    text = squeeze("\n".join(as_plain(f"{card.front}\n\n{card.back}") for card in cards()))
    lines = 0
    for _, path in notebook_paths(ROOT / SOLUTIONS):
        for *_, line in telling_lines(nbformat.read(path, as_version=4)):
            lines += 1
            assert squeeze(line) not in text, line
    assert lines > 300


def test_no_card_is_made_of_what_is_worked_by_hand_or_of_a_bug_to_find():
    made_of = {(day, slip["exercise"]) for day in THERE for slip in loader.cards(day)["mistakes"]}
    for day, exercise in made_of:
        assert not re.search("by_hand|find_the|tells_right", exercise)
        assert callable(next(iter(all_exercises(day)[exercise].reference.values()))), exercise


def test_lists_and_tables_are_found_in_a_lesson():
    text = (
        "## Before\n\n- no claim\n\n## What you should be able to defend\n\nSay it.\n\n- First $x$,\n  goes on.\n"
        "- Second.\n\n## After\n\n- none either\n\n"
        "| symbol | read it as | in Python |\n|---|---|---|\n| $x_i$ | a number | `x[i]` |\n| $y$ | another | |\n\n"
        "| other | table | here |\n|---|---|---|\n| a | b | c |\n"
    )
    assert claims(text) == ["First $x$, goes on.", "Second."]
    assert symbols(text) == [("$x_i$", "a number", "`x[i]`"), ("$y$", "another", "")]


def test_every_reason_belongs_to_a_claim():
    for day in THERE:
        claims = loader.cards(day)["claims"]
        fronts = [card.front for card in cards() if card.day == day and card.kind == "defend"]
        assert all(any(front.startswith(each["claim"]) for front in fronts) for each in claims)
        assert len(claims) == len(fronts)


def test_a_claim_without_a_reason_and_a_mistake_that_is_gone_are_named(monkeypatch):
    with pytest.raises(NoCards, match=r"day 1: answers/day1/cards.yaml has no reason for the claim 'New\.'"):
        collect._claim(1, "New.")
    slip = {"id": "scores gone", "exercise": "scores", "mistake": "gone", "done": "?"}
    monkeypatch.setattr(loader, "cards", lambda day: {"claims": [], "mistakes": [slip]})
    with pytest.raises(NoCards, match="day 1 knows no mistake 'gone' of scores"):
        all_cards()


def test_two_cards_with_one_id_are_named(monkeypatch):
    monkeypatch.setattr(collect, "_cards_of", lambda day, lesson, symbols: [Card(1, "quiz", "same words", "a", "b")])
    with pytest.raises(NoCards, match=f"{len(THERE)} cards are called day1-quiz-same-words"):
        all_cards()


def test_the_deck_opens_and_holds_every_card_in_the_deck_of_its_day(made, tmp_path):
    opened = collection(made.deck.read_bytes(), tmp_path)
    assert opened.execute("pragma integrity_check").fetchone() == ("ok",)
    notes = opened.execute("select id, guid, flds, tags from notes").fetchall()
    assert len(notes) == len({guid for _, guid, *_ in notes}) == len(cards()) == made.cards
    decks, models = (json.loads(text) for text in opened.execute("select decks, models from col").fetchone())
    names = {deck["name"] for deck in decks.values()} - {"Default"}
    assert {name.count("::") for name in names} == {0, 1} and len(names) == 1 + len(THERE)
    (model,) = models.values()
    assert [field["name"] for field in model["flds"]] == ["Front", "Back", "About", "Id"]
    assert ".nightMode" in model["css"] and "{{Front}}" in model["tmpls"][0]["qfmt"]
    placed = dict(opened.execute("select nid, did from cards"))
    assert len(placed) == len(notes)
    places = opened.execute("select did, due from cards order by did, nid").fetchall()
    assert places == [(did, place) for did, number in Counter(placed.values()).items() for place in range(number)]
    for number, _, fields, tags in notes:
        front, back, about, name = fields.split("\x1f")
        day, kind = tags.split()
        assert front and back and name.startswith(f"{day}-{kind}-") and about.endswith(kind)
        assert f"::Day {day.removeprefix('day')} ·" in decks[str(placed[number])]["name"]


def test_ids_in_anki_stay(made, tmp_path):
    """Whoever has learned with the deck keeps what Anki knows of a card only under these numbers."""
    opened = collection(made.deck.read_bytes(), tmp_path)
    guids = {fields.split("\x1f")[3]: guid for guid, fields in opened.execute("select guid, flds from notes")}
    assert guids["day1-symbol-T"] == "npibl=k,jU"
    (decks, models) = (json.loads(text) for text in opened.execute("select decks, models from col").fetchone())
    assert set(models) == {"1795300000"} and set(decks) == {"1", *(str(1_795_400_000 + n) for n in (0, *THERE))}


def test_the_table_has_a_row_a_card_without_html(made):
    rows = list(csv.DictReader(io.StringIO(made.table.read_text(encoding="utf-8"), newline="")))
    assert tuple(rows[0]) == HEADER and [row["id"] for row in rows] == [card.id for card in cards()]
    assert all(row["tags"] == f"day{row['day']} {row['kind']}" for row in rows)
    assert not any(re.search(r"</?(p|li|ol|ul|code|em|strong)>|&\w+;", row["front"] + row["back"]) for row in rows)


@pytest.mark.thorough("the cards are written again in another process")
def test_the_command_writes_in_another_process_the_same_bytes(made, tmp_path):
    command = [sys.executable, "-m", "course_utils", "cards", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith(f"{made.cards} cards: "), done.stderr
    for path in (made.deck, made.table):
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_a_later_change_is_newer_to_anki_and_keeps_every_id(tmp_path):
    notes = []
    for number, changed in enumerate((EDITION, EDITION + 60)):
        (tmp_path / str(number)).mkdir()
        opened = collection(as_apkg(cards()[:3], changed), tmp_path / str(number))
        notes.append(opened.execute("select guid, mod from notes order by guid").fetchall())
    assert [guid for guid, _ in notes[0]] == [guid for guid, _ in notes[1]]
    assert {mod for _, mod in notes[0]} == {EDITION} and {mod for _, mod in notes[1]} == {EDITION + 60}


def test_without_git_the_edition_has_a_date_of_its_own(tmp_path, monkeypatch):
    assert last_changed(tmp_path) == EDITION <= last_changed()
    monkeypatch.setenv("PATH", "")
    assert last_changed() == EDITION


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_shallow_clone_does_not_take_its_first_commit_for_a_change_of_the_cards(tmp_path, monkeypatch):
    whole = tmp_path / "whole"
    shallow = tmp_path / "shallow"
    for name, value in (("GIT_CONFIG_GLOBAL", os.devnull), ("GIT_CONFIG_NOSYSTEM", "1")):
        monkeypatch.setenv(name, value)

    def commit(name, time):
        (whole / name).parent.mkdir(exist_ok=True)
        (whole / name).write_text(str(time))
        who = [setting for key in ("name", "email") for setting in ("-c", f"user.{key}=somebody")]
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"{time} +0000")
        for command in (["add", "--all"], [*who, "commit", "--quiet", "--message", name]):
            subprocess.run(["git", "-C", whole, *command], check=True)

    subprocess.run(["git", "init", "--quiet", whole], check=True)
    commit("notebooks/day1.ipynb", EDITION + 60)
    assert last_changed(whole) == EDITION + 60
    commit("README.md", EDITION + 120)
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", whole.as_uri(), shallow], check=True)
    assert (last_changed(whole), last_changed(shallow)) == (EDITION + 60, EDITION)
    commit("notebooks/day2.ipynb", EDITION + 180)
    subprocess.run(["git", "-C", shallow, "pull", "--quiet"], check=True)
    assert last_changed(whole) == last_changed(shallow) == EDITION + 180


def test_what_is_wrong_is_said_in_a_line(tmp_path, monkeypatch):
    with pytest.raises(NoCards, match=r"has no lessons in notebooks/; run it in the course's folder$"):
        make_cards(tmp_path / "out", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(CourseError, match="cannot be written"):
        make_cards(tmp_path / "file")
    monkeypatch.setitem(sys.modules, "genanki", None)
    with pytest.raises(NoCards, match=r"^writing an Anki deck needs genanki, .* pip install genanki$"):
        make_cards(tmp_path / "out")
    assert not (tmp_path / "out").exists()
