"""Blocks of a cache and the tables that find them: append, fork and free, and a copy on the first write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import traitlets

from course_utils.attention.blocks import BlockPool, CacheFull
from course_utils.attention.shapes import whole
from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = "abcdef"
MAX_CALLS = 200
_MAX_BLOCKS = 24
_MAX_SLOTS = 8


class PageTable(CourseWidget):
    """A pool of blocks, who holds each, and a table a sequence; buttons append a token, fork a sequence, and free one.

    n_blocks: 1 to 24 blocks of block_size 1 to 8 places. calls: what was done so far, ("append", name), ("fork", name,
    new name) or ("free", name), with names a to f; an append to a name that is not known begins it. A fork shares all
    blocks. A sequence that writes to a shared block makes a copy first. The page computes all of it, and so does
    Python, with `attention.blocks.BlockPool`.
    `.calls` can be read and set. `.tables`, `.lengths` (tokens) and `.references` (of each block) are the result, and
    `.message` says what the last call did.
    Raises ValueError or TypeError for sizes and calls that are not possible; an append for which no block is free is
    possible, and changes nothing.
    Source: Kwon et al. 2023 (PagedAttention), sections 4.2 to 4.4.
    """

    in_gallery = InGallery(
        72, "Share blocks of a cache", question="When is a block copied, and when does it become free?"
    )

    _esm = script("page_table.js")
    _css = style("page_table.css")

    calls = traitlets.Any([], help="what was done").tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    _layout = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        n_blocks: int = 8,
        block_size: int = 4,
        calls: Iterable[Sequence[str]] = (("append", "a"),) * 6,
        title: str = "blocks and tables",
    ) -> None:
        sizes = {"n_blocks": (n_blocks, _MAX_BLOCKS), "block_size": (block_size, _MAX_SLOTS)}
        layout: dict[str, Any] = {name: _size(name, *limits) for name, limits in sizes.items()}
        super().__init__(_layout=layout | {"names": NAMES, "most": MAX_CALLS}, title=str(title))
        self.calls = calls

    @property
    def tables(self) -> dict[str, list[int]]:
        """The blocks of each sequence, in order."""
        return self._replay().tables

    @property
    def lengths(self) -> dict[str, int]:
        """The tokens of each sequence."""
        return self._replay().lengths

    @property
    def references(self) -> list[int]:
        """How many tables hold each block: 0 for a free one."""
        pool = self._replay().pool
        return [pool.references(block) for block in range(pool.n_blocks)]

    @property
    def message(self) -> str:
        """What the last call did."""
        return self._replay().message

    @traitlets.validate("calls")
    def _calls_are_possible(self, proposal):
        try:
            calls = [[str(part) for part in call] for call in proposal.value]
        except TypeError:
            raise ValueError(f"calls is {proposal.value!r}: give a list of them, as ('append', name)") from None
        if len(calls) > MAX_CALLS:
            raise ValueError(f"there are {len(calls)} calls: give {MAX_CALLS} at most")
        replay(calls, self._layout["n_blocks"], self._layout["block_size"])
        return calls

    def _replay(self):
        return replay(self.calls, self._layout["n_blocks"], self._layout["block_size"])

    def as_text(self) -> str:
        state = self._replay()
        blocks = [
            f"block {block}: {_name_owners(state, block)}{_describe_tokens(state, block)}"
            for block in range(state.pool.n_blocks)
        ]
        tables = [
            f"table of {name}: {', '.join(map(str, table)) or 'no block'} ({_count_of(state.lengths[name], 'token')})"
            for name, table in state.tables.items()
        ]
        return "\n".join([f"{self.title}: {self._head(state)}", *blocks, *tables, state.message])

    def alt(self) -> str:
        state = self._replay()
        used = [block for block in range(state.pool.n_blocks) if state.pool.references(block)]
        blocks = "; ".join(f"block {block} is held by {_name_owners(state, block)}" for block in used)
        tables = "; ".join(f"{name}: {', '.join(map(str, table))}" for name, table in state.tables.items())
        held = f" {blocks[0].upper()}{blocks[1:]}. Tables: {tables}." if blocks else ""
        return f"A pool of blocks and tables: {self._head(state)}.{held} {state.message}"

    def figure(self) -> Figure:
        return _draw(self, self._replay())

    def _head(self, state):
        pool = state.pool
        used = (
            f"{pool.n_blocks - pool.n_free} of {pool.n_blocks} blocks of {_count_of(state.block_size, 'place')} in use"
        )
        return f"{used}, {sum(map(len, state.tables.values()))} without sharing"


def _name_owners(state: PoolState, block: int) -> str:
    return " and ".join(name for name, table in state.tables.items() if block in table) or "free"


def _describe_tokens(state, block):
    return f", tokens {' '.join(state.slots[block])}" if state.slots[block] else ""


def _count_of(number, name):
    return f"{number} {name}{'' if number == 1 else 's'}"


def _size(name: str, value: Any, most: int) -> int:
    size = whole(name, value)
    if size > most:
        raise ValueError(f"{name} is {size}: give 1 to {most}")
    return size


# --- the calls ------------------------------------------------------------------------------------------------------


@dataclass
class PoolState:
    """The result of calls: tables and lengths by sequence; in `slots` the tokens of each block, by who wrote them."""

    pool: BlockPool
    block_size: int
    tables: dict[str, list[int]] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    slots: list[list[str]] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)  # blocks, by the last call
    message: str = "Nothing is stored yet."

    def append(self, name: str) -> None:
        """Add a token to a sequence."""
        table = self.tables.get(name, [])
        length = self.lengths.get(name, 0)
        offset = length % self.block_size
        token = f"{name}{length}"
        how = f"place {offset} of block {table[-1]}" if offset else ""
        try:
            if not offset:
                table = [*table, self.pool.allocate()]
                self.slots[table[-1]] = []
                how = f"place 0 of block {table[-1]}, which was free"
            elif self.pool.references(table[-1]) > 1:
                shared = table[-1]
                own = self.pool.allocate()
                self.pool.release(shared)
                table = [*table[:-1], own]
                self.slots[own] = [*self.slots[shared]]
                how = f"place {offset} of block {own}, a copy of block {shared}, which others also hold: copy on write"
        except CacheFull:
            self.changed = []
            self.message = f"append {name}: no block is free. Nothing changes."
            return
        self.slots[table[-1]].append(token)
        self.tables[name] = table
        self.lengths[name] = length + 1
        self.changed = [table[-1]]
        self.message = f"append {name}: token {length} goes to {how}."

    def fork(self, name: str, new: str) -> None:
        """Begin a new sequence with the same tokens, in the same blocks."""
        for block in self.tables[name]:
            self.pool.share(block)
        self.tables[new] = [*self.tables[name]]
        self.lengths[new] = self.lengths[name]
        self.changed = [*self.tables[name]]
        shared = f"{_count_of(len(self.changed), 'block')} {'is' if len(self.changed) == 1 else 'are'} shared"
        self.message = f"fork {name}: {new} has the same table, so {shared}. Nothing is copied."

    def free(self, name: str) -> None:
        """End a sequence, and free the blocks that nobody else holds."""
        self.changed = self.tables.pop(name)
        del self.lengths[name]
        for block in self.changed:
            self.pool.release(block)
        gone = [block for block in self.changed if not self.pool.references(block)]
        for block in gone:
            self.slots[block] = []
        staying = len(self.changed) - len(gone)
        also = (
            f" {_count_of(staying, 'block')} that others hold {'stays' if staying == 1 else 'stay'}." if staying else ""
        )
        self.message = (
            f"free {name}: {_count_of(len(gone), 'block')} {'is' if len(gone) == 1 else 'are'} free again.{also}"
        )


def replay(calls: Sequence[Sequence[str]], n_blocks: int, block_size: int) -> PoolState:
    """Return what calls lead to, given as `PageTable` takes them. Raises ValueError for one that is not possible."""
    state = PoolState(BlockPool(n_blocks), block_size, slots=[[] for _ in range(n_blocks)])
    for call in calls:
        kind, names = (call[0], call[1:]) if call else ("", [])
        if (kind, len(names)) not in (("append", 1), ("fork", 2), ("free", 1)):
            raise ValueError(f"a call is {tuple(call)}: give ('append', name), ('fork', name, new) or ('free', name)")
        if any(len(name) != 1 or name not in NAMES for name in names):
            raise ValueError(f"a call is {tuple(call)}: names are a to {NAMES[-1]}")
        if kind != "append" and names[0] not in state.tables:
            raise ValueError(f"a call is {tuple(call)}: there is no sequence {names[0]}")
        if kind == "fork" and names[1] in state.tables:
            raise ValueError(f"a call is {tuple(call)}: there is a sequence {names[1]} already")
        getattr(state, kind)(*names)
    return state


# --- the picture ----------------------------------------------------------------------------------------------------


def _draw(widget: PageTable, state: PoolState) -> Figure:
    from matplotlib.patches import Rectangle

    cell = 26
    columns = max(1, min(state.pool.n_blocks, 700 // (26 * state.block_size + 18)))
    wide = cell * state.block_size + 18
    rows = -(-state.pool.n_blocks // columns)
    height = 44 + 76 * rows + 20 * len(state.tables) + 44
    fig = new_figure(740, height)
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, 740), ylim=(height, 0))
    ax.axis("off")
    text: dict[str, Any] = {"va": "center", "parse_math": False}
    ax.text(12, 18, f"{widget.title}: {widget._head(state)}", **(text | {"fontsize": 10, "fontweight": "bold"}))
    for block in range(state.pool.n_blocks):
        x, y = 12 + block % columns * wide, 44 + block // columns * 76
        held = state.pool.references(block)
        ax.text(x, y + 8, f"block {block}", **(text | {"fontsize": 10, "fontweight": "bold"}))
        owners = ",".join(name for name, table in state.tables.items() if block in table)
        ax.text(x, y + 56, owners or "free", **(text | {"fontsize": 10}))
        for slot in range(state.block_size):
            token = state.slots[block][slot] if slot < len(state.slots[block]) else ""
            look: dict[str, Any] = {"facecolor": palette.QUERY if token else "none"}
            edge: dict[str, Any] = {
                "edgecolor": palette.QUERY if held else palette.INK,
                "linestyle": "solid" if held else "dashed",
            }
            ax.add_patch(Rectangle((x + cell * slot, y + 20), cell - 2, 26, **look, **edge))
            ax.text(
                x + cell * slot + 12,
                y + 33,
                token,
                **(text | {"ha": "center", "fontsize": 10, "color": palette.ink_on(palette.QUERY)}),
            )
    y = 44 + 76 * rows + 8
    for place, (name, table) in enumerate(state.tables.items()):
        line = f"{name} → {', '.join(map(str, table))}   ({_count_of(state.lengths[name], 'token')})"
        ax.text(12, y + 20 * place, line, **text)
    ax.text(12, y + 20 * len(state.tables) + 8, state.message, **text)
    return fig
