"""Eight ways to mix tokens learn to recall and to copy, side by side: equal parameters, equal tokens, three seeds.

To recall, a text writes pairs of a key and a value, then writes each key again, and then asks for keys in any order:
the next token has to be the value that the key was written with last. In half of the texts the second writing brings
new values. To copy, a text has a piece of different tokens, and then the same piece again, up to its end.

    python -m course_utils.models.recall_experiment --record

trains all of it again, 48 models of two layers, one to four minutes each on one core, as many at a time as there are
cores, and writes what `recorded` reads.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.attention.masks import causal, sliding_window
from course_utils.attention.rotary import Rotary
from course_utils.attention.shapes import whole
from course_utils.costs import records
from course_utils.costs.measure import environment

KEYS = 16  # and as many values
LENGTH = 48  # tokens of a text: 24 pairs
D_MODEL = 48
HEADS = 1
D_HEAD = 8
WINDOW = 16
BATCH = 32
STEPS = {"recall": 3200, "copy": 2000}
RATE = 4e-3
FEWEST, MOST = 2, 10  # pairs of a text
SHORTEST, LONGEST = 4, 24  # tokens of a piece
MEASURED = {"copy": (4, 8, 12, 16, 24), "the same values again": (2, 4, 6, 8, 10), "new values": (2, 4, 6, 8, 10)}
TASKS = tuple(MEASURED)
SEEDS = (0, 1, 2)
EVERY = 50
TEXTS = 256  # unseen, for each task and number of pairs
BENCHMARK = "recall-experiment"
STORED = Path(__file__).parents[1] / "data" / "models"
Mix = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def texts(rng: np.random.Generator, pairs: np.ndarray, new_values: np.ndarray) -> tuple[Tensor, Tensor]:
    """Texts (B, 48) int64 and which of their tokens are asked for, (B, 48) boolean.

    pairs (B,) says how many pairs each text has, 2 to 10, and new_values (B,) whether the second writing changes them.
    Tokens 0 to 15 are keys, 16 to 31 values.
    """
    batch, places = len(pairs), np.arange(LENGTH // 2)
    pairs = pairs[:, None]
    keys = rng.permuted(np.tile(np.arange(KEYS), (batch, 1)), axis=1)
    first, second = rng.integers(KEYS, 2 * KEYS, size=(2, batch, KEYS))
    second = np.where(new_values[:, None], second, first)
    asked = (rng.random((batch, len(places))) * pairs).astype(int)
    which = np.where(places < 2 * pairs, places % pairs, asked)  # (B, 24): the pair at each place
    tokens = np.empty((batch, LENGTH), dtype=np.int64)
    tokens[:, ::2] = np.take_along_axis(keys, which, axis=1)
    written = [np.take_along_axis(values, which, axis=1) for values in (first, second)]
    tokens[:, 1::2] = np.where(places < pairs, *written)
    is_asked = np.zeros((batch, LENGTH), dtype=bool)
    is_asked[:, 1::2] = places >= 2 * pairs
    return torch.from_numpy(tokens), torch.from_numpy(is_asked)


def copies(rng: np.random.Generator, lengths: np.ndarray) -> tuple[Tensor, Tensor]:
    """Texts (B, 48) int64 of a piece of so many different tokens (B,), again and again, and which are asked for."""
    pieces = rng.permuted(np.tile(np.arange(2 * KEYS), (len(lengths), 1)), axis=1)
    tokens = np.take_along_axis(pieces, np.arange(LENGTH) % lengths[:, None], axis=1)
    return torch.from_numpy(tokens), torch.from_numpy(np.arange(LENGTH) > lengths[:, None])


# --- the eight ways -------------------------------------------------------------------------------------------------


def full(q: Tensor, k: Tensor, v: Tensor, gate: Tensor) -> Tensor:
    """Causal softmax attention with RoPE on (B, h, T, d)."""
    return _softmax(q, k, v, causal(q.shape[-2]))


def window(q: Tensor, k: Tensor, v: Tensor, gate: Tensor) -> Tensor:
    """The same, but a query sees the last 16 tokens only."""
    return _softmax(q, k, v, sliding_window(q.shape[-2], WINDOW))


def linear(q: Tensor, k: Tensor, v: Tensor, gate: Tensor) -> Tensor:
    """Linear attention with the features elu + 1, each row divided by the sum of its scores."""
    scores = _lower((F.elu(q) + 1) @ (F.elu(k) + 1).mT)
    return scores @ v / scores.sum(-1, keepdim=True)


def plain(q: Tensor, k: Tensor, v: Tensor, gate: Tensor) -> Tensor:
    """Linear attention with the features of decay and delta, divided by nothing: what delta does without correcting."""
    return _lower(_unit(q) @ _unit(k).mT) @ v


def decay(q: Tensor, k: Tensor, v: Tensor, gate: Tensor) -> Tensor:
    """Linear attention whose state is multiplied by a factor before each write: σ(4 + gate), (B, h, T)."""
    q, k = _unit(q), _unit(k)
    logs = F.logsigmoid(4 + gate).cumsum(-1)  # (B, h, T)
    factors = (logs[..., :, None] - logs[..., None, :]).tril().exp()  # (B, h, T, T)
    return _lower(q @ k.mT * factors) @ v


def delta(q: Tensor, k: Tensor, v: Tensor, gate: Tensor) -> Tensor:
    """The delta rule with β = σ(gate), all tokens at once: see `attention.linear.delta_parallel`."""
    q, k = _unit(q), _unit(k)
    beta = torch.sigmoid(gate)[..., None]  # (B, h, T, 1)
    system = torch.eye(q.shape[-2]) + (beta * (k @ k.mT)).tril(-1)
    written = torch.linalg.solve_triangular(system, beta * v, upper=False, unitriangular=True)
    return _lower(q @ k.mT) @ written


def _softmax(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    rope, positions = _rope(), torch.arange(q.shape[-2])
    scores = rope(q, positions) @ rope(k, positions).mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(~mask, -math.inf).softmax(-1) @ v


@cache
def _rope() -> Rotary:
    return Rotary(D_HEAD)


def _unit(x: Tensor) -> Tensor:
    """Features of norm 1, none of them far below 0."""
    return F.normalize(F.silu(x), dim=-1)


def _lower(scores: Tensor) -> Tensor:
    return scores.tril()


VARIANTS: dict[str, tuple[Mix, Mix]] = {  # the mixers of the two layers
    "full": (full, full),
    "window": (window, window),
    "linear": (linear, linear),
    "sum": (plain, plain),
    "decay": (decay, decay),
    "delta": (delta, delta),
    "delta, then full": (delta, full),
    "window, then full": (window, full),
}
HELD = {  # numbers that one layer keeps of a text of 48 tokens
    "full": 2 * HEADS * D_HEAD * LENGTH,
    "window": 2 * HEADS * D_HEAD * WINDOW,
    "linear": HEADS * D_HEAD * (D_HEAD + 1),
    "sum": HEADS * D_HEAD**2,
    "decay": HEADS * D_HEAD**2,
    "delta": HEADS * D_HEAD**2,
}


class Mixer(nn.Module):
    """A head that mixes the tokens in one way. Each of q, k and v also reads the token before, by a learned share.

    Every way has the same weights; those that need no gate leave its 49 numbers unused.
    """

    def __init__(self, mix: Mix) -> None:
        super().__init__()
        self.mix = mix
        self.projections = nn.ModuleList(nn.Linear(D_MODEL, HEADS * D_HEAD, bias=False) for _ in range(3))
        self.out = nn.Linear(HEADS * D_HEAD, D_MODEL, bias=False)
        self.gate = nn.Linear(D_MODEL, HEADS)
        self.shares = nn.Parameter(torch.full((3, D_MODEL), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        before = F.pad(x, (0, 0, 1, 0))[:, :-1]  # (B, T, d_model)
        mixed = (x + share * (before - x) for share in self.shares)
        pairs = zip(self.projections, mixed, strict=True)
        q, k, v = (layer(each).view(B, T, HEADS, D_HEAD).transpose(1, 2) for layer, each in pairs)
        found = self.mix(q, k, v, self.gate(x).transpose(1, 2))  # (B, h, T, d_head)
        found = F.rms_norm(found, (D_HEAD,))
        return self.out(found.transpose(1, 2).reshape(B, T, HEADS * D_HEAD))


class Model(nn.Module):
    """Embedding, two layers of attention of any kind without feed-forward networks, and the scores of all tokens."""

    def __init__(self, mixes: Sequence[Mix]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(2 * KEYS, D_MODEL)
        self.norms = nn.ModuleList(nn.LayerNorm(D_MODEL) for _ in mixes)
        self.mixers = nn.ModuleList(Mixer(mix) for mix in mixes)
        self.norm = nn.LayerNorm(D_MODEL)
        self.read = nn.Linear(D_MODEL, 2 * KEYS, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (B, T, 32) for the token after each of tokens (B, T)."""
        x = self.embedding(tokens)
        for norm, mixer in zip(self.norms, self.mixers, strict=True):
            x = x + mixer(norm(x))
        return self.read(self.norm(x))


# --- training -------------------------------------------------------------------------------------------------------


def train(variant: str, seed: int = 0, steps: int | None = None, kind: str = "recall") -> tuple[Model, list[float]]:
    """Train a variant from the start: (model, the mean loss of every 50 steps in nats).

    A step takes 32 new texts for AdamW: of 2 to 10 pairs, half of them with new values, or if kind is "copy" of a piece
    of 4 to 24 tokens. Runs of one seed see the same texts. On one thread the same seed gives the same numbers. Raises
    KeyError for another variant or kind.
    """
    steps = whole("steps", STEPS[kind] if steps is None else steps)
    rng = np.random.default_rng(1000 + seed)
    with torch.random.fork_rng(devices=[]):  # leaves the caller's own generator where it was
        torch.manual_seed(seed)
        model = Model(VARIANTS[variant])
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.0)
    losses: list[float] = []
    for step in range(steps):
        if kind == "copy":
            tokens, asked = copies(rng, rng.integers(SHORTEST, LONGEST + 1, size=BATCH))
        else:
            tokens, asked = texts(rng, rng.integers(FEWEST, MOST + 1, size=BATCH), np.arange(BATCH) % 2 == 1)
        loss = F.cross_entropy(*_asked(model, tokens, asked))
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / 50, (steps - step) / (0.3 * steps))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    means = [statistics.fmean(losses[i : i + EVERY]) for i in range(0, steps, EVERY)]
    return model.eval().requires_grad_(False), means


@torch.no_grad()
def accuracy(model: Model, task: str, size: int, count: int = TEXTS) -> float:
    """The share of tokens predicted right in unseen texts of a task, 0 to 1; size: the pairs, or a piece's tokens.

    Guessing a value gives 1/16, guessing a token of a piece 1/32.
    """
    rng = np.random.default_rng(99)
    if task == "copy":
        tokens, asked = copies(rng, np.full(count, size))
    else:
        tokens, asked = texts(rng, np.full(count, size), np.full(count, task == "new values"))
    logits, wanted = _asked(model, tokens, asked)
    return (logits.argmax(-1) == wanted).double().mean().item()


def _asked(model: Model, tokens: Tensor, asked: Tensor) -> tuple[Tensor, Tensor]:
    """Logits (n, 32) at the tokens before those asked for, and these, (n,)."""
    return model(tokens[:, :-1])[asked[:, 1:]], tokens[:, 1:][asked[:, 1:]]


# --- the stored runs ------------------------------------------------------------------------------------------------


@cache
def recorded() -> dict[str, Any]:
    """Return the runs that ship with the course, as `records.read` gives it.

    A row is one training: kind, variant, seed, losses, and accuracy, by task a list over MEASURED[task].
    """
    return records.recorded(BENCHMARK, STORED)[0]


def accuracies(task: str) -> dict[str, np.ndarray]:
    """By variant, the recorded shares of tokens predicted right in a task: (seeds, sizes)."""
    rows = [row for row in recorded()["rows"] if task in row["accuracy"]]
    return {
        variant: np.array([row["accuracy"][task] for row in rows if row["variant"] == variant]) for variant in VARIANTS
    }


def main(quick: bool = False, folder: Path | str = STORED) -> None:
    """Train every variant and seed, and write the result to the folder."""
    torch.set_num_threads(1)
    where = environment()
    seeds = SEEDS[: 1 if quick else None]
    steps = dict.fromkeys(STEPS, 2 * EVERY) if quick else STEPS
    runs = [(kind, variant, seed, steps[kind]) for seed in seeds for kind in STEPS for variant in VARIANTS]
    rows = []
    with ProcessPoolExecutor(initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for row in pool.map(_run, *zip(*runs, strict=True)):
            rows.append(row)
            print(f"{row['kind']}, {row['variant']}, seed {row['seed']}: {row['accuracy']}", flush=True)
    settings = {
        "quick": quick, "command": "python -m course_utils.models.recall_experiment --record", "keys": KEYS,
        "length": LENGTH, "d_model": D_MODEL, "heads": HEADS, "d_head": D_HEAD, "window": WINDOW, "batch": BATCH,
        "steps": STEPS, "rate": RATE, "measured": MEASURED, "seeds": SEEDS, "held": HELD,
    }  # fmt: skip
    findings = [_finding(variant, rows) for variant in VARIANTS]
    print("\n".join(findings))
    print(f"\nwritten: {records.write(BENCHMARK, where, settings, rows, findings, folder)}")


def _run(kind: str, variant: str, seed: int, steps: int) -> dict[str, Any]:
    """Train a variant and return its row of the record."""
    model, losses = train(variant, seed, steps, kind)
    tasks = [task for task in TASKS if (task == "copy") == (kind == "copy")]
    return {
        "kind": kind, "variant": variant, "seed": seed, "parameters": sum(p.numel() for p in model.parameters()),
        "losses": [round(loss, 4) for loss in losses],
        "accuracy": {task: [round(accuracy(model, task, size), 4) for size in MEASURED[task]] for task in tasks},
    }  # fmt: skip


def _finding(variant: str, rows: Sequence[dict[str, Any]]) -> str:
    """Say what a variant gets right at the largest size, the median of the seeds and the range."""
    parts = []
    for task, sizes in MEASURED.items():
        mine = (row["accuracy"] for row in rows if row["variant"] == variant)
        last = sorted(accuracy[task][-1] for accuracy in mine if task in accuracy)
        parts.append(f"{task} ({sizes[-1]}) {statistics.median(last):.3f} ({last[0]:.3f} to {last[-1]:.3f})")
    return f"{variant}: {', '.join(parts)}"


if __name__ == "__main__":
    records.command_line(main, __doc__, STORED)
