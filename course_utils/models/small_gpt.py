"""The small language model of the capstone: the course's decoder on the plays of Shakespeare, with your own parts.

`data` gives the text as tokens, `new_model` an untrained model, `batches` what a training step reads, `bits_per_byte`
how well a model tells text that it was not trained on, and `write` a text of its own. `models.training` trains it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.attention.multihead import grouped_attention
from course_utils.attention.shapes import whole
from course_utils.models.byte_pairs import BytePairs, train_merges
from course_utils.models.decoder import Decoder, generate, put_parts

SIZES: dict[str, Any] = {"d_model": 192, "n_layers": 3, "n_heads": 6, "d_ff": 512}
VOCABULARY = 1024
CONTEXT = 64  # tokens in a window
BATCH = 8  # windows in a step
EMBEDDING_STD = 0.02
TEXT = Path(__file__).parents[1] / "data" / "models" / "tinyshakespeare.txt"
ROWS = 32  # windows that are measured at once


@dataclass(frozen=True)
class Data:
    """A text as tokens: train (n,) to train on, held_out (m,) to measure with; int64 both."""

    tokenizer: BytePairs
    train: Tensor
    held_out: Tensor

    @cached_property
    def lengths(self) -> Tensor:
        """The number of bytes of each token of the vocabulary, (vocabulary,) int64."""
        numbers = range(self.tokenizer.vocabulary)
        return torch.tensor([len(self.tokenizer.bytes_of(number)) for number in numbers])


@cache
def data(vocabulary: int = VOCABULARY) -> Data:
    """Return the plays of Shakespeare with a vocabulary of that size, 256 for single bytes, as `data_of` cuts them."""
    return data_of(TEXT.read_bytes(), vocabulary)


def data_of(text: bytes, vocabulary: int) -> Data:
    """Return a text of your own: its first nine tenths to train on, the rest held out.

    The merges are learned from the first part alone, so that nothing of the held-out text gets into the model. Raises
    ValueError for a vocabulary below 256.
    """
    cut = len(text) * 9 // 10
    tokenizer = BytePairs(train_merges(text[:cut], vocabulary))
    train, held_out = (torch.tensor(tokenizer.encode(part), dtype=torch.int64) for part in (text[:cut], text[cut:]))
    return Data(tokenizer, train, held_out)


def new_model(
    vocabulary: int = VOCABULARY, parts: Mapping[str, Callable] | None = None, seed: int = 0, **sizes: Any
) -> Decoder:
    """Return an untrained model: `Decoder` with RMSNorm, RoPE, gated feed-forward networks and tied embeddings.

    parts are functions in the place of the course's own in every layer, by the names of `decoder.PARTS`. sizes are
    arguments of `Decoder` that differ from SIZES. The same seed gives the same weights. Raises ValueError for a part
    that is not there, and as `Decoder` does.
    """
    with torch.random.fork_rng(devices=[]):  # leaves the caller's own generator where it was
        torch.manual_seed(seed)
        model = Decoder(vocabulary, **({"gated": True, "tied": True} | SIZES | sizes))
        initialise(model)
    put_parts(model, {"grouped_attention": attend} | dict(parts or {}))
    return model


def initialise(model: Decoder) -> None:
    """Draw new weights for a model, so that it begins with nearly equal scores for all tokens.

    Embeddings get a standard deviation of 0.02, matrices 1/√(numbers that come in); those that write into the residual
    stream begin at 0, so that each block begins as the identity.
    """
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) or name == "unembedding":
            nn.init.normal_(cast(Tensor, module.weight), std=EMBEDDING_STD)
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=module.in_features**-0.5)
        if name.endswith(("out_proj", "down")):
            nn.init.zeros_(cast(Tensor, module.weight))


def attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """`multihead.grouped_attention`, but in training, where nobody reads the weights, PyTorch's, which makes none."""
    if not torch.is_grad_enabled():
        return grouped_attention(q, k, v, mask, dropout, scale)
    grouped = q.shape[1] != k.shape[1]
    output = F.scaled_dot_product_attention(q, k, v, mask, dropout, scale=scale, enable_gqa=grouped)
    return output, q.new_empty(0)


def batches(
    tokens: Tensor, context: int = CONTEXT, batch: int = BATCH, seed: int = 0, step: int = 0
) -> tuple[Tensor, Tensor]:
    """Return what one step of training reads: (inputs, targets), each (batch, context), drawn by seed and step alone.

    targets are the tokens that follow the inputs. Raises ValueError for a text with fewer than context + 1 tokens.
    """
    if len(tokens) <= whole("context", context):
        raise ValueError(f"the text has {len(tokens)} tokens: a window of {context} with its targets takes one more")
    starts = np.random.default_rng((seed, step)).integers(len(tokens) - context, size=(batch, 1))
    windows = tokens[torch.from_numpy(starts) + torch.arange(context + 1)]  # (batch, context + 1)
    return windows[:, :-1], windows[:, 1:]


def loss_of(model: Decoder, inputs: Tensor, targets: Tensor) -> Tensor:
    """The mean loss in nats a token of (inputs, targets), each (B, T): a tensor with a gradient."""
    logits = cast(Tensor, model(inputs))  # (B, T, vocabulary)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@torch.no_grad()
def bits_per_byte(
    model: Decoder, data: Data, context: int = CONTEXT, windows: int | None = None, split: str = "held_out"
) -> float:
    """Return the mean loss on the held-out text in bits for each byte, which compares models of any vocabulary.

    The text is cut into windows of `context` inputs (a rest is dropped), of which the first `windows` are measured; in
    each, the model knows nothing of what stands before. split "train" measures on the text for training. Raises
    ValueError for a text that is shorter than one window.
    """
    tokens = getattr(data, split)
    count = (len(tokens) - 1) // whole("context", context)
    count = count if windows is None else min(count, whole("windows", windows))
    if count < 1:
        raise ValueError(f"the text has {len(tokens)} tokens: a window of {context} with its targets takes one more")
    inputs = tokens[: count * context].view(-1, context)
    targets = tokens[1 : count * context + 1].view(-1, context)
    pairs = zip(inputs.split(ROWS), targets.split(ROWS), strict=True)
    nats = sum(loss_of(model, some, wanted).item() * wanted.numel() for some, wanted in pairs)
    return nats / data.lengths[targets].sum().item() / math.log(2)


def per_byte(nats: float, tokens: Tensor, data: Data) -> float:
    """Return a loss in nats a token as bits per byte, for tokens (n,) as long as those of this text."""
    return nats / math.log(2) / data.lengths[tokens].double().mean().item()


def write(
    model: Decoder,
    tokenizer: BytePairs,
    prompt: str,
    n: int,
    seed: int = 0,
    temperature: float = 0.8,
    context: int = CONTEXT,
) -> str:
    """Continue the prompt by n tokens, drawn one by one: returns their text, without the prompt.

    The model sees the last `context` tokens, as in training. Temperature 0 takes the likeliest. The same seed gives the
    same text. Bytes that are no UTF-8 show as �. Raises ValueError for an empty prompt.
    """
    tokens = torch.tensor([tokenizer.encode(prompt)], dtype=torch.int64)  # (1, T)
    begun = tokens.shape[1]
    if not begun:
        raise ValueError("prompt is empty: give the model at least one character to go on from")
    generator = torch.Generator().manual_seed(seed)
    for _ in range(whole("n", n, least=0)):
        newest = generate(model, tokens[:, -context:], 1, temperature=temperature, generator=generator)  # (1, 1)
        tokens = torch.cat([tokens, newest], dim=1)
    return tokenizer.decode(tokens[0, begun:].tolist()).decode(errors="replace")
