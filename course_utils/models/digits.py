"""A small Vision Transformer on real handwritten digits, trained with four kinds of positions and five seeds.

A picture of 8 by 8 pixels is cut into 16 patches of 2 by 2, and a class token comes first. There is no causal mask.

    python -m course_utils.models.digits --record

trains all 20 models again, 10 to 20 seconds each on one core, and writes what `recorded` reads. The pictures are
described in data/models/digits.LICENSE.txt. Source of the architecture: Dosovitskiy et al. 2020, section 3.1.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.attention.multihead import merge_heads, split_heads
from course_utils.attention.rotary import rotate
from course_utils.attention.shapes import whole
from course_utils.attention.tensors import attention
from course_utils.costs import records
from course_utils.costs.measure import environment

STORED = Path(__file__).parents[1] / "data" / "models"
BENCHMARK = "digits"
SIDE, PATCH = 8, 2  # pixels
GRID = SIDE // PATCH  # patches in a row
D_MODEL, HEADS, LAYERS = 32, 2, 2
BASE = 100.0  # of the rotation: the grid is small
TRAIN = 1297  # pictures; the other 500 are unseen
BATCH, STEPS, RATE, WEIGHT_DECAY = 32, 1200, 3e-3, 0.1
SEEDS = (0, 1, 2, 3, 4)
POSITIONS = ("none", "learned", "reading order", "row and column")
SHOWN = 6  # unseen pictures whose attention is stored

# Where each token is: the class token at 0, and patches from 1 on, in reading order or by row and by column.
NUMBERS = (0, *(1 + patch for patch in range(GRID * GRID)))
ROWS = (0, *(1 + patch // GRID for patch in range(GRID * GRID)))
COLUMNS = (0, *(1 + patch % GRID for patch in range(GRID * GRID)))


@cache
def pictures() -> tuple[Tensor, Tensor]:
    """Return the digits in a fixed order: pictures (1797, 8, 8) float32 from 0 to 1, and labels (1797,) int64."""
    rows = np.loadtxt(STORED / "digits.csv.gz", delimiter=",")
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    images = torch.tensor(rows[:, :-1] / 16, dtype=torch.float32).reshape(-1, SIDE, SIDE)
    return images, torch.tensor(rows[:, -1], dtype=torch.int64)


def patches(images: Tensor) -> Tensor:
    """Cut pictures (B, 8, 8) into patches (B, 16, 4), in reading order."""
    cells = images.reshape(-1, GRID, PATCH, GRID, PATCH).transpose(2, 3)  # (B, 4, 4, 2, 2)
    return cells.reshape(-1, GRID * GRID, PATCH * PATCH)


class Layer(nn.Module):
    """Attention of all tokens to all, and a feed-forward network, each on a norm of the stream and added to it."""

    def __init__(self, positions: str) -> None:
        super().__init__()
        self.positions = positions
        self.norms = nn.ModuleList(nn.LayerNorm(D_MODEL) for _ in range(2))
        self.project = nn.Linear(D_MODEL, 3 * D_MODEL)
        self.out = nn.Linear(D_MODEL, D_MODEL)
        self.feed_forward = nn.Sequential(nn.Linear(D_MODEL, 4 * D_MODEL), nn.GELU(), nn.Linear(4 * D_MODEL, D_MODEL))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the stream after this layer (B, 17, 32), and the weights of its heads (B, 2, 17, 17)."""
        projected = self.project(self.norms[0](x)).chunk(3, dim=-1)
        q, k, v = (split_heads(each, HEADS) for each in projected)  # (B, h, 17, 16)
        found, weights = attention(_rotated(q, self.positions), _rotated(k, self.positions), v)
        x = x + self.out(merge_heads(found))
        return x + self.feed_forward(self.norms[1](x)), weights


class Model(nn.Module):
    """A Vision Transformer of two layers, which reads the digit from its class token.

    positions is one of POSITIONS: "none", "learned" (a vector is added for each place), "reading order" (a rotation
    by the number of a patch) or "row and column" (half of the pairs rotated by each). Raises ValueError for another.
    """

    def __init__(self, positions: str) -> None:
        super().__init__()
        if positions not in POSITIONS:
            raise ValueError(f"positions is {positions!r}: choose one of {', '.join(map(repr, POSITIONS))}")
        self.embed = nn.Linear(PATCH * PATCH, D_MODEL)
        self.class_token = nn.Parameter(0.02 * torch.randn(D_MODEL))
        self.places = nn.Parameter(0.02 * torch.randn(1 + GRID * GRID, D_MODEL)) if positions == "learned" else None
        self.layers = nn.ModuleList(Layer(positions) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(D_MODEL)
        self.read = nn.Linear(D_MODEL, 10)

    def forward(self, images: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return logits (B, 10) for pictures (B, 8, 8), and each layer's weights (B, 2, 17, 17), class token first."""
        tokens = self.embed(patches(images))
        x = torch.cat([self.class_token.expand(len(tokens), 1, -1), tokens], dim=1)  # (B, 17, 32)
        if self.places is not None:
            x = x + self.places
        weights_of_layers = []
        for layer in self.layers:
            x, weights = layer(x)
            weights_of_layers.append(weights)
        return self.read(self.norm(x[:, 0])), weights_of_layers


def _rotated(x: Tensor, positions: str) -> Tensor:
    """Rotate queries or keys (B, h, 17, d) by where their tokens are."""
    if positions == "reading order":
        return rotate(x, NUMBERS, BASE)
    if positions == "row and column":
        by_row, by_column = x.chunk(2, dim=-1)
        return torch.cat([rotate(by_row, ROWS, BASE), rotate(by_column, COLUMNS, BASE)], dim=-1)
    return x


# --- training -------------------------------------------------------------------------------------------------------


def train(positions: str, seed: int = 0, steps: int = STEPS) -> Model:
    """Train a model from the start on the first 1,297 pictures, by AdamW with warm-up and cosine.

    Runs of one seed see the same batches. On one thread the same seed gives the same numbers. Raises ValueError for
    other positions or fewer than one step.
    """
    steps = whole("steps", steps)
    images, labels = (each[:TRAIN] for each in pictures())
    rng = np.random.default_rng(1000 + seed)
    with torch.random.fork_rng(devices=[]):  # leaves the caller's own generator where it was
        torch.manual_seed(seed)
        model = Model(positions)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=WEIGHT_DECAY)
    warm_up = torch.optim.lr_scheduler.LinearLR(optimiser, 0.02, total_iters=50)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    schedule = torch.optim.lr_scheduler.ChainedScheduler([warm_up, cosine])
    for _ in range(steps):
        chosen = torch.from_numpy(rng.integers(0, TRAIN, size=BATCH))
        loss = F.cross_entropy(model(images[chosen])[0], labels[chosen])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return model.eval().requires_grad_(False)


@torch.no_grad()
def accuracy(model: Model) -> float:
    """Return the share of the 500 unseen pictures that a model reads right, 0 to 1."""
    images, labels = (each[TRAIN:] for each in pictures())
    return (model(images)[0].argmax(-1) == labels).double().mean().item()


@torch.no_grad()
def class_attention(model: Model) -> np.ndarray:
    """Return how the class token of the last layer shares its weight among the patches, for the first unseen pictures.

    (SHOWN, 4, 4), the mean of the heads, without the weight on the class token itself.
    """
    _, weights = model(pictures()[0][TRAIN : TRAIN + SHOWN])
    return weights[-1][:, :, 0, 1:].mean(dim=1).reshape(-1, GRID, GRID).numpy()


# --- the stored runs ------------------------------------------------------------------------------------------------


@cache
def recorded() -> dict[str, Any]:
    """Return the runs that ship with the course, as `records.read` gives it.

    A row is one training: positions, seed, parameters, accuracy, and attention, what `class_attention` gives.
    """
    return records.recorded(BENCHMARK, STORED)[0]


def accuracies() -> dict[str, list[float]]:
    """Return the recorded shares of unseen pictures read right: kind of positions -> one for each seed."""
    rows = recorded()["rows"]
    return {kind: [row["accuracy"] for row in rows if row["positions"] == kind] for kind in POSITIONS}


def main(quick: bool = False, folder: Path | str = STORED) -> None:
    """Train every kind of positions and every seed, and write the result to the folder."""
    torch.set_num_threads(1)
    where = environment()
    rows = []
    for seed in SEEDS[: 1 if quick else None]:
        for positions in POSITIONS:
            model = train(positions, seed, 20 if quick else STEPS)
            rows.append({
                "positions": positions, "seed": seed, "parameters": sum(p.numel() for p in model.parameters()),
                "accuracy": round(accuracy(model), 4), "attention": class_attention(model).round(3).tolist(),
            })  # fmt: skip
            print(f"{positions}, seed {seed}: {rows[-1]['accuracy']}", flush=True)
    settings = {
        "quick": quick, "command": "python -m course_utils.models.digits --record", "patch": PATCH, "d_model": D_MODEL,
        "heads": HEADS, "layers": LAYERS, "base": BASE, "train": TRAIN, "batch": BATCH, "steps": STEPS, "rate": RATE,
        "weight_decay": WEIGHT_DECAY, "seeds": SEEDS,
    }  # fmt: skip
    findings = [_finding(positions, rows) for positions in POSITIONS]
    print("\n".join(findings))
    print(f"\nwritten: {records.write(BENCHMARK, where, settings, rows, findings, folder)}")


def _finding(positions: str, rows: Sequence[dict[str, Any]]) -> str:
    """Say what share is read right with a kind of positions, the median of the seeds and the range."""
    shares = sorted(row["accuracy"] for row in rows if row["positions"] == positions)
    return f"{positions}: {statistics.median(shares):.3f} right ({shares[0]:.3f} to {shares[-1]:.3f})"


if __name__ == "__main__":
    records.command_line(main, __doc__, STORED)
