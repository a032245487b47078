"""Masked softmax and attention in PyTorch with one step wrong, and what to say to it: mistakes of days 3 and 4."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from course_utils.checks.judge.exercise import Mistake
from course_utils.days.shared.given.draws import Array
from course_utils.loader import lazy

if TYPE_CHECKING:
    import torch

    from course_utils.attention import tensors
else:
    torch = lazy("torch")
    tensors = lazy("course_utils.attention.tensors")

INFINITY = math.inf


def reference_softmax(scores: Array, mask: Array) -> torch.Tensor:
    return tensors.softmax(torch.as_tensor(scores).masked_fill(~torch.as_tensor(mask), -INFINITY))


def filled(fill: Any, care: bool = False, added: bool = False) -> Callable:
    """Softmax with blocked scores replaced by `fill`, or with `fill` added to them. care: blocked weights made 0."""

    def masked_softmax(scores, mask):
        scores, mask = torch.as_tensor(scores), torch.as_tensor(mask)
        value = torch.finfo(scores.dtype).min if fill == "lowest" else fill
        if added:
            scores = scores + torch.zeros(mask.shape).masked_fill(~mask, value)
        else:
            scores = scores.masked_fill(~mask, value)
        weights = torch.softmax(scores, dim=-1)
        return torch.where(mask, weights, 0.0) if care else weights

    return masked_softmax


def after(renormalise: Callable | None = None) -> Callable:
    """Softmax over everything, then the mask. renormalise(sums): what the rows are then divided by."""

    def masked_softmax(scores, mask):
        weights = torch.softmax(torch.as_tensor(scores), dim=-1) * torch.as_tensor(mask)
        return weights / renormalise(weights.sum(dim=-1, keepdim=True)) if renormalise else weights

    return masked_softmax


def by_exponentials(peak: Callable, care: bool = True) -> Callable:
    """exp, mask, divide. peak(scores, mask): what is subtracted first. care: a row of zeros stays one."""

    def masked_softmax(scores, mask):
        scores, mask = torch.as_tensor(scores), torch.as_tensor(mask)
        exps = torch.where(mask, torch.exp(scores - peak(scores, mask)), 0.0)
        total = exps.sum(dim=-1, keepdim=True)
        return exps / total.masked_fill(total == 0, 1.0) if care else exps / total

    return masked_softmax


def highest(scores: torch.Tensor, mask: Any) -> torch.Tensor:
    return scores.amax(dim=-1, keepdim=True)


def no_shift(scores: Array, mask: Array) -> float:
    return 0.0


def over_queries(scores: Array, mask: Array) -> torch.Tensor:
    return tensors.softmax(torch.as_tensor(scores).masked_fill(~torch.as_tensor(mask), -INFINITY), dim=-2)


def multiplied(scores: Array, mask: Array) -> torch.Tensor:
    return torch.softmax(torch.as_tensor(scores) * torch.as_tensor(mask), dim=-1)


def multiplied_with_zeros(scores: Array, mask: Array) -> torch.Tensor:
    return multiplied(scores, mask) * torch.as_tensor(mask)


def log_weights(scores: Array, mask: Array) -> torch.Tensor:
    return torch.log_softmax(torch.as_tensor(scores).masked_fill(~torch.as_tensor(mask), -INFINITY), dim=-1)


def hard_maximum(scores: Array, mask: Array) -> torch.Tensor:
    weights = reference_softmax(scores, mask)
    return ((weights == highest(weights, mask)) & torch.as_tensor(mask)).to(weights.dtype)


def unmasked(scores: Array, mask: Array) -> torch.Tensor:
    return torch.softmax(torch.as_tensor(scores), dim=-1)


def zeros_taken_for_blocked(scores: Array, mask: Array) -> torch.Tensor:
    kept = torch.as_tensor(scores) * torch.as_tensor(mask)
    return tensors.softmax(kept.masked_fill(kept == 0, -INFINITY))


def infinity_times_the_mask(scores: Array, mask: Array) -> torch.Tensor:
    scores = torch.as_tensor(scores)
    return torch.softmax(scores + (1 - torch.as_tensor(mask).to(scores.dtype)) * -INFINITY, dim=-1)


def softmax_of_weights(scores: Array, mask: Array) -> torch.Tensor:
    return reference_softmax(unmasked(scores, mask), mask)


def shifted_up(scores: Array, mask: Array) -> torch.Tensor:
    scores = torch.as_tensor(scores)
    return torch.softmax(scores + torch.as_tensor(mask).to(scores.dtype), dim=-1)


LOW = (
    "a fill such as {fill} is a number like any other: real scores may lie below it, and then the blocked keys win. "
    "Use −∞, or torch.finfo(scores.dtype).min."
)
AFTERWARDS = Mistake(
    "mask after softmax",
    after(),
    "The rows no longer sum to 1: the mask comes after the softmax, when the blocked keys have already taken their "
    "share of the sum. Block the scores before the softmax.",
)
RENORMALISED = Mistake(
    "mask after softmax, renormalised",
    after(lambda total: total),
    "You mask after the softmax and divide by the new sum. In exact arithmetic that is right. But where a blocked "
    "score is far above the others, their weights are 0 before you mask, and 0 / 0 remains. Block the scores before "
    "the softmax.",
)
OVER_QUERIES = Mistake(
    "softmax over queries",
    over_queries,
    "The softmax runs over the queries, down each column. Each query divides its attention among the keys: take the "
    "softmax along the last axis.",
)
MULTIPLIED = Mistake(
    "scores multiplied by the mask",
    multiplied,
    "Blocked scores become 0, and e^0 = 1 is still a share. A score that should count for nothing is −∞.",
)
MULTIPLIED_WITH_ZEROS = Mistake(
    "scores multiplied by the mask, zeros afterwards",
    multiplied_with_zeros,
    "Blocked scores become 0, and e^0 = 1 takes a share that is thrown away afterwards, so the rows do not sum "
    "to 1. A score that takes no share is −∞.",
)
LOG_WEIGHTS = Mistake(
    "logarithms of the weights",
    log_weights,
    "The weights are not positive: these are their logarithms, as log_softmax gives them. Return the weights "
    "themselves, which are 0 where the mask blocks.",
)
HARD_MAXIMUM = Mistake(
    "hard maximum",
    hard_maximum,
    "All the weight goes to the best allowed key. That is the argmax; the softmax gives every allowed key a share.",
)
UNMASKED = Mistake("no mask", unmasked, "Nothing is blocked here: keys that the mask forbids still have weight.")
MASK_ADDED = Mistake(
    "mask added as 0 and 1",
    shifted_up,
    "The mask is added as 0 and 1, so allowed keys are only preferred. Blocked ones need −∞.",
)
SHIFTED_BY_ALL = Mistake(
    "shift by the largest of all",
    by_exponentials(highest),
    "A blocked score far above the others makes their weights 0: it is still there when the exponentials are taken, "
    "in the softmax itself or in the maximum that you subtract. Block it before both.",
)
ZEROS_BLOCKED = Mistake(
    "zero scores taken for blocked",
    zeros_taken_for_blocked,
    "A score of exactly 0 is taken for a blocked one. Do not ask the scores which keys are blocked; ask the mask.",
)
ZERO_TIMES_INFINITY = Mistake(
    "0 times infinity",
    infinity_times_the_mask,
    "The result is NaN even where nothing is blocked: 0 · ∞ is NaN, and a mask of 0 and 1 times −∞ adds just that to "
    "the allowed keys. Use masked_fill or torch.where instead of multiplying.",
)
WEIGHTS_AGAIN = Mistake(
    "softmax before the mask and after",
    softmax_of_weights,
    "The scores went through a softmax before the mask and through another after it. Mask the scores themselves, and "
    "take one softmax.",
)
NO_SHIFT = Mistake(
    "exp without max-shift",
    by_exponentials(no_shift),
    "exp overflows on large scores and gives 0 / 0 on very negative ones. Subtract the largest allowed score first, "
    "or use torch.softmax.",
    overflow=True,
)


def flawed(
    *,
    scale: Callable | None = None,
    weigh: Any = reference_softmax,  # a function, as the answer of a `Mistake` is
    blend: Callable | None = None,
    result: Callable | None = None,
) -> Callable:
    """Masked attention with one step exchanged for a wrong one; every step not named is right.

    scale(q, k, v) -> divisor; weigh(scores, mask); blend(weights, v); result(output, weights).
    """

    def attention(q, k, v, mask):
        q, k, v = (torch.as_tensor(a, dtype=torch.float64) for a in (q, k, v))
        scores = q @ k.mT / (scale(q, k, v) if scale else math.sqrt(q.shape[-1]))
        weights = weigh(scores, torch.as_tensor(mask))
        output = blend(weights, v) if blend else weights @ v
        return result(output, weights) if result else (output, weights)

    return attention


def no_scale(q: Array, k: Array, v: Array) -> float:
    return 1.0


def first_values(weights: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return v[..., : weights.shape[-2], :]


def best_values(weights: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (weights == highest(weights, None)).to(v.dtype) @ v


def exchanged(output: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return weights, output


WRONG_WEIGHTS = (
    AFTERWARDS,
    OVER_QUERIES,
    MULTIPLIED,
    MULTIPLIED_WITH_ZEROS,
    UNMASKED,
    MASK_ADDED,
    WEIGHTS_AGAIN,
    LOG_WEIGHTS,
    HARD_MAXIMUM,
)
STEPS = (
    Mistake("no scaling", flawed(scale=no_scale),
        "These are the weights without the scale. Divide the scores by √d_k before the softmax."),
    Mistake("scaling by d_k", flawed(scale=lambda q, k, v: q.shape[-1]),
        "These are the weights you get when the scores are divided by d_k. Divide by √d_k."),
    Mistake("multiplied by the root", flawed(scale=lambda q, k, v: q.shape[-1] ** -0.5),
        "The scores are multiplied by √d_k. Divide by it."),
    Mistake("scaling by the root of d_v", flawed(scale=lambda q, k, v: math.sqrt(v.shape[-1])),
        "The scale is √d_v. It should be √d_k, the width of the queries and keys."),
    Mistake("scaling by the root of m", flawed(scale=lambda q, k, v: math.sqrt(k.shape[-2])),
        "The scale is the root of the number of keys. It should be √d_k, the width of a key."),
    *(Mistake(m.name, flawed(weigh=cast(Callable, m.answer)), m.message) for m in WRONG_WEIGHTS),
    Mistake("the best key's value", flawed(blend=best_values),
        "The weights are right, but the output is the value of the best key alone. Blend all values: weights @ v."),
    Mistake("values not blended", flawed(blend=first_values),
        "The output holds the values themselves. Output i is the blend of all "
        "values that query i may see: weights @ v."),
    Mistake("values weighted by columns", flawed(blend=lambda w, v: w.mT @ v),
        "The output blends the values with the columns of the weights. Output i is row i of the "
        "weights times the values: weights @ v."),
    Mistake("result exchanged", flawed(result=exchanged),
        "The two results are exchanged. Return (output, weights), in this order."),
    Mistake("uniform weights", flawed(weigh=lambda s, m: reference_softmax(0.0 * s, m)),
        "Every allowed key gets the same weight, whatever the scores say."),
    Mistake("softmax twice", flawed(weigh=lambda s, m: reference_softmax(reference_softmax(s, m), m)),
        "The weights have been through the softmax twice."),
    Mistake("exponentials not normalised", flawed(weigh=lambda s, m: torch.exp(s - highest(s, m)) * m),
        "The exponentials are not divided by their sum: rows of weights sum to 1."),
)  # fmt: skip
EXTREMES = (
    ZEROS_BLOCKED,
    ZERO_TIMES_INFINITY,
    RENORMALISED,
    SHIFTED_BY_ALL,
    NO_SHIFT,
    Mistake("a fill of −1e4", filled(-1e4), "Right for ordinary scores. But " + LOW.format(fill="−1e4")),
    Mistake(
        "−1e4 added",
        filled(-1e4, added=True),
        "Right for ordinary scores. But a score that is only lowered by 10 000 may still lie above the others. Use −∞.",
    ),
)
