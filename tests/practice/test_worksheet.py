"""Sheets for a class: a problem of their own for each student, and a key with every step."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from in_process import course

from course_utils.practice import KINDS, problem
from course_utils.practice import worksheet as sheets
from course_utils.practice.worksheet import NoWorksheet, make_worksheets


@pytest.fixture
def seed(tmp_path):
    path = tmp_path / "class.seed"
    path.write_text("autumn\n")
    return path


@pytest.fixture
def data(monkeypatch):
    """What is given to the template, without the setting."""
    pages_set = []

    def set_quickly(pages, *, key):
        pages_set.append((key, json.loads(json.dumps(pages))))
        return b"%PDF"

    monkeypatch.setattr(sheets, "_set", set_quickly)
    return pages_set


def test_each_student_has_a_problem_of_their_own_and_the_key_has_all(seed, tmp_path, data):
    files = make_worksheets("attention", 30, seed, tmp_path / "out")
    assert [path.name for path in files][:2] == ["attention_01.pdf", "attention_02.pdf"]
    assert [path.name for path in files][30:] == ["attention_all.pdf", "attention_key.pdf"]
    assert all(path.exists() for path in files)
    (*students, (is_key, printed), (_, all_of_them)) = data
    assert not is_key and [page for _, (page,) in students] == printed == all_of_them
    assert len({page["number"] for page in all_of_them}) == 30


def test_the_key_has_every_step_as_it_is_right(seed, tmp_path, data):
    make_worksheets("attention", 2, seed, tmp_path)
    for page in data[-1][1]:
        posed = problem("attention", page["number"])
        right = posed.solution()
        assert [step["name"] for step in page["steps"]] == list(right)
        for step in page["steps"]:
            shown = [[float(x.replace("−", "-")) for x in row] for row in step["rows"]]
            np.testing.assert_allclose(shown, right[step["name"]].round(2), atol=1e-9)


def test_the_seed_decides(seed, tmp_path, data):
    for text in ("autumn", "autumn\n", "spring"):
        seed.write_text(text)
        make_worksheets("softmax", 3, seed, tmp_path)
    first, same, other = (pages for is_key, pages in data if is_key)
    assert first == same != other


@pytest.mark.parametrize("kind", KINDS)
def test_a_sheet_has_a_title_for_people_and_states_what_is_given_once(kind):
    page = sheets._sheet(posed := problem(kind, 1), 1)
    assert page["title"] == {"causal-row": "Causal row", "attention-3x2": "Attention 3x2"}.get(kind, page["title"])
    assert "-" not in page["title"] and page["title"][0].isupper()
    for each in page["inputs"]:
        assert f"{each['name']} = [{'  '.join(each['rows'][0])}" in posed.statement
    text = "\n".join([*page["statement"], *(f"{each['name']} = [" for each in page["inputs"])])
    heads = [line.partition("[")[0].strip() for line in posed.statement.splitlines()]
    assert sorted(line.partition("[")[0].strip() for line in text.splitlines()) == sorted(heads)


def test_in_the_file_to_print_each_students_sheet_is_a_front_side(seed, tmp_path):
    one, other, third, printed, _ = make_worksheets("attention", 3, seed, tmp_path)
    assert [pages(path) for path in (one, other, third, printed)] == [1, 1, 1, 5]


def pages(pdf):
    return len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))


@pytest.mark.parametrize("kind", KINDS)
def test_typst_sets_every_kind_and_the_same_seed_gives_the_same_bytes(kind, seed, tmp_path):
    one, other = ([path.read_bytes() for path in make_worksheets(kind, 2, seed, tmp_path / name)] for name in "ab")
    assert pages(tmp_path / "a" / f"{kind}_01.pdf") == 1
    assert one == other and all(pdf.startswith(b"%PDF") and len(pdf) > 5000 for pdf in one)


def equations(text):
    """What Typst sets as mathematics in a sheet with this text, innermost words in order."""
    page = sheets._sheet(problem("dot-variance", 1), 1) | {"statement": [text], "given": [], "steps": []}
    data = json.dumps(
        {"title": "x", "key": False, "sheets": [page | {"steps": [{"name": "a", "task": "", "rows": []}]}]}
    )
    found = pytest.importorskip("typst").query(sheets.TEMPLATE, "math.equation", sys_inputs={"data": data})
    return [
        [each["body"]["func"], *re.findall(r'"text": "([^"]+)"', json.dumps(each["body"]))]
        for each in json.loads(found)
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the scores over √d_k", [["root", "d", "k"]]),
        ("d_model: 64, and W_q", [["attach", "d", "model"], ["attach", "W", "q"]]),
        ("the sum of e^(x m);", [["attach", "e", "x m"]]),
        ("snake_case and _l_ are text", []),
    ],
)
def test_symbols_are_set_as_mathematics(text, shown):
    assert equations(text) == shown


def test_names_and_text_are_text_to_typst(seed, tmp_path, monkeypatch):
    """Nothing in a problem is read as Typst's own marks."""
    page = sheets._sheet(problem("softmax", 1), 1)
    page["statement"] = ["#panic() $x *bold* _l_ \\ @ref <label>"]
    assert sheets._set([page], key=False).startswith(b"%PDF")


@pytest.mark.parametrize("copies", [0, -1, 1001])
def test_so_many_copies_are_refused(copies, seed, tmp_path):
    with pytest.raises(NoWorksheet, match="give a number from 1 to 1,000"):
        make_worksheets("softmax", copies, seed, tmp_path)


def test_a_seed_that_is_missing_or_empty_is_named(seed, tmp_path):
    with pytest.raises(NoWorksheet, match=r"nothing\.seed cannot be read: No such file"):
        make_worksheets("softmax", 1, tmp_path / "nothing.seed", tmp_path)
    seed.write_text(" \n")
    with pytest.raises(NoWorksheet, match="is empty: write any text"):
        make_worksheets("softmax", 1, seed, tmp_path)


def test_without_typst_it_says_how_to_install_it(seed, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "typst", None)
    with pytest.raises(NoWorksheet, match="pip install typst"):
        make_worksheets("softmax", 1, seed, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command(seed, tmp_path):

    def run(*args):
        command = [sys.executable, "-m", "course_utils", "worksheet", *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    out = tmp_path / "sheets"
    ran = run("--kind", "attention", "--copies", 2, "--seed-file", seed, "--out", out)
    told = f"2 sheets in {out}; to print them: {out / 'attention_all.pdf'}, key: {out / 'attention_key.pdf'}\n"
    assert ran.returncode == 0 and ran.stdout == told
    ran = run("--kind", "chess", "--seed-file", seed, "--out", out)
    assert ran.returncode == 2 and ran.stderr.startswith("course: unknown kind: 'chess'")
    (tmp_path / "file").write_text("")
    ran = run("--kind", "softmax", "--copies", 1, "--seed-file", seed, "--out", tmp_path / "file")
    assert ran.returncode == 2 and "cannot be written" in ran.stderr and "Traceback" not in ran.stderr


def test_all_options_that_are_missing_are_named_at_once_and_a_kind_that_was_mistyped():
    code, _, text = course("worksheet", "--kind", "softmax")
    assert code == 2 and "also give --seed-file, --out" in text
    assert "did you mean softmax?" in course("practice", "softmx")[2]


def test_help_stands_alone_where_nothing_is_asked_for():
    code, told, text = course()
    assert code == 2 and "Learn" in told + text and "course:" not in text
