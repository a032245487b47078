"""A small model of attention only that learns to repeat: where it looks, and what each of its heads is worth.

It is trained on random tokens that come again and again: a random piece of 2 to 24 tokens, then the same piece, up to
the end of the window. What follows can be told only by looking back: find the token after the present one's copy, one
period earlier. A head that does so is an induction head (Olsson et al. 2022).

    python -m course_utils.models.induction --record

trains the stored model and three others to compare with, about a minute each on one core, and writes the checkpoint and
the curves that `recorded` reads. Another machine rounds otherwise, and training makes that large: a new run of the same
seed agrees with the stored one within TOLERANCE.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.attention.shapes import whole
from course_utils.costs import records
from course_utils.costs.measure import environment
from course_utils.models.decoder import Decoder, load_weights, save_weights

VOCABULARY = 32
SIZES: dict[str, Any] = {"d_model": 64, "n_heads": 4, "d_ff": 0}
LENGTH = 64  # tokens in a window
SHORTEST = 2  # tokens in the piece that comes again
LONGEST = 24
BATCH = 64
STEPS = 800
RATE = 3e-3
EVERY = 20
RUNS: tuple[dict[str, Any], ...] = (  # the first is the one whose model is stored
    {"name": "two layers", "n_layers": 2, "seed": 0},
    {"name": "two layers, seed 1", "n_layers": 2, "seed": 1},
    {"name": "two layers, seed 2", "n_layers": 2, "seed": 2},
    {"name": "one layer", "n_layers": 1, "seed": 0},
)
TOLERANCE = {"repeat_loss": 0.1, "induction": 0.1, "previous_token": 0.1}  # of the end of a run, best head
PERIOD = 20  # of the tokens on which a curve is measured
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef"  # names for the 32 tokens
READABLE = "the letters A to Z and a to f"
BENCHMARK = "induction"
STORED = Path(__file__).parents[1] / "data" / "models"


def load(folder: Path | str = STORED) -> Decoder:
    """Return the trained model, a `Decoder` of two layers with four heads each and no feed-forward, in float32.

    Raises FileNotFoundError where the folder has no checkpoint.
    """
    model = _new(RUNS[0]["n_layers"])
    model.load_state_dict(load_weights(Path(folder) / "induction.npz"))
    return model.eval().requires_grad_(False)


def repeated(batch: int, period: int, repeats: int = 2, seed: int = 0) -> Tensor:
    """Random pieces of `period` tokens, each written `repeats` times: (batch, repeats · period) int64.

    The same seed gives the same tokens. Raises ValueError or TypeError for a size that is no whole number from 1 on.
    """
    size = (whole("batch", batch), whole("period", period))
    piece = torch.from_numpy(np.random.default_rng(seed).integers(VOCABULARY, size=size))  # (batch, period)
    return piece.repeat(1, whole("repeats", repeats))


@torch.no_grad()
def token_losses(model: Decoder, tokens: Tensor, head_masks: Tensor | None = None) -> Tensor:
    """The surprise at each token but the first, nats: (B, T − 1). Entry t belongs to token t + 1 of tokens (B, T).

    head_masks (n_layers, h) multiplies what each head found: 0 switches it off.
    """
    logits = model(tokens, head_masks=head_masks)[:, :-1]  # (B, T - 1, vocabulary)
    return F.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction="none")


def repeat_loss(model: Decoder, tokens: Tensor, period: int, head_masks: Tensor | None = None) -> float:
    """Return the mean surprise at the tokens that could be known: all after the first copy but the first one, nats.

    tokens (B, T) have a piece of `period` tokens at least twice. Raises ValueError where they are shorter than that.
    """
    _check_copies(tokens, period)
    return token_losses(model, tokens, head_masks)[:, period:].mean().item()


@torch.no_grad()
def head_weights(model: Decoder, tokens: Tensor) -> Tensor:
    """Return the attention weights of every head: (n_layers, B, h, T, T) for tokens (B, T)."""
    return torch.stack(model(tokens, return_weights=True)[1])


class Reader:
    """Reads a text of LETTERS: called with it, gives (letters, weights), T of them and (n_layers, h, T, T).

    Spaces are left out. It raises ValueError for a letter that the model has no token for, for fewer letters than 2 and
    for more than the LENGTH that the model was trained on. `.examples` are texts worth a look where no Python runs.
    """

    examples = ("ABRACADABRA", "ABCDEFGHIJKLMNOP", "PQRSTPQRSTPQRST")

    def __init__(self, model: Decoder):
        self._model = model

    def __call__(self, text: str) -> tuple[list[str], Tensor]:
        letters = [letter for letter in text if not letter.isspace()]
        unknown = [letter for letter in letters if letter not in LETTERS]
        if unknown:
            raise ValueError(f"The model has no token for “{unknown[0]}”. It knows {READABLE}, 32 tokens in all.")
        if not 2 <= len(letters) <= LENGTH:
            raise ValueError(f"The text has {len(letters)} letters: give 2 to {LENGTH}, as many as it was trained on.")
        tokens = torch.tensor([[LETTERS.index(letter) for letter in letters]])  # (1, T)
        return letters, head_weights(self._model, tokens)[:, 0]


def reader(model: Decoder) -> Reader:
    """Return what reads a text with this model: text -> (letters, weights)."""
    return Reader(model)


def induction_scores(model: Decoder, period: int, batch: int = 64, seed: int = 0) -> Tensor:
    """Return the weight from a token of the second half to the token after its copy: (n_layers, h), 0 to 1.

    The mean over all `period` tokens of the second copy and over `batch` random pieces. Source: Olsson et al. 2022,
    "Key concepts" and appendix, where it is called the prefix matching score.
    """
    weights = head_weights(model, repeated(batch, period, seed=seed))  # (n_layers, B, h, 2 · period, 2 · period)
    after_first = weights.diagonal(1 - period, dim1=-2, dim2=-1)[..., 1:]  # row i, column i − period + 1, i ≥ period
    return after_first.mean(dim=(1, 3))


def previous_token_scores(model: Decoder, period: int, batch: int = 64, seed: int = 0) -> Tensor:
    """The weight from a token to the one before it: (n_layers, h), 0 to 1. The mean over all tokens but the first."""
    weights = head_weights(model, repeated(batch, period, seed=seed))  # (n_layers, B, h, 2 · period, 2 · period)
    return weights.diagonal(-1, dim1=-2, dim2=-1).mean(dim=(1, 3))


def ablation(model: Decoder, tokens: Tensor, period: int) -> Tensor:
    """Return how much `repeat_loss` rises when one head is switched off: (n_layers, h) float32, nats."""
    n_layers = len(model.blocks)
    n_heads = model.n_heads
    whole_model = repeat_loss(model, tokens, period)
    rises = torch.zeros(n_layers, n_heads)
    for layer in range(n_layers):
        for head in range(n_heads):
            on = torch.ones(n_layers, n_heads)
            on[layer, head] = 0
            rises[layer, head] = repeat_loss(model, tokens, period, on) - whole_model
    return rises


# --- training -------------------------------------------------------------------------------------------------------


def train(
    n_layers: int = 2,
    seed: int = 0,
    steps: int = STEPS,
    progress: Callable[[dict[str, float]], object] = lambda row: None,
) -> tuple[Decoder, list[dict[str, float]]]:
    """Train a model from the start: (model, curve).

    A step takes 64 windows of 64 tokens, each filled with a random piece of 2 to 24 tokens, for AdamW whose
    rate rises to 3e-3 in 50 steps and falls to 0 over the last 30 in 100. Every 20 steps a row is added to the curve
    and given to progress: step, loss (on the windows of that step), repeat_loss (a piece of 20 tokens, twice), and the
    largest induction and previous_token scores of the heads. On one thread the same seed gives the same numbers. Raises
    ValueError for sizes below 1, TypeError for those that are no whole numbers.
    """
    rng = np.random.default_rng(1000 + seed)
    with torch.random.fork_rng(devices=[]):  # leaves the caller's own generator where it was
        torch.manual_seed(seed)
        model = _new(whole("n_layers", n_layers))
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.0)
    curve = []
    for step in range(whole("steps", steps) + 1):
        windows = _windows(rng)
        loss = F.cross_entropy(model(windows)[:, :-1].flatten(0, 1), windows[:, 1:].flatten())
        if step % EVERY == 0:
            curve.append({"step": step, "loss": round(loss.item(), 4)} | _measure(model))
            progress(curve[-1])
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / 50, (steps - step) / (0.3 * steps))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.eval().requires_grad_(False), curve


def save(model: Decoder, folder: Path | str = STORED) -> Path:
    """Write the weights in half precision to induction.npz in the folder, for `load`. Returns the path."""
    return save_weights(model.state_dict(), Path(folder) / "induction.npz")


@cache
def recorded() -> dict[str, Any]:
    """Return the curves of four trainings, as `records.read` gives them.

    A row is a run: name, n_layers, seed, curve (see `train`), and of the end
    repeat_loss, induction and previous_token, the scores of all heads, layer by layer. The first is the stored model.
    """
    return records.recorded(BENCHMARK, STORED)[0]


def _new(n_layers: int) -> Decoder:
    return Decoder(VOCABULARY, n_layers=n_layers, **SIZES)


def _windows(rng: np.random.Generator) -> Tensor:
    """Windows (BATCH, LENGTH), each a random piece of a random length that comes again to the end."""
    periods = rng.integers(SHORTEST, LONGEST + 1, size=(BATCH, 1))
    pieces = rng.integers(VOCABULARY, size=(BATCH, LONGEST))
    return torch.from_numpy(np.take_along_axis(pieces, np.arange(LENGTH) % periods, axis=1))


def _measure(model: Decoder) -> dict[str, float]:
    tokens = repeated(BATCH, PERIOD)
    return {
        "repeat_loss": round(repeat_loss(model, tokens, PERIOD), 4),
        "induction": round(induction_scores(model, PERIOD).max().item(), 4),
        "previous_token": round(previous_token_scores(model, PERIOD).max().item(), 4),
    }


def _check_copies(tokens: Tensor, period: int) -> None:
    if tokens.shape[-1] < 2 * whole("period", period):
        raise ValueError(f"tokens is {tuple(tokens.shape)}: a piece of {period} tokens, twice, takes {2 * period}")


def main(quick: bool = False, folder: Path | str = STORED) -> None:
    """Train the models, write the checkpoint of the first and the curves of all to the folder."""
    torch.set_num_threads(1)
    where = environment()
    steps = 2 * EVERY if quick else STEPS
    rows: list[dict[str, Any]] = []
    for run in RUNS:
        settings = {key: value for key, value in run.items() if key != "name"}
        model, curve = train(**settings, steps=steps)
        if not rows:
            model = load(save(model, folder).parent)
            chosen_model = model
        scores = {"induction": induction_scores(model, PERIOD), "previous_token": previous_token_scores(model, PERIOD)}
        row = run | {"repeat_loss": round(repeat_loss(model, repeated(BATCH, PERIOD), PERIOD), 4)}
        row |= {name: [[round(x, 4) for x in layer] for layer in score.tolist()] for name, score in scores.items()}
        rows.append(row | {"curve": curve})
        print(f"{run['name']}: repeat loss {row['repeat_loss']}, {scores}", flush=True)
    settings = {
        "quick": quick, "command": "python -m course_utils.models.induction --record", "sizes": SIZES,
        "vocabulary": VOCABULARY, "parameters": sum(p.numel() for p in chosen_model.parameters()), "length": LENGTH,
        "shortest": SHORTEST, "longest": LONGEST, "period": PERIOD, "batch": BATCH, "steps": steps, "every": EVERY,
        "optimiser": "AdamW", "rate": RATE,
    }  # fmt: skip
    findings = [
        f"{row['name']}: {row['repeat_loss']:.3f} nats a token of the second copy, largest induction score "
        f"{max(map(max, row['induction'])):.2f}"
        for row in rows
    ]
    print("\n".join(findings))
    print(f"\nwritten: {records.write(BENCHMARK, where, settings, rows, findings, folder)}")


if __name__ == "__main__":
    records.command_line(main, __doc__, STORED)
