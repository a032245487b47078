"""The record of what `facts` measures on SmolLM2-135M-Instruct, so that a lesson can show it without the model.

    python -m course_utils.models.facts_record --record

measures all of it again, a few minutes on a quiet core, and writes what `recorded` reads.
"""

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.attention.cache import ContiguousCache
from course_utils.costs import records
from course_utils.costs.measure import environment
from course_utils.models import facts, fetch
from course_utils.models.pretrained import store
from course_utils.models.real import Real, load

BENCHMARK = "smollm2-facts"
STORED = Path(__file__).parents[1] / "data" / "models"


@cache
def recorded() -> dict[str, Any]:
    """Return what was measured of SmolLM2-135M-Instruct, as `records.read` gives it.

    A row is a fact, with its name and what belongs to it; lists by layer and head are (30, 9), to four digits.
    settings["model"] says which file was measured.
    """
    return records.recorded(BENCHMARK, STORED)[0]


def fact(name: str) -> dict[str, Any]:
    """One row of the record. Raises KeyError, with all names, for a fact that it does not have."""
    return records.fact(recorded(), name)


def measure(real: Real, quick: bool = False) -> list[dict[str, Any]]:
    """Return all facts, as rows of the record. quick takes a few tokens, heads and sentences."""

    def opening(n: int) -> Tensor:
        return facts.opening(real, 96 if quick else n)

    return [
        *_scores(real, opening(512)),
        _induction(real, opening(512), draws=1 if quick else 5),
        _agreement(real, facts.SWEPT[: 1 if quick else None]),
        _record_looks(real, facts.READ[: 1 if quick else None]),
        _record_without_parts(real, opening(256)),
        _measure_divided(real, opening(256), facts.DIVISORS[:: 3 if quick else 1]),
        _ahead(real, opening(256), range(1 if quick else len(real.model.blocks))),
        _windows(real, opening(768)),
        _caches(real, opening(512)),
        _bits(real, opening(512)),
        {"fact": "drafts", "prompts": [_drafts(real, name, 8 if quick else 60) for name in facts.PROMPTS]},
    ]


def _scores(real: Real, text: Tensor) -> list[dict[str, Any]]:
    shares = facts.first_token_shares(real, text, since=64)
    previous = facts.previous_token_scores(real, text)
    row = {"fact": "first token", "tokens": text.shape[1], "loss": facts.loss(real, text), "since": 64}
    row |= {
        "by_layer": _as_lists(shares.mean(1)),
        "heads_above_half": int((shares > 0.5).sum()),
        "shares": _as_lists(shares),
    }
    return [row, {"fact": "previous token", "tokens": text.shape[1], "scores": _as_lists(previous)}]


def _induction(real: Real, text: Tensor, draws: int) -> dict[str, Any]:
    """Scores, and the losses on the copies and on a text without the best heads and without others.

    The losses are over all tokens but the first, so the first copy, which nobody can predict, is part of them; by_copy
    has each copy by itself.
    """
    tokens = facts.copies(between=facts.BETWEEN)
    scores = facts.induction_scores(real, tokens)
    off = facts.best(scores, facts.COPYING)
    others = [facts.random_heads(real, len(off), seed, without=off) for seed in range(draws)]
    row = {"fact": "induction", "period": facts.PERIOD, "copies": facts.COPIES, "best": off}
    row |= {"loss": facts.loss(real, tokens), "without_best": facts.loss(real, tokens, off)}
    row |= {"by_copy": facts.loss_by_copy(real, tokens)}
    row |= {"by_copy_without_best": facts.loss_by_copy(real, tokens, off=off)}
    row |= {"text_loss": facts.loss(real, text), "text_without_best": facts.loss(real, text, off)}
    row["without_random"] = [
        {"heads": heads, "loss": facts.loss(real, tokens, heads), "text_loss": facts.loss(real, text, heads)}
        | {"by_copy": facts.loss_by_copy(real, tokens, off=heads)}
        for heads in others
    ]
    return row | {"scores": _as_lists(scores)}


def _agreement(real: Real, layers: Sequence[int]) -> dict[str, Any]:
    """The margins of the sentences, and their mean and how many are right without each head of some layers."""
    each = facts.margins_without_each(real, layers)  # (layers, heads, 12)
    weights = facts.subject_weights(real)  # (all layers, heads, 12)
    row = {
        "fact": "agreement",
        "sentences": [*facts.PLURAL, *facts.SINGULAR],
        "margins": _as_lists(facts.margins(real)),
    }
    row |= {"head": facts.SUBJECT_HEAD, "without_head": _as_lists(facts.margins(real, [facts.SUBJECT_HEAD]))}
    row |= {
        "subject_weights": _as_lists(weights.mean(-1)),
        "subject_weights_of_head": _as_lists(weights[facts.SUBJECT_HEAD]),
    }
    row |= {"layers": [*layers], "margin_without_each": _as_lists(each.mean(-1))}
    return row | {"right_without_each": (each > 0).sum(-1).tolist()}


def _record_looks(real: Real, requests: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    looks = [
        {"sentence": sentence, "from": i, "to": j, "weights": _as_lists(facts.where(real, sentence, i, j))}
        for sentence, i, j in requests
    ]
    return {"fact": "where", "head": facts.SUBJECT_HEAD, "looks": looks}


def _record_without_parts(real: Real, text: Tensor) -> dict[str, Any]:
    row = {"fact": "left out", "tokens": text.shape[1], "loss": facts.loss(real, text)}
    row |= {"without_scale": facts.loss_without(real, text, scaled=False)}
    return row | {"without_rotation": facts.loss_without(real, text, rotated=False)}


def _measure_divided(real: Real, text: Tensor, divisors: Sequence[int]) -> dict[str, Any]:
    """What the model does when its scores are divided by each of these numbers: loss, effective keys, and a text."""
    prompt = "Once upon a time"
    tokens = real.encode(prompt)[0].tolist()
    models = []
    for divisor in divisors:
        model = facts.divided_by(real, divisor)
        row = {"divisor": divisor, "loss": facts.loss(model, text), "keys": facts.effective_keys(model, text)}
        models.append(row | {"written": real.tokenizer.decode(model.stream(tokens, 12))})
    return {"fact": "divisors", "tokens": text.shape[1], "prompt": prompt, "models": models}


def _ahead(real: Real, text: Tensor, layers: Sequence[int]) -> dict[str, Any]:
    """What happens to the model when one layer, or all of them, may look ahead: loss, leak, and what it writes."""
    prompt = "Once upon a time"
    models = []
    tokens = real.encode(prompt)[0].tolist()
    for name, model in {"causal": real, "all": facts.looking_ahead(real)}.items():
        row = {"name": name, "loss": facts.loss(model, text), "moved": facts.moved_before(model, text)}
        models.append(row | {"written": real.tokenizer.decode(model.stream(tokens, 12))})
    each = [facts.loss(facts.looking_ahead(real, [layer]), text) for layer in layers]
    row = {"fact": "looking ahead", "tokens": text.shape[1], "prompt": prompt, "models": models}
    return row | {"loss_by_layer": np.round(each, 4).tolist()}


def _windows(real: Real, text: Tensor) -> dict[str, Any]:
    windows = [
        {"window": window, "first": first, "loss": facts.window_loss(real, text, window, first)}
        for window, first in facts.WINDOWS
    ]
    return {"fact": "windows", "tokens": text.shape[1], "windows": windows}


def _caches(real: Real, text: Tensor) -> dict[str, Any]:
    """The loss with each kind of cache, how much it is above the first kind's, and the standard error of that."""
    losses = {name: facts.cache_losses(real, text, kind) for name, kind in facts.CACHES.items()}
    plain = next(iter(losses.values()))
    caches = []
    for name, cache_losses in losses.items():
        more = cache_losses - plain  # (T - 1,)
        row = {"cache": name, "loss": cache_losses.mean().item(), "difference": more.mean().item()}
        caches.append(row | {"standard_error": more.std().item() / len(more) ** 0.5})
    return {"fact": "caches", "tokens": text.shape[1], "caches": caches}


def _bits(real: Real, text: Tensor) -> dict[str, Any]:
    """How much the loss is above that of an exact cache when keys and values are rounded to fewer and fewer bits."""
    exact = facts.cache_losses(real, text, ContiguousCache)
    caches = []
    for name, bits, *how in facts.FEWER_BITS:
        more = facts.cache_losses(real, text, facts.rounded_cache(bits, *how)) - exact  # (T - 1,)
        row = {"cache": name, "bits": bits, "difference": more.mean().item()}
        caches.append(row | {"standard_error": more.std().item() / len(more) ** 0.5})
    row = {"fact": "bits", "tokens": text.shape[1], "loss": exact.mean().item(), "caches": caches}
    return row | {"spikes": facts.spikes(real, text)}


def _drafts(real: Real, name: str, n: int) -> dict[str, Any]:
    passes = facts.draft_passes(real, facts.PROMPTS[name], n)
    drafted, accepted = (sum(counts) for counts in zip(*passes, strict=True))
    row = {"name": name, "prompt": facts.PROMPTS[name], "passes": len(passes), "drafted": drafted, "kept": accepted}
    tokens = real.encode(facts.PROMPTS[name])[0].tolist()
    return row | {"written": real.tokenizer.decode(real.stream(tokens, n))}


def _as_lists(values: Tensor) -> list[Any]:
    return np.round(values.tolist(), 4).tolist()


def _findings(rows: Sequence[dict[str, Any]]) -> list[str]:
    of = {row["fact"]: row for row in rows}
    induction = of["induction"]
    agreement = of["agreement"]
    out = of["left out"]
    random = [one["loss"] for one in induction["without_random"]]
    findings = [
        f"first token: {of['first token']['heads_above_half']} heads give it more than half",
        f"copies of random tokens: loss {induction['loss']:.2f}, {induction['without_best']:.2f} without the eight "
        f"best induction heads, {min(random):.2f} to {max(random):.2f} without eight others",
        f"agreement: margin {np.mean(agreement['margins']):.2f}, {np.mean(agreement['without_head']):.2f} without head "
        f"{tuple(agreement['head'])}, {np.min(agreement['margin_without_each']):.2f} without the one that matters most",
        f"loss {out['loss']:.2f}, {out['without_scale']:.2f} without the scale, {out['without_rotation']:.2f} without "
        "the rotation",
    ]
    findings += [
        f"scores divided by {one['divisor']}: loss {one['loss']:.2f}, {one['keys']:.1f} effective keys"
        for one in of["divisors"]["models"]
    ]
    findings += [
        f"window {one['window']}, first {one['first']}: loss {one['loss']:.3f}" for one in of["windows"]["windows"]
    ]
    findings += [
        f"{one['cache']} caches: loss {one['loss']:.4f}, {one['difference']:+.4f} ± {one['standard_error']:.4f}"
        for one in of["caches"]["caches"]
    ]
    return findings + [
        f"drafts, {one['name']}: {one['passes']} passes, {one['kept']} of {one['drafted']} drafts kept"
        for one in of["drafts"]["prompts"]
    ]


def main(quick: bool = False, folder: Path | str = STORED) -> None:
    """Measure all facts and write them to the folder. Raises `store.NoModel` where the model is not there."""
    torch.set_num_threads(1)
    loaded = load()
    chosen = store.chosen()
    file = (Path(fetch.MODEL).name, fetch.HASHES[fetch.MODEL])
    if chosen is not None:
        file = (chosen.name, sha256(chosen.read_bytes()).hexdigest())
    settings = {
        "quick": quick, "command": "python -m course_utils.models.facts_record --record",
        "model": {"name": loaded.name, "file": file[0], "sha256": file[1], "dtype": "float32", "get": store.GET},
        "text": facts.TEXT.name,
    }  # fmt: skip
    rows = measure(loaded, quick)
    findings = _findings(rows)
    print("\n".join(findings))
    print(f"\nwritten: {records.write(BENCHMARK, environment(), settings, rows, findings, folder)}")


if __name__ == "__main__":
    records.command_line(main, __doc__, STORED)
