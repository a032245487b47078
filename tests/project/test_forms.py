"""The forms for issues: GitHub accepts them, they ask for what one needs to see the same, and what they name exists."""

import re

import nbformat
import pytest
import yaml
from schemas import faults

from course_utils.checks.kernel.evidence import all_ladders
from course_utils.course import LESSONS, ROOT, find_notebook, version

FOLDER = ROOT / ".github/ISSUE_TEMPLATE"
PATHS = sorted(FOLDER.glob("[0-9]-*.yml"))
FORMS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in PATHS}
NAMES = ["A number is wrong", "I stumbled here", "An answer was judged wrong"]
WITH_A_LABEL = {"input", "textarea", "dropdown", "checkboxes"}
each_form = pytest.mark.parametrize("name", FORMS)


def fields(name):
    """What a form asks, by id."""
    return {field["id"]: field for field in FORMS[name]["body"] if field["type"] != "markdown"}


def form_text(name):
    return "\n".join(str(field["attributes"]) for field in FORMS[name]["body"])


def test_the_schemas_of_github_accept_the_forms():
    assert not faults("github-issue-forms", *PATHS)
    assert not faults("github-issue-config", FOLDER / "config.yml")


def test_there_is_a_form_for_each_kind_of_trouble():
    assert [form["name"] for form in FORMS.values()] == NAMES
    assert len({form["title"] for form in FORMS.values()}) == len(FORMS)


@each_form
def test_a_form_has_what_github_asks_beyond_the_schema(name):
    questions = [field for field in FORMS[name]["body"] if field["type"] != "markdown"]
    assert all(field["type"] in WITH_A_LABEL for field in questions)
    for what in ([field["id"] for field in questions], [field["attributes"]["label"] for field in questions]):
        assert len(set(what)) == len(what)
    for field in questions:
        options = field["attributes"].get("options", ())
        assert all(one["label"] if isinstance(one, dict) else isinstance(one, str) for one in options)


@each_form
def test_a_form_asks_for_what_one_needs_to_see_the_same(name):
    labels = fields(name)
    assert {"place", "said", "expected", "version", "machine"} <= set(labels)
    for one in ("place", "said", "expected", "version"):
        assert labels[one]["validations"]["required"] is True, one
    assert "`.venv/bin/course --version`" in labels["version"]["attributes"]["description"]
    assert labels["version"]["attributes"]["placeholder"] == f"course {version()}"


def test_where_a_result_hangs_on_the_processor_it_has_to_be_named():
    for name in ("1-wrong-number", "3-judged-wrong"):
        assert fields(name)["machine"]["validations"]["required"] is True


def test_the_form_on_a_judged_answer_asks_for_no_hidden_tests():
    assert "Do not paste the hidden tests of a class" in form_text("3-judged-wrong")
    labels = fields("3-judged-wrong")
    assert labels["answer"]["attributes"]["render"] == "python"
    (promise,) = labels["open"]["attributes"]["options"]
    assert promise["required"] is True and "hidden test" in promise["label"]


@each_form
def test_the_places_that_a_form_names_as_examples_exist(name):
    text = form_text(name)
    for day, exercise in re.findall(r'day (\d), check\("(\w+)"\)', text):
        assert exercise in all_ladders(int(day))
    for day, part, heading in re.findall(r'day (\d), part (\d+), the cell below "(.+?)"', text):
        cells = nbformat.read(find_notebook(ROOT / LESSONS, int(day)), as_version=4).cells
        lesson = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        (part_text,) = re.findall(rf"^## {part}\. .+?(?=^## )", lesson, re.MULTILINE | re.DOTALL)
        assert re.search(rf"^###? {heading}$", part_text, re.MULTILINE)
