"""What the real model loses when it sees a window only, with and without its first tokens: `recorded()`.

    python -m course_utils.models.window_record --record

measures it on three texts, ten minutes on one core, and writes what `recorded` reads. A cache of `room` keys holds the
first `sinks` tokens of a text and the room - sinks latest ones. Positions stay those of the text.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from course_utils.attention.masks import sink_window, sliding_window
from course_utils.costs import records
from course_utils.costs.measure import environment
from course_utils.models import facts
from course_utils.models.facts import token_losses
from course_utils.models.pretrained import store
from course_utils.models.real import Real, load

BENCHMARK = "smollm2-windows"
STORED = Path(__file__).parents[1] / "data" / "models"
LENGTH = 768  # tokens of a text
TEXTS = 3  # one after another, from the beginning of the plays
ROOMS = (32, 64, 128, 256)
SINKS = (0, 1, 4, 16)
BUCKET = 32  # positions that a point of a curve averages
FROM = 64  # queries from here on count for the shares
STAND_INS = ("kept", "without its value", "as one number")  # what is left of the first token, beside a window of 127
FIRST_TOKENS = (" the", "\n", " Rome", "?")  # in the place of a text's own first token


@torch.no_grad()
def look_inside(real: Real, tokens: Tensor) -> dict[str, Tensor]:
    """Return what the layers make of the first token: its values' size against the others', and its mean score.

    values (layers,) is the norm of the first token's values over the median norm of the others; scores (layers, heads)
    is the mean scaled score of the queries from FROM on with its key.
    """
    sizes, scores = [], []

    def spy(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, dropout: float, scale: float) -> tuple[Tensor, Tensor]:
        norms = v[0].norm(dim=-1)  # (h_kv, m)
        sizes.append((norms[:, 0] / norms[:, 1:].median(-1).values).mean())
        first = k[:, :, :1].repeat_interleave(q.shape[1] // k.shape[1], dim=1)  # (1, h, 1, d_head)
        scores.append(scale * (q[:, :, FROM:] * first).sum(-1).mean(-1)[0])
        return _attend(q, k, v, mask, scale), torch.empty(0)

    real.with_parts({"grouped_attention": spy}).model(tokens)
    return {"values": torch.stack(sizes), "scores": torch.stack(scores)}


def with_stand_in(real: Real, what: str, scores: Tensor) -> Real:
    """Return the model with a window of 127 keys and something in the place of the first token: one of STAND_INS.

    Only queries from 127 on, whose window has left the first token behind, meet the change. "as one number" puts
    exp(score) into the denominator of each softmax, for scores (layers, heads), and no key.
    """
    window = 127
    changed = replace(real, model=copy.deepcopy(real.model, {id(w): w for w in real.model.parameters()}))
    for layer, block in enumerate(changed.model.blocks):
        attention = cast(Any, block).attention
        attention.own["grouped_attention"] = partial(_stand_in, what=what, window=window, logit=scores[layer])
    return changed


def _stand_in(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor, dropout: float, scale: float,
    what: str, window: int, logit: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    n = q.shape[2]
    if what == "as one number":
        return _attend(q, k, v, sliding_window(n, window), scale, logit), torch.empty(0)
    whole = _attend(q, k, v, sink_window(n, window, 1), scale)  # (1, h, n, d)
    if what == "kept":
        return whole, torch.empty(0)
    none = torch.cat([torch.zeros_like(v[:, :, :1]), v[:, :, 1:]], dim=2)
    far = (torch.arange(n) >= window)[:, None]  # (n, 1): queries whose window has left the first token behind
    return torch.where(far, _attend(q, k, none, sink_window(n, window, 1), scale), whole), torch.empty(0)


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float, logit: Tensor | None = None) -> Tensor:
    """Grouped attention (1, h, n, d), with a logit (h,) of no key in each softmax, from the window's first query on."""
    shared_by = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(shared_by, dim=1), v.repeat_interleave(shared_by, dim=1)
    scores = (q @ k.transpose(-1, -2) * scale).masked_fill(~mask, -math.inf)
    if logit is None:
        return scores.softmax(-1) @ v
    blind = ~mask[:, 0]  # queries that no longer see the first token
    extra = torch.where(blind, logit[:, None], -math.inf)[None, :, :, None]  # (1, h, n, 1)
    return torch.cat([scores, extra], dim=-1).softmax(-1)[..., :-1] @ v


# --- the record -----------------------------------------------------------------------------------------------------


@cache
def recorded() -> dict[str, Any]:
    """Return what was measured of SmolLM2-135M-Instruct, as `records.read` gives it."""
    return records.recorded(BENCHMARK, STORED)[0]


def rows(what: str) -> list[dict[str, Any]]:
    """The rows of the record that say this: "window", "first token", "stand-in" or "replaced"."""
    return [row for row in recorded()["rows"] if row["what"] == what]


def shares() -> tuple[list[float], list[float]]:
    """By layer, means over texts and heads: (share of attention on the first token, its values' size), 30 each."""
    found = rows("first token")
    share, values = (torch.tensor([row[key] for row in found]).mean(0).tolist() for key in ("share", "values"))
    return share, values


def curve(room: int | None, sinks: int = 0) -> tuple[list[int], list[float]]:
    """The recorded loss by position: (middles of the buckets, losses in nats). room None sees all tokens."""
    (row,) = [row for row in rows("window") if row["room"] == room and row["sinks"] == sinks]
    bucket = recorded()["settings"]["bucket"]
    return [bucket * i + bucket // 2 for i in range(len(row["curve"]))], row["curve"]


def loss(room: int | None, sinks: int = 0) -> float:
    """The recorded mean loss of all texts, nats a token."""
    return next(row["loss"] for row in rows("window") if row["room"] == room and row["sinks"] == sinks)


def measure(real: Real, quick: bool = False, say: Callable[[str], object] = print) -> list[dict[str, Any]]:
    """Return the rows of the record."""
    length, texts = (160, 1) if quick else (LENGTH, TEXTS)
    pieces = facts.opening(real, length * (texts + 1)).view(texts + 1, 1, length)
    *read, other = pieces  # the last one only says what the usual score with a first token is
    found: list[dict[str, Any]] = []
    for number, tokens in enumerate(read):
        share = facts.first_token_shares(real, tokens, FROM)
        inside = look_inside(real, tokens)
        found.append({
            "what": "first token", "text": number, "share": _rounded(share.mean(-1)),
            "most": (share > 0.5).sum().item(), "values": _rounded(inside["values"]),
        })  # fmt: skip
        say(str(found[-1]))
    settings: list[tuple[int | None, int]] = [(None, 0)]
    settings += [(room, sinks) for room in ROOMS[2 if quick else 0 : 3 if quick else None] for sinks in SINKS]
    for room, sinks in settings:
        mask = None if room is None else sink_window(length, room - sinks, sinks)
        losses = torch.stack([token_losses(real, tokens, mask) for tokens in read])
        found.append({"what": "window", "room": room, "sinks": sinks} | _summary(losses))
        say(f"{room} {sinks} {found[-1]['loss']}")
    scores = look_inside(real, other)["scores"]
    for what in STAND_INS:
        changed = with_stand_in(real, what, scores)
        losses = torch.stack([token_losses(changed, tokens) for tokens in read])
        found.append({"what": "stand-in", "left": what} | _summary(losses))
        say(f"{what} {found[-1]['loss']}")
    for word in FIRST_TOKENS[: 1 if quick else None]:
        tokens = read[0].clone()
        tokens[0, 0] = real.encode(word)[0, 0]
        share = facts.first_token_shares(real, tokens, FROM)
        found.append({"what": "replaced", "word": word, "share": _rounded(share.mean(-1))})
        say(str(found[-1]))
    return found


def _summary(losses: Tensor) -> dict[str, Any]:
    """The mean of losses (texts, T - 1), each text's own mean, and the mean of each bucket."""
    pieces = losses.mean(0).split(BUCKET)
    return {
        "loss": round(losses.mean().item(), 4), "by_text": _rounded(losses.mean(1)),
        "curve": [round(piece.mean().item(), 4) for piece in pieces],
    }  # fmt: skip


def _rounded(numbers: Tensor) -> list[float]:
    return [round(number, 4) for number in numbers.tolist()]


def main(quick: bool = False, folder: Path | str = STORED) -> None:
    """Record it and write it to the folder. Raises `store.NoModel` where the model is not there."""
    torch.set_num_threads(1)
    real = load()
    found = measure(real, quick, lambda line: print(line, flush=True))
    settings = {
        "quick": quick, "command": "python -m course_utils.models.window_record --record", "length": LENGTH,
        "texts": TEXTS, "bucket": BUCKET, "from": FROM, "text": facts.TEXT.name,
        "model": {"name": real.name, "get": store.GET},
    }  # fmt: skip
    findings = [
        f"room {row['room']}, of these {row['sinks']} first tokens: {row['loss']:.3f} nats a token"
        for row in found if row["what"] == "window"
    ]  # fmt: skip
    print("\n".join(findings))
    print(f"written: {records.write(BENCHMARK, environment(), settings, found, findings, folder)}")


if __name__ == "__main__":
    records.command_line(main, __doc__, STORED)
