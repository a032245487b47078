"""What the documents tell a reader to type exists: commands, their options, make's targets, and the linked files."""

import functools
import itertools
import posixpath
import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest
import typer
from in_process import course as run_course
from markdown_it import MarkdownIt

from course_utils import time_limits
from course_utils.cli import app
from course_utils.course import is_published
from course_utils.grading.results import Settings
from course_utils.sandbox.limits import Limits

ROOT = Path(__file__).parents[2]
AT_THE_TOP = ("README.md", "CONTRIBUTING.md", "AGENTS.md", "CHANGELOG.md")
DOCUMENTS = sorted([*ROOT.glob("docs/*.md"), *(ROOT / name for name in AT_THE_TOP)])
OF_GITHUB = ("issues/new/choose",)  # pages below a repository's address, to which documents link relatively
MARKDOWN = MarkdownIt().enable("table")
COURSE = typer.main.get_command(app)
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))
SETTINGS = {*re.findall(r"^(\w+) \?=", MAKEFILE, re.MULTILINE), *re.findall(r"\$\(or \$\((\w+)\)", MAKEFILE)}

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


def code_in(document: Path) -> list[str]:
    """The code of a document: the lines of its blocks, and what stands between backticks in its text."""
    tokens = MARKDOWN.parse(document.read_text(encoding="utf-8"))
    blocks = [line.strip() for token in tokens if token.type in ("fence", "code_block") for line in lines_of(token)]
    inline = [kid for token in tokens if token.children for kid in token.children if kid.type == "code_inline"]
    return blocks + [kid.content for kid in inline]


def lines_of(token) -> list[str]:
    return token.content.replace("\\\n", " ").splitlines()


def commands_in(document: Path, program: str) -> list[list[str]]:
    """The commands of one program that a document quotes, in words. An ellipsis stands for whatever one may add."""
    commands = []
    for line in code_in(document):
        words = shlex.split(line, comments=True) if re.match(rf"{program} [\w-]", line) else []
        commands += [[word for word in words[1:] if word not in ("…", "...")]] if words else []
    return commands


def verify_options(words: list[str]) -> None:
    """That `course` takes these words; nothing is run. An option quoted without its value is known by name."""
    if words in (["--help"], ["--version"]):
        return
    name, command, rest = COURSE.resolve_command(click.Context(COURSE), words)
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    assert {word.partition("=")[0] for word in rest if word.startswith("-")} <= known, f"course {' '.join(words)}"
    if len(rest) > 1:
        command.make_context(name, list(rest))


@each_document
def test_lines_have_at_most_120_columns_but_for_tables_and_commands(document):
    lines = document.read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if len(line) > 120 and not line.startswith(("|", "    make "))]


@each_document
def test_every_command_of_the_course_that_is_quoted_takes_these_options(document):
    for words in commands_in(document, "course"):
        verify_options(words)


@pytest.mark.parametrize("name", COURSE.commands)
def test_the_examples_in_the_help_of_a_command_can_be_typed(name):
    examples = [line for line in (COURSE.commands[name].epilog or "").splitlines() if line.startswith("course ")]
    assert examples or not [one for one in COURSE.commands[name].params if one.name not in ("root", "as_json")]
    for line in examples:
        words = shlex.split(line)[1:]
        assert words[0] == name
        verify_options(words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("reset x", "Invalid value for 'DAY': give it in digits"),
        ("grad", "No such command 'grad'. Did you mean 'grade'?"),
        ("bogus", "No such command 'bogus'. `course --help` lists the commands."),
    ],
)
def test_a_typing_error_gets_one_line_that_says_what_to_type(words, message):
    assert run_course(*words.split()) == (2, "", f"course: {message}\n")


@each_document
def test_every_target_of_make_that_is_quoted_exists_with_its_settings(document):
    for words in commands_in(document, "make"):
        settings = dict(word.split("=", 1) for word in words if "=" in word)
        targets = [word for word in words if "=" not in word]
        assert set(targets) <= TARGETS and set(settings) <= SETTINGS, f"make {' '.join(words)}"
        if "ARGS" in settings and targets[0] in COURSE.commands:
            verify_options([targets[0], "--out=x"][: 1 + (targets[0] == "release")] + shlex.split(settings["ARGS"]))


@each_document
def test_a_relative_link_leads_to_a_tracked_file_or_to_a_page_that_github_makes(document):
    here = document.parent.relative_to(ROOT).as_posix()
    for target, anchor in links_in(document):
        path = (document.parent / target).resolve() if target else document
        if posixpath.normpath(posixpath.join("blob/main", here, target)) in OF_GITHUB:
            continue
        assert path in tracked(), f"{document.name}: {target}"
        if anchor:
            assert anchor in anchors_of(path), f"{document.name}: {target}#{anchor}"


@functools.cache
def tracked() -> set[Path]:
    """The files that git knows, and their folders; in a copy without a repository, those that are there."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    files = [ROOT / name for name in listed.stdout.splitlines()] or list(ROOT.rglob("*"))
    return {*files, *(folder for file in files for folder in file.parents)}


def test_no_document_names_the_owner_of_an_address_that_is_not_set():
    texts = [*DOCUMENTS, *ROOT.glob("*.cff"), *ROOT.glob(".github/**/*.*"), *ROOT.glob("templates/**/*.*")]
    assert [path.name for path in texts if path.is_file() and "OWNER" in path.read_text(encoding="utf-8")] == []


def test_while_no_address_is_set_the_readme_has_no_badge_and_no_link_to_a_host_of_code():
    addresses = re.findall(r"\]\((https?://[^)]*)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    hosts = [each for each in addresses if re.match(r"https://(github|colab|[\w-]+\.github)\.", each)]
    assert bool(hosts) == is_published()


def links_in(document: Path) -> list[tuple[str, str]]:
    tokens = MARKDOWN.parse(document.read_text(encoding="utf-8"))
    kids = [kid for token in tokens for kid in token.children or ()]
    addresses = [str(kid.attrs.get("href") or kid.attrs.get("src") or "") for kid in kids]
    html = [token.content for token in [*tokens, *kids] if token.type in ("html_block", "html_inline")]
    addresses += [address for code in html for address in re.findall(r'(?:src|srcset|href)="([^"]+)"', code)]
    local = [address for address in addresses if address and not re.match(r"\w+:", address)]
    return [(address.partition("#")[0], address.partition("#")[2]) for address in local]


def anchors_of(document: Path) -> set[str]:
    """The names that GitHub gives to headings."""
    tokens = MARKDOWN.parse(document.read_text(encoding="utf-8"))
    titles = [after.content for token, after in itertools.pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_teachers_page_shows_each_option_of_grading_and_releasing():
    text = (ROOT / "docs/teaching.md").read_text(encoding="utf-8")
    for name in ("grade", "release"):
        options = {opt for parameter in COURSE.commands[name].params for opt in parameter.opts if opt.startswith("--")}
        assert not {opt for opt in options if f"`{opt}" not in text and f" {opt} " not in text}


OF_A_CLASS = ("class.secret", "class.seed", "release/", "grades/", "sheets/", "nbgrader/")
OF_A_CLASS += ("submissions.zip", "canvas-export.csv", "moodle-export.csv")


def test_the_teachers_page_and_the_grader_take_their_seconds_from_one_place():
    """What a check accepts in a notebook is no timeout when graded: hidden inputs are up to twice the work."""
    assert Limits().cell_seconds == Limits().idle_seconds == time_limits.GRADED_SECONDS
    assert Settings().seconds == time_limits.NOTEBOOK_SECONDS < Limits().cpu_seconds
    cell = f"{time_limits.GRADED_SECONDS:g}"
    book = f"{time_limits.NOTEBOOK_SECONDS:g}"
    text = " ".join((ROOT / "docs" / "teaching.md").read_text(encoding="utf-8").split())
    assert f"a cell has {cell} seconds of work, three times what a check allows" in text
    assert f"A notebook has {book}" in text and f"A cell may do nothing for {cell} seconds" in text
    assert f"a cell and for a notebook; {cell} and {book} if not given" in text
    assert time_limits.GRADED_SECONDS == 3 * time_limits.ANSWER_SECONDS


@pytest.mark.parametrize(
    "heading", ['What happens in `check("softmax_row")`', "What happens to one submission in `make grade`"]
)
def test_each_function_on_the_walks_through_the_code_is_in_a_module_of_that_step(heading):
    text = (ROOT / "docs" / "internals.md").read_text(encoding="utf-8")
    section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    steps = re.split(r"^\d+\. ", section, flags=re.MULTILINE)[1:]
    assert len(steps) == 10
    for step in steps:
        words = re.findall(r"`([\w./]+)`", step)
        names = [word for word in words if word.endswith(".py")]
        modules = [path for name in names for path in (ROOT / "course_utils").rglob(name)]
        assert len({path.name for path in modules}) == len(set(names)) > 0, step
        code = "".join(path.read_text(encoding="utf-8") for path in modules)
        for name in (word.rpartition(".")[2] for word in words if not word.endswith(".py") and "/" not in word):
            assert re.search(rf"(def|class) {name}\b|import .*\b{name}\b", code), (name, step)


def test_what_is_of_a_class_lies_beside_the_course_and_git_ignores_it_inside():
    teaching, github = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("teaching.md", "github.md"))
    assert all(f"../{name}".rstrip("/") in teaching for name in OF_A_CLASS)
    assert {"../release", "../class.secret"} == set(re.findall(r"(?:--out|--secret-file) (\S+)", github))
    ignored = subprocess.run(["git", "check-ignore", *OF_A_CLASS], cwd=ROOT, capture_output=True, text=True)
    assert ignored.returncode == 128 or ignored.stdout.split() == list(OF_A_CLASS)  # 128: not a repository


def test_something_is_quoted():
    quoted = [words for document in DOCUMENTS for words in commands_in(document, "course")]
    assert {"grade", "release"} <= {words[0] for words in quoted}
    assert {"lab", "grade", "release"} <= {words[0] for path in DOCUMENTS for words in commands_in(path, "make")}
