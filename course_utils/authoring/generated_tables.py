"""Parts of texts that follow from the course: `course build` writes them, `course check` compares them.

    README.md                    the table of days, with minutes
    sources/lessons/course_map   the table of days, with the learner's task on each day
    sources/lessons/dayN…        the minutes after **Time**, from `course.DAYS`; the number of quiz questions; the
                                 header that folds the code of imports, guesses, quizzes and problems for a pencil
    sources/exercises/dayN…      the points of each exercise, and the numbers in the first sentence, also of those
                                 marked "· further"; the limits on what a learner's test may ask of an implementation
    both                         the lines that begin with **Go to**, with links to the day's partner notebook, the
                                 course map and the neighbouring days; the cell tagged setup, which installs the course
                                 in Colab
    sources/lessons/references   the references of all lessons, one section per day
    templates/…/grade.yml        the days that a class may have graded
    CITATION.cff, the forms in   the version, from pyproject.toml
    .github/ISSUE_TEMPLATE/…
    README.md, CITATION.cff,     links that need the repository's address, once pyproject.toml has one
    …/ISSUE_TEMPLATE/config.yml

The points of an exercise come from its check cell, and its minutes from the line under its heading. A text without such
a line or table stays unchanged.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from course_utils import loader
from course_utils.answer_key.strip_answers import SETUP
from course_utils.checks.judge.duel_verdict import describe_limits
from course_utils.course import (
    DAYS,
    EXERCISES,
    LESSONS,
    SOLUTIONS,
    SOURCES,
    Day,
    in_sittings,
    is_published,
    is_there,
    last_part,
    repository,
    tens,
    version,
)
from course_utils.files import write_all

WORDS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
)
CITATION = "CITATION.cff"
CONTACTS = ".github/ISSUE_TEMPLATE/config.yml"
README_HEAD = "| day | what you do | minutes |\n|---|---|---|\n"
MAP_HEAD = "| day | lesson | exercises | what you do |\n|---|---|---|---|\n"
_UNDER_HEADING = re.compile(r"^\d+ points?( · difficulty \d of 5 · (\d+) minutes?)(?=.*?( · further)?$)", re.MULTILINE)
_POINTS = re.compile(r"^  points: (\d+)$", re.MULTILINE)
_GO = re.compile(r"^\*\*Go to\*\* .*$", re.MULTILINE)
_SETUP = re.compile(
    rf"(?<=^```\{{code-cell\}} ipython3\n)(?::|---\n[^`]*?^)tags: (\[{SETUP}\b[^]\n]*\])\n.*?(?=^```$)",
    re.MULTILINE | re.DOTALL,
)
_FOLD = "---\njupyter:\n  source_hidden: true\n"  # the header of a cell whose code opens with a click
_PLUMBING = re.compile(  # the beginning of a cell whose code a reader need not read
    r"^```\{code-cell\} ipython3\n(?=(?:import|from) |guesses\.|Guesses\(|Quiz[.(]|Practice\()", re.MULTILINE
)
_FIRST_SENTENCE = re.compile(
    r"^\w+ exercises?, \d+ points?[,:] [^.\n]*\.(?:\nExercises [^.\n]* first sitting[^.]*\.)?", re.MULTILINE
)
_LIMITS = re.compile(r"^- You can only call `f`.*?(?=\n- |\n\n)", re.MULTILINE | re.DOTALL)
_GRADED = re.compile(r"^( +days:)( \d+)+$", re.MULTILINE)
_VERSION = re.compile(r"(?:(?<=^version: )|(?<=placeholder: course ))\S+", re.MULTILINE)
_ADDRESS = re.compile(r"(?<=^<!-- address -->\n).*?(?=^<!-- end -->$)", re.MULTILINE | re.DOTALL)
_CITED = re.compile(r"^(date-released: .*\n)(?:repository-code: .*\n)?(?:license-url: .*\n)?", re.MULTILINE)
_CONTACTS = re.compile(r"^contact_links:\n.*", re.MULTILINE | re.DOTALL)
_ON_GITHUB = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+)")
_QUESTIONS = re.compile(r"^[A-Z][a-z]+ questions?(?=[.;] (?:Choose with|every choice))", re.MULTILINE)
_TIME = re.compile(r"^\*\*Time\*\*: about (?:an hour|[\w +]+? (?:minutes|hours))\b", re.MULTILINE)


def write_counts(root: Path) -> list[str]:
    """Write the tables and counts of a course. Return the names of the files that changed."""
    changed = {path: text for path, text in _current_texts(root) if text != path.read_text(encoding="utf-8")}
    write_all(changed)
    return [path.relative_to(root).as_posix() for path in changed]


def wrong_counts(root: Path) -> list[str]:
    """Return one line for each text whose tables or counts are out of date, with its first wrong line."""
    mistakes = []
    for path, text in _current_texts(root):
        lines = zip(path.read_text(encoding="utf-8").splitlines(), text.splitlines(), strict=False)
        for number, (line, expected) in enumerate(lines, start=1):
            if line != expected:
                name = path.relative_to(root).as_posix()
                mistakes.append(f"{name}:{number}: should be {expected[:80]!r}; run `course build`")
                break
    return mistakes


def spell_minutes(minutes: int) -> str:
    """Return minutes in words, rounded to the nearest ten; whole hours, and half hours from 2½ on, are spelled out."""
    rounded = tens(minutes)
    hours, rest = divmod(rounded, 60)
    if hours >= 1 and not rest:
        return "an hour" if hours == 1 else f"{WORDS[hours]} hours"
    if hours >= 2 and rest == 30:
        return f"{WORDS[hours]} and a half hours"
    return f"{rounded} minutes"


def _spell_lesson(day: Day) -> str:
    return f"{in_sittings(day)} minutes" if day.sittings else spell_minutes(day.minutes)


def setup_source() -> str:
    """Return the source of the cell that installs this version of the course in Colab, and does nothing elsewhere.

    Colab's own torch, NumPy and Jupyter stay as they are, because the course is installed without its dependencies.
    """
    return (
        "import sys\n"
        'if "google.colab" in sys.modules:  # elsewhere this cell does nothing\n'
        '    get_ipython().system("pip install -q anywidget gguf hypothesis")\n'
        f'    get_ipython().system("pip install -q --no-deps git+{repository()}@v{version()}")\n'
    )


def _current_texts(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file that holds tables or counts, with the text that it should have."""
    for day in DAYS:
        yield from _texts_of_day(day, root)
    if (path := root / SOURCES[LESSONS] / "references.md").exists():
        yield path, _references(_read(path), root)
    # the days that a class may have graded
    if (path := root / "templates" / "github-actions" / "grade.yml").exists():
        days = "".join(f" {day.number}" for day in DAYS if _notebook_name(day, root, SOLUTIONS))
        yield path, _GRADED.sub(rf"\1{days}", _read(path))
    # the tables of days
    for path, head, row in (
        (root / "README.md", README_HEAD, _readme_row),
        (root / SOURCES[LESSONS] / "course_map.md", MAP_HEAD, _map_row),
    ):
        if path.exists():
            rows = "".join(row(day, root) for day in DAYS)
            yield path, _with_table(_ADDRESS.sub(_front_links(root), _read(path)), head, rows)
    # the version, and the address of the repository
    if (path := root / CITATION).exists():
        links = f"repository-code: {repository()}\nlicense-url: {repository()}/blob/main/LICENSE\n"
        text = _CITED.sub(rf"\1{links if is_published() else ''}", _read(path))
        yield path, _VERSION.sub(version(), text)
    if (path := root / CONTACTS).exists():
        yield path, _CONTACTS.sub("", _read(path)) + (_contacts() if is_published() else "")
    for path in sorted((root / CONTACTS).parent.glob("[0-9]-*.yml")):
        yield path, _VERSION.sub(version(), _read(path))


def _texts_of_day(day: Day, root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the sources of a day's exercises and of its lesson, each with the text that it should have."""
    for path in _paths(day, root, SOLUTIONS):
        text = _with_setup(_exercises(_read(path), day))
        text = _LIMITS.sub(lambda _: _limits_item(day.number), text)
        lesson = f"[the lesson](../{LESSONS}/{path.stem}.ipynb)"
        yield path, _GO.sub(_links_around(day, root, [lesson], f"../{LESSONS}/"), text)
    for path in _paths(day, root, LESSONS):
        text = _with_setup(_read(path))
        text = _PLUMBING.sub(rf"\g<0>{_FOLD}---\n", text)
        text = _TIME.sub(f"**Time**: about {_spell_lesson(day)}", text)
        if questions := len(loader.quiz(day.number)):
            text = _QUESTIONS.sub(_count(_word(questions).capitalize(), "question"), text)
        name = _notebook_name(day, root, SOLUTIONS)
        exercises = [f"[its exercises](../{EXERCISES}/{name}.ipynb)"] if name else []
        yield path, _GO.sub(_links_around(day, root, exercises, ""), text)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _front_links(root: Path) -> str:
    """Return the badges of the README and its links to the pages and to Colab; nothing without an address on GitHub."""
    match = _ON_GITHUB.fullmatch(repository()) if is_published() else None
    if not match:
        return ""
    owner, name = match.groups()
    badges = [
        f"[![{text}]({repository()}/actions/workflows/{workflow}/badge.svg)]({repository()}/actions/workflows/{workflow})"
        for text, workflow in (("tests", "test.yml"), ("pages", "site.yml"))
    ]
    pages = f"https://{owner.lower()}.github.io/" + ("" if name.lower() == f"{owner.lower()}.github.io" else f"{name}/")
    notebook = f"{LESSONS}/{_notebook_name(DAYS[0], root, LESSONS)}.ipynb"
    colab = f"https://colab.research.google.com/github/{owner}/{name}/blob/v{version()}/{notebook}"
    links = f"**[Play with it]({pages})** in the browser, with nothing to install, or open [day 1 in Colab]({colab})."
    return "\n".join([*badges, "", links, ""])


def _contacts() -> str:
    """Return what GitHub offers beside the forms for issues. It takes whole addresses only."""
    return (
        "contact_links:\n"
        "  - name: Answers get points that they do not deserve, or leave their sandbox\n"
        f"    url: {repository()}/security/advisories/new\n"
        "    about: Tell us in private. Classes are graded with this, and a hole that everybody can read costs them "
        "their grades.\n"
        "  - name: I want to change something\n"
        f"    url: {repository()}/blob/main/CONTRIBUTING.md\n"
        "    about: How an exercise, a day or a widget is added, and how the course is built and tested.\n"
    )


def _links_around(day: Day, root: Path, first: list[str], to_lessons: str) -> str:
    """Return the line of links from a day's notebook to its partner, the course map, and the days before and after."""
    near = [other for other in DAYS if abs(other.number - day.number) == 1]
    links = [
        f"[day {each.number}]({to_lessons}{name}.ipynb)"
        for each in near
        if (name := _notebook_name(each, root, LESSONS))
    ]
    return f"**Go to** {' · '.join([*first, f'[the course map]({to_lessons}course_map.ipynb)', *links])}"


def _with_setup(text: str) -> str:
    """Replace the cell for Colab by its current source. JupyterLab shows it folded, because it does nothing there."""
    return _SETUP.sub(lambda match: f"{_FOLD}tags: {match[1]}\n---\n{setup_source()}", text)


def _limits_item(day: int) -> str:
    """Return the list item that says what a learner's test may ask of an implementation."""
    return textwrap.fill(f"- {describe_limits(day)}", 120, subsequent_indent="  ", break_on_hyphens=False)


def _references(text: str, root: Path) -> str:
    """Return the page of references: its introduction, followed by `references.md` of each day's folder."""
    sections = []
    for day in DAYS:
        path = root / "course_utils" / "days" / f"day{day.number}" / "references.md"
        if path.exists():
            link = f"[Day {day.number}: {day.title}]({_notebook_name(day, root, LESSONS)}.ipynb)"
            sections.append(f"## Day {day.number}\n\n{link}\n\n{_read(path).strip()}\n")
    return "\n".join([text.partition("\n## Day ")[0].rstrip("\n") + "\n", *sections])


def _exercises(text: str, day: Day) -> str:
    """Return the source of a day's exercises with current points per exercise and totals in the first sentence."""
    headings = list(_UNDER_HEADING.finditer(text))
    if not headings:
        return text
    # the points of each exercise, from its check
    points: list[int] = []
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    for heading, end in zip(headings, ends, strict=True):
        check = _POINTS.search(text, heading.end(), end)
        points.append(int(check[1]) if check else 0)
    # into the line under each heading, from the last one up, so that the places above stay right
    for heading, number in reversed(list(zip(headings, points, strict=True))):
        if number:
            text = text[: heading.start()] + _count(number, "point") + heading[1] + text[heading.end() :]
    # the sums, into the first sentence
    core, further = _minutes_by_kind(headings)
    sentence = f"{_count(_word(len(points)).capitalize(), 'exercise')}, {_count(sum(points), 'point')}"
    if further:
        sentence += f": {_word(len(core))} core, {_about_minutes(core)}, "
        sentence += f"and {_word(len(further))} further, {_about_minutes(further)}."
    else:
        sentence += f", {_about_minutes(core)}."
    return _FIRST_SENTENCE.sub(sentence + _exercises_of_sittings(headings, day), text, count=1)


def _exercises_of_sittings(headings: Sequence[re.Match], day: Day) -> str:
    """Return a line that says which exercises belong to which sitting; empty for a day without sittings."""
    if not day.sittings:
        return ""
    lines = [heading.string[heading.end() :].partition("\n")[0] for heading in headings]
    sittings = [day.sitting_of(last_part(line)) for line in lines]
    first, second = (
        [each for each, its_own in zip(headings, sittings, strict=True) if its_own == sitting] for sitting in (1, 2)
    )
    last = sittings.index(2) if 2 in sittings else len(sittings)  # of those that come one after another
    later = [str(number) for number, sitting in enumerate(sittings, 1) if sitting == 1 and number > last]
    numbers = " and ".join([str(last), *later])
    core_of_first, core_of_second = (_about_minutes(_minutes_by_kind(each)[0]) for each in (first, second))
    return (
        f"\nExercises 1 to {numbers} belong to the first sitting, with {core_of_first} of core work,"
        f"\nand the others to the second, with {core_of_second}."
    )


def _minutes_by_kind(headings: Iterable[re.Match]) -> tuple[list[int], list[int]]:
    """Return the minutes of each exercise that is core, and of each that is marked as further."""
    core: list[int] = []
    further: list[int] = []
    for heading in headings:
        (further if heading[3] else core).append(int(heading[2]))
    return core, further


def _about_minutes(minutes: list[int]) -> str:
    return f"about {spell_minutes(sum(minutes))}"


def _word(number: int) -> str:
    return WORDS[number] if number < len(WORDS) else str(number)


def _count(number: int | str, what: str) -> str:
    return f"{number} {what}" if str(number) in ("1", "One") else f"{number} {what}s"


def _with_table(text: str, head: str, rows: str) -> str:
    """Replace the rows under a table's head; a text without this head stays unchanged."""
    before, match, after = text.partition(head)
    return before + head + rows + after[after.find("\n\n") + 1 :] if match else text


def _readme_row(day: Day, root: Path) -> str:
    name = _notebook_name(day, root, LESSONS)
    title = f"[{day.title}]({LESSONS}/{name}.ipynb)" if name else day.title
    minutes = in_sittings(day) if name else "planned"
    core, further = minutes_of_exercises(day, root)
    minutes += f", exercises {core}" if core else ""
    minutes += f", further {further}" if further else ""
    return f"| {day.number} | **{title}.** {day.doing} | {minutes} |\n"


def _map_row(day: Day, root: Path) -> str:
    name = _notebook_name(day, root, LESSONS)
    exercises_name = _notebook_name(day, root, SOLUTIONS)
    if not name:
        return f"| {day.number} | {day.title} | planned | {day.doing} |\n"
    exercises = ""
    if exercises_name:
        number = len(_UNDER_HEADING.findall(_source_text(day, root, SOLUTIONS)))
        exercises = f"[{_word(number)}](../{EXERCISES}/{exercises_name}.ipynb)"
    doing = " ".join([day.doing, *(each.question for each in day.sittings)])
    return f"| {day.number} | [{day.title}]({name}.ipynb) | {exercises} | {doing} |\n"


def minutes_of_exercises(day: Day, root: Path) -> tuple[int, int]:
    """Return the minutes of a day's core exercises and of its further ones, by their source; 0 if `root` has none.

    Both are rounded to the nearest ten, so that they are the same wherever they are given.
    """
    core, further = _minutes_by_kind(_UNDER_HEADING.finditer(_source_text(day, root, SOLUTIONS)))
    return tens(sum(core)), tens(sum(further))


def _paths(day: Day, root: Path, built: str) -> list[Path]:
    return sorted((root / SOURCES[built]).glob(f"day{day.number}_*.md")) if is_there(day.number) else []


def _notebook_name(day: Day, root: Path, built: str) -> str:
    """Return the name of a day's notebook in a folder, without suffix; empty if there is no source."""
    return next((path.stem for path in _paths(day, root, built)), "")


def _source_text(day: Day, root: Path, built: str) -> str:
    return next((path.read_text(encoding="utf-8") for path in _paths(day, root, built)), "")
