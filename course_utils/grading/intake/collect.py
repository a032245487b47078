"""Find the submissions in notebooks and folders, and in files collected by nbgrader, Moodle or Canvas."""

from __future__ import annotations

import contextlib
import os
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path, PurePosixPath

from course_utils.answer_key.key import COURSE
from course_utils.errors import CourseError, Unreadable, one_line
from course_utils.grading.intake.answers import days_of, is_fresh
from course_utils.grading.intake.file_tree import (
    MAX_FILES,
    Node,
    children_of,
    files_of,
    is_notebook,
    is_zip,
    open_node,
    student_zip,
)
from course_utils.grading.intake.files import read_file, read_member
from course_utils.grading.intake.names import Named, known_day, read_name, safe_name, without_day
from course_utils.grading.intake.submitted_notebook import SubmittedNotebook, read_notebook
from course_utils.grading.results import Result

MAX_NOTEBOOKS = 60  # per student
READ_ANEW = 5 * 2**20  # added to the bytes read for a notebook in an inner zip, which is read whole each time
MAX_READ_BYTES = 100 * 2**20  # bytes read per student to find out which notebook belongs to which day
MAX_HELD_BYTES = 128 * 2**20  # bytes of a class kept in memory until grading; other notebooks are read again then


@dataclass(frozen=True)
class Submission:
    """One notebook of one student. Each step from finding the file to grading it fills in more fields.

    Attributes:
        student: the student's name, made unique once all submissions are found.
        path: the file, or the zip that holds it.
        day: the day in the name of the file or of a folder; None if only the cells can tell it.
        member: the file's name in the zip at `path`; empty if `path` is the notebook.
        inner: the file's name in the zip `member`; empty if `member` is the notebook.
        lms_id: Moodle's participant number or Canvas's user id.
        back: where feedback goes back to: the download's name, a slash, and the name in it that the platform reads.
        late: whether the platform marked it as late.
        problem: why the file cannot be read; empty if no reason is known so far.
        scope: number of the folder or zip within which a Moodle `lms_id` identifies one person; 0 for all others.
        doubtful: whether folder and file name give different days; `day` is then the folder's.
        shared: the name, if several students have it and Moodle's numbers do not tell whose each day is; else "".
        packed: whether it lies in a zip that the student handed in.
        order: sort key among one student's notebooks, the newest last.
        data: the file's content, if it was read and kept.
        place: the submission's position in the class.
        key: the name under which the result is stored.
        known: results obtained before grading the submission was put off until the others are graded.
        answers: the student's code by grade_id, once extracted from the cells.
    """

    student: str
    path: Path
    day: int | None = None
    _: KW_ONLY
    member: str = ""
    inner: str = ""
    lms_id: str = ""
    back: str = ""
    late: bool = False
    problem: str = ""
    scope: int = 0
    doubtful: bool = False
    shared: str = ""
    packed: bool = False
    order: tuple = ()
    data: bytes | None = field(default=None, repr=False)
    place: int = 0
    key: str = ""
    known: tuple[Result, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        """File name of the notebook, without folders."""
        return PurePosixPath(self.inner or self.member).name or self.path.name

    @property
    def where(self) -> str:
        """Short path that tells a teacher which of a student's files this is."""
        return self.inner or self.member or f"{self.path.parent.name}/{self.path.name}"

    def read(self) -> bytes:
        """Return the content of the notebook file. Raises Unreadable."""
        if self.data is not None:
            return self.data
        if self.problem:
            raise Unreadable(self.problem)
        if not self.member:
            return read_file(self.path)
        data = read_member(self.path, self.member, self.path.name)
        return read_member(data, self.inner, PurePosixPath(self.member).name) if self.inner else data


class Submissions(list[Submission]):
    """Submissions, with `notes`: one line for each file that is left out, with the reason."""

    def __init__(self, submissions: Iterable[Submission], notes: Iterable[str]):
        super().__init__(submissions)
        self.notes = [one_line(note) for note in notes]


def collect(
    paths: list[Path], day: int | None = None, on_student: Callable[[str], None] = lambda name: None
) -> Submissions:
    """Find the submissions in notebooks, folders and zips: for each student and day the newest readable notebook.

    Folders and zips may hold nbgrader's `student/assignment/notebook`, `student.ipynb`, Moodle's or Canvas's download
    of all submissions, and any of these below a folder per day. A student's unreadable file becomes a submission with
    a `problem`. The function writes nothing, and does not follow links inside folders.

    Args:
        paths: notebooks, folders and zips that the teacher named.
        day: day that the notebooks belong to; other days' notebooks are left out if a student has one of that day.
        on_student: called with each student's name before the student's notebooks are read.

    Returns:
        the submissions, sorted by student and day. `data` is set only if `collect` had to read the notebook.
    """
    finder = _Finder()
    loose = [path for path in paths if not path.is_dir() and not is_zip(path.name)]
    for path in paths:
        if path not in loose:
            finder.add_class(open_node(path))
    finder.add_loose(list(dict.fromkeys(loose)))
    return finder.finish(day, on_student)


class _Finder:
    """Search for all candidates, then decide which student each belongs to and which notebooks count."""

    def __init__(self) -> None:
        self.candidates: list[Submission] = []
        self.notes: list[str] = []
        self._downloads: dict[int, str] = {0: ""}  # names of the folders and zips, by scope; each has its own

    def add_class(self, root: Node, hint: int | None = None) -> None:
        """Add the notebooks in a folder or zip with the work of a class or of one student."""
        scope = len(self._downloads)
        strangers = list[str]()
        name = safe_name(root.name)
        self._downloads[scope] = f"{name}_{scope}" if name in self._downloads.values() else name
        try:
            children = _below_wrappers(root)
        except Unreadable as why:
            return self._add(Named(root.name, ""), replace(root, problem=str(why)), hint, scope)
        for child in children:
            folder = child.children is not None
            named = read_name(child.name, folder)
            if named.student is None and (folder or (is_zip(child.name) and not child.member and not child.problem)):
                self.add_class(child if folder else open_node(child.path), hint or known_day(child.name))
            elif is_notebook(child.name) and not folder:
                self._add(named if named.student is not None else replace(named, student=root.name), child, hint, scope)
            elif folder or is_zip(child.name) or named.lms_id or (child.problem and not child.member):
                self._add_student(named, child, hint, scope)
            else:
                strangers.append(child.name)
        if strangers:
            self.notes.append(f"{root.name}: {len(strangers)} files are not notebooks ({_first_few(strangers)})")

    def add_loose(self, paths: list[Path]) -> None:
        """Add notebooks that the teacher named one by one. Links are followed."""
        names = Counter(path.name for path in paths)
        for path in paths:
            named = read_name(path.name)
            hint = None
            if names[path.name] > 1:
                among = Path(os.path.commonpath([p.absolute().parent for p in paths if p.name == path.name]))
                folders = path.absolute().parent.relative_to(among).parts
                hint = next((known_day(folder) for folder in folders if known_day(folder)), None)
                student = without_day(folders[0]) if folders else ""
                named = replace(named, student=student or among.name)
            elif not named.lms_id and not named.local:
                named = replace(named, student=path.stem)
            self._add(named, Node(path.name, path), hint, 0)

    def _add_student(self, named: Named, child: Node, hint: int | None, scope: int) -> None:
        """Add the notebooks in a folder, zip or file that belongs to one student."""
        named = replace(named, student=child.name) if named.student is None else named
        try:
            notebooks = _notebooks_in(child)
        except Unreadable as why:
            notebooks = [(replace(child, problem=str(why), children=None), ())]
        for file, folders in notebooks:
            days_above = [day for day in map(known_day, folders) if day]
            day = hint or known_day(named.file) or next(iter(days_above), None)
            packed = any(is_zip(name) for name in (child.name, *folders)) and bool(file.member)
            file_named = replace(named, file=file.name) if file.name != child.name else named
            self._add(file_named, file, day, scope, packed)

    def _add(self, named: Named, node: Node, hint: int | None, scope: int, packed: bool = False) -> None:
        day = known_day(named.file)
        download = self._downloads[scope]
        self.candidates.append(
            Submission(
                student=unicodedata.normalize("NFC", named.student or ""),
                path=node.path,
                day=hint or day,
                member=node.member,
                inner=node.inner,
                lms_id=named.lms_id,
                back=f"{download}/{named.back}" if download and named.back else "",
                late=named.late,
                problem=node.problem,
                scope=scope if named.local else 0,
                doubtful=bool(hint and day and hint != day),
                packed=packed,
                order=(named.order, node.time, node.inner or node.member or str(node.path)),
            )
        )

    def finish(self, day: int | None, on_student: Callable[[str], None]) -> Submissions:
        """Return one submission per student and day, with a unique name for each student."""
        self._disown_shared_ids()
        # the notebooks of each student
        students = defaultdict(list)
        names = _unique_names(self.candidates, self._sources())
        for candidate, name in zip(self.candidates, names, strict=True):
            students[name].append(candidate)
        self.notes += [
            f"WARNING: {name} may be several students, and the numbers in Moodle's names differ by assignment: the rows"
            f" {', '.join(rows)} are kept apart; find out whose each is"
            for name, rows in _find_shared_names(students).items()
        ]
        shared = {row: name for name, rows in _find_shared_names(students).items() for row in rows}
        # of each student, those that count, and a note on each of the others
        submissions = []
        room = MAX_HELD_BYTES
        for student in sorted(students, key=lambda name: (name.casefold(), name)):
            on_student(student)
            reader = _Reader()
            mine = students[student] if day else self._without_untouched(student, students[student], reader)
            counted = _choose_counted(mine, day, reader)
            for counted_day, each in counted:
                data = reader.contents.get(id(each))
                room -= len(data or b"")
                each = replace(each, student=student, shared=shared.get(student, ""))
                each = replace(each, day=counted_day or known_day(each.name), data=data if room >= 0 else None)
                submissions.append(each)
            self.notes += [
                f"{student}: {each.problem or each.where} is left out: {_describe_counted(counted)}"
                for each in mine
                if not any(each is other for _, other in counted)
            ]
        return Submissions(submissions, self.notes)

    def _without_untouched(self, student: str, mine: list[Submission], reader: _Reader) -> list[Submission]:
        """Return a student's notebooks without those that nobody answered and that only lay in a zip of several days.

        Such a day counts as not handed in. If nothing is answered in any of them, one stays, as a file with a problem.
        """
        packed = [each for each in mine if each.packed and not each.problem]
        if len({each.day or each.where for each in packed}) < 2:
            return mine
        fresh = [each for each in packed if reader.is_fresh(each)]
        answered = [each for each in mine if not any(each is other for other in fresh)]
        if not answered:
            one = fresh[0]
            one = replace(one, day=None, doubtful=False, member=one.member if one.inner else "", inner="")
            return [replace(one, problem=f"{one.name}: nothing is answered in any of its notebooks")]
        self.notes += [
            f"{student}: {each.where} counts as not handed in: it came in a zip of several days, with nothing answered"
            for each in fresh
        ]
        return answered

    def _sources(self) -> dict[int, tuple]:
        """Return, by scope, what all downloads of one day have in common; among these, a number means one person.

        Numbers in two downloads of one Moodle assignment agree. If they differ, there may be two students of one name,
        such as those of two groups.
        """
        days: dict[int, Counter] = defaultdict(Counter)
        for each in self.candidates:
            days[each.scope][each.day] += 1
        commonest = {scope: counts.most_common(1)[0][0] for scope, counts in days.items() if scope}
        return {0: ()} | {scope: ("day", day) if day else ("download", scope) for scope, day in commonest.items()}

    def _disown_shared_ids(self) -> None:
        """Drop each LMS id that occurs with two names, so that no student can hand in under another's id."""
        names = defaultdict(set)
        for each in self.candidates:
            names[each.scope, each.lms_id].add(each.student)
        for (_, lms_id), claimed in names.items():
            if lms_id and len(claimed) > 1:
                self.notes.append(
                    f"the number {lms_id} is that of {_first_few(sorted(claimed))}: enter their grades by hand"
                )
        self.candidates = [
            replace(each, lms_id="", back="") if each.lms_id and len(names[each.scope, each.lms_id]) > 1 else each
            for each in self.candidates
        ]


def _below_wrappers(folder: Node) -> list[Node]:
    """Return the entries at the level of students: below `submitted`, or below one folder that wraps all the others."""
    children = children_of(folder)
    folders = [child for child in children if child.children is not None]
    for child in folders:
        if child.name.lower() in ("submitted", "submissions"):
            return _below_wrappers(child)
    if len(children) == len(folders) == 1:
        inner = [read_name(child.name, child.children is not None) for child in children_of(folders[0])]
        if folders[0].name == folder.name or any(each.local or each.lms_id for each in inner):
            return _below_wrappers(replace(folders[0], name=folder.name))
    return [child for child in children if child.children is None or child.name not in ("source", "autograded")]


def _notebooks_in(node: Node) -> list[tuple[Node, tuple[str, ...]]]:
    """Return a student's notebooks and unreadable files, each with the folders above it. Raises Unreadable."""
    files: Iterable[tuple[Node, tuple[str, ...]]] = [(node, ())]
    if node.children is not None or is_zip(node.name):
        files = files_of(node if node.children else student_zip(node), zipped=node.children is None)
    notebooks: list[tuple[Node, tuple[str, ...]]] = []
    others: list[str] = []
    for number, (file, folders) in enumerate(files):
        # an unreadable file counts as a notebook unless it is one of a zip's, where much else may be unreadable
        unreadable = file.problem and (not file.member or is_zip(file.name))
        if file.children is None and (is_notebook(file.name) or unreadable):
            notebooks.append((file, folders))
        elif file.children is None:
            others.append(file.name)
        # before the next file is listed, because a hostile zip may have millions
        if number >= MAX_FILES or len(notebooks) > MAX_NOTEBOOKS:
            raise Unreadable(f"{node.name}: more than {MAX_NOTEBOOKS} notebooks, or {MAX_FILES} files")
    # say what is there instead of notebooks
    if not notebooks and others == [node.name]:
        raise Unreadable(f"{node.name}: not a notebook")
    if not notebooks:
        raise Unreadable(f"{node.name}: no notebook in it{', only ' if others else ''}{_first_few(others)}")
    # a download within the download would hand in the work of others under this student's name
    names = [read_name(name) for file, folders in notebooks for name in (*folders, file.name)]
    if len({(each.student, each.lms_id) for each in names if each.lms_id}) > 1:
        raise Unreadable(f"{node.name}: the work of several students; give it to course grade by itself")
    return notebooks


def _unique_names(candidates: list[Submission], sources: Mapping[int, tuple]) -> list[str]:
    """Return a name for each candidate, a unique folder name on every system: shared names get the LMS id added.

    Args:
        sources: by scope, the downloads within which a name with two numbers means two students.
    """
    ids = defaultdict(set)
    for each in candidates:
        ids[each.student, sources[each.scope]].add(each.lms_id)
    several = {student for (student, _), numbers in ids.items() if len(numbers) > 1}
    people = [(each.student, each.lms_id if each.student in several else "") for each in candidates]
    names = {}
    taken = set()
    for student, lms_id in sorted(set(people)):
        plain = one_line(student, 100) or "unnamed"
        name = plain = f"{plain} ({lms_id})" if lms_id else plain
        number = 1
        while safe_name(name).casefold() in taken:
            number += 1
            name = f"{plain} #{number}"
        taken.add(safe_name(name).casefold())
        names[student, lms_id] = name
    return [names[person] for person in people]


def _find_shared_names(students: Mapping[str, list[Submission]]) -> dict[str, list[str]]:
    """Return the names in Moodle's downloads that several students have, each with the names that tell them apart.

    Within one download the numbers tell whose each submission is, so a name counts only if it is in several.
    """
    rows = defaultdict(set)
    scopes = defaultdict(set)
    for row, mine in students.items():
        for each in mine:
            if each.scope:
                rows[each.student].add(row)
                scopes[each.student].add(each.scope)
    return {name: sorted(names) for name, names in rows.items() if len(names) > 1 and len(scopes[name]) > 1}


def _choose_counted(mine: list[Submission], day: int | None, reader: _Reader) -> list[tuple[int | None, Submission]]:
    """Return one student's notebooks that count, by day: the newest with the day's exercises.

    An unreadable file counts only for a day without a readable notebook.
    """
    newest_first = sorted(mine, key=lambda each: each.order, reverse=True)
    readable = [each for each in newest_first if not each.problem]
    # by day: a name that tells no day, or two, leaves it to the cells, unless the notebook is the only one
    days: dict[int | None, list[Submission]] = defaultdict(list)
    for each in readable:
        if day is None and (each.doubtful or (each.day is None and len(readable) > 1)):
            days[next(iter(reader.days(each, COURSE.days())), each.day)].append(each)
        else:
            days[each.day].append(each)
    if day is not None and readable:
        # the teacher told the day: those that may be of it, or all if none may
        days = {day: [each for each in readable if each.doubtful or each.day in (None, day)] or readable}
    elif len(days) > 1:
        days.pop(None, None)  # notebooks without exercises of the course
    # of each day the newest that has its exercises, or else the newest
    counted = {}
    for number, candidates in days.items():
        counted[number] = candidates[0]
        if len(candidates) > 1 and number:
            counted[number] = next((each for each in candidates if reader.days(each, [number])), candidates[0])
    # an unreadable file for a day that has no readable one
    for each in newest_first:
        number = each.day if day is None else day
        if each.problem and (number is not None or not counted):
            counted.setdefault(number, each)
    return sorted(counted.items(), key=lambda item: item[0] or 0)


def _describe_counted(counted: list[tuple[int | None, Submission]]) -> str:
    return "what counts is " + ", ".join(f"{each.where}{f' (day {day})' if day else ''}" for day, each in counted)


class _Reader:
    """Read and parse one student's notebooks once each, up to MAX_READ_BYTES; `contents` has them by `id(submission)`.

    The caller keeps the submissions as long as the reader, so that no two of them have one id.
    """

    def __init__(self) -> None:
        self._remaining = MAX_READ_BYTES
        self._notebooks: dict[int, SubmittedNotebook | Unreadable] = {}
        self.contents: dict[int, bytes] = {}

    def days(self, submission: Submission, among: Iterable[int]) -> list[int]:
        """Return which of these days' exercises are in a notebook; none if it is unreadable or the limit is reached."""
        with contextlib.suppress(Unreadable, CourseError):
            return days_of(self._read(submission), {day: COURSE.exercises(day) for day in among})
        return []

    def is_fresh(self, submission: Submission) -> bool:
        """Return whether a notebook has a day's exercises, and none of them is answered."""
        with contextlib.suppress(Unreadable, CourseError):
            notebook = self._read(submission)
            days = self.days(submission, COURSE.days())
            return bool(days) and all(is_fresh(notebook, COURSE.exercises(day)) for day in days)
        return False

    def _read(self, submission: Submission) -> SubmittedNotebook:
        key = id(submission)
        if key not in self._notebooks:
            try:
                self._notebooks[key] = self._parse(submission)
            except Unreadable as why:
                self._notebooks[key] = why
        notebook = self._notebooks[key]
        if isinstance(notebook, Unreadable):
            raise notebook
        return notebook

    def _parse(self, submission: Submission) -> SubmittedNotebook:
        if self._remaining <= 0:
            raise Unreadable("enough was read")
        data = self.contents[id(submission)] = submission.read()
        self._remaining -= len(data) + (READ_ANEW if submission.inner else 0)
        return read_notebook(data, submission.name)


def _first_few(names: list[str]) -> str:
    return one_line(", ".join(name[:60] for name in names[:3])) + (", …" if len(names) > 3 else "")
