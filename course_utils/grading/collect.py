"""Find the submissions in what a teacher has: notebooks, folders, and the downloads of nbgrader, Moodle and Canvas."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath

from course_utils.checks.exercise import days_with_exercises

from .archive import read_member
from .errors import CourseError, one_line
from .official import COURSE
from .places import MOST_FILES, Place, files_of, is_notebook, is_zip, kids_of, open_place, student_zip
from .submission import Unreadable, days_of, read_file

MOST_NOTEBOOKS = 60  # of one student
READ_ANEW = 5 * 2**20  # bytes that a zip inside a zip counts for, since all of it is read for each notebook
MOST_READ = 100 * 2**20  # bytes of one student's notebooks that are read to tell them apart


@dataclass(frozen=True)
class Submission:
    """One notebook of one student. Nothing of it is held here.

    day: as its place tells, None when only its cells can. member: its name inside the zip at `path`, if it lies in one.
    inner: its name inside the zip that `member` is, if it is one. lms_id: Moodle's participant number or Canvas's user
    id. problem: why it cannot be read, where that is known already.
    """

    student: str
    path: Path
    day: int | None = None
    member: str = ""
    inner: str = ""
    lms_id: str = ""
    problem: str = ""

    @property
    def name(self) -> str:
        """The file's own name, without folders."""
        return PurePosixPath(self.inner or self.member).name or self.path.name

    def read(self) -> bytes:
        """The bytes of the notebook. Raises Unreadable."""
        if self.problem:
            raise Unreadable(self.problem)
        if not self.member:
            return read_file(self.path)
        data = read_member(self.path, self.member, self.path.name)
        return read_member(data, self.inner, PurePosixPath(self.member).name) if self.inner else data


class Found(list[Submission]):
    """The submissions, by student and day. notes: what was left out and why, a line each."""

    def __init__(self, submissions: Iterable[Submission], notes: Iterable[str]):
        super().__init__(submissions)
        self.notes = [one_line(note) for note in notes]


def collect(paths: list[Path], day: int | None = None, on_student: Callable[[str], None] = lambda name: None) -> Found:
    """The submissions in notebooks, folders and zips: one a student and day, the newest of those that can be read.

    day: the day they belong to; other days' notebooks are left out where a student has one of that day. on_student:
    called with each student's name before their notebooks are looked into.

    Folders and zips may hold nbgrader's `student/assignment/notebook`, `student.ipynb`, what Moodle and Canvas give as
    all submissions of an assignment, and any of these below a folder for each day. Whatever of a student cannot be read
    is a submission that says so. Nothing is written, and links inside folders are not followed.
    """
    finder = _Finder()
    loose = [path for path in paths if not path.is_dir() and not is_zip(path.name)]
    for path in paths:
        if path not in loose:
            finder.add_class(open_place(path))
    finder.add_loose(list(dict.fromkeys(loose)))
    return finder.finish(day, on_student)


def safe_name(student: str) -> str:
    """A student's name as the name of a folder: one that every system can have, another for every student."""
    plain = "".join(c if c in " ()-_.,'" or unicodedata.category(c)[0] in "LMN" else "_" for c in student)
    kept = plain.encode()[:80].decode(errors="ignore").strip(" .")
    reserved = re.match(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", kept, re.IGNORECASE)
    if kept and kept == student and not reserved:
        return kept
    digest = hashlib.sha256(student.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{'_' if reserved else ''}{kept}-{digest}".lstrip("-")


# Names --------------------------------------------------------------------------------------------------------------

_MOODLE = re.compile(r"(?P<name>[^_]*)_(?:(?P<id>\d{1,20})_)?assignsubmission_[a-z]+(?:_(?P<rest>.*))?", re.DOTALL)
_CANVAS = re.compile(
    r"(?:(?P<name>.+?)(?:_LATE)?_(?P<id>\d{1,20})|(?:LATE_)?(?P<anonymous>anon_[A-Za-z0-9]+))"
    r"_(?P<file>\d{1,20})_(?P<rest>.+)",
    re.DOTALL,
)


@dataclass(frozen=True)
class _Named:
    """What a name says. student: None when it names nobody. file: as the student called it. order: of resubmissions.
    local: whether the id is one person's for this assignment only."""

    student: str | None
    file: str
    lms_id: str = ""
    order: int = 0
    local: bool = False


def _read_name(name: str, folder: bool = False) -> _Named:
    """Whose a file or folder is, by the name that Moodle, Canvas, a teacher or a student gave it."""
    if found := _MOODLE.fullmatch(name):
        return _Named(found["name"], found["rest"] or "", found["id"] or "", local=True)
    if folder:
        return _Named(None if _without_day(name) == "" else name, "")
    if (found := _CANVAS.fullmatch(name)) and (found["anonymous"] or found["name"] == found["name"].lower()):
        clear = not re.match(r"\d+_", found["rest"])  # else a name that ends in a number could pass for another's id
        lms_id = found["id"] if found["id"] and clear else ""
        return _Named(found["anonymous"] or found["name"], found["rest"], lms_id, int(found["file"]))
    return _Named(_without_day(name.rpartition(".")[0]) or None, name)


def _without_day(stem: str) -> str:
    """A file's name without the day and the title of its notebook: the student, or nothing."""
    from .grade import DAY_IN_NAME

    found = DAY_IN_NAME.search(stem)
    if not found:
        return stem
    before, after = stem[: found.start()].strip(" _-"), stem[found.end() :]
    for title in _titles():
        after = re.sub(rf"^[ _-]*{title}(?![a-z])", "", after, flags=re.IGNORECASE)
    after = re.sub(r"^[ _-]*submissions?$|^[ _-]*\(?\d{0,2}\)?$", "", after, flags=re.IGNORECASE)
    return before or after.strip(" _-")


@cache
def _titles() -> list[str]:
    files = [path.stem for room in ("solutions", "exercises") for path in (COURSE.folder / room).glob("day*_*.ipynb")]
    return sorted({stem.partition("_")[2] for stem in files})


def _day(name: str) -> int | None:
    from .grade import day_in_name

    day = day_in_name(name)
    return day if day in days_with_exercises() else None


# Finding ------------------------------------------------------------------------------------------------------------


@dataclass
class _Candidate:
    """A notebook that may count. student: the name as it was written. scope: where one id is one person.

    doubtful: its folder and its name tell different days; `day` is the folder's.
    """

    student: str
    lms_id: str
    scope: int
    day: int | None
    doubtful: bool
    order: tuple
    place: Place

    def submission(self, student: str = "", day: int | None = None) -> Submission:
        place = self.place
        return Submission(student, place.path, day, place.member, place.inner, self.lms_id, place.problem)

    def where(self) -> str:
        place = self.place
        return place.inner or place.member or f"{place.path.parent.name}/{place.path.name}"


class _Finder:
    """Goes through what the teacher named, then settles who is who and which of several notebooks counts."""

    def __init__(self):
        self.candidates: list[_Candidate] = []
        self.notes: list[str] = []
        self._classes = 0

    def add_class(self, root: Place, hint: int | None = None) -> None:
        """A folder or zip with the work of a class, or of one student."""
        self._classes += 1
        scope, strangers = self._classes, []
        try:
            kids = _below_wrappers(root)
        except Unreadable as why:
            return self._add(_Named(root.name, ""), replace(root, problem=str(why)), hint, scope)
        for kid in kids:
            folder = kid.kids is not None
            named = _read_name(kid.name, folder)
            if named.student is None and (folder or (is_zip(kid.name) and not kid.member and not kid.problem)):
                self.add_class(kid if folder else open_place(kid.path), hint or _day(kid.name))
            elif is_notebook(kid.name) and not folder:
                self._add(named if named.student is not None else replace(named, student=root.name), kid, hint, scope)
            elif folder or is_zip(kid.name) or named.lms_id or (kid.problem and not kid.member):
                self._add_student(named, kid, hint, scope)
            else:
                strangers.append(kid.name)
        if strangers:
            self.notes.append(f"{root.name}: {len(strangers)} files are no notebooks ({_few(strangers)})")

    def add_loose(self, paths: list[Path]) -> None:
        """Notebooks that the teacher named one by one. Links are followed."""
        names = Counter(path.name for path in paths)
        for path in paths:
            named, hint = _read_name(path.name), None
            if names[path.name] > 1:
                among = Path(os.path.commonpath([p.absolute().parent for p in paths if p.name == path.name]))
                folders = path.absolute().parent.relative_to(among).parts
                hint = next((_day(folder) for folder in folders if _day(folder)), None)
                student = _without_day(folders[0]) if folders else ""
                named = replace(named, student=student or among.name)
            elif not named.lms_id and not named.local:
                named = replace(named, student=path.stem)
            self._add(named, Place(path.name, path), hint, 0)

    def _add_student(self, named: _Named, kid: Place, hint: int | None, scope: int) -> None:
        """A folder, zip or file that is all one student's."""
        named = replace(named, student=kid.name) if named.student is None else named
        try:
            found = _notebooks_in(kid)
        except Unreadable as why:
            found = [(replace(kid, problem=str(why), kids=None), ())]
        for file, folders in found:
            told = hint or _day(named.file) or next(filter(None, map(_day, folders)), None)
            self._add(replace(named, file=file.name) if file.name != kid.name else named, file, told, scope)

    def _add(self, named: _Named, place: Place, hint: int | None, scope: int) -> None:
        told = _day(named.file)
        student = unicodedata.normalize("NFC", named.student or "")
        self.candidates.append(
            _Candidate(
                student,
                named.lms_id,
                scope if named.local else 0,
                hint or told,
                bool(hint and told and hint != told),
                (named.order, place.time, place.inner or place.member or str(place.path)),
                place,
            )
        )

    def finish(self, day: int | None, on_student: Callable[[str], None]) -> Found:
        """The submissions, each student's name unique, one a student and day."""
        self._disown_shared_ids()
        students = defaultdict(list)
        for candidate, name in zip(self.candidates, _unique_names(self.candidates), strict=True):
            students[name].append(candidate)
        submissions = []
        for student in sorted(students, key=lambda name: (name.casefold(), name)):
            on_student(student)
            counted = _counting(students[student], day)
            submissions += [each.submission(student, told) for told, each in counted]
            self.notes += [
                f"{student}: {each.place.problem or each.where()} is left out: {_why_not(counted)}"
                for each in students[student]
                if not any(each is other for _, other in counted)
            ]
        return Found(submissions, self.notes)

    def _disown_shared_ids(self) -> None:
        """A number under two names is nobody's: else a student could hand in under another's."""
        names = defaultdict(set)
        for each in self.candidates:
            names[each.scope, each.lms_id].add(each.student)
        for (_, lms_id), claimed in names.items():
            if lms_id and len(claimed) > 1:
                self.notes.append(f"the number {lms_id} is that of {_few(sorted(claimed))}: enter their grades by hand")
        for each in self.candidates:
            if len(names[each.scope, each.lms_id]) > 1:
                each.lms_id = ""


def _below_wrappers(folder: Place) -> list[Place]:
    """What is at the level of students: below `submitted`, or below a single folder that only wraps the others."""
    kids = kids_of(folder)
    folders = [kid for kid in kids if kid.kids is not None]
    for kid in folders:
        if kid.name.lower() in ("submitted", "submissions"):
            return _below_wrappers(kid)
    if len(kids) == len(folders) == 1:
        inner = [_read_name(kid.name, kid.kids is not None) for kid in kids_of(folders[0])]
        if folders[0].name == folder.name or any(each.local or each.lms_id for each in inner):
            return _below_wrappers(replace(folders[0], name=folder.name))
    return [kid for kid in kids if kid.kids is None or kid.name not in ("source", "autograded")]


def _notebooks_in(place: Place) -> list[tuple[Place, tuple[str, ...]]]:
    """All notebooks of a student, and what cannot be read, each with the folders it lies in. Raises Unreadable."""
    files, found, others = iter([(place, ())]), [], []
    if place.kids is not None or is_zip(place.name):
        files = files_of(place if place.kids else student_zip(place), zipped=place.kids is None)
    for number, (file, folders) in enumerate(files):
        if file.kids is None and (is_notebook(file.name) or (file.problem and (not file.member or is_zip(file.name)))):
            found.append((file, folders))
        elif file.kids is None:
            others.append(file.name)
        if number >= MOST_FILES or len(found) > MOST_NOTEBOOKS:
            raise Unreadable(f"{place.name}: more than {MOST_NOTEBOOKS} notebooks, or {MOST_FILES} files")
    if not found and others == [place.name]:
        raise Unreadable(f"{place.name}: not a notebook")
    if not found:
        raise Unreadable(f"{place.name}: no notebook in it{', only ' if others else ''}{_few(others)}")
    named = [_read_name(name) for file, folders in found for name in (*folders, file.name)]
    if len({(each.student, each.lms_id) for each in named if each.lms_id}) > 1:
        raise Unreadable(f"{place.name}: the work of several students; give it to course grade by itself")
    return found


def _unique_names(candidates: list[_Candidate]) -> list[str]:
    """A student's name for each candidate: with the number where one name has several, different on every system."""
    ids = defaultdict(set)
    for each in candidates:
        ids[each.student, each.scope].add(each.lms_id)
    several = {student for (student, _), found in ids.items() if len(found) > 1}
    people = [(each.student, each.lms_id if each.student in several else "") for each in candidates]
    names, taken = {}, set()
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


def _counting(mine: list[_Candidate], day: int | None) -> list[tuple[int | None, _Candidate]]:
    """The notebooks of one student that count, by day: the newest that has the day's exercises in it."""
    mine = sorted(mine, key=lambda each: each.order, reverse=True)
    readable = [each for each in mine if not each.place.problem]
    reader, days = _Reader(), defaultdict(list)
    for each in readable:
        if day is None and (each.doubtful or (each.day is None and len(readable) > 1)):
            days[reader.day(each) or each.day].append(each)
        else:
            days[each.day].append(each)
    if day is not None and readable:
        days = {day: [e for e in readable if e.doubtful or e.day in (None, day)] or readable}
    elif len(days) > 1:
        days.pop(None, None)  # nothing of the course
    counted = {told: next((e for e in of if len(of) == 1 or reader.holds(e, told)), of[0]) for told, of in days.items()}
    for each in mine:
        told = each.day if day is None else day
        if each.place.problem and (told is not None or not counted):
            counted.setdefault(told, each)
    return sorted(counted.items(), key=lambda item: item[0] or 0)


def _why_not(counted: list[tuple[int | None, _Candidate]]) -> str:
    return "what counts is " + ", ".join(f"{each.where()}{f' (day {told})' if told else ''}" for told, each in counted)


class _Reader:
    """Looks into the notebooks of one student, up to so many bytes."""

    def __init__(self):
        self._left = MOST_READ

    def day(self, candidate: _Candidate) -> int | None:
        from .grade import day_in_cells

        with contextlib.suppress(Unreadable):
            return day_in_cells(self._read(candidate), candidate.place.name)
        return None

    def holds(self, candidate: _Candidate, day: int | None) -> bool:
        """Whether a notebook has exercises of that day."""
        with contextlib.suppress(Unreadable, CourseError):
            return bool(days_of(self._read(candidate), candidate.place.name, {day: COURSE.questions(day)}))
        return False

    def _read(self, candidate: _Candidate) -> bytes:
        if self._left <= 0:
            raise Unreadable("enough was read")
        data = candidate.submission().read()
        self._left -= len(data) + (READ_ANEW if candidate.place.inner else 0)
        return data


def _few(names: list[str]) -> str:
    return one_line(", ".join(name[:60] for name in names[:3])) + (", …" if len(names) > 3 else "")
