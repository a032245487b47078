"""The scripts of a page with exercises, with a stand-in for the browser: `answers_in_node.mjs` plays the scenes."""

import json
import subprocess
from pathlib import Path

import pytest
from needs import NODE, node_program

from course_utils.site.python_files import ANSWERS

pytestmark = NODE
SCENES = Path(__file__).with_name("answers_in_node.mjs")
NO_ANSWERS = "This file has no answers to day1.ipynb."


@pytest.fixture(scope="module")
def news():
    ended = subprocess.run(
        [node_program(), str(SCENES), str(ANSWERS)], capture_output=True, text=True, encoding="utf-8", timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_a_card_of_the_text_in_the_editor_is_not_out_of_date(news):
    assert news["checked"] == {"card": "a card", "outdated": False, "loading": False}


def test_a_check_says_at_which_step_it_is_and_for_how_long(news):
    assert news["during"] == "Checking … step 3 of 19, 0 s" and news["after"] == ""


@pytest.mark.parametrize("scene", ["typed", "reset"])
def test_a_card_is_out_of_date_when_the_text_changes_during_its_check(news, scene):
    assert news[scene] == {"card": "a card", "outdated": True, "loading": False}


def test_the_exercise_that_ends_another_shows_how_python_loads(news):
    assert news["loading"] == [False, True] and news["loaded"] is False


def test_a_file_without_answers_is_refused_with_a_sentence(news):
    assert news["opened"][:4] == [NO_ANSWERS] * 4


def test_the_news_of_an_opened_notebook_counts_its_answers(news):
    one, again, two = news["opened"][4:]
    assert one == again == "1 answer was loaded. Check it to get its points."
    assert two == "2 answers were loaded. Check them to get their points."
    assert "Replace 1 answer on this page? Download it first to keep it." in news["questions"]


def test_a_full_cache_does_not_fail_the_page(news):
    assert news["answered"]
