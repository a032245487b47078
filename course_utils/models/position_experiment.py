"""The same small model with five ways to know positions, trained on 64 characters and tested on 512.

The ways are learned positions, waves (sinusoidal), RoPE, ALiBi and none. The model with RoPE is also tested with its
rotation stretched in three ways: interpolation, NTK-aware and YaRN, each by 512/64 = 8, without any further training.

    python -m course_utils.models.position_experiment --record

trains all of it again, with five seeds, in less than 15 minutes on two cores, and writes what `recorded` reads.
"""

import math
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.attention import positions
from course_utils.attention.multihead import MultiHeadAttention
from course_utils.attention.shapes import whole
from course_utils.costs import records
from course_utils.costs.measure import environment
from course_utils.models.decoder import Decoder

TRAINED = 64  # characters in a window of the training
TESTED = 512
SIZES: dict[str, Any] = {"d_model": 64, "n_layers": 2, "n_heads": 4}
D_HEAD = 16
BASE = 10000.0
WAYS = ("learned", "waves", "RoPE", "ALiBi", "none")
STRETCHED = ("interpolation", "NTK-aware", "YaRN")  # of RoPE
BATCH = 16
STEPS = 800
RATE = 3e-3
SEEDS = (0, 1, 2, 3, 4)
BIN = 16  # neighbouring positions whose losses are averaged in the record
BENCHMARK = "position-experiment"
STORED = Path(__file__).parents[1] / "data" / "models"
TEXT = STORED / "tinyshakespeare.txt"


class PlacedEmbedding(nn.Embedding):
    """An embedding that adds to each token a row for its position: of a learned table, or of the waves."""

    def __init__(self, vocabulary: int, d_model: int, way: str) -> None:
        super().__init__(vocabulary, d_model)
        if way == "learned":
            self.places = nn.Parameter(torch.randn(TESTED, d_model))
        else:
            self.register_buffer("places", positions.sinusoidal(TESTED, d_model).float(), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens) + self.places[: tokens.shape[1]]  # (B, T, d_model)


def new_model(way: str, seed: int = 0) -> Decoder:
    """Return an untrained model that knows positions in this way; tokens are numbers of `alphabet`.

    Raises ValueError for another way than those of WAYS.
    """
    if way not in WAYS:
        raise ValueError(f"way is {way!r}: choose one of {', '.join(WAYS)}")
    with torch.random.fork_rng(devices=[]):  # leaves the caller's own generator where it was
        torch.manual_seed(seed)
        model = Decoder(len(alphabet()), rope_base=BASE, **SIZES)
        if way in ("learned", "waves"):
            model.embedding = PlacedEmbedding(len(alphabet()), SIZES["d_model"], way)
    for block in model.blocks:
        attention = cast(MultiHeadAttention, block.attention)
        if way == "RoPE":
            attention.own["rotate"] = rotation(None)
        else:
            attention.rope = None
        attention.own["grouped_attention"] = _attend_with_slopes if way == "ALiBi" else _attend
    return model


def rotation(name: str | None) -> Callable[[Tensor, Tensor, float], Tensor]:
    """Return RoPE as a function for the `own` of a layer: plain for None, or stretched in one of three ways."""

    def rotate(x: Tensor, at: Tensor, base: float) -> Tensor:
        speeds, times = speeds_of(name, x.shape[-1], base)
        return positions.rotate_at(x, at, speeds, pairs="halves") * times  # halves are faster, and as good

    return rotate


def speeds_of(
    name: str | None, d_head: int = D_HEAD, base: float = BASE, factor: float = TESTED / TRAINED, trained: int = TRAINED
) -> tuple[Tensor, float]:
    """Return the speed of each pair (d_head/2,) and the factor of queries and keys: for None those of plain RoPE.

    Raises KeyError for another name than those of STRETCHED.
    """
    if name is None:
        return positions.interpolated(d_head, base, 1), 1.0
    return {
        "interpolation": lambda: (positions.interpolated(d_head, base, factor), 1.0),
        "NTK-aware": lambda: (positions.ntk_aware(d_head, base, factor), 1.0),
        "YaRN": lambda: positions.yarn(d_head, base, factor, trained),
    }[name]()


def _attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float = 0.0, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True), q.new_empty(0)


def _attend_with_slopes(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float = 0.0, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    return F.scaled_dot_product_attention(q, k, v, _slopes(q.shape[1], q.shape[2])), q.new_empty(0)


@cache
def _slopes(n_heads: int, n: int) -> Tensor:
    return positions.alibi(n_heads, n).float()


# --- the text -------------------------------------------------------------------------------------------------------


@cache
def alphabet() -> str:
    """Return the characters of the text, in the order of their numbers."""
    return "".join(sorted(set(_text())))


@cache
def _text() -> str:
    return TEXT.read_text(encoding="utf-8")


@cache
def _tokens() -> tuple[Tensor, Tensor]:
    """The text as numbers: nine tenths to train on, the last tenth to test on."""
    numbers = {character: number for number, character in enumerate(alphabet())}
    tokens = torch.tensor([numbers[character] for character in _text()])
    return tokens[: len(tokens) * 9 // 10], tokens[len(tokens) * 9 // 10 :]


# --- training and testing -------------------------------------------------------------------------------------------


def train(way: str, seed: int = 0, steps: int = STEPS) -> tuple[Decoder, list[float]]:
    """Train a model on windows of 64 characters: (model, losses), the loss of each step in nats per character.

    Each step takes 16 random windows, the same ones for all ways of one seed. AdamW's rate rises to 3e-3 in 50 steps
    and then falls along a cosine.
    """
    text = _tokens()[0]
    generator = torch.Generator().manual_seed(1000 + seed)
    model = new_model(way, seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.99), weight_decay=0.1)
    losses = []
    for step in range(whole("steps", steps)):
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / 50) * (0.525 + 0.475 * math.cos(math.pi * step / steps))
        starts = torch.randint(len(text) - TRAINED, (BATCH, 1), generator=generator)
        loss = _losses(model, text[starts + torch.arange(TRAINED + 1)]).mean()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
    return model.eval().requires_grad_(False), losses


@torch.no_grad()
def by_position(model: Decoder, windows: int | None = None, length: int = TESTED) -> Tensor:
    """Return the mean loss at each position of the held-out text, cut into windows: (length,), nats per character."""
    text = _tokens()[1]
    rows = text[: len(text) // (length + 1) * (length + 1)].view(-1, length + 1)[:windows]
    return torch.cat([_losses(model, some) for some in rows.split(16)]).mean(0)


def stretch(model: Decoder, name: str | None) -> None:
    """Let a model with RoPE rotate in one of the ways of STRETCHED from now on, or with None as it was trained."""
    for block in model.blocks:
        cast(MultiHeadAttention, block.attention).own["rotate"] = rotation(name)


def _losses(model: Decoder, windows: Tensor) -> Tensor:
    """The loss at each position of windows (B, T + 1): (B, T)."""
    logits = cast(Tensor, model(windows[:, :-1]))  # (B, T, alphabet)
    return F.cross_entropy(logits.transpose(1, 2), windows[:, 1:], reduction="none")


def _run(way: str, seed: int, steps: int, windows: int | None) -> list[dict[str, Any]]:
    """Train one model and test it: a row, and for RoPE three more for the stretched rotations."""
    model, losses = train(way, seed, steps)
    rows = [_row(way, seed, model, windows) | {"trained_to": round(float(np.mean(losses[-50:])), 4)}]
    for name in STRETCHED if way == "RoPE" else ():
        stretch(model, name)
        rows.append(_row(name, seed, model, windows))
    return rows


def _row(name: str, seed: int, model: Decoder, windows: int | None) -> dict[str, Any]:
    loss = by_position(model, windows).view(-1, BIN).mean(1)  # (TESTED / BIN,)
    return {"way": name, "seed": seed, "loss": np.round(loss.tolist(), 4).tolist()}


# --- the stored run -------------------------------------------------------------------------------------------------


@cache
def recorded() -> dict[str, Any]:
    """Return the run that ships with the course, as `records.read` gives it.

    A row is one model under one test: way (a name of WAYS or STRETCHED), seed, and loss, the mean loss of each 16
    neighbouring positions, nats per character.
    """
    return records.recorded(BENCHMARK, STORED)[0]


def curves(result: Mapping[str, Any] | None = None) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return (positions, {way: losses}) for a chart: the middles of the bins (points,), and losses (seeds, points)."""
    result = recorded() if result is None else result
    losses = {
        way: np.array([row["loss"] for row in result["rows"] if row["way"] == way]) for way in (*WAYS, *STRETCHED)
    }
    points = next(iter(losses.values())).shape[1]
    return (np.arange(points) + 0.5) * BIN, losses


def summary(result: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return a row for each way: its loss within the trained length and in the last 64 positions, over the seeds.

    Columns: way, within, within_low, within_high, far, far_low, far_high, nats per character; the first of each three
    is the mean over seeds, the others the least and the largest.
    """
    _, losses = curves(result)
    rows = []
    for way, each in losses.items():
        parts = {"within": each[:, : TRAINED // BIN].mean(1), "far": each[:, -TRAINED // BIN :].mean(1)}
        row: dict[str, Any] = {"way": way}
        for name, values in parts.items():
            row |= {name: values.mean(), f"{name}_low": values.min(), f"{name}_high": values.max()}
        rows.append(row)
    return rows


def main(quick: bool = False, folder: Path | str = STORED) -> None:
    """Train every way and seed, print the summary, and write the result to the folder."""
    torch.set_num_threads(1)
    where = environment()
    seeds: Sequence[int] = SEEDS[:1] if quick else SEEDS
    steps, windows = (5, 2) if quick else (STEPS, None)
    runs = [(way, seed) for seed in seeds for way in WAYS]
    with _processes(1 if quick else 2) as pool:
        n = len(runs)
        done = pool.map(_run, *zip(*runs, strict=True), [steps] * n, [windows] * n)
        rows = [row for rows in done for row in rows]
    settings = {
        "quick": quick, "command": "python -m course_utils.models.position_experiment --record", "text": TEXT.name,
        "trained": TRAINED, "tested": TESTED, "sizes": SIZES, "base": BASE, "batch": BATCH, "steps": steps,
        "rate": RATE, "optimiser": "AdamW", "seeds": list(seeds), "averaged": BIN,
    }  # fmt: skip
    findings = _findings(rows)
    print("\n".join(findings))
    print(f"\nwritten: {records.write(BENCHMARK, where, settings, rows, findings, folder)}")


def _findings(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{row['way']}: {row['within']:.3f} within the first {TRAINED} positions, {row['far']:.3f} "
        f"({row['far_low']:.3f} to {row['far_high']:.3f}) in the last {TRAINED} of {TESTED}"
        for row in summary({"rows": rows})
    ]


def _processes(count: int) -> ProcessPoolExecutor:
    """Processes of one thread each, for numbers that do not depend on how many there are."""
    fresh = multiprocessing.get_context("spawn")  # a forked process would share torch's state
    return ProcessPoolExecutor(count, fresh, initializer=torch.set_num_threads, initargs=(1,))


if __name__ == "__main__":
    records.command_line(main, __doc__, STORED)
