"""Four small models that do not learn, and the five lines to print first.

All have the same task, to name the previous token. Their bugs are at the end, for those who have found them.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.attention import masks
from course_utils.models.leak_experiment import D_MODEL, FLOOR, TOKENS, VOCABULARY

D_HEAD = 16


@dataclass(frozen=True)
class VitalSigns:
    """What to look at first in a model that does not learn, the cheapest first.

    Attributes:
        loss: the loss at the start, nats.
        scores: the lowest and the highest score that the mask lets through.
        mask: (T, T), boolean.
        row: the weights of one query in the middle, (T,).
        norms: the length of the gradient of each parameter, by name; None where the loss does not reach it.
    """

    loss: float
    scores: tuple[float, float]
    mask: Tensor
    row: list[float]
    norms: dict[str, float | None]


def vital_signs(model: Any, texts: Tensor) -> VitalSigns:
    """Return the five vital signs of a model on texts, whole numbers (B, T).

    `model.loss(texts)` returns the loss, nats, and leaves in `model.head` what it used: `scores` and `weights`,
    (B, T, T), and `mask`, (T, T).
    """
    loss = model.loss(texts)
    head = model.head
    scores = head.scores[..., head.mask]
    names, parameters = zip(*model.named_parameters(), strict=True)
    slopes = torch.autograd.grad(loss, parameters, allow_unused=True)
    norms = {name: None if slope is None else slope.norm().item() for name, slope in zip(names, slopes, strict=True)}
    middle = head.weights[0, len(head.mask) // 2].tolist()
    return VitalSigns(loss.item(), (scores.min().item(), scores.max().item()), head.mask, middle, norms)


def look(model: Any, texts: Tensor) -> None:
    """Print the vital signs of a model, a number before each: its loss, scores, mask, one row and gradients."""
    signs = vital_signs(model, texts)
    mask = signs.mask
    print(f"1 loss      {signs.loss:.2f}, blind guessing {FLOOR:.2f}")
    print(f"2 scores    {signs.scores[0]:.1f} to {signs.scores[1]:.1f}")
    print(f"3 mask      keys open ahead: {mask.triu(1).sum()}, rows empty: {(~mask.any(-1)).sum()}")
    print(f"4 row {len(mask) // 2}     {[round(weight, 2) for weight in signs.row]}")
    for name, norm in signs.norms.items():
        print(f"5 gradient  {name:16} {'none' if norm is None else f'{norm:.3f}'}")


def patients(seed: int = 0) -> list["SayTheTokenBefore"]:
    """Make the four models that do not learn, untrained; the seed settles their weights, and each has its own bug."""
    models = []
    with torch.random.fork_rng(devices=[]):  # leaves the caller's own generator where it was
        for number, head_class in enumerate((Itself, Zeros, Detached, Strict)):
            torch.manual_seed(4 * seed + number)
            models.append(SayTheTokenBefore(head_class(D_MODEL, D_HEAD)))
    return models


class CausalHead(nn.Module):
    """One head of causal attention, which keeps its scores, mask and weights: (…, T, d_model) -> (…, T, d_head)."""

    def __init__(self, d_model: int, d_head: int) -> None:
        super().__init__()
        self.W_q = nn.Linear(d_model, d_head, bias=False)
        self.W_k = nn.Linear(d_model, d_head, bias=False)
        self.W_v = nn.Linear(d_model, d_head, bias=False)

    def causal(self, T: int) -> Tensor:
        return masks.causal(T)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)  # (…, T, d_head)
        self.scores = q @ k.mT / q.shape[-1] ** 0.5  # (…, T, T)
        self.mask = self.causal(x.shape[-2])  # (T, T)
        self.weights = torch.softmax(self.scores + masks.to_additive(self.mask), dim=-1)  # (…, T, T)
        return self.weights @ v


class SayTheTokenBefore(nn.Module):
    """Output i of a head is read as a guess of token i - 1: `loss(texts)` for texts (B, 8) is the mean, nats."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, D_MODEL)
        self.places = nn.Embedding(TOKENS, D_MODEL)
        self.head = head
        self.read = nn.Linear(D_HEAD, VOCABULARY)

    def loss(self, texts: Tensor) -> Tensor:
        x = self.tokens(texts) + self.places.weight  # (B, T, d_model)
        guesses = self.read(self.head(x))[:, 1:]  # (B, T - 1, 8): no target at position 0
        return F.cross_entropy(guesses.flatten(0, 1), texts[:, :-1].flatten())


class Itself(CausalHead):
    def causal(self, T: int) -> Tensor:
        return torch.eye(T, dtype=torch.bool)


class Zeros(CausalHead):
    def __init__(self, d_model: int, d_head: int) -> None:
        super().__init__(d_model, d_head)
        nn.init.zeros_(self.W_q.weight)
        nn.init.zeros_(self.W_k.weight)


class Detached(CausalHead):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).detach()


class Strict(CausalHead):
    def causal(self, T: int) -> Tensor:
        return super().causal(T).tril(-1)
