"""A dissection of SmolLM2-135M-Instruct: find three kinds of heads by their scores, and switch them off.

A previous-token head looks one token back, an induction head at what followed the last time, and a first-token head at
the first token, where it rests. The loss is measured on a text, and on random tokens that come three times, which only
looking back can tell; and so it is without as many other heads.

    python -m course_utils.models.dissection --record

measures all of it, a few minutes on a quiet core, and writes what is shown where the model is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from course_utils.costs import records
from course_utils.costs.measure import environment
from course_utils.models import facts
from course_utils.models.decoder import Decoder
from course_utils.models.facts import Head
from course_utils.models.pretrained import store
from course_utils.models.real import Real, load

BENCHMARK = "smollm2-dissection"
STORED = Path(__file__).parents[1] / "data" / "models"
KINDS = ("previous token", "induction", "first token")
COUNTS = (1, 4, 8, 16)  # heads that are switched off together
DRAWS = 3  # times that as many others are drawn
TOKENS = 256  # of the text
SINCE = 64  # queries from here on count for the first token
SHOWN = 5  # heads that cost most alone
LOOKING = 8  # of the best induction heads, whose scores are measured while others are off
Score = Callable[..., Any]  # of the weights (T, T) of one head; for induction also of the period
_KNOWN: WeakKeyDictionary[Decoder, tuple[Losses, list[Head]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Losses:
    """What the model does with some heads switched off, nats a token.

    Attributes:
        text: the mean loss on the beginning of the plays.
        by_copy: the mean loss of each copy of the random tokens.
        looking: the mean induction score of the eight best induction heads.
    """

    text: float
    by_copy: tuple[float, ...]
    looking: float


@dataclass(frozen=True)
class Dissection:
    """What switching off some heads does, beside all heads and as many others.

    Attributes:
        heads: those that are off, the one with the largest score first.
        whole: with all heads.
        without: with these heads off.
        others: with as many others off, drawn several times.
    """

    kind: str
    heads: tuple[Head, ...]
    whole: Losses
    without: Losses
    others: tuple[Losses, ...]

    def __str__(self) -> str:
        n = len(self.heads)
        rows = {
            "all heads on": (self.whole,),
            f"{n} {self.kind} {'head' if n == 1 else 'heads'} off": (self.without,),
            f"{n} {'other' if n == 1 else 'others'} off, {len(self.others)} draws": self.others,
        }
        head = ("", "plays", "first copy", "second copy", "induction score")
        lines = ((name, *_describe(losses)) for name, losses in rows.items())
        return records.table([dict(zip(head, line, strict=True)) for line in lines])

    __repr__ = __str__


def scores(kind: str, real: Real | None = None, own: Score | None = None) -> Tensor:
    """Return the score of each head, 0 to 1: (layers, heads).

    Args:
        kind: one of KINDS.
        real: the model; without it the scores are those of the record.
        own: somebody's own score, of the weights (T, T) of one head; for induction of the weights and the period, on
            tokens that come twice.

    Raises:
        ValueError: the kind is unknown, or there is a score but no model.
    """
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}: it is one of {', '.join(KINDS)}")
    if real is None:
        if own is not None:
            raise ValueError("a score of your own needs the model: " + store.HOW)
        return torch.tensor(fact(kind)["scores"])
    if kind == "induction":
        if own is None:
            return facts.induction_scores(real, facts.copies())
        return facts.own_scores(real, facts.copies(times=2), lambda weights: own(weights, facts.PERIOD))
    text = facts.opening(real, TOKENS)
    if own is not None:
        return facts.own_scores(real, text, own)
    if kind == "previous token":
        return facts.previous_token_scores(real, text)
    return facts.first_token_shares(real, text, SINCE)


def dissect(kind: str, n: int = 8, real: Real | None = None, own: Score | None = None) -> Dissection:
    """Switch off the n heads with the largest scores of a kind, and, several times, as many others.

    Args:
        real: the model; without it the numbers are those of the record.
        own: somebody's own score, as in `scores`.

    Raises:
        ValueError: as `scores` does, or there is no model and no record of that many heads.
    """
    found = scores(kind, real, own)
    if real is None:
        rows = {row["n"]: row for row in fact(kind)["off"]}
        if n not in rows:
            raise ValueError(f"n is {n}: without the model it is one of {', '.join(map(str, rows))}")
        return _from_row(kind, rows[n])
    return _off(real, kind, facts.best(found, n), DRAWS)


def each_alone() -> str:
    """Return as text, from the record, the heads that cost most on the second copy when each is off alone."""
    of_kinds = {kind: scores(kind) for kind in KINDS}
    first, second = (torch.tensor(fact("each alone")[copy]) for copy in ("first", "second"))
    rows = [
        {"layer, head": f"{head}", "first copy": f"{first[head]:.2f}", "second copy": f"{second[head]:.2f}"}
        | {kind: f"{each[head]:.2f}" for kind, each in of_kinds.items()}
        for head in facts.best(second, SHOWN)
    ]
    return records.table(rows)


def switch_off(off: Iterable[Head], real: Real, draws: int = DRAWS) -> Dissection:
    """Switch off these heads, and, several times, as many others."""
    return _off(real, "chosen", tuple(off), draws)


def _off(real: Real, kind: str, heads: Sequence[Head], draws: int) -> Dissection:
    whole, looking = _whole(real)
    others = [facts.random_heads(real, len(heads), seed, heads) for seed in range(draws)]
    return Dissection(
        kind,
        tuple(heads),
        whole,
        _losses(real, heads, looking),
        tuple(_losses(real, each, looking) for each in others),
    )


def _whole(real: Real) -> tuple[Losses, list[Head]]:
    """What the model does with all heads on, and its best induction heads; of one model they are computed once."""
    if real.model not in _KNOWN:
        looking = facts.best(scores("induction", real), LOOKING)
        _KNOWN[real.model] = _losses(real, (), looking), looking
    return _KNOWN[real.model]


def _losses(real: Real, off: Iterable[Head], looking: Iterable[Head]) -> Losses:
    off = tuple(off)
    copies = facts.copies()
    found = facts.induction_scores(real, copies, off=off)
    return Losses(
        facts.loss(real, facts.opening(real, TOKENS), off),
        tuple(facts.loss_by_copy(real, copies, off=off)),
        float(np.mean([found[head].item() for head in looking])),
    )


def _describe(losses: tuple[Losses, ...]) -> tuple[str, ...]:
    """The numbers of one run, or the least and the largest of several."""
    columns = zip(*((each.text, *each.by_copy[:2], each.looking) for each in losses), strict=True)
    return tuple(
        f"{min(column):.2f} to {max(column):.2f}" if len(column) > 1 else f"{column[0]:.2f}" for column in columns
    )


# --- the record -----------------------------------------------------------------------------------------------------


@cache
def recorded() -> dict[str, Any]:
    """Return what was measured of SmolLM2-135M-Instruct, as `records.read` gives it: a row for each kind of heads."""
    return records.recorded(BENCHMARK, STORED)[0]


def fact(name: str) -> dict[str, Any]:
    """One row of the record: a kind of heads. Raises KeyError, with all names, for one that it does not have."""
    return records.fact(recorded(), name)


def apart_from_induction() -> Dissection:
    """Return, from the record, what the eight best first-token heads do that are not among the best induction heads."""
    return _from_row("first token", fact("first token, no induction")["off"][0])


def measure(real: Real, quick: bool = False, say: Callable[[str], object] = print) -> list[dict[str, Any]]:
    """Return the rows of the record. quick takes one number of heads and one draw."""
    rows = []
    for kind in KINDS:
        found = scores(kind, real)
        off = []
        for n in COUNTS[: 1 if quick else None]:
            heads = facts.best(found, n)
            off.append(_as_row(real, kind, heads, draws=1 if quick else DRAWS))
            say(str(_from_row(kind, off[-1])))
        rows.append({"fact": kind, "scores": np.round(found.tolist(), 4).tolist(), "off": off})
    found = scores("first token", real)
    for head in facts.best(scores("induction", real), max(COUNTS)):
        found[head] = -1
    heads = facts.best(found, LOOKING)
    off = [_as_row(real, "first token", heads, draws=1 if quick else DRAWS)]
    say(str(_from_row("first token", off[0])))
    rows.append({"fact": "first token, no induction", "off": off})
    return [*rows, {"fact": "each alone", "off": []} | _losses_without_each(real, layers=1 if quick else None)]


def _losses_without_each(real: Real, layers: int | None) -> dict[str, list[list[float]]]:
    """The loss on the first and the second copy with one head off, for each head of the first layers, or of all."""
    copies = facts.copies(times=2)
    heads = range(real.model.n_heads)
    losses = [
        [facts.loss_by_copy(real, copies, off=[(layer, head)]) for head in heads]
        for layer in range(len(real.model.blocks))[:layers]
    ]
    return {copy: [[each[place] for each in row] for row in losses] for place, copy in enumerate(("first", "second"))}


def _as_row(real: Real, kind: str, heads: list[Head], draws: int) -> dict[str, Any]:
    found = _off(real, kind, heads, draws)
    row = {"n": len(heads), "heads": heads, "whole": asdict(found.whole), "without": asdict(found.without)}
    return row | {"others": [asdict(each) for each in found.others]}


def _from_row(kind: str, row: Mapping[str, Any]) -> Dissection:
    whole, without, *others = (
        Losses(each["text"], tuple(each["by_copy"]), each["looking"])
        for each in (row["whole"], row["without"], *row["others"])
    )
    return Dissection(kind, tuple((layer, head) for layer, head in row["heads"]), whole, without, tuple(others))


def _findings(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return [
        f"{row['fact']}, {each['n']} off: second copy {each['without']['by_copy'][1]:.2f} nats a token, with all "
        f"{each['whole']['by_copy'][1]:.2f}; text {each['without']['text']:.2f}, with all {each['whole']['text']:.2f}"
        for row in rows
        for each in row["off"]
    ]


def main(quick: bool = False, folder: Path | str = STORED) -> None:
    """Measure all of it and write it to the folder. Raises `store.NoModel` where the model is not there."""
    torch.set_num_threads(1)
    real = load()
    rows = measure(real, quick, lambda text: print(text, flush=True))
    settings = {
        "quick": quick, "command": "python -m course_utils.models.dissection --record", "tokens": TOKENS,
        "period": facts.PERIOD, "copies": facts.COPIES, "since": SINCE, "draws": DRAWS, "looking": LOOKING,
        "text": facts.TEXT.name, "model": {"name": real.name, "dtype": "float32", "get": store.GET},
    }  # fmt: skip
    findings = _findings(rows)
    print("\n".join(findings))
    print(f"written: {records.write(BENCHMARK, environment(), settings, rows, findings, folder)}")


if __name__ == "__main__":
    records.command_line(main, __doc__, STORED)
