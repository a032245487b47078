"""What the heads, the scale, the positions and the caches of the real model do: one function for each question.

A head is named (layer, head), both from 0. Weights are shares from 0 to 1, losses nats a token. Functions take a
`real.Real`, and where they take tokens, (1, T) int64, `opening` gives a text's and `copies` random ones. They raise
ValueError or TypeError for tokens or heads that the model does not have. `facts_record` holds what all of them gave.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.attention.cache import Cache, ContiguousCache, QuantisedCache
from course_utils.attention.masks import causal, sink_window
from course_utils.attention.multihead import MultiHeadAttention
from course_utils.attention.scaling import entropy
from course_utils.attention.shapes import whole
from course_utils.models.decoder import Decoder, new_caches
from course_utils.models.real import Real

Head = tuple[int, int]

TEXT = Path(__file__).parents[1] / "data" / "models" / "tinyshakespeare.txt"
# the random text: so many tokens, so many times, drawn from 1,000 to 39,999
PERIOD = 64
COPIES = 3
BETWEEN = (1000, 40_000)
COPYING = 8  # heads that are switched off together: the best induction heads, or as many others
SUBJECT_HEAD: Head = (13, 8)  # the head that looks from a verb at who does it
SWEPT = range(30)  # layers whose heads are switched off one by one
READ = (  # sentence, word that looks, word that is looked at
    ("The parcel that we sent arrived", "arrived", "parcel"),
    ("The parcel that we sent arrived", "sent", "we"),
    ("The parcel that we sent arrived", "that", "parcel"),
    ("The parcel that we sent to the doctor arrived", "arrived", "parcel"),
    ("The letters that the man wrote arrived", "arrived", "letters"),
    ("The keys that the teacher left on the table were", "were", "keys"),
    ("The boats that the captain sold were", "were", "boats"),
    ("The package missed the dock because it", "it", "package"),
    ("The animal didn't cross the street because it was too tired", "it", "animal"),
    ("The animal didn't cross the street because it was too wide", "it", "animal"),
)
PLURAL = (
    "The keys that the teacher left on the table",
    "The boats that the captain sold",
    "The letters that the man wrote",
    "The dogs near the house",
    "The pictures in the old book",
    "The windows of the big house",
)
SINGULAR = (
    "The key that the teachers left on the tables",
    "The boat that the captains sold",
    "The letter that the men wrote",
    "The dog near the houses",
    "The picture in the old books",
    "The window of the big houses",
)
DIVISORS = (1, 2, 4, 8, 16, 32, 64)  # of the scores; 8 is the model's own, √64
WINDOWS = ((None, 0), (128, 0), (124, 4), (127, 1))  # tokens that are seen: the last ones, and the first of the text
PROMPTS = {
    "a story": "Once upon a time",
    "three alike functions": '''def area_of_square(side):
    """Return the area of a square."""
    if side < 0:
        raise ValueError("side must not be negative")
    return side * side


def area_of_rectangle(width, height):
    """Return the area of a rectangle."""
    if width < 0 or height < 0:
        raise ValueError("width and height must not be negative")
    return width * height


def area_of_circle(radius):''',
}


# --- texts ----------------------------------------------------------------------------------------------------------


def opening(real: Real, n: int) -> Tensor:
    """Return the first n tokens of TEXT, plays of Shakespeare: (1, n) int64."""
    tokens = real.tokenizer.encode(TEXT.read_text(encoding="utf-8")[: 8 * whole("n", n)])[:n]
    if len(tokens) < n:
        raise ValueError(f"n is {n}: the text has {len(tokens)} tokens")
    return torch.tensor([tokens])


def copies(period: int = PERIOD, times: int = COPIES, seed: int = 0, between: tuple[int, int] = BETWEEN) -> Tensor:
    """Random tokens, the same `period` of them several times: (1, times · period) int64.

    between are the smallest token and the one after the largest. The same seed gives the same tokens.
    """
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(*between, (1, whole("period", period)), generator=generator).repeat(1, whole("times", times))


def loss(real: Real, tokens: Tensor, off: Iterable[Head] = (), **options: Any) -> float:
    """Return the mean loss of tokens (1, T), each scored from those before it; heads in `off` are switched off.

    options go to the model. Source for heads switched off: Michel et al. 2019, section 2.3.
    """
    return token_losses(real, tokens, head_masks=_on(real, off), **options).mean().item()


def token_losses(real: Real, tokens: Tensor, mask: Tensor | None = None, **options: Any) -> Tensor:
    """Return the loss at each token but the first, nats: (T - 1,) for tokens (1, T), under this mask or the causal one.

    options go to the model.
    """
    return _losses(real.model, tokens, mask=mask, **options)


def loss_by_copy(real: Real, tokens: Tensor, period: int = PERIOD, off: Iterable[Head] = ()) -> list[float]:
    """Return the mean loss of each copy of `period` tokens; heads in `off` are switched off.

    tokens are `copies` of `period` tokens. The first token of a copy belongs to it, although nothing tells the model
    that a copy begins; the first of the text has no loss.
    """
    if tokens.shape[1] % whole("period", period):
        raise ValueError(f"tokens is {tuple(tokens.shape)}: that is no whole number of pieces of {period} tokens")
    losses = _losses(real.model, tokens, head_masks=_on(real, off))  # (T - 1,)
    first, *later = torch.cat([losses[:1], losses]).split(period)
    return [each.mean().item() for each in (first[1:], *later)]


# --- where heads look -----------------------------------------------------------------------------------------------


def first_token_shares(real: Real, tokens: Tensor, since: int = 64) -> Tensor:
    """The weight that each head gives the first token, the mean over the queries from `since` on: (layers, heads).

    Source: Xiao et al. 2023 (attention sinks), section 3.1 and figure 2.
    """
    if tokens.shape[1] <= whole("since", since, least=0):
        raise ValueError(f"since is {since} but there are {tokens.shape[1]} tokens: no query is left")
    return _of_heads(real, tokens, lambda weights: weights[:, since:, 0].mean(-1))


def previous_token_scores(real: Real, tokens: Tensor) -> Tensor:
    """Return the weight from a token to the one before it, the mean over all tokens but the first: (layers, heads).

    Source: Olsson et al. 2022, "Key concepts" (previous token heads).
    """
    return _of_heads(real, tokens, lambda weights: weights.diagonal(-1, dim1=-2, dim2=-1).mean(-1))


def induction_scores(real: Real, tokens: Tensor, period: int = PERIOD, off: Iterable[Head] = ()) -> Tensor:
    """Return the weight from a token to the one after its copy, one period earlier: (layers, heads).

    tokens are `copies` of `period` tokens; the mean is over all tokens after the first copy. Heads in `off` are
    switched off: they look, but nobody learns what they found. A head that divides its
    weight between two earlier copies has the nearer part counted only. Source: Olsson et al. 2022, appendix (prefix
    matching score).
    """
    if tokens.shape[1] < 2 * whole("period", period):
        raise ValueError(f"tokens is {tuple(tokens.shape)}: a piece of {period} tokens, twice, takes {2 * period}")
    return _of_heads(real, tokens, lambda weights: weights.diagonal(1 - period, dim1=-2, dim2=-1)[:, 1:].mean(-1), off)


def own_scores(real: Real, tokens: Tensor, score: Callable[[Tensor], Any]) -> Tensor:
    """Return what somebody's own function says of each head's weights (T, T), a number: (layers, heads)."""
    return _of_heads(real, tokens, lambda weights: torch.tensor([float(score(head)) for head in weights]))


def where(real: Real, sentence: str, from_word: str, to_word: str) -> Tensor:
    """Return the weights of all heads from the last `from_word` of a sentence to the first `to_word`: (layers, heads).

    A word is one token, with the space before it or without. Raises ValueError where it is none. A weight says where a
    head looks, not what the model does with what it found there: see `margins`, and Jain and Wallace 2019.
    """
    tokens, weights, _ = real.look(sentence)
    words = [token.strip() for token in tokens]
    for word in (from_word, to_word):
        if word not in words:
            raise ValueError(f"{word!r} is no token of this sentence: {tokens}")
    i, j = len(words) - 1 - words[::-1].index(from_word), words.index(to_word)
    return weights[:, :, i, j]


def best(scores: Tensor, n: int) -> list[Head]:
    """Return the n heads with the largest scores (layers, heads), the largest first."""
    places = scores.flatten().topk(n).indices.tolist()
    return [divmod(place, scores.shape[1]) for place in places]


# --- heads switched off ---------------------------------------------------------------------------------------------


def random_heads(real: Real, n: int, seed: int, without: Iterable[Head] = ()) -> list[Head]:
    """n different heads, drawn from all but those in `without`."""
    pool = [divmod(place, real.model.n_heads) for place in range(len(real.model.blocks) * real.model.n_heads)]
    pool = [head for head in pool if head not in {*without}]
    return [pool[i] for i in np.random.default_rng(seed).choice(len(pool), n, replace=False)]


def margins(real: Real, off: Iterable[Head] = ()) -> Tensor:
    """Return by how much the verb with the right number is likelier, in each sentence of PLURAL and SINGULAR: (12,).

    It is the mean of the logits of *were* and *are* less the mean of those of *was* and *is*, with the other sign where
    the subject is singular. Above 0 the number is right. Heads in `off` are switched off.

    What it does not show: that a head does not matter because nothing changes without it. Others may stand in for it
    (McGrath et al. 2023), and an output of zeros is one that the later layers have never seen. The verb is told from
    the token before it, where a head may look elsewhere (`subject_weights`) than from the verb itself, from which
    `where` reads. And the sentences are twelve.
    Source: Linzen et al. 2016 for the test; Michel et al. 2019, section 3, for single heads.
    """
    were, was, are, are_not = (_number(real, word) for word in (" were", " was", " are", " is"))
    sentences = [real.tokenizer.encode(sentence) for sentence in (*PLURAL, *SINGULAR)]
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    tokens = torch.zeros(len(sentences), int(lengths.max()), dtype=torch.int64)  # (12, T), padded on the right
    for row, sentence in zip(tokens, sentences, strict=True):
        row[: len(sentence)] = torch.tensor(sentence)
    with torch.no_grad():
        logits = real.model(tokens, head_masks=_on(real, off), at=lengths - 1)[:, 0].float()  # (12, vocabulary)
    plural = (logits[:, were] + logits[:, are] - logits[:, was] - logits[:, are_not]) / 2  # (12,)
    return plural * torch.tensor([1.0] * len(PLURAL) + [-1.0] * len(SINGULAR))


def subject_weights(real: Real) -> Tensor:
    """Return the weights from the end of each sentence of PLURAL and SINGULAR to its subject: (layers, heads, 12).

    The end is the token from which the verb is told, and the subject the second token.
    """
    return torch.stack([real.look(sentence)[1][:, :, -1, 1] for sentence in (*PLURAL, *SINGULAR)], dim=-1)


def margins_without_each(real: Real, layers: Sequence[int] = SWEPT) -> Tensor:
    """`margins` with one head switched off, for each head of these layers: (layers, heads, 12)."""
    heads = range(real.model.n_heads)
    return torch.stack([torch.stack([margins(real, [(layer, head)]) for head in heads]) for layer in layers])


# --- the scale, the rotation, windows -------------------------------------------------------------------------------


def loss_without(real: Real, tokens: Tensor, scaled: bool = True, rotated: bool = True) -> float:
    """Return the loss of tokens (1, T) with the scale 1/√d_head or the rotation (RoPE) left out of every layer.

    The model was trained with both, so this says that it needs them, not that no model could do without. real itself
    stays as it is. Source: Vaswani et al. 2017, section 3.2.1; Su et al. 2021 (RoPE).
    """
    weights = {id(weight): weight for weight in real.model.parameters()}
    model = copy.deepcopy(real.model, cast("dict[int, Any]", weights))  # layers of its own, on the same weights
    for block in model.blocks:
        layer = cast(MultiHeadAttention, block.attention)
        layer.scale = layer.scale if scaled else 1.0
        layer.rope = layer.rope if rotated else None
    return _losses(model, tokens).mean().item()


def divided_by(real: Real, divisor: float) -> Real:
    """Return the model with all scores divided by this number in place of √d_head. Raises ValueError unless it is > 0.

    Source: Vaswani et al. 2017, section 3.2.1.
    """
    if not 0 < divisor < float("inf"):
        raise ValueError(f"divisor is {divisor}: give a positive, finite number")
    changed = real.with_parts({})  # layers of its own, on the same weights
    for block in changed.model.blocks:
        cast(MultiHeadAttention, block.attention).scale = 1 / divisor
    return changed


def effective_keys(real: Real, tokens: Tensor, since: int = 64) -> float:
    """Among how many keys a query spreads its weight: e^H, the mean over all heads and the queries from `since` on."""
    if tokens.shape[1] <= whole("since", since, least=0):
        raise ValueError(f"since is {since} but there are {tokens.shape[1]} tokens: no query is left")
    return _of_heads(real, tokens, lambda weights: entropy(weights[:, since:]).exp().mean(-1)).mean().item()


def looking_ahead(real: Real, layers: Sequence[int] | None = None) -> Real:
    """Return the model without a causal mask in these layers, or in all: each token there sees the whole text."""
    return real.with_parts({"mask": lambda n, m: torch.ones(n, m, dtype=torch.bool)}, layers)


@torch.no_grad()
def moved_before(real: Real, tokens: Tensor) -> float:
    """How far the logits before the last token move, at most, when that token becomes the first one. 0 is no leak."""
    changed = tokens.clone()
    changed[0, -1] = tokens[0, 0]
    return (real.model(changed) - real.model(tokens))[0, :-1].abs().max().item()


def window_loss(real: Real, tokens: Tensor, window: int | None, first: int = 0) -> float:
    """The loss of tokens (1, T) where each sees the last `window` tokens, itself included, and the `first` of the text.

    None lets it see all. Positions stay those in the text; in Xiao et al. 2023, section 3.2, they are those in the
    cache. Raises ValueError for a window below 1.
    """
    n = tokens.shape[1]
    kept = whole("first", first, least=0)
    return loss(real, tokens, mask=causal(n) if window is None else sink_window(n, window, kept))


# --- caches ---------------------------------------------------------------------------------------------------------


class Float8Cache(ContiguousCache):
    """A contiguous cache of numbers rounded to float8_e4m3fn, with one scale for each token and head.

    It rounds as an fp8 cache does, and keeps the result in the cache's own dtype: it tells what the rounding costs and
    saves no bytes. Source: Micikevicius et al. 2022 (FP8 formats), section 3.
    """

    def update(
        self, k: Tensor, v: Tensor, lengths: Sequence[int] | Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        return super().update(in_float8(k), in_float8(v), lengths)


def in_float8(x: Tensor) -> Tensor:
    """x (…, d_head), each vector scaled so that its largest number is 448, rounded to float8_e4m3fn, and scaled back.

    The mantissa has three bits, so a number comes back within 1/16 of itself, or, where it is small beside the largest,
    within 2⁻¹⁰ scales.
    """
    scales = x.abs().amax(-1, keepdim=True) / torch.finfo(torch.float8_e4m3fn).max  # (…, 1)
    steps = x / scales.masked_fill(scales == 0, 1)
    return steps.to(torch.float8_e4m3fn).to(x.dtype) * scales


CACHES: dict[str, Callable[..., Cache]] = {"float32": ContiguousCache, "int8": QuantisedCache, "fp8": Float8Cache}


def rounded_cache(bits: int, one_scale: bool = False, keys: bool = True, values: bool = True) -> type[ContiguousCache]:
    """A contiguous cache of keys and values rounded to so many bits, in the cache's own dtype: it saves no bytes.

    A scale is a largest |x| / (2^(bits − 1) − 1): that of each token and head, or, with one_scale, of all that one call
    stores in the layer. keys and values say which of the two are rounded at all.
    """
    most = 2 ** (bits - 1) - 1

    def round_off(x: Tensor) -> Tensor:
        scales = x.abs().amax((-3, -2, -1) if one_scale else -1, keepdim=True) / most
        return (x / scales.masked_fill(scales == 0, 1)).round() * scales

    class RoundedCache(ContiguousCache):
        def update(
            self, k: Tensor, v: Tensor, lengths: Sequence[int] | Tensor | None = None
        ) -> tuple[Tensor, Tensor, Tensor]:
            return super().update(round_off(k) if keys else k, round_off(v) if values else v, lengths)

    return RoundedCache


# name, bits, whether one scale serves the layer, whether keys are rounded, and whether values are
FEWER_BITS = (
    *((f"{bits} bits", bits, False, True, True) for bits in (8, 6, 5, 4, 3)),
    *((f"{bits} bits, one scale", bits, True, True, True) for bits in (8, 4)),
    ("4 bits, keys alone", 4, False, True, False),
    ("4 bits, values alone", 4, False, False, True),
)


def cache_losses(real: Real, tokens: Tensor, kind: Callable[..., Cache]) -> Tensor:
    """The loss at each of tokens (1, T) but the first, read in one pass through new caches of this kind: (T - 1,).

    All keys and values go through the caches, those of the newest token too. Which way a number is rounded hangs on its
    last bits: the same tokens in chunks move an int8 cache's mean by a thousandth. Compare means with the standard
    error of the differences. Source: Dettmers et al. 2022 (LLM.int8()), section 3.1, for one scale a vector.
    """
    return _losses(real.model, tokens, caches=new_caches(real.model, kind, 1, capacity=tokens.shape[1]))


def spikes(real: Real, tokens: Tensor) -> dict[str, float]:
    """How far the largest number of a key, and of a value, stands out: its size over the root mean square of all.

    Means over the layers, heads and tokens (1, T), as the caches get them: keys are turned by their positions already.
    """
    seen: dict[str, list[Tensor]] = {"keys": [], "values": []}

    class Watched(ContiguousCache):
        def update(
            self, k: Tensor, v: Tensor, lengths: Sequence[int] | Tensor | None = None
        ) -> tuple[Tensor, Tensor, Tensor]:
            for name, x in (("keys", k), ("values", v)):
                seen[name].append(x.abs().amax(-1) / x.square().mean(-1).sqrt())  # (1, h_kv, T)
            return super().update(k, v, lengths)

    cache_losses(real, tokens, Watched)
    return {name: torch.stack(each).mean().item() for name, each in seen.items()}


# --- drafts ---------------------------------------------------------------------------------------------------------


def look_up(tokens: Sequence[int], most: int = 4) -> list[int]:
    """Return the draft after these tokens: up to `most` that followed the last place where the last two stood before.

    Empty where they never did. Source: Saxena 2023 (prompt lookup decoding).
    """
    tokens = list(tokens)
    for place in range(len(tokens) - 1, 1, -1):
        if tokens[place - 2 : place] == tokens[-2:]:
            return tokens[place : place + most]
    return []


def draft_passes(real: Real, prompt: str, n: int = 60, most: int = 4) -> list[tuple[int, int]]:
    """How many tokens each pass got as a draft and how many it kept, when the model continues a prompt by n tokens.

    Returns a pair (drafted, kept) for each pass; a pass writes what it kept and one token more. Both are read from the
    likeliest tokens, one after the other: with drafts the same ones are written (Leviathan et al. 2022, algorithm 1, at
    temperature 0), so that a draft is kept as far as it agrees with them. No draft goes beyond the n tokens, or the end
    of a turn. Raises ValueError as `Real.stream` does.
    """
    tokens = real.encode(prompt)[0].tolist()
    place = len(tokens)
    tokens += real.stream(tokens, n)
    passes = []
    while place < len(tokens):
        draft = look_up(tokens[:place], most)[: len(tokens) - place - 1]
        agrees = takewhile(lambda pair: pair[0] == pair[1], zip(draft, tokens[place:], strict=False))
        passes.append((len(draft), len(list(agrees))))
        place += passes[-1][1] + 1
    return passes


# --- helpers --------------------------------------------------------------------------------------------------------


@torch.no_grad()
def _losses(model: Decoder, tokens: Tensor, **options: Any) -> Tensor:
    """The loss at each token but the first: (T - 1,)."""
    return F.cross_entropy(model(tokens, **options)[0, :-1].float(), tokens[0, 1:], reduction="none")


@torch.no_grad()
def _of_heads(real: Real, tokens: Tensor, measure: Callable[[Tensor], Tensor], off: Iterable[Head] = ()) -> Tensor:
    """What is measured of each layer's weights (heads, T, T), (heads,): together (layers, heads)."""
    layers = real.model(tokens, head_masks=_on(real, off), return_weights=True)[1]
    return torch.stack([measure(weights[0]) for weights in layers])


def _on(real: Real, off: Iterable[Head]) -> Tensor | None:
    """1 for each head and 0 for those in `off`, (layers, heads), or None where all are on."""
    on = torch.ones(len(real.model.blocks), real.model.n_heads)
    for layer, head in off:
        if not (0 <= layer < len(on) and 0 <= head < on.shape[1]):
            raise ValueError(f"({layer}, {head}) is no head: the model has {len(on)} layers of {on.shape[1]} heads")
        on[layer, head] = 0
    return None if on.all() else on


def _number(real: Real, word: str) -> int:
    numbers = real.tokenizer.encode(word)
    if len(numbers) != 1:
        raise ValueError(f"{word!r} is {len(numbers)} tokens of this model: the margin needs words of one token")
    return numbers[0]
