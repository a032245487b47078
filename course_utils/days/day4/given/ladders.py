"""The ladders of day 4: the test inputs (rungs) of each exercise.

Every known mistake fails on some of them: reshapes are tried on numbered entries, sizes differ wherever they can, and
coincide where a wrong axis would fit. d_head is 4 only where scores are large: there the scale 2 is exact in every
precision; elsewhere a wrong scale shows. The models of `head_ablation` are tables of votes for the next token, so that
the contribution of each head is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.kernel.forbidden import WHOLE_ATTENTION
from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.measures import changes
from course_utils.checks.kernel.result_numbers import RETURNED_NONE, BadResult
from course_utils.checks.kernel.small import FROM_RUNG, Draft, Drawn, Small, shares, whole
from course_utils.days.shared.given.draws import NEW_TENSORS, UNTOUCHED, Array, draw, draw_mask

if TYPE_CHECKING:
    import torch

SINGLE = {part: (1e-4, 1e-4) for part in ("output", "weights", "gradient of x", "score")}
FILL = (
    "A fill such as −1e4 or −1e9 is a number like any other. Here the real scores lie "
    "below it, so the blocked keys win. Use −∞."
)
TOO_NEAR = "scores that float32 cannot tell apart"
IN_FLOAT64 = (
    "The scores are 1 000 000 and a few hundredths, in float64. float32 keeps about seven digits and makes them all "
    "equal: keep the dtype of what you are given in every step."
)
SIZE_ONE = (
    "Each of these masks broadcasts to the shape of the scores: an axis of size 1, or one that is not there, "
    "stands for all. masked_fill and torch.where do that by themselves. If you take mask[i] in a loop, expand the "
    "mask to the shape of the scores first."
)
NO_GRADIENT = (
    "The gradient must come back to {}: stay in PyTorch, detach nothing, and make no new tensor out of its "
    "numbers (torch.tensor, .data, .numpy())."
)


# Reshapes ------------------------------------------------------------------------------------------------------------


ROUNDED_IN_FLOAT32 = 2.0**24 + np.arange(1.0, 9.0)
KEEP_FLOAT64 = "x is float64, and float32 keeps only seven or eight digits of a number: stay in the dtype of x."
EXACT = {part: (0.0, 0.0) for part in ("heads", "merged")}


def split_heads(rng: np.random.Generator) -> list[Rung]:
    several = int(rng.integers(2, 4))
    return [
        Rung("one token, two heads", (numbered(rng, 1, 1, 6), 2),
            "The first d_head numbers of the token belong to head 0, the next to head 1.",
            shape_hint="Return a tensor of shape (B, h, T, d_head), here (1, 2, 1, 3)."),
        Rung("two tokens, two heads", (numbered(rng, 1, 2, 6), 2),
            "Head 0 gets the first half of each token, head 1 the second half. Check "
            "where a number of token 1 ends up."),
        Rung("3 tokens, 2 heads, d_head = 5", (numbered(rng, 1, 3, 10), 2),
            "The axes are batch, head, token, number within the head, in this order. Cut the token's numbers "
            "into heads first; only then swap heads and tokens."),
        Rung("one head", (numbered(rng, 2, 3, 4), 1),
            "A single head gets everything, and the axis of size 1 is still there: (B, 1, T, d_model)."),
        Rung("as many heads as numbers", (numbered(rng, 2, 3, 4), 4),
            "With h = d_model each head has one number of a token: d_head is 1."),
        Rung("as many tokens as heads", (numbered(rng, 1, 3, 6), 3),
            "When T = h, exchanged heads and tokens raise no error. The heads are axis 1, the tokens axis 2."),
        Rung("all sizes equal", (numbered(rng, 3, 3, 9), 3),
            "When B = T = h = d_head, any swap of axes gives the right shape. Take one "
            "number of x and work out where it must go."),
        Rung("a batch", (numbered(rng, several, 4, 12), 3),
            "The batch axis stays in front. x[b, t, head · d_head + c] becomes the entry [b, head, t, c]."),
        Rung("many tokens", (numbered(rng, 2, 17, 8), 2),
            "Any number of tokens: x[b, t, head · d_head + c] becomes the entry [b, head, t, c]."),
        Rung("an x that is not contiguous", (numbered(rng, 2, 6, 3).swapaxes(1, 2), 2),
            "This x is a transposed view, so its entries do not lie in memory in the order of its "
            "axes. What counts is the order of the axes."),
        Rung(UNTOUCHED, (numbered(rng, 2, 3, 4), 2), NEW_TENSORS, changes),
        Rung("the gradient", (draw(rng, 2, 3, 8), 2, draw(rng, 2, 2, 3, 4)), NO_GRADIENT.format("x"), gradient),
        Rung("numbers of eight digits", (ROUNDED_IN_FLOAT32.reshape(1, 2, 4), 2), KEEP_FLOAT64, tolerance=EXACT),
    ]  # fmt: skip


def merge_heads(rng: np.random.Generator) -> list[Rung]:
    return [
        Rung("one token, two heads", (numbered(rng, 1, 2, 1, 3),),
            "The numbers of head 0 come first, then those of head 1.",
            shape_hint="Return a tensor of shape (B, T, d_model) with d_model = h · d_head, here (1, 1, 6)."),
        Rung("two tokens, two heads", (numbered(rng, 1, 2, 2, 3),),
            "Row t of the result holds what every head has for token t. If the error mentions view size or stride: "
            "a transposed tensor has to be copied into a new layout, which reshape and flatten do."),
        Rung("one head", (numbered(rng, 2, 1, 3, 4),), "With one head the axis of size 1 disappears: (B, T, d_head)."),
        Rung("one number per head", (numbered(rng, 2, 3, 4, 1),),
            "With d_head = 1 a token has one number from each head."),
        Rung("as many tokens as heads", (numbered(rng, 1, 3, 3, 2),),
            "When T = h, exchanged heads and tokens raise no error. Swap heads and tokens "
            "first, then join the last two axes."),
        Rung("all sizes equal", (numbered(rng, 3, 3, 3, 3),),
            "When sizes are equal, any swap of axes gives the right shape. x[b, head, t, c] "
            "becomes the entry [b, t, head · d_head + c]."),
        Rung("a batch", (numbered(rng, int(rng.integers(2, 4)), 3, 5, 2),),
            "x[b, head, t, c] becomes the entry [b, t, head · d_head + c]."),
        Rung("an x that is not contiguous", (numbered(rng, 2, 4, 3, 2).swapaxes(1, 2),),
            "This x is a transposed view. What counts is the order of its axes."),
        Rung(UNTOUCHED, (numbered(rng, 2, 3, 2, 2),), NEW_TENSORS, changes),
        Rung("the gradient", (draw(rng, 2, 2, 3, 4), draw(rng, 2, 3, 8)), NO_GRADIENT.format("x"), gradient),
        Rung("numbers of eight digits", (ROUNDED_IN_FLOAT32.reshape(1, 2, 2, 2),), KEEP_FLOAT64, tolerance=EXACT),
    ]  # fmt: skip


def numbered(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return consecutive whole numbers in row-major order, beginning with a random one."""
    return np.arange(np.prod(shape), dtype=np.float64).reshape(shape) + int(rng.integers(0, 50))


def gradient(function: Callable, x: Array, *rest: Any) -> dict[str, Any]:
    """Return the gradient with respect to x of a weighted sum of the result; the weights come last in `rest`."""
    import torch

    x = torch.as_tensor(x).clone().requires_grad_()
    factors = torch.as_tensor(rest[-1])
    back(function(x, *rest[:-1]), factors)
    return {"gradient of x": gradient_of(x)}


def back(result: Any, factors: torch.Tensor) -> None:
    """Backpropagate a weighted sum of the result, whatever its shape. Raises BadResult if it carries no gradient."""
    import torch

    result = torch.as_tensor(result)
    if not result.requires_grad:
        raise BadResult("the result carries no gradient back")
    if result.dtype != factors.dtype:
        raise BadResult(f"the result is {result.dtype}, but what it is made from is {factors.dtype}: keep the dtype")
    sizes = np.resize(factors.numpy(), result.numel())  # repeated if there are too few weights
    (result.flatten() * torch.as_tensor(sizes)).sum().backward()


def one_tensor(result: Any) -> Any:
    """Return a tensor, or None, unchanged. Raises TypeError, which says what to return, for anything else."""
    if isinstance(result, (list, tuple)):
        raise TypeError(f"the function returned a {type(result).__name__} of {len(result)}: return one tensor alone")
    if result is not None and not hasattr(result, "detach"):
        raise TypeError(f"the result is of type {type(result).__name__}: return a tensor")
    return result


def gradient_of(leaf: torch.Tensor) -> torch.Tensor:
    """Return the gradient of a tensor; zeros if it has none."""
    import torch

    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad


# The layer -----------------------------------------------------------------------------------------------------------


def multi_head(rng: np.random.Generator) -> list[Rung]:
    def layer(B, T, d_model, n_heads, *mask, size=0.5):
        """Draw the arguments of `attended`: sizes, both matrices, x, and the mask if there is one."""
        x = draw(rng, B, T, d_model)
        return d_model, n_heads, size * draw(rng, 3 * d_model, d_model), size * draw(rng, d_model, d_model), x, *mask

    def rung(name, args, why, measure=attended, **more):
        return Rung(name, args, why, measure, **more)

    causal, lengths = np.tri(5, dtype=bool), np.arange(4) < np.array([3, 1])[:, None, None, None]  # (2, 1, 1, 4)
    by_head = np.stack([draw_mask(rng, 4, 4) for _ in range(3)])  # (h, T, T)
    one = draw_mask(rng, 4, 4)
    other = draw_mask(rng, 4, 4)
    every = np.stack([[draw_mask(rng, 3, 3) for _ in range(2)] for _ in range(2)])  # (B, h, T, T)
    return [
        rung("its parameters", (6, 2),
            "The layer has two linear maps and no other parameters: W_qkv from d_model to 3 · d_model and W_o from "
            "d_model to d_model, both with bias=False. In __init__, super().__init__() comes first.",
            parameters),
        rung("one token: W_o after its value", layer(1, 1, 6, 2),
            "A token alone attends to itself, so the output is W_o of its value: x goes through the last third of "
            "W_qkv, then through W_o. The result is (B, T, d_model)."),
        rung("one head", layer(1, 3, 5, 1),
            "With one head it is day 1's self-attention, and then W_o: softmax of q kᵀ / √d_head along the keys, "
            "times v. Without a mask nothing is blocked."),
        rung("two heads of width 3", layer(1, 4, 6, 2),
            "Each head works on its own d_head columns of q, k and v: head 0 on the first. Cut and merge as "
            "in exercises 1 and 2, in the same way for q, k and v. The rows of W_qkv are first all of Q, then K, then "
            "V, heads in order. Scores are divided by √d_head."),
        rung("three heads of width 2", layer(1, 5, 6, 3),
            "d_head = d_model / n_heads, and scores are divided by √d_head, not √d_model."),
        rung("as many tokens as heads", layer(1, 3, 9, 3),
            "When T = h, exchanged heads and tokens raise no error. Cut each token into heads first, then swap "
            "the axes, and reverse these steps at the end."),
        rung("a batch", layer(2, 4, 6, 3), "The sequences of a batch do not see each other."),
        rung("all sizes equal", layer(3, 3, 9, 3),
            "When B = T = h = d_head, every wrong axis fits. The softmax runs along "
            "the last axis of (B, h, T, T), the keys."),
        rung("one number per head", layer(2, 3, 4, 4), "d_head may be 1: then √d_head is 1."),
        rung("many tokens and heads", layer(1, 17, 18, 6, np.tri(17, dtype=bool)),
            "Any number of tokens and of heads: take the sizes from x and from __init__."),
        rung("large scores", layer(1, 5, 8, 2, size=40.0),
            "torch.softmax is safe for large scores; exp alone is not. Before exp, subtract the "
            "largest score of each row, not of all rows."),
        rung(TOO_NEAR, near(rng), IN_FLOAT64),
        rung("mask=None, given", layer(1, 3, 6, 2, None),
            "The layer is called as layer(x, mask=None) here. None means that every token may attend to every token.",
            attended_by_name),
        rung("a mask of nothing but True", layer(2, 3, 6, 2, np.ones((3, 3), dtype=bool)),
            "A mask of nothing but True changes nothing: True means may attend."),
        rung("a causal mask (T, T)", layer(5, 5, 6, 2, causal),
            "Where the mask is False the score is −∞ before the softmax. True means may attend: fill where it is "
            "False, ~mask. (T, T) is one mask for all sequences, even when B = T."),
        rung("a padding mask (B, 1, 1, T)", layer(2, 4, 6, 3, lengths),
            "The mask broadcasts to (B, h, T, T): masked_fill and torch.where do that by "
            "themselves. Padding belongs to the keys."),
        rung("causal and padding (B, 1, T, T)", layer(2, 4, 6, 3, lengths & np.tri(4, dtype=bool)),
            "One mask for each sequence, the same in every head. It broadcasts over the head axis."),
        rung("a mask for each head (h, T, T), B = h", layer(3, 4, 6, 3, by_head),
            "The mask broadcasts to (B, h, T, T): mask[i] belongs to head i. Its shape says so, even when B = h."),
        rung("a mask (B, h, T, T), B = h", layer(2, 3, 6, 2, every),
            "The mask is (B, h, T, T), like the scores: there is no axis to move or add."),
        rung("masks with axes of size 1",
            layer(2, 4, 6, 3, one[None, None], one[None], by_head[None, :, :1], by_head[:, :1], other[0]), SIZE_ONE,
            attended_each),
        rung("a blocked score far above the others", layer(1, 5, 8, 2, causal, size=20.0),
            "A blocked score must have no influence, however large it is: block it before the softmax, with −∞."),
        rung("scores below −1 000 000 000", far_below(rng), FILL),
        rung(UNTOUCHED, layer(2, 4, 6, 3, lengths, one, None),
            "The output is right, but forward writes into x, into the mask or into the layer's "
            "weights, or changes its mode (layer.training). Make new tensors: x - m instead of x -= "
            "m, masked_fill instead of masked_fill_.",
            layer_changes),
        rung("one layer, two inputs", layer(2, 3, 6, 2),
            "The layer is called again with another batch and length. It must keep nothing from the previous "
            "call: take B and T from x each time.",
            called_again),
        rung("one layer, a different mask each time", layer(1, 4, 6, 2, one, other, None, one),
            "One layer is called with a mask, with a different one, with none, and with the first again, on a new x of "
            "the same shape each time. It must keep nothing from the previous call.",
            called_in_turn),
        rung("layers side by side", layer(1, 3, 6, 2),
            "Three layers have weights of their own, and one of them has a different number of heads: make what a "
            "layer needs in __init__, as attributes of self, not of the class.",
            side_by_side),
        rung("the gradients", (*layer(2, 4, 6, 3, lengths), draw(rng, 2, 4, 6)),
            NO_GRADIENT.format("x and to both maps"), layer_gradients),
        rung("the gradients, without a mask", (*layer(2, 4, 6, 3, None), draw(rng, 2, 4, 6)),
            NO_GRADIENT.format("x and to both maps"), layer_gradients),
        rung("float32", as_single(layer(2, 4, 6, 2, lengths)),
            "The layer and x are float32 here, and what you make must be float32 too: new tensors need the dtype of x.",
            tolerance=SINGLE),
    ]  # fmt: skip


def near(rng: np.random.Generator) -> tuple:
    """Return arguments for two heads of width 4 in which every score of a query is 1 000 000 plus a few hundredths."""
    W_qkv = np.zeros((24, 8))
    W_qkv[[0, 4, 8, 12], [0, 0, 1, 1]] = 1.0  # q is the first number of x, k the second, in both heads
    W_qkv[16:, 2:] = draw(rng, 8, 6)
    x = np.column_stack([np.ones(3), 2e6 + 0.02 * rng.permutation(3), draw(rng, 3, 6)])[None]
    return 8, 2, W_qkv, draw(rng, 8, 8), x


def far_below(rng: np.random.Generator) -> tuple:
    """Return arguments for two heads of width 4 in which every allowed score is −3e9 or less, and exact."""
    W_qkv = np.zeros((24, 8))
    W_qkv[[0, 4, 8, 12], [0, 0, 1, 1]] = 1.0  # q is the first number of x, k the second, in both heads
    W_qkv[16:, 2:] = draw(rng, 8, 6)
    x = np.column_stack([np.ones(3), [-6e9, -6e9 - 2, 3.0], draw(rng, 3, 6)])[None]
    mask = np.array([[True, False, False], [True, True, False], [True, True, False]])
    return 8, 2, W_qkv, draw(rng, 8, 8), x, mask


def as_single(args: tuple) -> tuple:
    return tuple(a.astype(np.float32) if getattr(a, "dtype", None) == np.float64 else a for a in args)


def attended(kind: type, d_model: int, n_heads: int, W_qkv: Array, W_o: Array, x: Array, *mask: Any) -> dict[str, Any]:
    """Return the output of a new layer with these weights."""
    import torch

    return {"output": output_of(filled_layer(kind, d_model, n_heads, W_qkv, W_o), torch.as_tensor(x), *tensors(mask))}


def attended_by_name(
    kind: type, d_model: int, n_heads: int, W_qkv: Array, W_o: Array, x: Array, mask: Array
) -> dict[str, Any]:
    """Return the output of a new layer that receives its mask by name."""
    import torch

    (mask,) = tensors([mask])
    return {"output": output_of(filled_layer(kind, d_model, n_heads, W_qkv, W_o), torch.as_tensor(x), mask=mask)}


def attended_each(
    kind: type, d_model: int, n_heads: int, W_qkv: Array, W_o: Array, x: Array, *masks: np.ndarray
) -> dict[str, Any]:
    """Return the output of a new layer for each of the masks."""
    return under_each(lambda m: attended(kind, d_model, n_heads, W_qkv, W_o, *copies(x), m)["output"], masks)


def under_each(output: Callable, masks: Sequence[Array]) -> dict[str, Any]:
    """Return output(mask) for each mask, under a part that names the mask's shape."""
    return {f"output under a mask {tuple(mask.shape)}": output(mask) for mask in tensors(masks)}


def tensors(arrays: Iterable[Array | None]) -> list:
    import torch

    return [None if array is None else torch.as_tensor(array) for array in arrays]


def copies(*arrays: Array) -> list:
    return [array.clone() for array in tensors(arrays)]


def output_of(layer: Callable, x: Array, *mask: Any, **named: Any) -> Any:
    """Return the output of a layer. Raises BadResult unless it is a tensor with the dtype of x."""
    import torch

    output = layer(x, *mask, **named)
    if output is None:
        raise BadResult(RETURNED_NONE.format("forward"))
    if not isinstance(output, torch.Tensor):
        raise BadResult(f"forward returned a {type(output).__name__}; it should return the output alone, a tensor")
    if output.dtype != x.dtype:
        raise BadResult(f"forward returned {output.dtype} for an x of {x.dtype}: keep the dtype")
    return output


def parameters(kind: type, d_model: int, n_heads: int) -> dict[str, Any]:
    """Return the shapes of both weights, and the numbers of all and of trainable parameters."""
    layer = new_layer(kind, d_model, n_heads)
    shapes = {f"the shape of {name}.weight": np.array(getattr(layer, name).weight.shape) for name in ("W_qkv", "W_o")}
    sizes = {"the number of parameters": [p.numel() for p in layer.parameters()]}
    sizes["the number of parameters to train"] = [p.numel() for p in layer.parameters() if p.requires_grad]
    return shapes | {part: float(sum(each)) for part, each in sizes.items()}


def called_again(kind: type, d_model: int, n_heads: int, W_qkv: Array, W_o: Array, x: Array) -> dict[str, Any]:
    """Return the outputs of one layer for one token of x, then for a batch of x and x reversed."""
    import torch

    layer = filled_layer(kind, d_model, n_heads, W_qkv, W_o)
    x = torch.as_tensor(x)
    one = output_of(layer, x[:1, :1].clone())
    return {"output for one token": one, "output": output_of(layer, torch.cat([x, x.flip(1)]))}


def called_in_turn(
    kind: type, d_model: int, n_heads: int, W_qkv: Array, W_o: Array, x: Array, *masks: np.ndarray
) -> dict[str, Any]:
    """Return the outputs of one layer under each mask in turn, each time for another x of the same shape."""
    import torch

    layer = filled_layer(kind, d_model, n_heads, W_qkv, W_o)
    x = torch.as_tensor(x)
    calls = enumerate(tensors(masks), start=1)
    return {f"output of call {call}": output_of(layer, (x / call).clone(), mask) for call, mask in calls}


def side_by_side(kind: type, d_model: int, n_heads: int, W_qkv: Array, W_o: Array, x: Array) -> dict[str, Any]:
    """Return the outputs of three layers that exist together: the second has other weights, the third one more head."""
    import torch

    made = [filled_layer(kind, d_model, *rest) for rest in ((n_heads, W_qkv, W_o), (n_heads, -W_qkv, 2 * W_o))]
    made.append(filled_layer(kind, d_model, n_heads + 1, W_qkv, W_o))
    names = ("the first layer", "the second layer", "the layer with more heads")
    return {
        f"output of {name}": output_of(each, torch.as_tensor(x).clone()) for name, each in zip(names, made, strict=True)
    }


def layer_gradients(
    kind: type, d_model: int, n_heads: int, W_qkv: Array, W_o: Array, x: Array, mask: Array, factors: Array
) -> dict[str, Any]:
    """Return the gradients of a weighted sum of the outputs with respect to x and to both weights."""
    import torch

    layer = filled_layer(kind, d_model, n_heads, W_qkv, W_o)
    x = torch.as_tensor(x).clone().requires_grad_()
    back(output_of(layer, x, *tensors([mask])), torch.as_tensor(factors))
    leaves = {"x": x, "W_qkv": layer.W_qkv.weight, "W_o": layer.W_o.weight}
    return {f"gradient of {name}": gradient_of(leaf) for name, leaf in leaves.items()}


def layer_changes(
    kind: type, d_model: int, n_heads: int, W_qkv: Array, W_o: Array, x: Array, *masks: np.ndarray
) -> float:
    """Return 1.0 if a layer writes into x, into a mask or into its own weights, or changes its mode, else 0.0."""
    import torch

    written = []
    for training, mask in zip(cycle((True, False)), tensors(masks)):
        layer = filled_layer(kind, d_model, n_heads, W_qkv, W_o).train(training)
        weights = [p.detach().clone() for p in layer.parameters()]
        written.append(changes(layer, torch.as_tensor(x), mask))
        written.append(not all(map(torch.equal, weights, (p.detach() for p in layer.parameters()))))
        written.append({part.training for part in layer.modules()} != {training})
    return float(max(written))


def filled_layer(kind: type, d_model: int, n_heads: int, W_qkv: Array, W_o: Array) -> Any:
    """Make a layer of the learner's class with copies of these weights, in their dtype."""
    import torch

    layer = new_layer(kind, d_model, n_heads).to(torch.as_tensor(W_qkv).dtype)
    with torch.no_grad():
        for name, values in (("W_qkv", W_qkv), ("W_o", W_o)):
            weight = getattr(layer, name).weight
            values = torch.as_tensor(values)
            if weight.shape != values.shape:
                raise BadResult(f"{name}.weight is {tuple(weight.shape)}, expected {tuple(values.shape)}")
            weight.copy_(values)
    return layer


def new_layer(kind: type, d_model: int, n_heads: int) -> Any:
    """Make a layer of the learner's class. Raises BadResult unless it has both linear maps, without bias."""
    import torch

    if not isinstance(kind, type):
        raise BadResult("MultiHead is not a class: write class MultiHead(nn.Module)")
    layer = kind(d_model, n_heads)
    if not isinstance(layer, torch.nn.Module):
        raise BadResult("MultiHead is not a module: write class MultiHead(nn.Module)")
    for name in ("W_qkv", "W_o"):
        if not isinstance(getattr(layer, name, None), torch.nn.Linear):
            raise BadResult(f"the layer has no nn.Linear called {name}: assign it to self.{name} in __init__")
        if getattr(layer, name).bias is not None:
            raise BadResult(f"{name} has a bias: write bias=False")
    return layer


# The block -----------------------------------------------------------------------------------------------------------


BLOCK_PARTS = ("gate", "up", "down")
NORMS = ("norm_1", "norm_2")


def block(rng: np.random.Generator) -> list[Rung]:
    def arrays(B, T, d, d_ff, *mask, size=1.0, attention=1.0, network=1.0):
        """Draw the arguments of `blocked`: what attention does, both norms, the three maps, x, and the mask if any."""
        gathers = attention * draw(rng, d, d)
        norms = (1 + 0.5 * draw(rng, d), 1 - 0.5 * draw(rng, d))
        maps = (draw(rng, d_ff, d), draw(rng, d_ff, d), network * draw(rng, d, d_ff))
        return (gathers, *norms, *maps, size * draw(rng, B, T, d), *mask)

    causal = np.tri(4, dtype=bool)
    return [
        Rung("its parameters", (4, 10),
            "Besides its attention, the block has norm_1 and norm_2, each nn.RMSNorm(d_model, eps=1e-5), and "
            "gate, up and down, each nn.Linear with bias=False. In __init__, super().__init__() comes first.",
            block_parameters),
        Rung("an attention that finds nothing", arrays(1, 1, 4, 6, attention=0.0),
            "Attention adds zeros here, so the output is x + down(SiLU(gate(y)) · up(y)) with y = norm_2(x).", blocked),
        Rung("a feed-forward network that finds nothing", arrays(1, 1, 4, 6, network=0.0),
            "down gives zeros here, so the output is x + attention(norm_1(x), mask).", blocked),
        Rung("one token", arrays(1, 1, 4, 6),
            "The feed-forward network reads norm_2 of the sum, which already includes the result of attention.",
            blocked),
        Rung("several tokens", arrays(1, 5, 4, 6),
            "Both parts add to x. They read its norm, but they add to x itself.", blocked),
        Rung("a narrow feed-forward network", arrays(1, 3, 6, 2), "d_ff may be anything: gate and up lead there.",
            blocked),
        Rung("a batch", arrays(3, 4, 5, 7), "The sequences of a batch do not see each other.", blocked),
        Rung("all sizes equal", arrays(3, 3, 3, 3), "With equal sizes, a wrong map raises no error: down leads back.",
            blocked),
        Rung("a long stream", arrays(1, 3, 4, 6, size=100.0),
            "The stream may be large. What each part reads has a standard size; what it adds to stays large.",
            blocked),
        Rung("tokens near zero", arrays(1, 3, 4, 6, size=0.003, attention=0.002),
            "eps is added to the mean of the squares, and here it counts: nn.RMSNorm(d_model, eps=1e-5).", blocked),
        Rung("mask=None, given", arrays(1, 4, 4, 6, None),
            "The block is called as block(x, mask=None) here, and passes None on to attention.", blocked_by_name),
        Rung("a causal mask", arrays(2, 4, 4, 6, causal),
            "The mask is for attention: self.attention(…, mask). The norms and the network need none.", blocked),
        Rung(UNTOUCHED, arrays(2, 4, 4, 6, causal),
            "The output is right, but forward writes into x or into the weights, or changes the mode (block.training). "
            "Write x = x + … instead of x += …, which writes into x.", block_changes),
        Rung("the gradients", (*arrays(2, 4, 4, 6, causal), draw(rng, 2, 4, 4)),
            NO_GRADIENT.format("x and to all maps and norms"), block_gradients),
        Rung("float32", as_single(arrays(2, 4, 4, 6, causal)),
            "The block and x are float32 here, and what you make must be float32 too.", blocked,
            tolerance=SINGLE),
    ]  # fmt: skip


def gatherer(values: Array) -> torch.nn.Module:
    """Return an attention that gives each token the mean of those it may see, times a matrix (d_model, d_model)."""
    import torch

    class Gatherer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.matrix = torch.nn.Parameter(torch.as_tensor(values).clone())

        def forward(self, x, mask=None):
            T = x.shape[-2]
            seen = torch.ones(T, T, dtype=torch.bool) if mask is None else mask
            return (seen / seen.sum(dim=-1, keepdim=True)).to(x.dtype) @ x @ self.matrix

    return Gatherer()


def new_block(kind: type, attention: torch.nn.Module, d_model: int, d_ff: int) -> Any:
    """Make a block of the learner's class. Raises BadResult unless it has its norms and its maps, without bias."""
    import torch

    if not isinstance(kind, type):
        raise BadResult("Block is not a class: write class Block(nn.Module)")
    made = kind(attention, d_model, d_ff)
    if not isinstance(made, torch.nn.Module):
        raise BadResult("Block is not a module: write class Block(nn.Module)")
    for name in BLOCK_PARTS:
        if not isinstance(getattr(made, name, None), torch.nn.Linear):
            raise BadResult(f"the block has no nn.Linear called {name}: assign it to self.{name} in __init__")
        if getattr(made, name).bias is not None:
            raise BadResult(f"{name} has a bias: write bias=False")
    for name in NORMS:
        weight = getattr(getattr(made, name, None), "weight", None)
        if not isinstance(weight, torch.nn.Parameter):
            raise BadResult(f"the block has no norm called {name}: self.{name} = nn.RMSNorm(d_model, eps=1e-5)")
    return made


def filled_block(kind: type, gathers: Array, *weights: Array) -> Any:
    """Make a block of the learner's class with copies of these weights, in their dtype."""
    import torch

    gate = weights[2]
    made = new_block(kind, gatherer(gathers), gate.shape[1], gate.shape[0]).to(torch.as_tensor(gate).dtype)
    with torch.no_grad():
        for name, values in zip((*NORMS, *BLOCK_PARTS), weights, strict=True):
            weight = getattr(made, name).weight
            values = torch.as_tensor(values)
            if weight.shape != values.shape:
                raise BadResult(f"{name}.weight is {tuple(weight.shape)}, expected {tuple(values.shape)}")
            weight.copy_(values)
    return made


def blocked(kind: type, *args: Any) -> dict[str, Any]:
    """Return the output of a new block: `filled_block`'s arguments, x, and the mask if there is one."""
    import torch

    return {"output": output_of(filled_block(kind, *args[:6]), torch.as_tensor(args[6]), *tensors(args[7:]))}


def blocked_by_name(kind: type, *args: Any) -> dict[str, Any]:
    """Return the output of a new block that receives its mask by name."""
    import torch

    (mask,) = tensors(args[7:])
    return {"output": output_of(filled_block(kind, *args[:6]), torch.as_tensor(args[6]), mask=mask)}


def block_parameters(kind: type, d_model: int, d_ff: int) -> dict[str, Any]:
    """Return the shapes of all weights, and the number of parameters beside those of the attention."""
    made = new_block(kind, gatherer(np.zeros((d_model, d_model))), d_model, d_ff)
    shapes = {
        f"the shape of {name}.weight": np.array(getattr(made, name).weight.shape) for name in (*NORMS, *BLOCK_PARTS)
    }
    sizes = [p.numel() for p in made.parameters() if p.requires_grad]
    return shapes | {"the number of parameters to train": float(sum(sizes))}


def block_changes(kind: type, *args: Any) -> float:
    """Return 1.0 if a block writes into x, into the mask or into its own weights, or changes its mode, else 0.0."""
    import torch

    written = []
    for training in (True, False):
        made = filled_block(kind, *args[:6]).train(training)
        weights = [p.detach().clone() for p in made.parameters()]
        written.append(changes(made, torch.as_tensor(args[6]), *tensors(args[7:])))
        written.append(not all(map(torch.equal, weights, (p.detach() for p in made.parameters()))))
        written.append({part.training for part in made.modules()} != {training})
    return float(max(written))


def block_gradients(kind: type, *args: Any) -> dict[str, Any]:
    """Return the gradients of a weighted sum of the outputs with respect to x and to all weights."""
    import torch

    made = filled_block(kind, *args[:6])
    x = torch.as_tensor(args[6]).clone().requires_grad_()
    back(output_of(made, x, *tensors(args[7:-1])), torch.as_tensor(args[-1]))
    leaves = {"x": x} | {name: getattr(made, name).weight for name in (*NORMS, *BLOCK_PARTS)}
    return {f"gradient of {name}": gradient_of(leaf) for name, leaf in leaves.items()}


# Counts --------------------------------------------------------------------------------------------------------------


def count_parameters(rng: np.random.Generator) -> list[Rung]:
    h_kv = int(rng.integers(2, 5))
    group = int(rng.integers(2, 5))
    d_head = int(rng.integers(5, 12))
    odd = (h_kv * group * d_head, h_kv * group)
    return [
        Rung("one head of width 1", (1, 1),
            "Four matrices, W_Q, W_K, W_V and W_O, with one number each. There are no biases."),
        Rung("d_model = 6, two heads", (6, 2),
            "W_Q, W_K, W_V and W_O are d_model by d_model each, however many heads share them. There are no biases."),
        Rung("as many heads as numbers", (5, 5), "The heads divide the columns among them; they add none."),
        Rung("d_model = 512, 8 heads", (512, 8), "4 · d_model²: about a million."),
        Rung("n_kv_heads=None", (768, 12, None),
            "The call is attention_parameters(768, 12, n_kv_heads=None) here. None "
            "means as many key/value heads as query heads.",
            by_name("parameters", "n_kv_heads")),
        Rung("as many key heads as heads", (12, 3, 3),
            "With n_kv_heads = n_heads this is multi-head attention again."),
        Rung("6 heads, 2 key heads", (30, 6, 2),
            "W_K and W_V then have n_kv_heads · d_head columns each. W_Q and W_O stay as they are."),
        Rung("4096, 32 heads, 8 key heads", (4096, 32, 8),
            "W_K and W_V have n_kv_heads · d_head columns, with d_head = d_model / n_heads."),
        Rung("one key head", (48, 8, 1), "Multi-query attention: W_K and W_V are d_model by d_head."),
        Rung("other sizes", (*odd, h_kv),
            "d_head = d_model / n_heads. W_Q and W_O are d_model², W_K and W_V are d_model · n_kv_heads · d_head."),
        Rung("d_head=128: Qwen3 4B", (2560, 32, 8, 128),
            "32 heads of 128 are 4096 columns, in a model of 2560: W_Q is d_model by n_heads · d_head, W_K and W_V "
            "d_model by n_kv_heads · d_head, W_O n_heads · d_head by d_model."),
        Rung("d_head=None", (30, 6, 2, None),
            "The call is attention_parameters(30, 6, 2, d_head=None) here. None means d_model / n_heads.",
            by_name("parameters", "d_head")),
        Rung("narrow heads, in a width that they do not divide", (25, 4, 4, 3),
            "When d_head is given, d_model need not be a multiple of n_heads."),
        Rung("other sizes, d_head given", (odd[0] + 1, odd[1], h_kv, d_head + 2),
            "Each of the four matrices has d_model on one side. On the other it has "
            "n_heads · d_head or n_kv_heads · d_head."),
        Rung("other sizes, multi-head", odd, "4 · d_model², whatever the number of heads."),
        Rung("d_head given, as many key heads as heads", (6, 2, None, 5),
            "n_kv_heads is None here, and d_head is 5: each matrix has n_heads · d_head on one side."),
    ]  # fmt: skip


def by_name(part: str, name: str) -> Callable:
    """Return a measure that calls the function with its last argument by name, and records the result as `part`."""
    return lambda function, *args: {part: function(*args[:-1], **{name: args[-1]})}


def count_flops(rng: np.random.Generator) -> list[Rung]:
    T, d_model, d_ff = int(rng.integers(20, 40)), int(rng.integers(5, 9)), int(rng.integers(11, 17))
    return [
        Rung("one token, every width 1", (1, 1, 1),
            "Four products for the projections, two for the core, two for the feed-forward: "
            "each is one multiply-add, which counts as 2."),
        Rung("one token", (1, 3, 5),
            "An a by b matrix takes a · b multiply-adds for each token, and a multiply-add counts as 2.",
            shape_hint="Return (projections, core, feed_forward)."),
        Rung("two tokens", (2, 3, 5),
            "The projections and the feed-forward grow like T. In the core, each of the T queries meets "
            "each of the T keys: it grows like T²."),
        Rung("d_ff = 4 · d_model", (7, 6, 24),
            "Projections 8·T·d_model², core 4·T²·d_model, feed-forward 16·T·d_model²."),
        Rung("a narrow feed-forward", (5, 8, 3),
            "The feed-forward has two matrices, d_model by d_ff and d_ff by d_model. d_ff may be anything."),
        Rung("T = 2048, d_model = 512, d_ff = 2048", (2048, 512, 2048),
            "The core is Q Kᵀ and weights times V: 2 · T² · d_model multiply-adds. The number of heads "
            "does not appear: h · d_head = d_model."),
        Rung("other sizes", (T, d_model, d_ff),
            "Projections: four matrices of d_model². Core: T² pairs, twice d_model. Feed-forward: two matrices of "
            "d_model · d_ff. Each multiply-add counts as 2."),
        Rung("a long sequence", (131072, 4096, 11008), "Every key counts for every query: no causal half."),
    ]  # fmt: skip


def crossover(rng: np.random.Generator) -> list[Rung]:
    d_model, d_ff = int(rng.integers(5, 30)), int(rng.integers(31, 99))
    return [
        Rung("d_ff = 4 · d_model", (512, 2048),
            "Set the core equal to the feed-forward, and solve for T: what both sides share cancels."),
        Rung("d_ff = d_model", (16, 16), "4·T²·d_model = 4·T·d_model·d_ff: divide both sides by what they share."),
        Rung("a narrow feed-forward", (64, 24), "Here d_ff is smaller than d_model, so the crossover is early."),
        Rung("other sizes", (d_model, d_ff),
            "Set the two counts of your layer_flops equal and solve for T: no factor is left in front."),
        Rung("width 1", (1, 7), "Try it: with your layer_flops the second and third number should be equal at this T."),
        Rung("a wide feed-forward", (1024, 11008), "Both counts have a factor T and a factor d_model in common."),
    ]  # fmt: skip


# Rotation ------------------------------------------------------------------------------------------------------------


def rotation(rng: np.random.Generator) -> list[Rung]:
    def at(*positions):
        return np.array(positions)

    pair = "A pair (a, b) becomes (a cos − b sin, a sin + b cos)."
    return [
        Rung("position 0", (draw(rng, 1, 4), at(0)), "At position 0 nothing is rotated: cos 0 is 1 and sin 0 is 0.",
            shape_hint="Return a tensor of the shape of x."),
        Rung("one pair, one position", (np.array([[1.0, 0.0]]), at(1)),
            pair + " With one pair the angle is 1 radian per position, so (1, 0) becomes (cos 1, sin 1)."),
        Rung("another pair", (np.array([[0.5, 2.0]]), at(2)), pair + " The angle is 2 radians here."),
        Rung("two pairs", (draw(rng, 1, 4), at(3)),
            "Numbers 0 and 1 are pair 0, numbers 2 and 3 pair 1. Pair p rotates by base^(−2p/d) radians per position: "
            "here by 1 and by 0.01."),
        Rung("three pairs", (draw(rng, 1, 6), at(2)),
            "The results go where their pairs were: numbers 2p and 2p + 1. torch.stack along a new last axis and "
            "flatten put them there."),
        Rung("another base", (draw(rng, 1, 6), at(5), 4.0),
            "The base is 4 here, and pair p rotates by 4^(−2p/6) radians per position."),
        Rung("three tokens", (draw(rng, 3, 4), at(0, 1, 2)), "Token t is rotated by its own position, positions[t]."),
        Rung("a later part of a text", (draw(rng, 3, 4), at(7, 8, 9)),
            "These tokens are at positions 7 to 9: use the argument positions, which need not begin at 0."),
        Rung("positions out of order", (draw(rng, 4, 6), at(3, 0, 11, 1)),
            "Use the argument positions in the order in which it comes."),
        Rung("batch and heads", (draw(rng, 2, 3, 4, 6), at(0, 1, 2, 3)),
            "The axes before the tokens are batch and heads. Every entry along them is rotated in the same way."),
        Rung("all sizes equal", (draw(rng, 4, 4, 4, 4), at(2, 3, 5, 6)),
            "With equal sizes, a wrong axis raises no error. Positions belong to the second-to-last axis, pairs to the "
            "last."),
        Rung("far along in a text", (draw(rng, 2, 3, 8), at(0, 150, 900)),
            "Any position: the angle is position times speed."),
        Rung(UNTOUCHED, (draw(rng, 2, 3, 4), at(1, 2, 3)), NEW_TENSORS, changes),
        Rung("the gradient", (draw(rng, 2, 3, 4), at(1, 2, 3), draw(rng, 2, 3, 4)), NO_GRADIENT.format("x"), gradient),
        Rung("float32", (draw(rng, 2, 3, 8).astype(np.float32), at(4, 5, 6)),
            "x is float32 here, so the result must be float32 too: x.dtype.", in_its_dtype,
            tolerance={"turned": (1e-4, 1e-4)}),
    ]  # fmt: skip


def in_its_dtype(function: Callable, x: Array, *rest: Any) -> dict[str, Any]:
    """Return the result. Raises BadResult unless it has the dtype of x."""
    import torch

    x = torch.as_tensor(x)
    result = torch.as_tensor(function(x, *rest))
    if result.dtype != x.dtype:
        raise BadResult(f"the result is {result.dtype} for an x of {x.dtype}: keep the dtype")
    return {"turned": result}


def places(draft: Draft) -> np.ndarray:
    """Draw places of tokens, up to the largest of the rung."""
    most = int(np.max(draft.rung[len(draft.args)]))
    return np.array([draft.choose(0, most) for _ in range(draft.size("T"))], dtype=np.int64)


# Grouped queries -----------------------------------------------------------------------------------------------------


def grouped_query(rng: np.random.Generator) -> list[Rung]:
    def arrays(B, h, h_kv, n, m, d, *mask, size=1.0):
        q, k, v = draw(rng, B, h, n, d), draw(rng, B, h_kv, m, d), draw(rng, B, h_kv, m, d)
        return size * q, size * k, v, *mask

    lengths = np.arange(5) < np.array([4, 2])[:, None, None, None]  # (2, 1, 1, 5)
    by_head, one = np.stack([draw_mask(rng, 2, 3) for _ in range(4)]), draw_mask(rng, 2, 3)  # (h, n, m), (n, m)
    each = np.stack([[draw_mask(rng, 3, 4) for _ in range(4)] for _ in range(2)])  # (B, h, n, m)
    consecutive = "Query head i reads key head i // (h // h_kv): neighbours share."
    return [
        Rung("one key: the output is its value", arrays(1, 4, 2, 1, 1, 3),
            "With one key the output of each head is the value of its group. Heads 0 and 1 share the "
            "first value, heads 2 and 3 the second: use repeat_interleave along the head axis, for keys and values. "
            "Return the output alone, (B, h, n, d)."),
        Rung("as many key heads as heads", arrays(2, 3, 3, 2, 4, 2),
            "With h_kv = h every query head has keys and values of its own: ordinary attention."),
        Rung("one key head for all", arrays(2, 4, 1, 3, 2, 5),
            "With h_kv = 1 all query heads share one set of keys and values: multi-query attention."),
        Rung("4 query heads, 2 key heads", arrays(1, 4, 2, 2, 3, 3), consecutive),
        Rung("6 query heads, 2 key heads", arrays(1, 6, 2, 3, 2, 5), consecutive + " Here a group has three."),
        Rung("6 query heads, 3 key heads", arrays(2, 6, 3, 2, 4, 3), consecutive + " Here a group has two."),
        Rung("scaled by √d", arrays(1, 4, 2, 3, 4, 9, size=1.5), "Scores are divided by √d."),
        Rung("n = m = h = d", arrays(1, 3, 1, 3, 3, 3),
            "With equal sizes, a wrong axis raises no error. The softmax runs along the last axis, the "
            "keys. Without a mask nothing is blocked."),
        Rung("B = h_kv", arrays(2, 4, 2, 3, 3, 2),
            "When B = h_kv, repeating along the batch axis gives the right size. Heads are axis 1."),
        Rung("large scores", arrays(1, 4, 2, 2, 3, 4, size=50.0),
            "torch.softmax is safe for large scores; exp alone is not."),
        Rung(TOO_NEAR,
            (np.ones((1, 4, 2, 1)), 1e6 + 0.01 * np.stack([rng.permutation(3) for _ in range(2)])[None, ..., None],
                draw(rng, 1, 2, 3, 1)),
            IN_FLOAT64),
        Rung("q, k and v as split_heads makes them",
            tuple(np.swapaxes(a.reshape(2, a.shape[2], -1, 3), 1, 2) for a in arrays(2, 4, 2, 3, 5, 3)),
            "These are transposed views, as split_heads returns them: their numbers do not lie in memory in the "
            "order of the axes. Where view raises, reshape copies."),
        Rung("mask=None, given", arrays(1, 2, 1, 2, 3, 2, None),
            "The call is grouped_query_attention(q, k, v, mask=None) here. None means "
            "that every query may attend to every key.",
            by_name("output", "mask")),
        Rung("a causal mask (n, m), B = n", arrays(4, 4, 2, 4, 4, 3, np.tri(4, dtype=bool)),
            "Where the mask is False the score is −∞ before the softmax. True means may attend: fill where it is "
            "False, ~mask. (n, m) is one mask for all sequences, even when B = n."),
        Rung("a padding mask (B, 1, 1, m)", arrays(2, 4, 2, 3, 5, 2, lengths), "The mask broadcasts to (B, h, n, m)."),
        Rung("a mask for each query head (h, n, m), B = h", arrays(4, 4, 2, 2, 3, 3, by_head),
            "The mask has one matrix for each of the h query heads, not for each key head, nor for each sequence."),
        Rung("a mask (B, h, n, m)", arrays(2, 4, 2, 3, 4, 3, each),
            "The mask is as large as the scores: (B, h, n, m)."),
        Rung("masks with axes of size 1",
            arrays(2, 4, 2, 2, 3, 3, one[None, None], one[None], by_head[None, :, :1], by_head[:, :1], one[0]),
            SIZE_ONE, grouped_each),
        Rung("a blocked score far above the others", arrays(1, 4, 2, 5, 5, 4, np.tri(5, dtype=bool), size=40.0),
            "A blocked score must have no influence, however large it is: block it before the softmax, with −∞."),
        Rung("scores below −1 000 000 000",
            (np.ones((1, 4, 2, 1)), np.array([-3e9, -3e9 - 1, 4] * 2).reshape(1, 2, 3, 1), draw(rng, 1, 2, 3, 1),
                np.array([[True, True, False]])),
            FILL),
        Rung("float32", as_single(arrays(2, 4, 2, 3, 5, 2, lengths)),
            "All tensors but the mask are float32 here, and what you make must be float32 too.",
            tolerance=SINGLE),
        Rung(UNTOUCHED, arrays(2, 4, 2, 3, 5, 2, lengths, lengths[0, 0], None), NEW_TENSORS, grouped_changes),
        Rung("the gradients", (*arrays(2, 6, 2, 3, 4, 2), draw(rng, 2, 6, 3, 2)), SHARED, shared_gradients),
        Rung("the gradients, with a mask", (*arrays(2, 6, 2, 3, 4, 2), draw(rng, 2, 6, 3, 2), draw_mask(rng, 3, 4)),
            SHARED, shared_gradients),
    ]  # fmt: skip


SHARED = (
    "A key head gets the gradients of all query heads that share it, added up. Stay in PyTorch, and detach nothing."
)


def grouped_each(function: Callable, q: Array, k: Array, v: Array, *masks: Array) -> dict[str, Any]:
    """Return the output for each of the masks."""
    return under_each(lambda mask: function(*copies(q, k, v), mask), masks)


def grouped_changes(function: Callable, q: Array, k: Array, v: Array, *masks: Array) -> float:
    """Return 1.0 if a function writes into its arguments under any of the masks, else 0.0."""
    return max(changes(function, *tensors([q, k, v, mask])) for mask in masks)


def shared_gradients(function: Callable, q: Array, k: Array, v: Array, factors: Array, *mask: Array) -> dict[str, Any]:
    """Return the gradients of a weighted sum of the output with respect to q, k and v."""
    import torch

    leaves = {name: torch.as_tensor(a).clone().requires_grad_() for name, a in zip("qkv", (q, k, v), strict=True)}
    back(function(*leaves.values(), *tensors(mask)), torch.as_tensor(factors))
    return {f"gradient of {name}": gradient_of(leaf) for name, leaf in leaves.items()}


# Looking into heads --------------------------------------------------------------------------------------------------


def of_two_or_more(weights: np.ndarray, period: int) -> bool:
    return period >= 2


def induction_score(rng: np.random.Generator) -> list[Rung]:
    def head(period, key, rows=None):
        """Return weights by which query i sees only key(i), or key 0 if that is negative or i is not in `rows`."""
        weights = np.zeros((2 * period, 2 * period))
        for i in range(2 * period):
            weights[i, max(0, key(i)) if rows is None or i in rows else 0] = 1.0
        return weights

    def causal(period):
        shares = np.tril(rng.integers(1, 10, (2 * period, 2 * period))).astype(float)
        return shares / shares.sum(axis=1, keepdims=True)

    def after_first(period):
        return lambda i: i - period + 1

    period = int(rng.integers(5, 9))
    return [
        Rung("a perfect induction head", (head(4, after_first(4)), 4),
            "Each token of the second half puts all its weight on the token after its earlier occurrence: the score is "
            "1. Only queries in the second copy count, i from period to 2·period − 1."),
        Rung("a head that looks at the token before", (head(5, lambda i: i - 1), 5),
            "This is a previous-token head. It never looks one period back: the score is 0."),
        Rung("a head that looks at the same token", (head(5, lambda i: i - 5), 5),
            "This head looks at the earlier occurrence of the token itself, key i − period. The score takes "
            "the token after that, so the score is 0."),
        Rung("a head that looks two tokens after", (head(5, lambda i: i - 3), 5),
            "This head looks one token too far: the score is 0."),
        Rung("equal weights", (np.tril(np.ones((6, 6))) / np.arange(1, 7)[:, None], 3),
            "Query i has 1/(i + 1) for each key. The score is the mean over the queries of the second copy."),
        Rung("only the first query of the second copy", (head(4, after_first(4), rows=[4]), 4),
            "The first token of the second copy, query i = period, looks at key "
            "1. It counts, so the score is 1/period."),
        Rung("only the last query", (head(4, after_first(4), rows=[7]), 4),
            "The last token looks at key i − period + 1 = period, which is the first token of the second "
            "copy. It counts, so the score is 1/period."),
        Rung("a head that looks at the first token", (head(4, lambda i: 0), 4),
            "No token of the second half looks at the token after its earlier occurrence: the score "
            "is 0. Queries before i = period belong to the first copy and do not count, and a "
            "negative index would count from the end."),
        Rung("a period of 2", (causal(2), 2), "With a period of 2, the queries are 2 and 3, and their keys are 1 and "
            "2."),
        Rung("any causal head", (causal(period), period),
            "Mean over i from period to 2·period − 1 of weights[i, "
            "i − period + 1]: row i is the query, column the key."),
        Rung("another head", (causal(period + 3), period + 3),
            "Mean over i from period to 2·period − 1 of weights[i, i − period + 1]."),
        Rung("a head that sees later tokens too", (causal(4)[:, ::-1].copy(), 4),
            "Only these entries count: not the largest weight of a row, and nothing above the diagonal."),
        Rung("a long period", (causal(24), 24), "Any period of 2 or more."),
        Rung("float32", (causal(6).astype(np.float32), 6), "The same in float32.", None, SINGLE),
        Rung(UNTOUCHED, (causal(3), 3), NEW_TENSORS, changes),
    ]  # fmt: skip


WORDS = 6  # vocabulary size below; sequences run round all words, so that every token but the last has its successor


def head_ablation(rng: np.random.Generator) -> list[Rung]:
    """Return rungs whose models have the votes {(layer, head): (strength, words)}; for the options see `table`."""

    def rung(name, model, why, measure=chosen_head, **more):
        return Rung(name, model, why, measure, **more)

    def where(n_layers, n_heads, count):
        """Draw `count` different heads, as (layer, head)."""
        places = rng.permutation(n_layers * n_heads)[:count]
        return [divmod(int(place), n_heads) for place in places]

    whole = range(WORDS)
    a, b, c, d = where(2, 3, 4)
    strong, weak = where(1, 2, 2)
    deep = [(2, int(rng.integers(0, 2))), (0, 1), (1, 0)]
    bad, good, poor = where(3, 2, 3)
    least, more, most = rng.permutation([[0, 1], [1, 0], [1, 1]]).tolist()
    twins = [(0, int(rng.integers(0, 4))), (1, int(rng.integers(0, 4)))]
    alone = (1, 4)
    source, grumbler = rng.permutation(4)[:2].tolist()
    one, two, harmful, lonely = rng.permutation(4).tolist()
    sure, rare, common = where(2, 4, 3)
    square = (0, 2)
    flat = (2, 1)
    loud, counter, quiet = where(2, 3, 3)
    ends, often = where(2, 3, 2)
    left, right, third = where(3, 2, 3)
    best, wrong, echo, older = where(2, 4, 4)
    start = int(rng.integers(0, WORDS))
    first = [(start + t) % WORDS for t in range(WORDS)]  # the words of a sequence that begins with `start`
    return [
        rung("one layer of two heads", table(1, 2, {strong: (4, whole), weak: (1, whole)}),
            "Switch off one head at a time, all others on, and compare the losses. Return the head without which the "
            "loss is highest.",
            shape_hint="Return (layer, head), two whole numbers from 0."),
        rung("two layers of three heads", table(2, 3, {a: (1, whole), b: (3, [0, 1, 2]), c: (2, [3, 4]), d: (1, [5])}),
            "head_masks has the shape (n_layers, n_heads): row l, column k belongs to head k of layer l."),
        rung("three layers of two heads", table(3, 2, {deep[0]: (3, whole), deep[1]: (2, whole), deep[2]: (1, whole)}),
            "There are more layers than heads here. The first number is the layer, the second the head within it."),
        rung("as many heads as layers", table(3, 3, {square: (4, whole), flat: (2, whole)}),
            "With as many heads as layers, nothing tells you if you swapped the two: "
            "(layer, head), and head_masks[layer, head]."),
        rung("a head that does harm", table(3, 2, {bad: (-4, whole), good: (2, [0, 1, 2]), poor: (1, [3])}),
            "Without one of these heads the loss falls, and by more than it rises without any other. Look for "
            "the largest rise, not the largest change."),
        rung("no head helps",
            table(2, 2, {tuple(least): (-0.5, whole), tuple(more): (-1.5, whole), tuple(most): (-3, whole)}, rest=-6),
            "Without any of these heads the loss falls. The largest rise is then the smallest fall: start from "
            "−∞ or with the first head, not with 0."),
        rung("two heads that stand in for each other",
            table(2, 5, {twins[0]: (3, whole), twins[1]: (2.95, whole), alone: (2, [0, 1, 2])}, backup=twins),
            "Each of the two strongest heads covers for the other, so without one of them little is lost. Switch off "
            "one head, with all others on; do not measure what a head can do alone."),
        rung("a head that others read",
            table(2, 4,
                {(0, grumbler): (-0.2, whole), (1, one): (3, [0, 1, 2]), (1, two): (3, [3, 4, 5]),
                    (1, harmful): (-0.3, whole), (1, lonely): (1, [0, 1, 2])},
                reads=(source, (one, two, harmful))),
            "One head of layer 0 gives no vote of its own, but three heads of layer 1 give nothing without it. Run "
            "the whole model with that head off, and start from masks of ones each time."),
        rung("two heads that lift all scores alike",
            table(2, 3, {loud: (0, whole), counter: (0, whole), quiet: (2, [0, 1])}, lift={loud: 50, counter: -50}),
            "After some words, two heads move the logits far, but all logits of a position by the same amount, which "
            "the softmax over the words cannot see. Measure the loss, not the change of the logits, and take the "
            "softmax along the last axis."),
        rung("seldom, but badly", table(2, 4, {rare: (14, [0]), common: (2.2, [1, 2, 3]), sure: (-12, [0])}),
            "One head matters for a single word only, but without it the loss there is large. Take the mean of the "
            "cross-entropy, not of probabilities or of hits."),
        rung("more than the last token",
            table(2, 3, {ends: (5, [(start - 1) % WORDS]), often: (4, [w for w in whole if w != (start - 1) % WORDS])},
                starts=[start]),
            "The loss is the mean over all positions that have a next token, not that of the last one."),
        rung("more than the first sequence",
            table(3, 2, {left: (5, [0, 1, 2]), right: (4, [3, 4, 5])}, starts=[0, 3, 3], loops=((0, 1, 2), (3, 4, 5))),
            "The loss is the mean over all sequences of the batch, not that of the first one."),
        rung("the last pair counts",
            table(2, 3, {ends: (5, [first[4]]), often: (0.7, [first[0], first[3]])}, starts=[start], length=6),
            "There is one sequence, and its last pair decides: the loss is the mean over all positions that have a "
            "next token, from the first to the last but one."),
        rung("the first pair counts",
            table(2, 3, {ends: (5, [first[0]]), often: (0.7, [first[1], first[4]])}, starts=[start], length=6),
            "There is one sequence, and its first pair decides: the loss is the mean "
            "over all positions that have a next token."),
        rung("every position counts",
            table(2, 3, {ends: (5, [first[1], first[3]]), often: (1, [first[0], first[2], first[4]])},
                starts=[start], length=6),
            "There is one sequence, and its second and fourth position decide: the loss is the mean "
            "over all positions that have a next token."),
        rung("more than the last sequence",
            table(3, 2, {left: (5, [0, 1, 2]), right: (1.5, [3]), third: (-4, [3, 4, 5])},
                starts=[0, 3], loops=((0, 1, 2), (3, 4, 5))),
            "The loss is the mean over all sequences of the batch, not that of the last or the worst one. All "
            "tokens count equally: nothing is squared."),
        rung("a rise in a loss that is already large",
            table(3, 2, {left: (1.5, [3, 4, 5]), right: (5, [0, 1]), third: (-4, [3, 4, 5])},
                starts=[0, 3], loops=((0, 1, 2), (3, 4, 5))),
            "Without one head a small loss becomes large; without the other a large loss rises even more. Take the "
            "mean of the losses as they are: no root, no product, no ratio."),
        rung("heads that know other tokens",
            table(2, 4, {best: (3, whole), wrong: (-2, whole)}, echo={echo: (2, 0), older: (0, 2.5)}),
            "One head votes for the present token, and one for the token before it. The logits at "
            "position t are for token t + 1: compare logits[:, :-1] with tokens[:, 1:]."),
        rung("the model stays as it was", table(2, 3, {a: (1, whole), b: (3, whole)}),
            "The head is right, but the model is not as it was: its numbers, its mode (model.training), requires_grad "
            "or .grad of its parameters, its hooks, or the tokens. Switch heads off only through head_masks, "
            "under torch.no_grad(), and undo whatever you set.",
            left_behind),
        rung("a text that begins where another ends",
            table(2, 3, {(0, 1): (5, [4]), (1, 2): (2, [2])}, starts=[2, 4], length=3),
            "The first token of a text is nobody's next token, even though another text comes before it in the batch. "
            "Shift each text first, then flatten."),
    ]  # fmt: skip


def table(
    n_layers: int,
    n_heads: int,
    votes: Mapping,
    rest: float = 0.0,
    backup: Sequence = (),
    reads: tuple | None = None,
    lift: Mapping | None = None,
    echo: Mapping | None = None,
    starts: Sequence[int] = (0, 2),
    loops: Sequence[Sequence[int]] = (),
    length: int = 13,
) -> tuple:
    """Return the parts of a model, (votes, backup, reads, tokens), as arrays and tuples of plain numbers.

    Args:
        votes: {(layer, head): (strength, words)}; after each of these words the head votes for the successor.
        rest: the strength with which all other heads vote, after every word.
        backup: two heads of which only the larger vote counts.
        reads: a head of layer 0, and the heads of layer 1 that give nothing without it.
        lift: {head: amount that it adds to all logits after every second word}.
        echo: {head: strengths of its votes for the present token and for the one before}.
        starts: the first words of the sequences, which have `length` words each.
        loops: the cycles in which the words follow each other.
    """
    loops = loops or (tuple(range(WORDS)),)
    after = {word: loop[(i + 1) % len(loop)] for loop in loops for i, word in enumerate(loop)}
    weights = np.zeros((n_layers, n_heads, WORDS, WORDS))
    for layer, head in np.ndindex(n_layers, n_heads):
        strength, words = votes.get((layer, head), (rest, range(WORDS)))
        for word in words:
            weights[layer, head, word, after[word]] += strength
    for place, size in (lift or {}).items():
        weights[place][::2] += size
    for place, (present, before) in (echo or {}).items():
        for word in range(WORDS):
            weights[(*place, word, word)] += present
            weights[(*place, after[word], word)] += before
    tokens = np.empty((len(starts), length), dtype=np.int64)
    tokens[:, 0] = starts
    for t in range(1, tokens.shape[1]):
        tokens[:, t] = [after[word] for word in tokens[:, t - 1].tolist()]
    return weights, tuple(backup), reads, tokens


def table_model(votes: np.ndarray, backup: tuple, reads: tuple | None) -> Any:
    """Make a model that has as much of the interface of a Decoder as the exercise promises.

    Its logits (B, T, WORDS) are the sum of votes[layer, head, token] over the active heads, with two exceptions: of the
    heads in `backup` only the larger vote counts, and heads that read another one count only while that one is active.
    """
    import torch

    sizes = tuple(votes.shape[:2])

    class Votes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.votes = torch.nn.Parameter(torch.as_tensor(votes).clone())  # (n_layers, n_heads, WORDS, WORDS)
            self.n_heads = sizes[1]
            self.blocks = torch.nn.ModuleList(torch.nn.Identity() for _ in range(sizes[0]))

        def forward(self, tokens, *, head_masks=None):
            on = torch.ones(sizes) if head_masks is None else torch.as_tensor(head_masks)
            if tuple(on.shape) != sizes:
                raise ValueError(f"head_masks is {tuple(on.shape)}: expected (n_layers, n_heads) = {sizes}")
            if not holds_throughout((on == 0) | (on == 1)):
                raise ValueError("head_masks holds other numbers than 0 and 1: a head is on or off")
            on = on.to(self.votes).clone()
            if reads:
                source, readers = reads
                on[1, list(readers)] = on[1, list(readers)] * on[0, source]
            votes_on = self.votes[:, :, tokens] * on[:, :, None, None, None]  # (n_layers, n_heads, B, T, WORDS)
            logits = votes_on.sum(dim=(0, 1))
            if backup:
                first, second = (votes_on[place] for place in backup)
                logits = logits - torch.minimum(first, second)
            return logits

    return Votes()


def holds_throughout(conditions: torch.Tensor) -> bool:
    """Return whether all conditions hold; True under torch.vmap, where their values cannot be read."""
    try:
        return bool(conditions.all())
    except RuntimeError:
        return True


def chosen_head(
    function: Callable, votes: np.ndarray, backup: tuple, reads: tuple | None, tokens: Array
) -> dict[str, Any]:
    """Return the layer and head that the function names for a new model."""
    import torch

    chosen = function(table_model(votes, backup, reads), torch.as_tensor(tokens))
    return dict(zip(("layer", "head"), pair(chosen, votes.shape[:2]), strict=True))


def left_behind(
    function: Callable, votes: np.ndarray, backup: tuple, reads: tuple | None, tokens: Array
) -> dict[str, Any]:
    """Return 1.0 if the function changes model or tokens for good, in either mode, else 0.0; and the head it names."""
    import torch

    tokens = torch.as_tensor(tokens)
    worst = 0.0
    for training in (True, False):
        model = table_model(votes, backup, reads).train(training)
        argument = tokens.clone()
        before = None if training else torch.ones_like(model.votes)  # of an earlier backward pass
        model.votes.grad = before
        chosen = pair(function(model, argument), votes.shape[:2])
        modes = {part.training for part in model.modules()}
        hooks = any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
        same = torch.equal(model.votes, torch.as_tensor(votes)) and torch.equal(argument, tokens)
        same = same and model.votes.requires_grad and (model.votes.grad is None) == (before is None)
        same = same and (before is None or torch.equal(model.votes.grad, torch.ones_like(before)))
        worst = max(worst, float(not same or modes != {training} or hooks))
    return {"measure": worst} | dict(zip(("layer", "head"), chosen, strict=True))


def pair(result: Any, sizes: Sequence[int]) -> list[float]:
    """Return two whole numbers as a list. Raises BadResult for anything else."""
    try:
        numbers = [float(part) for part in result]
    except (TypeError, ValueError, RuntimeError):
        numbers = []
    if isinstance(result, (str, dict, set)) or len(numbers) != 2 or not all(n.is_integer() for n in numbers):
        if getattr(result, "shape", None) == ():
            result = result.item()
        plain = isinstance(result, (bool, int, float, str, tuple, list, dict, set, type(None)))
        description = repr(result) if plain else type(result).__name__
        n_layers, n_heads = sizes
        raise BadResult(
            f"the function returned {description[:60]}; return the pair (layer, head), two whole numbers. "
            f"(argmax counts all {n_layers} · {n_heads} heads in one row: divmod by the number of heads gives the pair)"
        )
    return numbers


# Find the bug --------------------------------------------------------------------------------------------------------


def find_the_bug(rng: np.random.Generator) -> list[Rung]:
    def arrays(B, n, m, h, h_kv, d, size=1.0):
        q, k, v = draw(rng, B, n, h * d), draw(rng, B, m, h_kv * d), draw(rng, B, m, h_kv * d)
        return size * q, size * k, v, h, h_kv

    return [
        Rung("one head", arrays(2, 3, 4, 1, 1, 5),
            "With one head it was right from the start, and should stay right."),
        Rung("one key head for all", arrays(2, 3, 4, 4, 1, 3),
            "With one key head it was right from the start, and should stay right."),
        Rung("one key", arrays(2, 2, 1, 4, 2, 3),
            "With one key it was right from the start: all the weight is on it."),
        Rung("4 heads, 2 key heads", arrays(1, 2, 3, 4, 2, 3),
            "Compare the weights, and how sharp their rows are, with those of your grouped_query_attention."),
        Rung("6 heads, 2 key heads", arrays(1, 3, 4, 6, 2, 5),
            "Here a group has three heads. There are two key heads, as before."),
        Rung("6 heads, 3 key heads", arrays(2, 3, 2, 6, 3, 4), "Here there are three key heads, of two heads each."),
        Rung("as many key heads as heads", arrays(2, 3, 4, 3, 3, 4),
            "With h_kv = h every head has keys of its own: ordinary attention in heads."),
        Rung("all sizes equal", arrays(3, 3, 3, 3, 3, 3),
            "With equal sizes, a wrong axis raises no error. Name each axis of every tensor."),
        Rung("large scores", arrays(1, 5, 5, 4, 2, 4, size=40.0), "The softmax was right: leave it as it is."),
        Rung(UNTOUCHED, arrays(2, 3, 4, 4, 2, 3), NEW_TENSORS, changes),
    ]  # fmt: skip


# Kinds of inputs, and what numbers may be made of -------------------------------------------------------------------


def matrices(rung: Rung) -> dict[str, Any]:
    d_model, n_heads, n_kv_heads, d_head = (*rung.args, None, None)[:4]
    width = d_head or d_model // n_heads
    return {"d_model": d_model, "n_heads": n_heads, "n_kv_heads": n_kv_heads or n_heads, "d_head": width}


MATRICES = (
    ("where n_kv_heads is None or left out", "where it is given", lambda *args: args[2:3] in ((), (None,))),
    (
        "where there are fewer key heads than heads",
        "where there are as many",
        lambda *args: (args[2:] or [None])[0] not in (None, args[1]),
    ),
    ("where d_head is given", "where it is None or left out", lambda *args: args[3:] not in ((), (None,))),
)
GROUPS = (
    ("where heads share keys and values", "where each has its own", lambda q, k, *_: q.shape[1] != k.shape[1]),
    ("where there are several groups of several heads", "elsewhere", lambda q, k, *_: 1 < k.shape[1] < q.shape[1]),
    ("with several key heads", "with one", lambda q, k, *_: k.shape[1] > 1),
    ("with a mask", "without a mask", lambda q, k, v, mask, *_: hasattr(mask, "dtype") and mask.dtype == bool),
    ("with a mask of four axes", "elsewhere", lambda q, k, v, mask, *_: mask.dtype == bool and mask.ndim == 4),
    ("with several keys", "with one key", lambda q, k, *_: k.shape[2] > 1),
)
LAYERS = (
    ("with several heads", "with one head", lambda d_model, n_heads, *_: n_heads > 1),
    ("with several tokens", "with one token", lambda d_model, n_heads, W, W_o, x, *_: x.shape[1] > 1),
    ("with several sequences", "with one sequence", lambda d_model, n_heads, W, W_o, x, *_: len(x) > 1),
    ("with a mask", "without a mask",
        lambda d_model, n_heads, W, W_o, x, mask, *_: mask is not None and mask.dtype == bool),
    ("with a mask of less than four axes", "elsewhere",
        lambda d_model, n_heads, W, W_o, x, mask, *_: mask.dtype == bool and mask.ndim < 4),
    ("with a mask of four axes", "elsewhere",
        lambda d_model, n_heads, W, W_o, x, mask, *_: mask.dtype == bool and mask.ndim == 4),
)  # fmt: skip
KEY_HEADS = (
    ("with several key heads", "with one", lambda q, k, v, n_heads, n_kv_heads: n_kv_heads > 1),
    ("where heads share keys", "where each has its own", lambda q, k, v, n_heads, n_kv_heads: n_kv_heads < n_heads),
    ("with several keys", "with one key", lambda q, k, *_: k.shape[1] > 1),
    ("with several sequences", "with one sequence", lambda q, *_: len(q) > 1),
)
LAYER = ("d_model", "n_heads", "weight of W_qkv", "weight of W_o", "x", "mask")


def cut_evenly(d_model: int, n_heads: int, n_kv_heads: int | None = None, d_head: int | None = None) -> bool:
    """Return whether these numbers of heads divide evenly."""
    return n_heads % (n_kv_heads or 1) == 0 and (d_head is not None or d_model % n_heads == 0)


def words(draft: Draft) -> np.ndarray:
    """Draw tokens that the table of votes contains."""
    B, T, V = (draft.size(name) for name in "BTV")
    return np.array([draft.choose(0, max(V - 1, 0)) for _ in range(B * T)], dtype=np.int64).reshape(B, T)


def has_a_first(votes: np.ndarray, backup: tuple, reads: tuple | None, tokens: np.ndarray) -> bool:
    """Return whether one head is clearly the one without which the loss rises most, if heads vote independently."""
    if backup or reads or tokens.shape[1] < 2:
        return False

    def loss(on: np.ndarray) -> float:
        logits = (votes[:, :, tokens[:, :-1]] * on[:, :, None, None, None]).sum(axis=(0, 1))  # (B, T − 1, V)
        top = logits.max(axis=-1, keepdims=True)
        logs = logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
        return -float(np.take_along_axis(logs, tokens[:, 1:, None], axis=-1).mean())

    losses = []
    for place in np.ndindex(votes.shape[:2]):
        on = np.ones(votes.shape[:2])
        on[place] = 0
        losses.append(loss(on))
    *_, second, first = sorted([-math.inf, *losses])
    return first > second + 0.05


SMALL_TABLES = (
    Small(
        ("L h V V", FROM_RUNG, FROM_RUNG, Drawn("B T", words)),
        fits=has_a_first,
        names=("votes", "backup", "reads", "tokens"),
        code="from course_utils.days.day4 import table_model  # logits are sums of votes[layer, head, token]\n"
        "{f}(table_model(votes, backup, reads), tokens)",
    ),
)
NAMES = ("d_model", "n_heads", "W_qkv", "W_o", "x")
GRADIENT = "result = {f}(x.requires_grad_(){more})\n(result * wanted).sum().backward()\nx.grad"
SMALL_SPLITS = (
    Small(
        ("B T h*d", "=h", "B h T d"),
        measures=(gradient,),
        names=("x", "n_heads", "wanted"),
        code=GRADIENT.replace("{more}", ", n_heads"),
    ),
    Small(("B T h*d", "=h")),
)
SMALL_MERGES = (
    Small(("B h T d", "B T h*d"), measures=(gradient,), names=("x", "wanted"), code=GRADIENT.replace("{more}", "")),
    Small(("B h T d",)),
)
FILLED = (
    "layer = {f}(d_model, n_heads).to(x.dtype)\n"
    "with torch.no_grad():\n    layer.W_qkv.weight.copy_(W_qkv)\n    layer.W_o.weight.copy_(W_o)\n"
)
WEIGHTS = ("=h*d", "=h", "3*h*d h*d", "h*d h*d", "B T h*d")
SMALL_LAYERS = (
    Small(
        (*WEIGHTS, "mask B h T T", "B T h*d"),
        measures=(layer_gradients,),
        names=(*NAMES, "mask", "wanted"),
        code=FILLED + "(layer(x.requires_grad_(), mask) * wanted).sum().backward()\n"
        "layer.W_qkv.weight.grad, layer.W_o.weight.grad, x.grad",
    ),
    Small(("=h*d", "=h"), measures=(parameters,), names=NAMES[:2], code="list({f}(d_model, n_heads).parameters())"),
    Small(
        (*WEIGHTS, "mask B h T T"),
        measures=(attended, attended_by_name),
        names=(*NAMES, "mask"),
        code=FILLED + "layer(x{mask})",
    ),
    Small(
        WEIGHTS + ("mask B h T T",) * 8,
        names=(*NAMES, *(f"mask_{i}" for i in range(8))),
        code=FILLED + "layer(x{mask})",
    ),
)
BLOCK_WEIGHTS = ("d d", "d", "d", "f d", "f d", "d f", "B T d")
BLOCK_NAMES = ("M", "g_1", "g_2", "W_gate", "W_up", "W_down", "x")
FILLED_BLOCK = (
    "from course_utils.days.day4 import filled_block  # its attention: the mean of what a token may see, times M\n"
    "block = filled_block({f}, M, g_1, g_2, W_gate, W_up, W_down)\n"
)
SMALL_BLOCKS = (
    Small(("=d", "=f"), measures=(block_parameters,), names=("d_model", "d_ff"),
        code="list({f}(nn.Identity(), d_model, d_ff).parameters())"),
    Small((*BLOCK_WEIGHTS, "mask T T", "B T d"), measures=(block_gradients,), names=(*BLOCK_NAMES, "mask", "wanted"),
        code=FILLED_BLOCK + "(block(x.requires_grad_(), mask) * wanted).sum().backward()\nx.grad"),
    Small((*BLOCK_WEIGHTS, "mask T T"), measures=(blocked, blocked_by_name), names=(*BLOCK_NAMES, "mask"),
        code=FILLED_BLOCK + "block(x{mask})"),
)  # fmt: skip
SMALL_ROTATIONS = (
    Small(("… T p*2", Drawn("T", places), "… T p*2"), measures=(gradient,), names=("x", "positions", "wanted"),
        code=GRADIENT.replace("{more}", ", positions")),
    Small(("… T p*2", Drawn("T", places))),
)  # fmt: skip
QUERIES = ("B g*r n d", "B g m d", "B g m d")
SMALL_GROUPS = (
    Small(
        (*QUERIES, "B g*r n d", "mask B g*r n m"),
        measures=(shared_gradients,),
        names=("q", "k", "v", "wanted", "mask"),
        code="for x in (q, k, v):\n    x.requires_grad_()\n"
        "({f}(q, k, v{mask}) * wanted).sum().backward()\nq.grad, k.grad, v.grad",
    ),
    Small(QUERIES + ("mask B g*r n m",) * 8, names=("q", "k", "v", "mask", *(f"mask_{i}" for i in range(2, 9)))),
)
LADDERS = {
    "split_heads": Ladder(
        ("split_heads",), ("heads",), split_heads, tensors=True, convert=one_tensor, small=SMALL_SPLITS
    ),
    "merge_heads": Ladder(
        ("merge_heads",), ("merged",), merge_heads, tensors=True, convert=one_tensor, small=SMALL_MERGES
    ),
    "multi_head": Ladder(
        ("MultiHead",),
        ("output",),
        multi_head,
        tensors=True,
        cases=LAYERS,
        arg_names=LAYER,
        forbidden=WHOLE_ATTENTION,
        small=SMALL_LAYERS,
    ),
    "block": Ladder(("Block",), ("output",), block, tensors=True, small=SMALL_BLOCKS),
    "count_flops": Ladder(
        ("layer_flops",), ("projections", "core", "feed_forward"), count_flops, small=(Small((whole(),) * 3),)
    ),
    "crossover": Ladder(("crossover_length",), ("T",), crossover, small=(Small((whole(), whole())),)),
    "rotation": Ladder(("rotate",), ("turned",), rotation, tensors=True, convert=one_tensor, small=SMALL_ROTATIONS),
    "grouped_query": Ladder(
        ("grouped_query_attention",),
        ("output",),
        grouped_query,
        tensors=True,
        convert=one_tensor,
        cases=GROUPS,
        forbidden=WHOLE_ATTENTION,
        small=SMALL_GROUPS,
    ),
    "layer_by_hand": Ladder(
        ("columns_of_W_Q", "columns_of_W_K", "parameters_in_all", "kept_of_a_token", "scores_of_a_text"),
        by_hand=True,
        advice="Draw the four matrices with their rows and columns. W_Q has h · d_head columns, and W_K has h_kv · "
        "d_head; d_head is given, and need not be d_model / h.",
    ),
    "count_parameters": Ladder(
        ("attention_parameters",),
        ("parameters",),
        count_parameters,
        cases=MATRICES,
        quantities=matrices,
        small=(Small((whole(),) * 4, fits=cut_evenly),),
    ),
    "find_the_bug": Ladder(
        ("broken_groups",),
        ("output", "weights"),
        find_the_bug,
        tensors=True,
        cases=KEY_HEADS,
        forbidden=WHOLE_ATTENTION,
        small=(Small(("B n g*r*d", "B m g*d", "B m g*d", "=g*r", "=g")),),
    ),
    "induction_score": Ladder(
        ("induction_score",),
        ("score",),
        induction_score,
        tensors=True,
        small=(Small((shares("2*p 2*p"), "=p"), fits=of_two_or_more),),
    ),
    "head_ablation": Ladder(("most_important_head",), ("head",), head_ablation, tensors=True, small=SMALL_TABLES),
    "tells_right": Ladder(("tells_right",), ("verdict",), duel=True),
}
