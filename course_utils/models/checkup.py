"""The loss doctor: is a model fit for training, and does its training go as it should?

`checkup` examines an untrained model with its data in seconds, `checkup_training` the history of a training. Both
return a `Report`: what was found, what a healthy model gives, and for each alarm what it means and where it is.

It knows these illnesses of an untrained model: no mask, shifted targets, no scale, learning rate × 100, untied
positions, softmax over the wrong axis, data leak, frozen layer, wrong vocabulary, large start, rows mixed, dead head,
does not learn. `models.illnesses` plants the first eight. Of a training: wrong vocabulary, large start, learning rate
× 100, stuck at frequencies, answers in sight.
Source: Karpathy 2019, "A recipe for training neural networks", for the order and most of the checks.
"""

from __future__ import annotations

import copy
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from course_utils.attention.multihead import MultiHeadAttention, grouped_attention
from course_utils.attention.rotary import Rotary
from course_utils.costs import records
from course_utils.models import small_gpt, training
from course_utils.models.decoder import Decoder

ROWS = 8  # windows of a batch that is examined
STEPS = 20  # on one batch, by a copy of the model
WINDOW = 64  # bytes of held-out text that are looked for in the training text
WINDOWS = 200
SETTLED = 200  # steps after which a loss says something
LATEST = 20  # steps whose mean is the latest loss
SMOOTHING = 100  # pairs that each row of counted pairs is given, so that none has a probability of 0
EXACT = 1e-3
LARGEST_CHANGE = 0.15  # of a matrix in one step, by its size; healthy rates give 0.01 to 0.1
GPT_2 = 50304  # its vocabulary as nanoGPT rounds it up: what a model gets that was built without asking


@dataclass(frozen=True)
class Finding:
    """One measurement: found in a place, beside what is expected there. An alarm names an illness and what it means."""

    check: str
    place: str
    found: float
    expected: str
    illness: str = ""
    meaning: str = ""


@dataclass(frozen=True)
class Report:
    """All findings of a checkup, in the order of the examination."""

    findings: tuple[Finding, ...]

    @property
    def alarms(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.illness]

    @property
    def illnesses(self) -> list[str]:
        """The illnesses found, each once, in the order of the examination."""
        return list(dict.fromkeys(finding.illness for finding in self.alarms))

    def __str__(self) -> str:
        rows = [
            {"": "✗" if each.illness else "✓", "check": each.check, "place": each.place, "found": each.found}
            | {"expected": each.expected}
            for each in self.findings
        ]
        said = [f"{each.illness} ({each.place}): {each.meaning}" for each in self.alarms]
        return "\n".join([records.table(rows), "", *(said or ["no alarm"])])

    __repr__ = __str__


def checkup(
    model: Decoder,
    data: small_gpt.Data,
    *,
    draw: training.Draw = small_gpt.batches,
    rate: float = training.Recipe.rate,
    context: int = small_gpt.CONTEXT,
    seed: int = 0,
) -> Report:
    """Examine an untrained model with its data, the function that draws its batches, and the rate it will train with.

    The model is left as it is: a copy takes 20 steps on one batch. A trained model does not begin at the logarithm of
    its vocabulary, and so raises an alarm. Raises ValueError for a text with fewer than context + 1 tokens.
    """
    inputs, targets = draw(data.train, context, ROWS, seed, 0)
    findings = [
        *_examine_data(data),
        *_examine_batch(inputs, targets),
        *_examine_start(model, data, inputs, targets),
        *_examine_layers(model, inputs, seed),
        *_examine_rows(model, inputs),
        *_examine_steps(model, inputs, targets, rate),
    ]
    return Report(tuple(findings))


def checkup_training(history: training.History, data: small_gpt.Data) -> Report:
    """Examine the history of a training, finished or interrupted, beside what counting tokens and pairs would give.

    A loss near that of the tokens' frequencies after 200 steps means that the model uses nothing of its context.
    """
    losses, norms = history.losses, history.norms
    highest = max(losses, key=lambda loss: math.inf if math.isnan(loss) else loss)
    now = statistics.fmean(losses[-LATEST:])
    grown = statistics.fmean(norms[-LATEST:]) / statistics.fmean(norms[:LATEST])
    unigrams, bigrams = floors(data)
    most = unigrams - 0.3 * (unigrams - bigrams)
    per_byte = small_gpt.per_byte(now, data.train, data)
    findings = [
        _first_loss(losses[0], math.log(data.tokenizer.vocabulary), GPT_2),
        _finding(
            "highest loss", "training", highest, f"below {losses[0] + 0.5:.2f}", not highest < losses[0] + 0.5,
            "learning rate × 100", "the loss rose above that of guessing: the rate is far too high",
        ),
        _finding(
            "latest gradient, by the first", "training", grown, "below 10", not grown < 10,
            "learning rate × 100", "gradients grow where they should shrink: the rate is far too high",
        ),
        _finding(
            f"latest loss, after {SETTLED} steps", "training", now, f"below {most:.2f}",
            len(losses) >= SETTLED and not now < most, "stuck at frequencies",
            f"counting tokens alone gives {unigrams:.2f}, counting pairs {bigrams:.2f}: so little is learned from "
            "what stands before; lower the rate, warm up, and see that each layer has its residual and its norm",
        ),
        _finding(
            "bits per byte", "training", per_byte, "above 1", per_byte < 1, "answers in sight",
            "so few steps cannot tell this text so well: the mask, the targets or the data show the answers",
        ),
    ]  # fmt: skip
    return Report(tuple(findings))


def floors(data: small_gpt.Data) -> tuple[float, float]:
    """The least losses, in nats a token of the training text, from its frequencies alone and from those of its pairs.

    The second is the entropy of a token when the one before is known.
    """
    tokens = data.train.numpy()
    single = _entropy(tokens[1:])
    return single, _entropy(tokens[:-1] * data.tokenizer.vocabulary + tokens[1:]) - _entropy(tokens[:-1])


def floors_on_held_out(data: small_gpt.Data) -> tuple[float, float]:
    """What the tokens and the pairs that were counted in the training text cost on the held-out text, nats a token.

    What was never seen needs a probability, too: each token counts once more, and the pairs that begin with a token
    get 100 more, shared out by the frequencies of the second token.
    """
    vocabulary = data.tokenizer.vocabulary
    train, held_out = data.train.numpy(), data.held_out.numpy()
    frequencies = np.bincount(train, minlength=vocabulary) + 1.0  # (vocabulary,)
    frequencies /= frequencies.sum()
    counts = np.bincount(train[:-1] * vocabulary + train[1:], minlength=vocabulary**2)
    pairs = counts.reshape(vocabulary, vocabulary) + SMOOTHING * frequencies
    pairs /= pairs.sum(1, keepdims=True)
    before, after = held_out[:-1], held_out[1:]
    return float(-np.log(frequencies[after]).mean()), float(-np.log(pairs[before, after]).mean())


def _entropy(symbols: np.ndarray) -> float:
    counts = np.unique(symbols, return_counts=True)[1]
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _finding(check: str, place: str, found: float, expected: str, alarm: bool, illness: str, meaning: str) -> Finding:
    return Finding(check, place, found, expected, *((illness, meaning) if alarm else ()))


# --- data, batches and the start ------------------------------------------------------------------------------------


def _examine_data(data: small_gpt.Data) -> Iterator[Finding]:
    train = data.tokenizer.decode(data.train.tolist())
    held_out = data.tokenizer.decode(data.held_out.tolist())
    starts = range(0, max(1, len(held_out) - WINDOW), max(WINDOW, len(held_out) // WINDOWS))
    share = statistics.fmean(held_out[start : start + WINDOW] in train for start in starts)
    yield _finding(
        "held-out text in training", "data", share, "0", share > 0.05, "data leak",
        "the text that measures the model is in the text that trains it: cut it off before drawing any window",
    )  # fmt: skip
    for counted, floor in zip(("tokens", "pairs"), floors(data), strict=True):
        yield Finding(f"loss from counting {counted}", "data", floor, "to be beaten")


def _examine_batch(inputs: Tensor, targets: Tensor) -> Iterator[Finding]:
    context = inputs.shape[1]

    def share(ahead: int) -> float:
        """How many targets are the input so many places on."""
        lower, upper = max(0, -ahead), context - max(0, ahead)
        return (targets[:, lower:upper] == inputs[:, lower + ahead : upper + ahead]).double().mean().item()

    ahead = max(range(-2, min(5, context)), key=share)
    yield _finding(
        "targets are so far ahead", "batches", ahead, "1", ahead != 1 or share(1) < 1, "shifted targets",
        f"{share(1):.0%} of the targets are the token after their input, and {share(ahead):.0%} the one {ahead} places "
        "on: the target of a token is the next one",
    )  # fmt: skip


def _examine_start(model: Decoder, data: small_gpt.Data, inputs: Tensor, targets: Tensor) -> Iterator[Finding]:
    with torch.no_grad():
        loss = small_gpt.loss_of(model, inputs, targets).item()
        largest = cast(Tensor, model(inputs)).abs().max().item()
    yield _first_loss(loss, math.log(data.tokenizer.vocabulary), model.embedding.num_embeddings)
    yield _finding(
        "largest score", "unembedding", largest, "below 5", largest > 5, "large start",
        "scores of an untrained model should be nearly equal: draw the embeddings with a smaller deviation",
    )  # fmt: skip


def _first_loss(loss: float, expected: float, words: int) -> Finding:
    """Of an untrained model that may guess among so many tokens."""
    guesses = math.log(words)
    if abs(loss - guesses) < 0.1 and abs(guesses - expected) > 0.3:
        return Finding(
            "first loss", "vocabulary", loss, f"{expected:.2f}", "wrong vocabulary",
            f"{loss:.2f} is the logarithm of {words:,}, and the tokenizer has {math.exp(expected):,.0f} tokens: build "
            "the model for the tokenizer's vocabulary",
        )  # fmt: skip
    return _finding(
        "first loss", "embedding", loss, f"{expected:.2f}", not abs(loss - expected) < 0.3, "large start",
        "guessing all tokens alike gives the logarithm of the vocabulary; an untrained model should begin there",
    )  # fmt: skip


# --- the layers -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Seen:
    """What one layer used on its way through the model: the mask and the scale that its attention got, its heads."""

    mask: Tensor | None
    scale: float | None
    heads: Tensor


def _examine_layers(model: Decoder, inputs: Tensor, seed: int) -> Iterator[Finding]:
    layers = [cast(MultiHeadAttention, block.attention) for block in model.blocks]
    spins = {number: _scores_by_position(layer, seed) for number, layer in enumerate(layers) if layer.rope}
    honest = [spin for spin in spins.values() if _at_one_place(spin)]
    usual = torch.stack(honest).median(0).values if honest else None
    leaks = []
    for number, layer in enumerate(layers):
        seen = _watch(model, layer, inputs[:, : layer.d_head])
        weights, scores = _probe(layer, seen, seed)
        sums = weights.sum(-1)
        worst = sums.flatten()[(sums - 1).abs().argmax()].item()
        ahead = weights.triu(1).sum(-1).mean().item()
        place = f"layer {number}"
        mixed = not abs(worst - 1) < EXACT
        leaks += [number] if mixed or ahead > EXACT else []
        yield _finding(
            "sum of a query's weights", f"{place}, softmax", worst, "1", mixed, "softmax over the wrong axis",
            "each query shares out one whole among the keys: the softmax runs along the keys, the last axis",
        )  # fmt: skip
        yield _finding(
            "weight on later tokens", f"{place}, mask", ahead, "0", ahead > EXACT, "no mask",
            "a token sees those that it has to tell: block them before the softmax",
        )  # fmt: skip
        if not mixed:
            yield _scale(place, layer, weights, scores)
        if number in spins:
            yield _positions(place, spins[number], usual)
        yield _heads(place, layer, seen)
    yield _future(model, inputs, leaks)


def _watch(model: Decoder, layer: MultiHeadAttention, inputs: Tensor) -> _Seen:
    """Run the model, and see what the attention of a layer gets, and what its heads give."""
    attend = layer.own.get("grouped_attention", grouped_attention)
    seen: list[_Seen] = []

    def watched(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, scale: float | None) -> Any:
        found = attend(q, k, v, mask, dropout, scale)
        seen.append(_Seen(mask, scale, found[0].detach()))
        return found

    own = dict(layer.own)
    layer.own["grouped_attention"] = watched
    try:
        model(inputs)  # with gradients, as in training
    finally:
        layer.own.clear()
        layer.own.update(own)
    return seen[0]


def _probe(layer: MultiHeadAttention, seen: _Seen, seed: int) -> tuple[Tensor, Tensor]:
    """The weights that a layer's attention gives to random queries and keys, and their products q·k: (h, T, T) twice.

    The values are the rows of the identity, so that the output is the weights, whatever the function says of them.
    """
    generator = torch.Generator().manual_seed(seed)
    T = seen.heads.shape[2]
    like = layer.q_proj.weight
    q = torch.randn(1, layer.n_heads, T, layer.d_head, generator=generator).to(like)
    k = torch.randn(1, layer.n_kv_heads, T, layer.d_head, generator=generator).to(like)
    v = torch.eye(T).to(like).expand(1, layer.n_kv_heads, T, T).contiguous()
    mask = seen.mask if seen.mask is None or seen.mask.ndim < 4 else seen.mask[:1]
    attend = layer.own.get("grouped_attention", grouped_attention)
    weights = attend(q, k, v, mask, 0.0, seen.scale)[0][0].detach()  # (h, T, T)
    keys = k.repeat_interleave(layer.n_heads // layer.n_kv_heads, dim=1)
    return weights, (q @ keys.mT)[0]


def _scale(place: str, layer: MultiHeadAttention, weights: Tensor, scores: Tensor) -> Finding:
    """Within a row, the logarithm of the weight grows with q·k: as fast as the scale says."""
    used = (weights.tril() > 1e-30).double()
    count = used.sum(-1, keepdim=True).clamp(min=1)
    logs = torch.where(used > 0, weights.double(), 1.0).log()
    rise, run = ((x - (x * used).sum(-1, keepdim=True) / count) * used for x in (logs, scores.double()))
    slope = ((rise * run).sum() / (run * run).sum()).item()
    expected = layer.d_head**-0.5
    return _finding(
        "factor of the scores", f"{place}, scores", slope, f"{expected:.3g}", not abs(slope / expected - 1) < 0.02,
        "no scale", f"q·k is to be divided by √{layer.d_head}, the root of the width of a head",
    )  # fmt: skip


def _scores_by_position(layer: MultiHeadAttention, seed: int) -> Tensor:
    """How one vector as a query at i and as a key at j match, by what RoPE does to them: (T, T), at most 1."""
    x = torch.randn(layer.d_head, generator=torch.Generator().manual_seed(seed)).to(layer.q_proj.weight)
    T = layer.d_head
    both = x.expand(1, layer.n_heads + layer.n_kv_heads, T, layer.d_head).contiguous()
    positions = torch.arange(T)
    own, rope = layer.own.get("rotate"), cast(Rotary, layer.rope)
    turned = rope(both, positions) if own is None else own(both, positions, rope.base)
    q, k = turned[0, 0], turned[0, -1]  # (T, d_head)
    return (q @ k.mT / (x @ x)).detach().double()


def _at_one_place(spin: Tensor) -> bool:
    return spin.diagonal().min().item() > 1 - EXACT


def _positions(place: str, spin: Tensor, usual: Tensor | None) -> Finding:
    """A token as a query and as a key stands at one place; and all layers turn alike."""
    if not _at_one_place(spin) or usual is None:
        shift = max(range(-4, 5), key=lambda shift: spin.diagonal(shift).mean().item())
        return Finding(
            "match at one place", f"{place}, positions", spin.diagonal().min().item(), "1", "untied positions",
            f"a query matches best the key {abs(shift)} places {'after' if shift > 0 else 'before'} its own: count "
            "queries and keys from the same start",
        )  # fmt: skip
    apart = (spin - usual).abs().max().item()
    return _finding(
        "turns unlike other layers", f"{place}, positions", apart, "0", apart > EXACT, "untied positions",
        "its positions turn at another speed than those of most layers: give all layers one base",
    )  # fmt: skip


def _heads(place: str, layer: MultiHeadAttention, seen: _Seen) -> Finding:
    sizes = seen.heads.double().square().mean((0, 2, 3)).sqrt()  # (h,)
    share = (sizes / sizes.max().clamp(min=1e-30)).tolist()
    weakest = min(range(layer.n_heads), key=lambda head: share[head])
    return _finding(
        "weakest head, by the strongest", f"{place}, head {weakest}", share[weakest], "above 0.01",
        not share[weakest] > 0.01, "dead head", "what this head writes is nothing beside the others",
    )  # fmt: skip


def _future(model: Decoder, inputs: Tensor, leaks: Sequence[int]) -> Finding:
    """Change the last token: no earlier logits may move."""
    changed = inputs.clone()
    changed[:, -1] = (inputs[:, -1] + 1) % model.embedding.num_embeddings
    busy = _with_writing_blocks(model)
    with torch.no_grad():
        moved = (cast(Tensor, busy(changed)) - cast(Tensor, busy(inputs)))[:, :-1].abs().max().item()
    place = f"layer {leaks[0]}" if leaks else "model"
    return _finding(
        "later token moves earlier scores", place, moved, "0", moved > 1e-5 and not leaks, "no mask",
        "something outside of the attention of the layers carries later tokens back",
    )  # fmt: skip


def _with_writing_blocks(model: Decoder) -> Decoder:
    """A copy in which no block is the identity, as at a start with zeros: what does not write cannot leak."""
    busy = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in busy.parameters():
            if weights.ndim == 2 and not weights.any():
                weights.normal_(0, weights.shape[1] ** -0.5, generator=generator)
    return busy


def _examine_rows(model: Decoder, inputs: Tensor) -> Iterator[Finding]:
    changed = inputs.clone()
    changed[0] = (inputs[0] + 1) % model.embedding.num_embeddings
    busy = _with_writing_blocks(model)
    with torch.no_grad():
        moved = (cast(Tensor, busy(changed)) - cast(Tensor, busy(inputs)))[1:].abs().max().item()
    yield _finding(
        "one text moves another's scores", "batch", moved, "0", moved > 1e-4, "rows mixed",
        "texts of a batch are to be told apart: look for a reshape that mixes the first axis with another",
    )  # fmt: skip


# --- a few steps ----------------------------------------------------------------------------------------------------


def _examine_steps(model: Decoder, inputs: Tensor, targets: Tensor, rate: float) -> Iterator[Finding]:
    """Let a copy learn one batch by heart: its loss falls, and everything moves, but not too far at once."""
    before = dict(model.named_parameters())
    learner = copy.deepcopy(model).train()
    losses, largest = _learn_by_heart(learner, inputs, targets, rate)
    fallen = losses[0] - losses[-1]
    yield _finding(
        "a step's change, by the weights", "learning rate", largest, f"below {LARGEST_CHANGE}",
        not largest < LARGEST_CHANGE, "learning rate × 100",
        f"at a rate of {rate:g} one step changes half of the matrices by {largest:.0%} of their size or more: divide "
        "the rate by 10 until it does not",
    )  # fmt: skip
    yield _finding(
        f"loss falls, one batch {STEPS} times", "training", fallen, "above 0.05", not fallen > 0.05, "does not learn",
        "not even one batch is learned by heart: see whether gradients reach the weights, and whether the rate is tiny",
    )  # fmt: skip
    moved = {
        name: (weights - before[name]).abs().max().item() / (before[name].abs().max().item() or 1.0)
        for name, weights in learner.named_parameters()
    }
    places: dict[str, list[str]] = {}
    for name in moved:
        parts = name.split(".")
        places.setdefault(f"layer {parts[1]}" if parts[0] == "blocks" else parts[0], []).append(name)
    for place, names in places.items():
        still = [name for name in names if moved[name] == 0]
        named = "" if len(still) in (0, len(names)) else ", " + ", ".join(name.split(".", 2)[-1] for name in still)
        yield _finding(
            f"least change in {STEPS} steps", place + named, min(moved[name] for name in names), "above 0",
            bool(still), "frozen layer",
            "these weights do not learn: look for requires_grad, detach, or an optimiser that was not given them",
        )  # fmt: skip


def _learn_by_heart(model: Decoder, inputs: Tensor, targets: Tensor, rate: float) -> tuple[list[float], float]:
    """Train on one batch: the loss of each step, and the largest change of a step by the size of what it changes.

    The change is the root of the mean square over that of the weights, of the matrix in the middle of all.
    """
    recipe = training.Recipe(rate=rate, weight_decay=0.0, warm_up=0)
    optimiser = training.new_optimiser(model, recipe)
    matrices = [weights for weights in model.parameters() if weights.ndim == 2 and weights.any()]
    losses, changes = [], []
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate_at(step, 0)
        loss = small_gpt.loss_of(model, inputs, targets)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        before = [weights.detach().clone() for weights in matrices]
        optimiser.step()
        pairs = zip(matrices, before, strict=True)
        changes.append(statistics.median(((now - old).norm() / old.norm()).item() for now, old in pairs))
        losses.append(loss.item())
    return losses, max(changes)
