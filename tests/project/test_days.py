"""What belongs to a day lies in its folder: its texts have their form, and no day needs another."""

import ast
import re

import pytest
from click.testing import CliRunner

from course_utils import loader
from course_utils.course import ROOT, SOURCES

PACKAGE = loader.PACKAGE
KINDS = [path.stem for path in sorted((PACKAGE / "data" / "schemas").glob("*.json"))]
NAMED = re.compile(r"from course_utils\.days\.day(\d+)\b|from course_utils\.(?:views\.figures|views\.quizzes)\b")


def faults(kind, *paths):
    """What is wrong with texts of a kind; empty text where nothing is."""
    from check_jsonschema import main

    schema = PACKAGE / "data" / "schemas" / f"{kind}.json"
    done = CliRunner().invoke(main, ["--schemafile", str(schema), *map(str, paths)])
    return (done.output or repr(done.exception)) if done.exit_code else ""


@pytest.mark.parametrize("kind", KINDS)
def test_texts_have_the_form_of_their_kind(kind):
    paths = sorted(PACKAGE.glob(f"*/*/{kind}.yaml"))
    assert len(paths) > 2 and faults(kind, *paths) == ""


@pytest.mark.parametrize(("kind", "text"), [
    ("quiz", "- {id: a, question: b, choices: [{text: c, why: d}, {text: e, why: f}]}"),
    ("quiz", "- {id: a, question: b, choices: [{text: c, why: d, right: true}]}"),
    ("cards", "{claims: [{id: a, claim: b}], mistakes: []}"),
    ("wording", "- {lesson: a}"),
])  # fmt: skip
def test_another_form_is_refused(kind, text, tmp_path):
    (tmp_path / "text.yaml").write_text(text)
    assert "validation" in faults(kind, tmp_path / "text.yaml")


def test_every_text_is_of_a_kind():
    assert {path.stem for path in PACKAGE.rglob("*.yaml")} == set(KINDS)


def test_no_day_and_no_lesson_needs_another_day():
    """A class gets the days that are released, and what days share."""
    for path in sorted((PACKAGE / "days").glob("day*/**/*.py")):
        own = path.relative_to(PACKAGE / "days").parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("course_utils.days."):
                assert node.module.split(".")[2] in (own, "shared"), f"{path}: {node.module}"
    for kind in SOURCES.values():
        for path in sorted((ROOT / kind).glob("day*.md")):
            own = re.match(r"day(\d+)", path.name)[1]
            assert {match[1] for match in NAMED.finditer(path.read_text(encoding="utf-8"))} <= {own}, path
