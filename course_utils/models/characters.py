"""Two small models of characters, equal but for the mask: one is causal, the other sees the answers while it trains.

Both are decoders of two layers, trained on the same windows of prose from the Python documentation
(data/models/python-documentation.txt, licence beside it) and stored in half precision.

    python -m course_utils.models.characters --record

trains both again, about 5 minutes each on one core, and writes the checkpoints and the losses that `recorded` reads.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.attention.cache import Cache
from course_utils.attention.shapes import whole
from course_utils.costs import records
from course_utils.costs.measure import environment
from course_utils.models.decoder import Decoder, generate, load_weights, save_weights

NAMES = ("causal", "leaking")
CONTEXT = 96  # characters in a window
SIZES: dict[str, Any] = {"d_model": 96, "n_layers": 2, "n_heads": 4}
BATCH = 32
STEPS = 1800
RATE = 3e-3
SEED = 0
BENCHMARK = "characters"
STORED = Path(__file__).parents[1] / "data" / "models"


def load(name: str, folder: Path | str = STORED) -> Decoder:
    """Return the trained model called "causal" or "leaking": a `Decoder` in float32, ready to evaluate and to write.

    Raises ValueError for another name, FileNotFoundError where the folder has no such checkpoint.
    """
    model = _new(name)
    model.load_state_dict(load_weights(Path(folder) / f"characters-{name}.npz"))
    return model.eval().requires_grad_(False)


class LookingAhead(Decoder):
    """A `Decoder` without a causal mask: every token sees all others, the later ones too, unless a mask is given."""

    def forward(
        self,
        tokens: Tensor,
        caches: Sequence[Cache] | None = None,
        lengths: Sequence[int] | Tensor | None = None,
        mask: Tensor | None = None,
        head_masks: Sequence[Sequence[float]] | Tensor | None = None,
        return_weights: bool = False,
        at: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, list[Tensor]]:
        if mask is None:
            mask = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool, device=tokens.device)
        return super().forward(tokens, caches, lengths, mask, head_masks, return_weights, at)


def loss(model: Decoder, text: str) -> float:
    """Return the mean surprise at each character of the text, in nats: the number that training makes small.

    The text, at least 2 characters, is cut into windows of 96 (a rest is dropped). Each is given to the model as a
    whole, and the character at t + 1 is told from the output at t. A model that leaks has the answer before it. Raises
    ValueError for a text that is too short or has a character that the models do not know.
    """
    with torch.no_grad():
        return _next_token_loss(model, _windows(text)).item()


def loss_without_future(model: Decoder, text: str) -> float:
    """The same, with nothing but the past at hand, as when writing: each character told from what stands before it.

    The windows and the characters to tell are those of `loss`, but the model is given the beginnings of each window one
    after another: 1 character, 2, … 95. A causal model has the same loss either way. Raises as `loss` does.
    """
    windows = _windows(text)
    surprises = []
    with torch.no_grad():
        for n in range(1, windows.shape[1]):
            logits = model(windows[:, :n])[:, -1]  # (windows, alphabet)
            surprises.append(F.cross_entropy(logits, windows[:, n]).item())
    return statistics.fmean(surprises)


def write(model: Decoder, prompt: str, n: int, seed: int = 0, temperature: float = 0.8) -> str:
    """Continue the prompt by n characters, drawn one by one: returns these, without the prompt.

    The model sees the last 95 characters, as in training. Temperature 0 takes the likeliest. The same seed gives the
    same text. Raises ValueError for an empty prompt, a character that the models do not know, or a temperature or n
    below 0.
    """
    tokens, generator = encode(prompt)[None], torch.Generator().manual_seed(seed)  # (1, T)
    if not tokens.shape[1]:
        raise ValueError("prompt is empty: give the model at least one character to go on from")
    for _ in range(whole("n", n, least=0)):
        newest = generate(model, tokens[:, 1 - CONTEXT :], 1, temperature=temperature, generator=generator)  # (1, 1)
        tokens = torch.cat([tokens, newest], dim=1)
    return decode(tokens[0, len(prompt) :])


# --- the text -------------------------------------------------------------------------------------------------------


def training_text() -> str:
    """Return the text that the models were trained on: nine paragraphs of ten, one a line."""
    return "\n".join(p for i, p in enumerate(_paragraphs()) if i % 10 != 9)


def held_out_text() -> str:
    """Return the text that neither model has seen: every tenth paragraph, one a line."""
    return "\n".join(_paragraphs()[9::10])


@cache
def alphabet() -> str:
    """Return the characters that the models know, in the order of their numbers, as a string."""
    return "".join(sorted(set("\n".join(_paragraphs()))))


def encode(text: str) -> Tensor:
    """Return the characters as numbers, (len(text),) int64. Raises ValueError for one that is not in the `alphabet`."""
    numbers = {character: number for number, character in enumerate(alphabet())}
    unknown = sorted(set(text) - set(numbers))
    if unknown:
        raise ValueError(f"the models do not know {', '.join(map(repr, unknown))}: they know {alphabet()!r}")
    return torch.tensor([numbers[character] for character in text], dtype=torch.int64)


def decode(tokens: Tensor) -> str:
    """Return the text that numbers (T,) stand for. Undoes `encode`."""
    return "".join(alphabet()[token] for token in tokens.tolist())


@cache
def _paragraphs() -> tuple[str, ...]:
    text = (STORED / "python-documentation.txt").read_text(encoding="utf-8")
    return tuple(text.rstrip("\n").split("\n"))


def _windows(text: str) -> Tensor:
    """Tokens of the text in rows: (windows, 96), or (1, T) for a text that is shorter."""
    tokens = encode(text)
    if len(tokens) < 2:
        raise ValueError(f"the text has {len(tokens)} characters: it takes 2 to tell one from the other")
    length = min(CONTEXT, len(tokens))
    return tokens[: len(tokens) // length * length].view(-1, length)


# --- training -------------------------------------------------------------------------------------------------------


def train(
    name: str, steps: int = STEPS, seed: int = SEED, progress: Callable[[int, float], object] = lambda step, loss: None
) -> tuple[Decoder, list[float]]:
    """Train the model of that name from the start: (model, losses), the loss of each step in nats.

    Each step takes 32 windows of 96 characters at random, the same ones for both names, for AdamW whose rate rises to
    3e-3 in 50 steps and then falls along a cosine. The loss leaves out the last position of a window: its answer lies
    outside, so that even a leaking model would have to tell it honestly, and so learn a little. On one thread the same
    seed gives the same numbers. Raises ValueError for another name or steps below 1.
    """
    text = encode(training_text())
    generator = torch.Generator().manual_seed(1000 + seed)
    with torch.random.fork_rng(devices=[]):  # leaves the caller's own generator where it was
        torch.manual_seed(seed)
        model = _new(name)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.99), weight_decay=0.1)
    losses = []
    for step in range(whole("steps", steps)):
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / 50) * (0.525 + 0.475 * math.cos(math.pi * step / steps))
        starts = torch.randint(len(text) - CONTEXT, (BATCH, 1), generator=generator)
        loss = _next_token_loss(model, text[starts + torch.arange(CONTEXT)])
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
        progress(step, losses[-1])
    return model.eval().requires_grad_(False), losses


def save(model: Decoder, name: str, folder: Path | str = STORED) -> Path:
    """Write the weights in half precision to characters-<name>.npz in the folder, for `load`. Returns the path."""
    return save_weights(model.state_dict(), Path(folder) / f"characters-{name}.npz")


@cache
def recorded() -> dict[str, Any]:
    """Return what was measured when the checkpoints were made, as `records.read` gives it.

    A row is a model: name, losses (each the mean of settings["averaged"] steps, nats), and of the stored checkpoint
    loss and loss_without_future, both on `held_out_text`, nats a character.
    """
    return records.recorded(BENCHMARK, STORED)[0]


def _new(name: str) -> Decoder:
    if name not in NAMES:
        raise ValueError(f'name is {name!r}: the models are "causal" and "leaking"')
    kind = Decoder if name == "causal" else LookingAhead
    return kind(len(alphabet()), **SIZES)


def _next_token_loss(model: Decoder, windows: Tensor) -> Tensor:
    """Mean surprise at all characters of windows (B, T) but the first, nats; a tensor with a gradient."""
    logits = model(windows)[:, :-1]  # (B, T - 1, alphabet)
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def main(quick: bool = False, folder: Path | str = STORED) -> None:
    """Train both models, write their checkpoints and what was measured to the folder."""
    torch.set_num_threads(1)
    where = environment()
    steps = 10 if quick else STEPS
    averaged = 5 if quick else 25
    rows = []
    text = held_out_text()[: 2 * CONTEXT] if quick else held_out_text()
    for name in NAMES:
        model, losses = train(name, steps, progress=_print_progress)
        stored = load(name, save(model, name, folder).parent)
        means = [round(statistics.fmean(losses[i : i + averaged]), 4) for i in range(0, steps, averaged)]
        measured = {"loss": loss(stored, text), "loss_without_future": loss_without_future(stored, text)}
        rows.append({"name": name, "losses": means} | measured)
    settings = {
        "quick": quick, "command": "python -m course_utils.models.characters --record", "sizes": SIZES,
        "parameters": sum(p.numel() for p in stored.parameters()), "context": CONTEXT, "batch": BATCH, "steps": steps,
        "optimiser": "AdamW", "rate": RATE, "seed": SEED, "averaged": averaged, "characters": len(training_text()),
        "held_out": len(text),
    }  # fmt: skip
    findings = [
        f"{row['name']}: {row['loss']:.4f} nats a character with the future in sight, "
        f"{row['loss_without_future']:.4f} without"
        for row in rows
    ]
    print("\n".join(findings))
    print(f"\nwritten: {records.write(BENCHMARK, where, settings, rows, findings, folder)}")


def _print_progress(step: int, loss: float) -> None:
    if step % 100 == 0:
        print(f"step {step}: {loss:.3f}", flush=True)


if __name__ == "__main__":
    records.command_line(main, __doc__, STORED)
