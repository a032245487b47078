"""Fetch a newer edition of the course with git, without losing what a learner wrote.

A file that the learner did not touch becomes the new edition's, and a file that only the learner touched stays. Where
both changed a file, the new edition's takes its place and the learner's is kept in a folder `kept` beside it; the
learner's answers, those for the lab report among them, go into the new exercises. Everything is worked out before the
first file changes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import nbformat

from course_utils.answer_key.key import AnswerKey
from course_utils.answer_key.strip_answers import is_answer
from course_utils.course import IN_CHECKOUT, day_of, folder_advice
from course_utils.errors import CourseError, Unreadable, one_line
from course_utils.files import keep_copy, write_all
from course_utils.grading.intake.answers import read_answers
from course_utils.grading.intake.submitted_notebook import read_notebook
from course_utils.notebooks import dump, report_cells

UNCHANGED = "nothing was changed"
OPENED = ("cell_type", "source", "outputs")  # parts of a cell that opening and saving a notebook does not change
AT_WORK = ("MERGE_HEAD", "rebase-merge", "rebase-apply")
FOREIGN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")


@dataclass(frozen=True)
class Merged:
    """A file that changed both locally and upstream.

    Attributes:
        copy: the path of the learner's version; empty if it held nothing of the learner's own.
        gone: whether the file was deleted upstream.
        answers: the number of answers that were carried into the new version.
        lost: the exercises that the learner answered and that the new version no longer has.
    """

    name: str
    copy: str = ""
    gone: bool = False
    answers: int = 0
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class Updated:
    """What an update did.

    Attributes:
        files: the number of files that changed upstream; 0 if there was no newer edition.
        merged: the files among them that the learner had changed too.
        packages: whether the list of required packages may have changed.
    """

    files: int
    merged: tuple[Merged, ...] = ()
    packages: bool = False


def update(root: Path) -> Updated:
    """Fetch the newest edition from where the course was cloned.

    Raises:
        CourseError: there is no git, no clone, no remote or no network, a merge is under way, or something other than a
            file is where the new edition has a file. All files are then as they were.
    """
    # what the new edition changes, and what to do with files that the learner changed too
    git = _Git(root)
    base, new = git.fetch()
    changes = git.changes(base, new)
    if not changes:
        return Updated(0)
    plans = [_plan(git, name, base, new) for name in git.touched(base, changes)]
    target = git.join(base, new, changes)
    own = {git.root / name: _content(git.root / name) for name in git.in_the_way(changes)}
    # copies of those files, and then the new ones; whatever fails, all is put back
    copies = {}
    try:
        for plan in plans:
            if not plan.same:
                copies[plan.name] = keep_copy(plan.path).relative_to(git.root).as_posix()
        git.give_way(own)
        git.forward(target)
    except BaseException:
        for path, data in own.items():
            _put_back(path, data)
        for name in copies.values():
            (git.root / name).unlink(missing_ok=True)
        raise
    # the learner's answers, in the new notebooks
    write_all({plan.path: plan.text for plan in plans if plan.text})
    merged = tuple(
        Merged(each.name, copies.get(each.name, ""), changes[each.name] == "D", each.answers, each.lost)
        for each in plans
    )
    return Updated(len(changes), merged, bool({"requirements.lock", "pyproject.toml"} & changes.keys()))


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _put_back(path: Path, data: bytes | None) -> None:
    if data is None:
        path.unlink(missing_ok=True)
    elif _content(path) != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@dataclass(frozen=True)
class _Plan:
    """The plan for a file that changed both locally and upstream."""

    name: str
    path: Path
    same: bool = False  # nothing in it is the learner's own
    text: str = ""  # the new version with the learner's answers in it
    answers: int = 0
    lost: tuple[str, ...] = ()


def _plan(git: _Git, name: str, base: str, new: str) -> _Plan:
    path = git.root / name
    for each in (path, path.parent / "kept"):
        if each.is_symlink():
            raise CourseError(f"{each}: a symbolic link, which an update does not touch; move it away; {UNCHANGED}")
    if not path.is_file():
        raise CourseError(f"{path}: is in the place of a file of the new edition; move it away; {UNCHANGED}")
    mine, theirs = path.read_bytes(), git.content(new, name)
    if mine == theirs or _only_opened(mine, git.content(base, name)):
        return _Plan(name, path, same=True)
    if theirs and path.parent == git.root / "exercises" and path.suffix == ".ipynb":
        return _with_answers(_Plan(name, path), mine, theirs, AnswerKey(git.root))
    return _Plan(name, path)


def _only_opened(mine: bytes, original: bytes) -> bool:
    """Whether a notebook has the same cells, sources and outputs as the original, so that nobody worked in it."""
    try:
        cells = [nbformat.reads(data.decode(), as_version=4).cells for data in (mine, original)]
        written = [[[cell.get(part) for part in OPENED] for cell in each] for each in cells]
    except (ValueError, KeyError, TypeError, AttributeError):  # nbformat raises these for a file that is no notebook
        return False
    return written[0] == written[1]


def _with_answers(plan: _Plan, mine: bytes, theirs: bytes, answer_key: AnswerKey) -> _Plan:
    """Return the plan with the learner's answers in the new notebook; the same plan if there are no answers."""
    day = day_of(plan.path.name)
    if day is None:
        return plan
    try:
        answers = read_answers(read_notebook(mine, plan.name), answer_key.exercises(day))
        fresh = nbformat.reads(theirs.decode(), as_version=4)
        written = report_cells(nbformat.reads(mine.decode(), as_version=4))
    except (Unreadable, CourseError, ValueError, KeyError, TypeError, AttributeError):
        return plan
    cells = {cell.metadata.nbgrader.get("grade_id"): cell for cell in fresh.cells if is_answer(cell)}
    for grade_id in answers.keys() & cells.keys():
        cells[grade_id].source = answers[grade_id]
    carried = len(answers.keys() & cells.keys())
    for name, cell in report_cells(fresh).items():
        if name in written and written[name].source != cell.source:
            cell.source = written[name].source
            carried += 1
    lost = tuple(grade_id for grade_id in answers if grade_id not in cells)
    return _Plan(plan.name, plan.path, text=dump(fresh) if carried else "", answers=carried, lost=lost)


class _Git:
    """The git clone that holds the course. Its methods raise CourseError."""

    def __init__(self, root: Path):
        self.root = root.resolve()
        if not shutil.which("git"):
            raise CourseError(f"an update needs git, which is not installed; {UNCHANGED}")
        refuse = f"{self.root}: not a git clone" + ("" if IN_CHECKOUT else f"; {folder_advice()}")
        top = self.run("rev-parse", "--show-toplevel", refuse=refuse)
        if Path(top.rstrip("\n")).resolve() != self.root:
            raise CourseError(
                f"{self.root}: is inside another project's clone; clone the course by itself; {UNCHANGED}"
            )
        at_work = [self.run("rev-parse", "--git-path", name).rstrip("\n") for name in AT_WORK]
        if self.run("ls-files", "--unmerged") or any((self.root / path).exists() for path in at_work):
            raise CourseError(f"{self.root}: a merge or rebase is under way; end it with git first; {UNCHANGED}")

    def run(self, *arguments: str, refuse: str = "", stdin: str = "", index: str = "") -> str:
        """Run git and return what it prints.

        refuse: how the error begins when git fails. stdin: git's input. index: the file to use for git's index.
        """
        command = ["git", "--literal-pathspecs", "-C", str(self.root), *arguments]
        environment = {name: value for name, value in os.environ.items() if name not in FOREIGN} | {"LC_ALL": "C"}
        if index:
            environment["GIT_INDEX_FILE"] = index
        done = subprocess.run(command, input=os.fsencode(stdin), capture_output=True, env=environment)
        if done.returncode:
            why = one_line(done.stderr.decode(errors="replace"), 300).rstrip(".") or f"status {done.returncode}"
            raise CourseError(f"{refuse or f'git {arguments[0]} failed'} ({why}); {UNCHANGED}")
        return os.fsdecode(done.stdout)

    def names(self, *arguments: str) -> set[str]:
        """Return the files that a git command lists; its arguments must include -z."""
        return set(self.run(*arguments).split("\0")) - {""}

    def fetch(self) -> tuple[str, str]:
        """Fetch, and return two commits: the last one that this edition shares with the newest, and the newest."""
        remotes = self.run("remote").split()
        if not remotes:
            raise CourseError(f"{self.root}: this clone has no remote to get an edition from; {UNCHANGED}")
        remote, name = ("origin" if "origin" in remotes else remotes[0]), "HEAD"
        branch = self.run("branch", "--show-current").strip()
        with suppress(CourseError):  # the branch has no upstream branch
            remote = self.run("config", f"branch.{branch}.remote").strip()
            name = self.run("config", f"branch.{branch}.merge").strip()
        self.run("fetch", "--quiet", remote, name, refuse=f"no newer edition can be fetched from {remote}")
        new = self.run("rev-parse", "FETCH_HEAD").strip()
        base = self.run("merge-base", "HEAD", new, refuse="this clone and its remote have nothing in common").strip()
        return base, new

    def changes(self, base: str, new: str) -> dict[str, str]:
        """Return the files that differ between two commits: A for added, D for deleted, M or T otherwise."""
        parts = self.run("diff", "--no-renames", "--name-status", "-z", base, new).split("\0")
        return dict(zip(parts[1::2], parts[:-1:2], strict=True))

    def touched(self, base: str, changes: Mapping[str, str]) -> list[str]:
        """Return the files among these that the learner changed too, or created where the new edition adds one."""
        own = self.names("diff", "--no-renames", "--name-only", "-z", base)
        there = [name for name in changes if os.path.lexists(self.root / name)]
        return sorted(name for name in there if name in own or changes[name] == "A")

    def content(self, commit: str, name: str) -> bytes:
        """Return the content of a file in a commit; empty if the commit does not have it."""
        with suppress(CourseError):
            return os.fsencode(self.run("cat-file", "--filters", f"{commit}:{name}"))
        return b""

    def join(self, base: str, new: str, changes: Mapping[str, str]) -> str:
        """Return the commit to go to.

        It is the newest commit or, if the learner has commits, a new merge commit that adds its files to theirs.
        """
        head = self.run("rev-parse", "HEAD").strip()
        if head == base:
            return new
        entries = [entry for entry in self.run("ls-tree", "-r", "-z", new).split("\0") if entry]
        taken = [entry for entry in entries if entry.partition("\t")[2] in changes]
        gone = [f"0 {'0' * len(new)}\t{name}" for name, change in changes.items() if change == "D"]
        with tempfile.TemporaryDirectory(prefix="course_index_") as folder:
            index = str(Path(folder, "index"))
            self.run("read-tree", "HEAD", index=index)
            self.run("update-index", "-z", "--index-info", stdin="\0".join([*gone, *taken, ""]), index=index)
            tree = self.run("write-tree", index=index).strip()
        return self.run("commit-tree", tree, "-p", head, "-p", new, "-m", "A newer edition of the course").strip()

    def in_the_way(self, changes: Mapping[str, str]) -> list[str]:
        """Return the files among these that differ from HEAD, because git would not overwrite them."""
        dirty = self.names("diff", "--no-renames", "--name-only", "-z", "HEAD")
        dirty |= self.names("diff", "--no-renames", "--name-only", "-z", "--cached", "HEAD")
        known = self.names("ls-tree", "-r", "-z", "--name-only", "HEAD")
        untracked = {name for name in changes if name not in known and os.path.lexists(self.root / name)}
        return sorted(dirty & changes.keys() | untracked)

    def give_way(self, paths: Iterable[Path]) -> None:
        """Move files out of the way: those in HEAD get their content from it, and the others are deleted."""
        names = [path.relative_to(self.root).as_posix() for path in paths]
        known = self.names("ls-tree", "-r", "-z", "--name-only", "HEAD")
        if back := [name for name in names if name in known]:
            self.run("checkout", "HEAD", "--pathspec-from-file=-", "--pathspec-file-nul", stdin="\0".join(back))
        for name in names:
            if name not in known:
                self.run("rm", "--cached", "--quiet", "--ignore-unmatch", "--", name)
                (self.root / name).unlink()

    def forward(self, commit: str) -> None:
        """Go forward to a commit that descends from the current one."""
        self.run("merge", "--quiet", "--ff-only", commit, refuse="the new edition cannot be put here")
