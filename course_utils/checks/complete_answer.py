"""Complete the cell of an answer with the code from other cells that it needs, for the notebook's check and the grader.

An answer is the cell that defines it, together with the functions, imports and values from other cells that it uses by
name, and with what the cells between it and its check change in it. Nothing is run here.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from course_utils.checks.cells import (
    Statement,
    as_python,
    modules_not_graded,
    names_changed,
    parses,
    statements,
    used_names,
)

BROUGHT = "# from other cells of the notebook, since the answer uses it:\n"
BELOW = "# from cells between the answer and its check:\n"
FUTURE = re.compile(r"from\s+__future__\s+import\b")
MAX_ROUNDS = 10  # of looking for what changes the statements that were found in the round before
NAMES_OF_PYTHON = frozenset(dir(builtins))
NAMES_OF_JUPYTER = frozenset({"__name__", "__file__", "get_ipython", "display"})


@dataclass(frozen=True)
class AnswerCode:
    """The code of an answer, with the code from other cells that it needs.

    Attributes:
        missing: names that the code uses and no cell defines.
        brought: names that the code from other cells defines.
    """

    source: str
    missing: frozenset[str] = frozenset()
    brought: frozenset[str] = frozenset()


def complete_answer(
    source: str,
    above: Sequence[str],
    after: Sequence[str] = (),
    below: Sequence[str] = (),
    names: Collection[str] = (),
    known: Collection[str] = (),
) -> AnswerCode:
    """Return the cell of an answer, with the statements from other cells that it uses.

    Before it come the definitions that it uses by name, and what other cells change in these: entries of a table,
    attributes, what a decorator registers. After it comes what the cells between the answer and its check define anew
    or change in it. Star imports of cells that ran before the check come first, since they may replace even built-in
    names; if a name stays missing, those of the other cells are added and are taken to define it.

    Args:
        source: the cell that defines the answer.
        above: the cells above it, in order; of two that define a name, the nearest counts.
        after: the cells between it and its check, in order.
        below: the cells after that, which are searched for names that no other cell defines.
        names: what the answer has to define.
        known: names that exist anyway.
    """
    source = as_python(source)
    if not parses(source):
        return AnswerCode(source)
    return _Search(source, above, after, below, names, known).run()


Spot = tuple[int, int]  # a statement, by the place of its cell and its own place in it


class _Search:
    """The search for the statements that an answer needs from other cells; see `complete_answer`.

    The other cells are numbered in the order in which they run. `brought` and `appended` are the spots of the
    statements found. For example, from the cells

        TABLE = {}
        TABLE[2] = 5
        def answer(): return TABLE[2]

    `define` takes the first for the answer, which uses TABLE, and `follow_changes` the second, which changes it. Both
    are in `brought`: they stand above the answer.
    """

    def __init__(
        self,
        source: str,
        above: Sequence[str],
        after: Sequence[str],
        below: Sequence[str],
        names: Collection[str],
        known: Collection[str],
    ):
        self.source = source
        parsed = [statements(cell) for cell in (source, *above, *after, *below)]
        setters = {name: each.sets for cell in parsed for each in cell if each.sets for name in each.binds}
        self.set_by_calls = {name for names in setters.values() for name in names}
        statements_of_source, *self.cells = [_with_globals(cell, setters) for cell in parsed]
        self.between = range(len(above), len(above) + len(after))
        self.places: dict[str, list[int]] = {}  # The cells that define each name; the first is the one to take.
        for place in (*reversed(range(len(above))), *range(len(above), len(self.cells))):
            for name in {name for statement in self.cells[place] for name in statement.binds}:
                self.places.setdefault(name, []).append(place)
        earlier = {name for cell in self.cells[: self.between.stop] for each in cell for name in each.binds}
        own = {name for each in statements_of_source for name in each.binds}
        self.own = frozenset(own)
        self.have = own | set(known) | NAMES_OF_JUPYTER | (NAMES_OF_PYTHON - earlier)
        self.modules = {name for each in statements_of_source for name in each.modules}
        self.needed = _find_reached(statements_of_source, names)  # those of its own names that the answer depends on
        self.brought: set[Spot] = set()
        self.appended: set[Spot] = set()
        self.missing: set[str] = set()
        self.defined_at: dict[str, Spot] = {}  # Where the statements found so far first define each name.
        self.unread = sorted((used_names(source) | set(names)) - self.have)
        before: set[str] = set()
        for statement in statements_of_source:
            self.continue_from((statement.reads & self.own) - before, len(above))
            before |= statement.binds

    def run(self) -> AnswerCode:
        """Return the code with all that it needs."""
        for _ in range(MAX_ROUNDS):
            self.define()
            if not self.follow_changes():
                break
        ran = self.cells if self.missing else self.cells[: self.between.stop]
        stars = [each.source for cell in ran for each in cell if "*" in each.binds]
        stars = [each for each in dict.fromkeys(stars) if not modules_not_graded(each)]
        before = [*stars, *(self.at(spot).source for spot in sorted(self.brought))]
        below = [self.at(spot).source for spot in sorted(self.appended)]
        bound = frozenset(name for spot in self.brought | self.appended for name in self.at(spot).binds)
        missing = frozenset() if stars else frozenset(self.missing)
        return AnswerCode(self.assemble(before, below), missing, bound)

    def assemble(self, before: list[str], below: list[str]) -> str:
        """Return the answer's code with the statements before and below it, and imports from __future__ on top."""
        earlier = [each.source for cell in self.cells[: self.between.stop] for each in cell]
        futures = [each for each in dict.fromkeys(earlier) if FUTURE.match(each)]
        if not (futures or before or below):
            return self.source
        source = self.source
        for own in [each.source for each in statements(source) if FUTURE.match(each.source)]:
            futures.append(own)
            source = source.replace(own, "pass", 1)
        parts = [
            "\n".join(dict.fromkeys(futures)),
            BROUGHT + "\n".join(before) if before else "",
            source,
            BELOW + "\n".join(below) if below else "",
        ]
        return "\n\n".join(part for part in parts if part)

    def at(self, spot: Spot) -> Statement:
        """Return the statement at a spot."""
        return self.cells[spot[0]][spot[1]]

    def take(self, spot: Spot, into: set[Spot]) -> None:
        """Take a statement, and record what it uses."""
        if spot in self.brought or spot in self.appended:
            return
        into.add(spot)
        statement = self.at(spot)
        self.have |= statement.binds
        self.modules |= statement.modules
        for name in statement.binds:
            self.defined_at[name] = min(spot, self.defined_at.get(name, spot))
        if into is self.brought and (names := statement.reads & self.own):
            before = {name for each in self.cells[spot[0]][: spot[1]] for name in each.binds}
            self.continue_from(names & before, spot[0] + 1)
            self.continue_from(names - before, spot[0])
        self.unread += sorted(used_names(statement.source) - self.have)

    def define(self) -> None:
        """Take the definitions of all names that are used."""
        while self.unread:
            name = self.unread.pop(0)
            if name in self.have:
                continue
            if name in self.places:
                self.define_in(name, self.places[name][0])
            elif name not in self.set_by_calls:
                self.missing.add(name)

    def define_in(self, name: str, place: int) -> None:
        """Take what a cell defines under a name, and what that continues in cells further up."""
        spots = [(place, i) for i, each in enumerate(self.cells[place]) if name in each.binds]
        for spot in spots:
            self.take(spot, self.brought)
        if name in self.at(spots[0]).reads:  # it is defined anew from what it was, as in `x = traced(x)`
            self.continue_from({name}, place)

    def continue_from(self, names: Iterable[str], place: int) -> None:
        """Take the definitions of these names in the nearest cell above a place, if there is one."""
        for name in names:
            if above := [each for each in self.places.get(name, ()) if each < place]:
                self.define_in(name, max(above))

    def follow_changes(self) -> bool:
        """Take the statements that change what was found so far; return whether there were any."""
        before = len(self.brought) + len(self.appended)
        for place, cell in enumerate(self.cells[: self.between.stop]):
            for i, statement in enumerate(cell):
                if self.concerns(statement, (place, i)):
                    self.take((place, i), self.appended if place in self.between else self.brought)
        return len(self.brought) + len(self.appended) > before

    def concerns(self, statement: Statement, spot: Spot) -> bool:
        """Return whether a statement changes what was found, or what the answer defines if it stands below it."""
        if spot[0] in self.between and any(self.is_used(name, spot) for name in statement.binds):
            return True
        changed = set(statement.changes | statement.decorators)
        for name in statement.decorators:  # such as one that registers what it decorates in a table
            for place in self.places.get(name, [])[:1]:
                for definition in self.cells[place]:
                    if name in definition.binds:
                        changed |= names_changed(definition.source)
        return any(self.is_used(name, spot) for name in changed - self.modules)

    def is_used(self, name: str, spot: Spot) -> bool:
        """Return whether the answer uses a name that was defined before this spot."""
        return self.defined_at.get(name, spot) < spot or (spot[0] in self.between and name in self.needed)


def _with_globals(cell: Sequence[Statement], setters: Mapping[str, frozenset[str]]) -> list[Statement]:
    """Return a cell's statements, where a call of a function that assigns global names counts as defining these."""
    extended = []
    for each in cell:
        names = frozenset(name for called in each.calls if called in setters for name in setters[called])
        extended.append(replace(each, binds=each.binds | names, reads=each.reads | names) if names else each)
    return extended


def _find_reached(own: Sequence[Statement], names: Collection[str]) -> set[str]:
    """Return, of the names that a cell defines, these and those that their definitions use."""
    reached: set[str] = set()
    more = set(names)
    while more:
        reached |= more
        used = {name for each in own if each.binds & more for name in used_names(each.source)}
        more = (used & {name for each in own for name in each.binds}) - reached
    return reached
