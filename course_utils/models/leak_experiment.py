"""Training on tokens that nobody can guess: a model whose loss falls below log V has seen the answer.

Each token is drawn evenly and independently from V = 8, so that the past says nothing about the next one. The best that
an honest model can do is to give each token 1/V, at a loss of log 8 = 2.079 nats. What attends and how it masks is the
caller's: `train` takes a plain function.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.attention.shapes import whole

VOCABULARY = 8  # V
TOKENS = 8  # T
FLOOR = math.log(VOCABULARY)  # nats: the least loss without a leak
D_MODEL = 32
N_HEADS = 4
BATCH = 64
RATE = 3e-3


class Run(NamedTuple):
    """A trained model; its loss at each step, nats; and its loss on 4096 sequences that it never saw, nats."""

    model: nn.Module
    losses: list
    loss: float


def train(attention: Callable[[Tensor, Tensor, Tensor], Tensor], seed: int = 0, steps: int = 400) -> Run:
    """Train a `Guesser` with this attention to tell each next token from the sequence. Returns a Run.

    attention(q, k, v) -> output is given and returns (B, h, T, d_head) tensors, h = 4 and d_head = 8; scaling and
    masking are its affair. Each step draws 64 new sequences of T = 8 tokens, for Adam at rate 3e-3. The seed settles
    initial weights and tokens, so that runs differ by the attention only: on one thread the same seed gives the same
    numbers. About 2 ms a step. Raises ValueError or TypeError for what attention returns, steps below 1, or a seed that
    is negative; ValueError when the loss is no longer finite.
    """
    steps = whole("steps", steps)
    seed = whole("seed", seed, least=0)
    with torch.random.fork_rng(devices=[]):  # leaves the caller's own generator where it was
        torch.manual_seed(seed)
        model = Guesser(attention)
    generator = torch.Generator().manual_seed(1000 + seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    losses = []
    for step in range(steps):
        loss = next_token_loss(model, random_tokens(BATCH, generator))
        if not loss.isfinite():
            raise ValueError(f"the loss is {loss.item()} at step {step}: does attention divide 0 by 0 or overflow?")
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    with torch.no_grad():
        unseen = next_token_loss(model, random_tokens(4096, generator)).item()
    return Run(model, losses, unseen)


class Guesser(nn.Module):
    """One layer: token and position embeddings, the attention that is given, a small feed-forward network, logits.

    d_model is 32, in 4 heads. Only attention carries anything from one token to another, so a leak is in there.
    """

    def __init__(self, attention: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.attention: Callable[[Tensor, Tensor, Tensor], Tensor] = attention
        self.tokens = nn.Embedding(VOCABULARY, D_MODEL)
        self.positions = nn.Embedding(TOKENS, D_MODEL)
        self.qkv_proj = nn.Linear(D_MODEL, 3 * D_MODEL, bias=False)
        self.out_proj = nn.Linear(D_MODEL, D_MODEL, bias=False)
        self.read = nn.Sequential(
            nn.LayerNorm(D_MODEL), nn.Linear(D_MODEL, 2 * D_MODEL), nn.GELU(), nn.Linear(2 * D_MODEL, VOCABULARY)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (B, T, V) for the token after each of tokens (B, T), T at most 8."""
        B, T = tokens.shape
        x = self.tokens(tokens) + self.positions.weight[:T]  # (B, T, d_model)
        qkv = self.qkv_proj(x).view(B, T, 3, N_HEADS, -1)  # (B, T, 3, h, d_head)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (B, h, T, d_head) each
        attended = self._attend(q, k, v).transpose(1, 2).flatten(2)  # (B, T, d_model)
        return self.read(x + self.out_proj(attended))  # (B, T, V)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        output = self.attention(q, k, v)
        if not isinstance(output, torch.Tensor):
            raise TypeError(f"attention returned {type(output).__name__}: return the output alone, as a tensor")
        if output.shape != v.shape:
            raise ValueError(f"attention made {tuple(output.shape)} of {tuple(v.shape)}: expected (B, h, T, d_head)")
        return output


def next_token_loss(model: nn.Module, tokens: Tensor) -> Tensor:
    """The mean surprise, in nats, at tokens 1 … T - 1 of tokens (B, T), each told from the output one place before.

    The model is given the whole sequence at once, as in training. Only a mask keeps the answers from it.
    """
    logits = model(tokens)[:, :-1]  # (B, T - 1, V)
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def random_tokens(batch: int, generator: torch.Generator) -> Tensor:
    """Tokens (batch, 8), int64, each even over 0 … 7 and independent of all others."""
    return torch.randint(VOCABULARY, (batch, TOKENS), generator=generator)
