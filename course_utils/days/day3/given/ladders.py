"""The ladders of day 3: the test inputs (rungs) of each exercise.

Every known mistake fails on some of them: n and m differ wherever they can, lengths go from 0 to all, and blocked
scores lie far above and far below the allowed ones. The functions of `first_leak` are small mixing layers that keep the
promise of the exercise: each dependence shows in a random change of its token, and in the gradient.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.kernel.forbidden import WHOLE_ATTENTION
from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.measures import changes
from course_utils.checks.kernel.result_numbers import BadResult, boolean
from course_utils.checks.kernel.small import SIGNED, Draft, Small, up_to, whole
from course_utils.days.shared.given.draws import NEW_TENSORS, UNTOUCHED, Array, draw, draw_mask, draw_qkv, named

if TYPE_CHECKING:
    import torch

HALF = {part: (2e-3, 2e-3) for part in ("weights", "gradient")}  # float16 keeps about three decimals
SINGLE = {part: (1e-4, 1e-4) for part in ("output", "weights", "gradient")}
DTYPE = "new tensors need the dtype of x, as in torch.zeros(3, 3, dtype=x.dtype)"


def causal_mask(rng: np.random.Generator) -> list[Rung]:
    return [
        Rung(
            "one token", (1,), "With one token it is [[True]].", shape_hint="Return a boolean tensor of shape (n, n)."
        ),
        Rung("two tokens", (2,), "Row 0 is the first query: it sees itself and nothing later. Row 1 sees both."),
        Rung("three tokens", (3,), "Row i, column j is True where j ≤ i: the lower triangle with its diagonal."),
        Rung("some tokens", (int(rng.integers(4, 7)),), "Row i, column j is True where j ≤ i."),
        Rung("more tokens", (int(rng.integers(8, 13)),), "Any number of tokens: use n."),
        Rung("many tokens", (int(rng.integers(40, 60)),), "Each query sees all earlier keys, however far back."),
        Rung(
            "1 500 tokens",
            (1_500,),
            "Any number of tokens: use n. Only the corners of this mask are compared.",
            corners,
        ),
        Rung("a new tensor each time", (4,), SHARED, shared),
    ]


SHARED = "Two calls returned the same tensor, so writing into one changes the other. Make a new one in each call."


def corners(function: Callable, *args: Any) -> dict[str, Any]:
    """Return the shape of a result and its four corners, of one that is too large to be sent whole."""
    result = np.asarray(boolean(function(*args)))
    if result.ndim < 2:
        raise BadResult(f"this is a tensor of shape {result.shape}; it should have two axes or more")
    return {"shape": np.array(result.shape), "corners": result[..., [0, 0, -1, -1], [0, -1, 0, -1]]}


def shared(function: Callable, *args: Any) -> float:
    """Return 1.0 if two calls return tensors that share memory, else 0.0."""
    one, other = (np.asarray(boolean(function(*args))) for _ in range(2))
    return float(np.may_share_memory(one, other))


def masked_softmax(rng: np.random.Generator) -> list[Rung]:
    partly = draw_mask(rng, 3, 5)
    blind = np.concatenate([draw_mask(rng, 2, 4), np.zeros((1, 4), dtype=bool), np.ones((1, 4), dtype=bool)])
    lengths = np.arange(4) < np.array([0, 3])[:, None, None, None]  # (2, 1, 1, 4)
    above = draw(rng, 3, 4)
    above[:, 2] = 3000.0
    open_but_third = np.array([[True, True, False, True], [True, False, False, True], [False, True, False, False]])
    offsets = rng.permutation(5)[:4].astype(float)
    below = np.array([[*(-20000.0 - offsets[:3]), 0.0], [-5.0, *(-30000.0 - offsets[1:])]])
    below_mask = np.array([[True, True, True, False], [False, True, True, True]])
    depths = np.array([[-3e9, -3e9, 5.0], [1.0, -4e9, -4e9]])
    depths_mask = np.array([[True, True, False], [False, True, True]])
    gap = np.array([[12.0, 0.0, 1.0, 30.0], [-11.0, 2.0, 1.0, 0.0]])
    gap_mask = np.array([[True, True, False, False], [True, True, True, False]])
    half = (3 * draw(rng, 4, 4)).astype(np.float16)
    low = np.array([[-60000, -60000, 5, -3], [1, 2, 3, 4]], dtype=np.float16)[:, rng.permutation(4)]
    low_mask = (low < -1000) & np.array([[True], [False]])  # the second row has no key
    batch = draw(rng, 2, 2, 3, 4)
    along = rng.permutation([True, True, False, True])
    return [
        Rung("nothing masked", (draw(rng, 2, 3), np.ones((2, 3), dtype=bool)),
            "With nothing blocked it is the softmax along the last axis, dim=-1."),
        Rung("one key for each query", (draw(rng, 3, 3), np.eye(3, dtype=bool)[[1, 2, 0]]),
            "A query with a single key gives it weight 1 and the others exactly 0. True means may "
            "attend: fill where the mask is False, ~mask."),
        Rung("all scores 0", (np.zeros((2, 4)), partly[:2, :4] | np.eye(2, 4, dtype=bool)),
            "Equal scores give equal shares among the allowed keys. A score of 0 is a score like any other, not a "
            "sign of a blocked key."),
        Rung("a causal mask", (draw(rng, 4, 4), np.tri(4, dtype=bool)),
            "Softmax over the keys that are True; the others get 0."),
        Rung("3 queries, 5 keys, any mask", (draw(rng, 3, 5), partly),
            "Softmax over the keys that are True in this row; the others get 0."),
        Rung("large scores",
            (rng.integers(0, 4, (3, 4)) + np.array([[1000.0], [-1000.0], [0.0]]), draw_mask(rng, 3, 4)),
            "exp alone gives infinity or 0 here: use torch.softmax, or first subtract the largest score that the row "
            "may see. A fill must lie below every score, and some are −1000."),
        Rung("a score 12 below another", (gap, gap_mask),
            "Small weights count too: e^−12 of the largest is about 0.000006."),
        Rung("a fully masked row", (draw(rng, 4, 4), blind),
            "A row with no key to attend to holds zeros: no NaN, no equal shares."),
        Rung("everything masked", (draw(rng, 2, 3), np.zeros((2, 3), dtype=bool)), "Rows with no key hold zeros."),
        Rung("one mask for a batch with heads", (draw(rng, 2, 3, 2, 4), draw_mask(rng, 2, 4)),
            "The softmax runs along the last axis: dim=-1. The mask is (n, m), the scores are (B, h, n, m): "
            "masked_fill and torch.where broadcast, indexing with a mask does not."),
        Rung("a padding mask (B, 1, 1, m), one sequence empty", (draw(rng, 2, 2, 3, 4), lengths),
            "The mask has axes of size 1, which broadcast over heads and queries. The empty sequence gives zeros."),
        Rung("a mask over queries (n, 1)", (draw(rng, 4, 3), np.array([[True], [False], [True], [True]])),
            "A mask of shape (n, 1) broadcasts along the keys: query 1 sees none."),
        Rung("a mask of one axis (m,)", (draw(rng, 3, 4), along),
            "A mask of shape (m,) broadcasts over the queries: each row has the same keys."),
        Rung("a blocked score far above the others", (above, open_but_third),
            "The score of a blocked key must have no influence, however large it is. Take it out "
            "before the softmax, and before any maximum."),
        Rung("scores below −10 000", (below, below_mask),
            "A fill such as −1e4 is a number like any other. Here the real scores "
            "lie below it, so the blocked key wins."),
        Rung("scores below −1 000 000 000", (depths, depths_mask),
            "A fill such as −1e9 is a number like any other. Here the real scores "
            "lie below it, so the blocked key wins."),
        Rung("float16", (half, blind),
            "float16 ends at 65 504, so a fill of −1e9 raises an error: −∞ fits, and so does "
            "torch.finfo(scores.dtype).min. NaN has another cause: a row with no key, which should hold zeros.",
            tolerance=HALF),
        Rung("float16, scores of −60 000", (low, low_mask),
            "In float16 too the real scores may lie below a fill such as −1e4 or −6e4, and "
            "exp needs the largest score subtracted.",
            tolerance=HALF),
        Rung("blocked keys get exactly 0, in each dtype", (draw(rng, 3, 5), partly),
            "A key that the mask blocks has a weight of exactly 0 in float64, float32 and float16, not a small number. "
            "Add nothing to it afterwards.",
            weight_of_blocked),
        Rung("the gradient", (draw(rng, 3, 5), partly, draw(rng, 3, 5)), NO_GRADIENT, gradient),
        Rung("the gradient, with a fully masked row", (draw(rng, 4, 4), blind, draw(rng, 4, 4)), MADE_NAN, gradient),
        Rung("the gradient, with a mask (B, 1, 1, m)", (batch, lengths, draw(rng, 2, 2, 3, 4)), MADE_NAN, gradient),
        Rung("the gradient, float32", (draw(rng, 4, 4).astype(np.float32), blind, draw(rng, 4, 4).astype(np.float32)),
            "The same holds in float32. " + MADE_NAN, gradient, SINGLE),
        Rung("the gradient, float16", (low, low_mask, draw(rng, 2, 4).astype(np.float16)),
            "The same holds in float16. " + MADE_NAN, gradient, HALF),
        Rung(UNTOUCHED, (draw(rng, 4, 4), blind), NEW_TENSORS, changes),
        Rung("a mask of one axis where n = m", (np.zeros((2, 2)), np.array([True, False])),
            "A mask of shape (m,) says which keys are seen, by every query: it lies along the last axis."),
        Rung("70 keys", (5 * draw(rng, 2, 70), np.ones((2, 70), dtype=bool)), "A row may have any number of keys."),
        Rung("float32, all scores −10 000 000 000", (np.full((1, 2), -1e10, np.float32), np.array([[True, False]])),
            "A fill relative to the scores is lost in rounding here, because scores − 100 equals the scores. −∞ is "
            "always lower.",
            tolerance=SINGLE),
        Rung("scores that float32 cannot tell apart", (np.array([[0.0, 1.0, 3.0]]) - 1e10, np.ones((1, 3), bool)),
            "In float64 these scores differ, but in float32 they are equal: keep the dtype of the scores all the way."),
        Rung("one key", (draw(rng, 3, 1), np.array([[True], [False], [True]])),
            "With one key a row is 1, or 0 where it is blocked. The result keeps the shape of the scores."),
    ]  # fmt: skip


NO_GRADIENT = (
    "Gradients must flow from the weights back to the scores. Stay in PyTorch, detach nothing, and write neither into "
    "the scores nor into a result of softmax: make new tensors."
)
MADE_NAN = (
    "A NaN that arises on the way stays in the gradient, even if the weights are repaired afterwards: NaN times 0 is "
    "NaN. Do not let it arise."
)


def gradient(function: Callable, scores: Array, mask: Array, factors: Array) -> dict[str, Any]:
    """Return the weights, and the gradient of a weighted sum of them with respect to the scores."""
    import torch

    scores, mask, factors = (torch.as_tensor(array).clone() for array in (scores, mask, factors))
    scores.requires_grad_()
    try:
        weights = torch.as_tensor(function(scores, mask))
        if not weights.requires_grad:
            raise BadResult("the weights carry no gradient back to the scores")
        (weights * factors).sum().backward()
    except RuntimeError as error:
        text = str(error)
        if "inplace" in text or "in-place" in text:
            raise BadResult("a tensor that the gradient still needs was changed in place") from None
        if "numpy()" in text:
            raise BadResult("the scores leave PyTorch, and no gradient comes back from NumPy") from None
        raise
    return {"weights": weights, "gradient": torch.zeros_like(scores) if scores.grad is None else scores.grad}


def weight_of_blocked(function: Callable, scores: Array, mask: Array) -> dict[str, Any]:
    """Return the float64 weights, and 1.0 if a blocked key has a nonzero weight in any of three dtypes, else 0.0."""
    import torch

    mask = torch.as_tensor(mask)
    weights_by_dtype = []
    for dtype in (torch.float64, torch.float32, torch.float16):
        weights_by_dtype.append(torch.as_tensor(function(torch.as_tensor(scores).to(dtype), mask.clone())))
    share = any((weights[~mask.expand(weights.shape)] != 0).any().item() for weights in weights_by_dtype)
    return {"weights": weights_by_dtype[0], "measure": float(share)}


def causal_attention(rng: np.random.Generator) -> list[Rung]:
    def arrays(tokens, d_model, d_k, d_v, size=1.0):
        x = size * draw(rng, tokens, d_model)
        return x, draw(rng, d_model, d_k), draw(rng, d_model, d_k), draw(rng, d_model, d_v)

    return [
        Rung("one token: the output is its value", arrays(1, 4, 2, 3),
            "The only token attends to itself: the weights are [[1]], the output is x @ W_v and nothing more.",
            with_a_word_on_dtype),
        Rung("two tokens: the first sees only itself", arrays(2, 3, 5, 2),
            "The first row of weights is exactly [1, 0], and the second gives a share to both. The output is "
            "weights @ v."),
        Rung("3 tokens, d_model = 4, d_k = 2, d_v = 5", arrays(3, 4, 2, 5),
            "output is (T, d_v), weights are (T, T). Softmax over the keys up to "
            "the token itself, 0 above the diagonal."),
        Rung("4 tokens, d_model = 9, d_k = 2", arrays(4, 9, 2, 3),
            "d_k in the scale √d_k is the width of q and k, not of x. And each row of weights "
            "sums to 1: nothing is added to its sum."),
        Rung("all sizes equal", arrays(3, 3, 3, 3),
            "With square matrices, a wrong transpose raises no error. It is x @ W, and q @ k transposed."),
        Rung("large scores", arrays(4, 4, 3, 2, size=40.0),
            "torch.softmax is safe for large scores; exp alone is not, and a fill of −100 lies above some of them."),
        Rung("a score of exactly 0", from_scores(rng, [1, 2, 1, 3], [1, 0, -1, 2]),
            "A score of 0 is a score like any other. The mask says what is blocked, not the score."),
        Rung("a later score far above the others", from_scores(rng, [1, 1, 2, 1], [1, 3, 2, 2000]),
            "A later score must have no influence, however large it is. Block it before the softmax: after it, "
            "the other weights have already become 0."),
        Rung("scores below −10 000", from_scores(rng, [1, 1, 1, 1], [-30000, -30001, -30002, 4]),
            "A fill such as −1e4 lies above these scores, so the blocked keys win. Use −∞."),
        Rung("24 tokens", arrays(24, 5, 6, 3), "Each token sees all earlier ones, however many there are."),
        Rung("24 tokens, scores near 40 000", from_scores(rng, [1] * 24, 40_000 + rng.random(24) * 3),
            "In float64 the result has to be right to 10⁻⁶ for scores of any size. A conversion to float32 on the way "
            "loses that precision."),
        Rung("float32", tuple(array.astype(np.float32) for array in arrays(3, 4, 2, 3)),
            "All four tensors are float32 here, so the tensors that you make must be float32 too: torch.zeros(T, T, "
            "dtype=x.dtype).",
            tolerance=SINGLE),
        Rung(UNTOUCHED, arrays(3, 3, 2, 2), NEW_TENSORS, changes),
    ]  # fmt: skip


def from_scores(
    rng: np.random.Generator, queries: Sequence[float] | np.ndarray, keys: Sequence[float] | np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return x and three matrices with d_k = 1 for which query i and key j are the given numbers."""
    x = np.column_stack([queries, keys, draw(rng, len(keys), 2)]).astype(float)
    W_q = np.eye(4)[:, :1]
    W_k = np.eye(4)[:, 1:2]
    W_v = np.concatenate([np.zeros((2, 3)), draw(rng, 2, 3)])  # values from the last two columns only
    return x, W_q, W_k, W_v


def with_a_word_on_dtype(function: Callable, *args: Any) -> dict[str, Any]:
    """Return the result; to an error about two dtypes, add what to do."""
    try:
        result = function(*args)
    except RuntimeError as error:
        text = str(error).partition("\n")[0]
        if "dtype" in text or ("float" in text.lower() and "double" in text.lower()):
            error.args = (f"{text.rstrip('.')}; {DTYPE}",)
        raise
    return {part: tensor(value) for part, value in named(result, ("output", "weights")).items()}


def tensor(result: Any) -> Any:
    """Return a tensor, or None, unchanged. Raises BadResult for a list, a NumPy array and the like."""
    import torch

    if result is None or isinstance(result, torch.Tensor):
        return result
    if isinstance(result, np.ndarray):
        raise BadResult("this is a NumPy array, not a tensor: stay in PyTorch, or end with torch.from_numpy(…)")
    name = type(result).__name__
    raise BadResult(f"this is {'an' if name[0] in 'aeiou' else 'a'} {name}, not a tensor: return a torch.Tensor")


def boolean_tensor(result: Any) -> Any:
    """Return a boolean tensor unchanged. Raises TypeError for anything else."""
    return boolean(tensor(result))


def padding_mask(rng: np.random.Generator) -> list[Rung]:
    return [
        Rung("one sequence, 2 of 4 keys real", (np.array([2]), 4),
            shape_hint="Return a boolean tensor of shape (B, 1, 1, m), here [[[[True, True, False, False]]]]."),
        Rung("no padding", (np.array([3, 3]), 3), "A full length makes every key real."),
        Rung("two lengths, 5 keys", (np.array([1, 3]), 5),
            "The first lengths[b] of m keys are True.",
            shape_hint="The shape is (B, 1, 1, m): m keys, even if every length is below m."),
        Rung("as many sequences as keys", (np.array([2, 3, 1]), 3),
            "With B = m, a wrong axis raises no error. Sequence b belongs to axis 0, key j to axis 3."),
        Rung("an empty sequence", (np.array([0, 2]), 3), "Length 0 makes every key padding."),
        Rung("one key", (np.array([1, 0, 1]), 1), "Key 0 is real where the length is 1."),
        Rung("more sequences", (rng.permutation([0, 2, 3, 5, 7]), 7),
            "Key j of sequence b is real where j < lengths[b]."),
        Rung("many keys", (rng.permutation([40, 31, 0, 7]), 40),
            "Key j of sequence b is real where j < lengths[b], however many there are."),
        Rung(UNTOUCHED, (np.array([0, 2, 5]), 5), NEW_TENSORS, changes),
        Rung("lengths in 8 bits", (np.array([1, 200], np.uint8), 260),
            "Numbers of 8 bits end at 255: number the keys in a wider type, as torch.arange(m) does."),
        Rung("2 049 keys", (np.array([2_049]), 2_049), "float16 keeps whole numbers up to 2048 only."),
    ]  # fmt: skip


def causal_and_padding(rng: np.random.Generator) -> list[Rung]:
    return [
        Rung("one sequence without padding: causal", (np.array([3]), 3),
            "Nothing is padding here, so it is the causal mask: query i, a row, sees key j, a column, where j ≤ i.",
            shape_hint="Return a boolean tensor of shape (B, 1, n, n)."),
        Rung("one sequence, 2 of 4 tokens real", (np.array([2]), 4),
            "Query i sees key j where j ≤ i and j < lengths[b]. Both must hold."),
        Rung("two lengths, 5 tokens", (np.array([3, 1]), 5),
            "From column lengths[b], every entry is False. Rows of padding follow the same rule as the others: their "
            "outputs are thrown away."),
        Rung("as many sequences as tokens", (np.array([2, 3, 1]), 3),
            "With B = n, a wrong axis raises no error. Padding belongs to the keys, the last axis."),
        Rung("an empty sequence", (np.array([0, 2]), 3), "Length 0: no key is real, so every row is False."),
        Rung("more sequences", (rng.permutation([0, 1, 4, 6]), 6),
            "Query i sees key j where j ≤ i and j < lengths[b]."),
        Rung("many tokens", (rng.permutation([24, 19, 3]), 24),
            "Query i sees key j where j ≤ i and j < lengths[b], however many tokens there are."),
        Rung(UNTOUCHED, (np.array([0, 2, 4]), 4), NEW_TENSORS, changes),
        Rung("a new tensor each time", (np.array([1, 2]), 2), SHARED, shared),
    ]  # fmt: skip


def packed_texts(rng: np.random.Generator) -> list[Rung]:
    def row(*lengths, numbers=None):
        return np.repeat(range(len(lengths)) if numbers is None else numbers, lengths)

    three = rng.permutation(3)
    return [
        Rung("one text: causal", (row(3),),
            "With a single text it is the causal mask.",
            shape_hint="Return a boolean tensor of shape (T, T)."),
        Rung("two texts", (row(2, 1),),
            "Token 2 begins the second text, so it may attend only to itself. A query sees keys with its own number, "
            "up to its own position."),
        Rung("three texts", (row(2, 3, 1),), "Two rules hold at once: the key is not later, and it has the same "
            "number."),
        Rung("a text for each token", (row(1, 1, 1),), "Each token is a text of its own: it sees only itself."),
        Rung("numbers in any order", (row(1, 2, 2, numbers=[5, 2, 7]),),
            "The numbers are names: what counts is whether two are equal, not which one is larger."),
        Rung("the second text has the smaller number", (row(2, 2, numbers=[1, 0]),),
            "The numbers are names: what counts is whether two are equal, not which one is larger."),
        Rung("padding at the end", (row(2, 1, 2, numbers=[0, 1, -1]),),
            "−1 is padding: nobody may attend to it, not even padding. Columns and rows of padding are all False."),
        Rung("one padding token", (row(2, 2, 1, numbers=[0, 1, -1]),),
            "−1 is padding, even if it is only the last token. Its column and its row are all False."),
        Rung("large numbers", (row(1, 2, 1, numbers=[300, 44, 1000]),),
            "The numbers are names, and any whole number may be one."),
        Rung("padding in front and between", (row(1, 2, 1, 1, numbers=[-1, 0, -1, 1]),),
            "−1 is padding wherever it is: its columns and rows are all False."),
        Rung("nothing but padding", (np.array([-1, -1]),), "Nobody may attend to padding, so every entry is False."),
        Rung("two rows (B, T)", (np.stack([row(2, 3), row(1, 2, 2, numbers=[1, 0, -1])]),),
            "For (B, T) the shape is (B, T, T): each row has its own mask. Count axes from the end: [..., None]."),
        Rung("one row with a leading axis (1, T)", (row(3, 1)[None],), "(1, T) gives (1, T, T)."),
        Rung("as many rows as tokens", (np.stack([row(2, 1), row(1, 2), row(3)]),),
            "With B = T, a wrong axis raises no error. Compare the tokens of a row with each other, not rows."),
        Rung("more texts", (row(*rng.integers(1, 4, 3), 2, numbers=[*three, -1]),),
            "The key is not later, has the same number, and is not padding."),
        Rung("many tokens", (row(*rng.integers(5, 15, 4)),), "The number of tokens and the lengths of the texts may "
            "be anything."),
        Rung(UNTOUCHED, (row(2, 1, 2, numbers=[0, 1, -1]),), NEW_TENSORS, changes),
        Rung("a single token", (row(1),), "It sees itself: the mask is (1, 1)."),
    ]  # fmt: skip


def texts_in_rows(draft: Draft) -> np.ndarray:
    """Draw text numbers like the rung's: texts side by side, each with its number, and padding if the rung has any."""
    like = np.asarray(draft.rung[len(draft.args)])
    rows = draft.whole(1, min(2, len(like))) if like.ndim == 2 else 1
    tokens = draft.whole(1, min(4, like.shape[-1]))
    kinds = 2 if (like < 0).any() else 1
    drawn = np.zeros((rows, tokens), dtype=like.dtype)
    for row in drawn:
        number = 0
        before = 0
        for place in range(tokens):
            kind = draft.choose(0, kinds)  # 0 continues the text, 1 begins another, 2 is padding
            if place and (kind == 1 or before == -1):
                number += 1
            row[place] = before = -1 if kind == 2 else number
    return drawn if like.ndim == 2 else drawn[0]


def lower_right(rng: np.random.Generator) -> list[Rung]:
    n = int(rng.integers(4, 6))
    return [
        Rung("as many queries as keys: causal", (3, 3),
            "With n = m it is the causal mask.",
            shape_hint="Return a boolean tensor of shape (n, m)."),
        Rung("one new query, 5 keys", (1, 5), "The newest token sees every key: its row is all True."),
        Rung("two new queries, 5 keys", (2, 5),
            "The queries are tokens 3 and 4. Query 0 sees keys 0 to 3, and query 1 sees all of them."),
        Rung("three new queries, 4 keys", (3, 4), "Query i is token m − n + i, and it sees the keys up to its own."),
        Rung("one query, one key", (1, 1), "A token may attend to itself."),
        Rung("more", (n, n + int(rng.integers(3, 6))),
            "Query i is token m − n + i, and it sees the keys up to its own."),
        Rung("many keys", (n, int(rng.integers(40, 60))), "Each query sees all earlier keys, however far back."),
        Rung("300 keys", (1, 300), "Each query sees all earlier keys, however far back.", corners),
    ]  # fmt: skip


def first_leak(rng: np.random.Generator) -> list[Rung]:
    def triangle(n, least=0):
        """Draw coefficients of each output i for the tokens at least `least` places before it; 0 includes token i."""
        return {(i, j): coefficient(rng) for i in range(n) for j in range(i + 1 - least)}

    def causal(n, d, d_out, **more):
        return layer(rng, triangle(n), d, d_out, **more)

    n = 5
    full = {(i, j): large(rng) for i in range(3) for j in range(3)}
    one = (int(rng.integers(0, 3)), 3)
    forward = {(i, i + 1): large(rng) for i in range(3)} | {(3, 3): coefficient(rng)}

    def rung(name, fn, n, d, why):
        return Rung(name, (fn, n, d), why, leak_reported)

    strong = {(1, 2): 2.0, (1, 3): 9.0, (1, 4): 2.0}
    times_zero = triangle(4) | {(i, j): 0.0 for i in range(4) for j in range(i + 1, 4)}
    lowering = {(1, 2): -large(rng)}
    cancelling = np.array([[1.0, 0.0], [-0.5, -0.5]])  # +1 on both features moves the outputs by 0.5 and −0.5
    weak = layer(rng, triangle(3), 3, 3, {(0, 2): 0.12}, leak_into=np.eye(3), curved=False)
    one_number = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    weak_in_one = layer(rng, triangle(4), 2, 4, {(1, 3): 0.12}, leak_into=one_number, curved=False)
    normed = causal(4, 6, 3, leaks=[(1, 3)], leak_into=np.eye(6, 3), read="normalised")
    return [
        rung("a layer that keeps later tokens out", causal(n, 3, 2), n, 3,
            "No output depends on a later token here: return None. A token may depend on itself and on earlier ones."),
        rung("one token", causal(1, 2, 3), 1, 2, "With one token there is no later one: return None."),
        rung("two tokens, the first sees the second", causal(2, 2, 3, leaks=[(0, 1)]), 2, 2,
            "Output 0 depends on token 1: return (0, 1)."),
        rung("every token sees every token", layer(rng, full, 2, 2), 3, 2,
            "The smallest pair is (0, 1). (0, 0) is no leak: j must be later than i."),
        rung("one leak in the middle", causal(n, 3, 4, leaks=[one]), n, 3,
            "One output depends on one later token. Compare row i alone, and try every j after i."),
        rung("only the last two tokens leak", causal(4, 2, 3, leaks=[(2, 3)]), 4, 2,
            "The leak is in the last pair, (n − 2, n − 1): check where the ranges end."),
        rung("the first token sees the last", causal(n, 2, 3, leaks=[(0, 4)]), n, 2,
            "The leak reaches from the last token to the first. Try every j after i, not only the next."),
        rung("two leaks", causal(n, 3, 2, leaks=[(0, 4), (1, 2)]), n, 3,
            "There are leaks at (0, 4) and (1, 2). The smaller pair is the one with the smaller i: (0, 4)."),
        rung("three leaks into one output, the middle one strongest", causal(n, 3, 2, leaks=strong), n, 3,
            "Output 1 depends on tokens 2, 3 and 4. The smallest j counts, not the strongest leak."),
        rung("each token sees the next only", layer(rng, forward, 2, 3), 4, 2,
            "Output i depends on token i + 1 alone: the smallest pair is (0, 1)."),
        rung("a layer that looks at earlier tokens only", layer(rng, triangle(4, least=1), 2, 2), 4, 2,
            "Output i depends only on earlier tokens, not on its own: that is no leak."),
        rung("a layer that reads only the last feature", causal(4, 3, 2, leaks=[(1, 3)], reads=[2]), 4, 3,
            "fn reads only one of the d numbers of a token. Change all of them, or take the gradient for all of them."),
        rung("a layer that reads only the first feature", causal(4, 3, 2, leaks=[(0, 2)], reads=[0]), 4, 3,
            "fn reads only one of the d numbers of a token. Change all of them, or take the gradient for all of them."),
        rung("a leak into the last output feature only", causal(4, 2, 3, leaks=[(1, 2)], writes=[2]), 4, 2,
            "The leak shows in one number of output i. Compare the whole row."),
        rung("a leak into the first output feature only", causal(4, 2, 3, leaks=[(2, 3)], writes=[0]), 4, 2,
            "The leak shows in one number of output i. Compare the whole row."),
        rung("one feature in, one out", causal(4, 1, 1, leaks=[(0, 3), (1, 3)]), 4, 1,
            "d and d_out may be 1. The smallest pair is (0, 3)."),
        rung("a leak that lowers the output", causal(4, 2, 3, leaks=lowering), 4, 2,
            "Output 1 falls when token 2 grows. A change is a leak whatever its sign: compare sizes "
            "(abs), or ask whether anything differs."),
        rung("a leak whose effects add up to 0", causal(4, 2, 2, leaks=[(1, 3)], leak_into=cancelling, curved=False), 4,
            2,
            "Token 3 raises one number of output 1 and lowers the other by the same amount. Compare number by number "
            "(abs, then max or any) before you add anything up. The same holds for a gradient."),
        rung("a weak leak", weak, 3, 3,
            "Output 0 depends on token 2, though only weakly: return (0, 2). Any change above 10⁻³ counts, and so "
            "does any number above 0.1 in the gradient: a threshold must be lower than these."),
        rung("a weak leak into one number of four", weak_in_one, 4, 2,
            "Token 3 moves one number of output 1 a little, and the others not at all: return (1, 3). A mean over "
            "them, or over the numbers of a token, hides it: take the largest, or ask whether anything differs."),
        rung("a layer that takes zeros for padding", causal(4, 3, 2, leaks=[(1, 3)], padded=True), 4, 3,
            "This layer ignores tokens that are all 0, as padding is ignored. Start "
            "from random tokens: torch.randn(n, d)."),
        rung("a layer that multiplies later tokens by 0", layer(rng, times_zero, 2, 2), 4, 2,
            "Later tokens are multiplied by 0, so nothing leaks: return None. If you change a token to NaN or "
            "infinity, 0 times that is NaN: use other numbers."),
        rung("norm_first: a layer that normalises each token first", normed, 4, 6,
            "Output 1 depends on token 3: return (1, 3). A norm subtracts the mean of a token's numbers, so adding "
            "the same number to all of them changes nothing. Add random numbers, torch.randn(d)."),
        rung("a layer that reads the squares of numbers", causal(4, 3, 2, leaks=[(0, 3)], read="squared"), 4, 3,
            "Output 0 depends on token 3: return (0, 3). This layer squares numbers first, so flipping the sign of a "
            "token changes nothing. Add random numbers, torch.randn(d)."),
        rung("a layer that reads negative numbers only", causal(4, 8, 2, leaks=[(1, 2)], read="negative"), 4, 8,
            "Output 1 depends on token 2: return (1, 2). This layer reads a positive number as 0, and torch.rand is "
            "never negative: use torch.randn, both for the tokens and for what you add."),
        rung("a layer whose rows have length 2",
            causal(4, 3, 3, leaks=[(1, 3)], leak_into=np.eye(3), length=2), 4, 3,
            "Output 1 depends on token 3: return (1, 3). This layer gives each output the length 2, so lengths "
            "reveal nothing. Compare number by number."),
    ]  # fmt: skip


def layer(
    rng: np.random.Generator,
    coefficients: Mapping[tuple[int, int], float],
    d: int,
    d_out: int,
    leaks: Sequence[tuple[int, int]] | Mapping[tuple[int, int], float] = (),
    reads: Sequence[int] | None = None,
    writes: Sequence[int] | None = None,
    leak_into: np.ndarray | None = None,
    curved: bool = True,
    padded: bool = False,
    read: str = "",
    length: float = 0,
) -> Callable:
    """Return a layer whose output i mixes exactly the tokens j of `coefficients[i, j]` and of `leaks`.

    Args:
        reads: the features of a token that the layer reads.
        writes: the features of an output that the leaks reach.
        leak_into: the matrix (d, d_out) of the leaks.
        curved: whether the layer is nonlinear.
        padded: whether tokens of zeros get outputs of zeros.
        read: what is mixed, if not the numbers themselves: "normalised", "squared" or "negative" ones.
        length: that of each output, if they are scaled to one.
    """
    # the matrices of tokens and of leaks; a feature that is not read has a row of zeros, one not written a column
    into = rng.integers(5, 15, (d, d_out)) / 10.0  # (d, d_out), all positive
    if reads is not None:
        into[[f for f in range(d) if f not in reads]] = 0.0
    leak_into = into.copy() if leak_into is None else leak_into
    if writes is not None:
        leak_into[:, [c for c in range(d_out) if c not in writes]] = 0.0
    # pairs alone get drawn coefficients; n is the number of tokens that the pairs speak of
    leaks = leaks if isinstance(leaks, dict) else {pair: large(rng) for pair in leaks}
    n = 1 + max(i for pair in (*coefficients, *leaks) for i in pair)

    def fn(x):
        import torch

        x = torch.as_tensor(x)
        if not x.is_floating_point():
            raise TypeError(f"fn takes a floating tensor, such as torch.randn(n, d), and this one is {x.dtype}")
        if len(x) != n:
            raise ValueError(f"fn takes {n} tokens, and you gave it {len(x)}")
        W, W_leak = (torch.tensor(matrix.tolist(), dtype=x.dtype) for matrix in (into, leak_into))
        # what is mixed: the tokens, or what `read` makes of them
        features = x
        if read == "normalised":
            # Multiples of 1/1024 differ exactly, so adding 1 to all numbers of a token changes no digit of the result.
            coarse = x + (torch.round(x * 1024) / 1024 - x).detach()
            features = torch.nn.functional.layer_norm(coarse - coarse[:, :1], x.shape[-1:])
        elif read:
            features = {"squared": x**2, "negative": torch.relu(-x)}[read]
        # output i is the sum over its pairs (i, j), one after another, so that rounding is the same everywhere
        rows = [x.new_zeros(d_out) for _ in range(n)]
        for mixed, matrix in ((coefficients, W), (leaks, W_leak)):
            for (i, j), c in mixed.items():
                rows[i] = rows[i] + c * (features[j] @ matrix)  # (d_out,)
        z = torch.stack(rows)  # (n, d_out)
        # what else may happen to an output: a curve, a length of its own, zeros for padding
        if curved:
            z = z + 0.5 * torch.tanh(z)
        if length:
            z = length * torch.nn.functional.normalize(z, dim=-1)
        if padded:
            z = z * (x != 0).any(dim=-1, keepdim=True)
        return z

    fn.numbers = [*coefficients.values(), *leaks.values(), *into.ravel().tolist()]  # type: ignore[attr-defined]
    return fn


class Mixing:
    """A linear layer: output i is the sum of matrix[i, j] times token j."""

    def __init__(self, matrix: np.ndarray):
        self.matrix = matrix
        self.numbers = matrix.ravel().tolist()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        import torch

        return torch.as_tensor(self.matrix, dtype=x.dtype)[: len(x), : len(x)] @ x

    def as_code(self) -> str:
        return f"lambda x: torch.tensor({self.matrix.tolist()}, dtype=x.dtype)[: len(x), : len(x)] @ x"


def mixing(draft: Draft) -> Mixing:
    """Draw a linear layer of n tokens; its matrix has leaks where an entry above the diagonal is not 0."""
    n = draft.size("n")
    return Mixing(np.array([[SIGNED[draft.choose(0, 2)] for _ in range(n)] for _ in range(n)]))


def coefficient(rng: np.random.Generator) -> float:
    return int(rng.integers(5, 16)) / 10.0


def large(rng: np.random.Generator) -> float:
    """Draw the coefficient of a leak that moves its output by more than 1, so that only weak leaks test thresholds."""
    return 3 + coefficient(rng)


def leak_reported(function: Callable, fn: Callable, n: int, d: int) -> dict[str, Any]:
    """Return what a leak test reports of fn: whether there is a leak, and the pair (i, j), or (−1, −1) for None."""
    pair = no_leak_or_pair(function(fn, n, d))
    return {"number of leaks found": float(pair is not None), **dict(zip("ij", pair or (-1, -1), strict=True))}


def no_leak_or_pair(result: Any) -> Any:
    """Return None, or a pair of whole numbers from 0 as a list. Raises TypeError for anything else."""
    if result is None:
        return None
    try:
        pair = [float(part) for part in result] if isinstance(result, PAIRS) or hasattr(result, "shape") else []
    except (TypeError, ValueError):
        pair = []
    if len(pair) != 2 or any(part < 0 or part != int(part) for part in pair):
        plain = isinstance(result, (bool, int, float, str, dict, set, *PAIRS))
        description = repr(result) if plain else type(result).__name__
        raise BadResult(
            f"the function returned {description[:60]}; return None, or the pair (i, j) of two token numbers"
        )
    return pair


PAIRS = (tuple, list)


def convert_mask(rng: np.random.Generator) -> list[Rung]:
    rows = np.array([[True, False, False, True], [True, True, False, True]])
    return [
        Rung("a causal mask", (np.tri(3, dtype=bool),),
            "In the mask given, True means may attend.",
            shape_hint="Return a boolean tensor of the same shape, in which True means ignore."),
        Rung("one token", (np.array([[True]]),), "True becomes False."),
        Rung("2 queries, 4 keys", (rows,), "Each entry turns into its opposite, and stays in its place."),
        Rung("nothing blocked", (np.ones((2, 3), dtype=bool),),
            "Where every key may be attended to, none is ignored: every entry is False."),
        Rung("any mask", (draw_mask(rng, 4, 5),), "Each entry turns into its opposite, and stays in its place."),
        Rung("a padding mask (B, m)", (np.arange(5) < np.array([[2], [5], [1]]),),
            "The same holds for key_padding_mask: True means ignore."),
        Rung("a query with no key", (np.array([[True, False, True], [False, False, False]]),),
            "Query 1 may attend to nothing, so every key in its row is ignored: each entry turns into its opposite."),
        Rung("no token sees itself", (~np.eye(4, dtype=bool),),
            "The diagonal is False here, so it becomes True, like any other entry."),
        Rung("a mask for each sequence and head (B·h, n, m)", (np.stack([draw_mask(rng, 2, 3) for _ in range(2 * 2)]),),
            "Each entry turns into its opposite, whatever the number of axes."),
        Rung(UNTOUCHED, (rows,),
            "The result is right, but the mask that was given has changed too. Make a new one: ~mask.",
            changes),
        Rung("a mask that is not contiguous", (rows.T,),
            "This mask is transposed, so its entries are not in memory in the order of its axes: ~ works on any mask."),
    ]  # fmt: skip


def cross_attention(rng: np.random.Generator) -> list[Rung]:
    def arrays(n, m, d_model, d_memory, d_k, d_v, size=1.0):
        x = size * draw(rng, n, d_model)
        memory = draw(rng, m, d_memory)
        return x, memory, draw(rng, d_model, d_k), draw(rng, d_memory, d_k), draw(rng, d_memory, d_v)

    def keep(*bits):
        return np.array(bits, dtype=bool)

    above = rng.permutation(4)  # the place of the padded token, which has by far the largest score
    tall = np.where(above == 0, 4000.0, above)
    deep = np.where(above == 0, 3.0, -30000.0 - above)
    return [
        Rung("no memory_mask, all sizes different", arrays(2, 4, 3, 5, 2, 6),
            "output is (n, d_v), weights are (n, m). Queries are x @ W_q; keys and values are made from memory. "
            "Without a memory_mask every memory token is real.",
            with_a_word_on_dtype),
        Rung("one memory token: the output is its value", arrays(3, 1, 2, 4, 3, 2),
            "With one key its weight is 1: each output is memory @ W_v."),
        Rung("four queries, two memory tokens", arrays(4, 2, 3, 2, 5, 3),
            "n may be larger or smaller than m. There is no causal mask: every query sees all of memory."),
        Rung("all sizes equal", arrays(3, 3, 3, 3, 3, 3),
            "With equal sizes, exchanging x and memory raises no error. Queries come from x, keys and values from "
            "memory."),
        Rung("d_model = 5, d_memory = 6, d_k = 2", arrays(3, 4, 5, 6, 2, 3, size=2.0),
            "The scale is √d_k, where d_k is the width of x @ W_q. And each row of weights sums to 1: nothing is added "
            "to its sum."),
        Rung("memory_mask None", (*arrays(2, 3, 4, 2, 3, 2), None), "memory_mask=None: every memory token is real."),
        Rung("the last two memory tokens padded", (*arrays(2, 5, 3, 4, 2, 3), keep(1, 1, 1, 0, 0)),
            "memory_mask has an entry for each column. Where it is False the weight is 0 (the column stays), and the "
            "others in the row sum to 1. To ask whether there is a mask, write: memory_mask is not None."),
        Rung("every memory token real", (*arrays(3, 3, 2, 4, 5, 2), keep(1, 1, 1)),
            "A mask of nothing but True changes nothing."),
        Rung("a gap in memory, as many queries as memory tokens", (*arrays(4, 4, 3, 2, 5, 3), keep(1, 0, 1, 1)),
            "With n = m, a mask on the wrong axis raises no error. It belongs to the keys, which are the columns. "
            "Padding may be anywhere, so use every entry of the mask."),
        Rung("large scores", memory_scores(rng, 1000.0 + above),
            "exp(1000) is infinity. torch.softmax is safe for large scores; exp alone is not."),
        Rung("large scores of both signs", arrays(3, 4, 3, 2, 3, 2, size=60.0),
            "torch.softmax is safe for large scores; exp alone is not."),
        Rung("20 memory tokens, scores near 40 000", memory_scores(rng, 40_000 + rng.random(20) * 3),
            "In float64 the result has to be right to 10⁻⁶ for scores of any size. A conversion to float32 on the way "
            "loses that precision."),
        Rung("a score of exactly 0", (*memory_scores(rng, [1.0, 0.0, -1.0, 2.0]), keep(1, 1, 0, 1)),
            "A score of 0 is a score like any other. memory_mask says what is padded, not the score."),
        Rung("a padded token with a score far above the others", (*memory_scores(rng, tall), tall < 3000),
            "A padded token must have no influence, however large its score. Block it before the softmax."),
        Rung("scores below −10 000", (*memory_scores(rng, deep), deep < 0),
            "A fill such as −1e4 lies above these scores, so the padded token wins. Use −∞."),
        Rung("float32", (*(array.astype(np.float32) for array in arrays(3, 4, 3, 2, 5, 2)), keep(0, 1, 1, 1)),
            "All tensors but the mask are float32 here, so the tensors that you make must be float32 too: "
            "torch.zeros(n, m, dtype=x.dtype).",
            tolerance=SINGLE),
        Rung(UNTOUCHED, (*arrays(2, 3, 3, 3, 2, 2), keep(1, 0, 1)), NEW_TENSORS, changes),
        Rung("one query", arrays(1, 4, 3, 5, 2, 6), "The output is (1, d_v): an axis of length 1 stays."),
    ]  # fmt: skip


def memory_scores(rng: np.random.Generator, keys: Sequence[float] | np.ndarray) -> tuple[np.ndarray, ...]:
    """Return x, memory and three matrices with d_k = 1 for which the score of key j is `keys[j]`, for both queries."""
    memory = np.column_stack([keys, draw(rng, len(keys), 2)])
    W_v = np.concatenate([np.zeros((1, 3)), draw(rng, 2, 3)])  # values from the last two columns only
    return np.ones((2, 2)), memory, np.array([[1.0], [0.0]]), np.eye(3)[:, :1], W_v


def find_the_bug(rng: np.random.Generator) -> list[Rung]:
    arrays = partial(draw_qkv, rng)
    quarters = rng.permutation(9)[:4, None] / 4.0  # exact in float32 also when added to 1000
    return [
        Rung("nothing masked", (*arrays(2, 3, 3, 2), np.ones((2, 3), dtype=bool)),
            "With nothing masked it is plain attention. Fill where the mask is False: ~mask."),
        Rung("one key for each query", (*arrays(3, 3, 2, 4), np.eye(3, dtype=bool)[[2, 0, 1]]),
            "A query with a single key to attend to gives it weight 1."),
        Rung("a causal mask", (*arrays(4, 4, 3, 2), np.tri(4, dtype=bool)), "Each row of weights sums to 1."),
        Rung("2 queries, 5 keys, any mask", (*arrays(2, 5, 3, 4), draw_mask(rng, 2, 5)),
            "Blocked keys get 0, and each row of weights sums to 1."),
        Rung("a batch with heads, mask (n, m)", (*arrays(3, 4, 5, 2, (2, 2)), draw_mask(rng, 3, 4)),
            "The mask broadcasts over the leading axes."),
        Rung("a batch with heads, mask (B, 1, 1, m)",
            (*arrays(3, 4, 5, 2, (2, 3)), np.arange(4) < np.array([1, 3])[:, None, None, None]),
            "The mask broadcasts over heads and queries."),
        Rung("all sizes equal", (*arrays(3, 3, 3, 3, (3,)), draw_mask(rng, 3, 3)),
            "With equal sizes, a wrong axis raises no error. The keys are the last axis."),
        Rung("blocked keys still get exactly 0", (*arrays(3, 4, 3, 2), draw_mask(rng, 3, 4)),
            "A key that the mask blocks has weight exactly 0. Only one number, used as a score, takes no share at all.",
            share_of_blocked),
        Rung(UNTOUCHED, (*arrays(2, 3, 3, 2), np.tri(2, 3, dtype=bool)), NEW_TENSORS, changes),
        Rung("6 queries, 3 keys, any mask", (*arrays(6, 3, 2, 4), draw_mask(rng, 6, 3)),
            "n may also be larger than m. Blocked keys get 0, and each row of weights sums to 1."),
        Rung("scores near 1000", (np.ones((2, 1)), 1000.0 + quarters, draw(rng, 4, 2), draw_mask(rng, 2, 4)),
            "exp(1000) is infinity: subtract something first, as torch.softmax does."),
        Rung("scores near −1000", (np.ones((2, 1)), quarters - 1000.0, draw(rng, 4, 2), draw_mask(rng, 2, 4)),
            "exp(−1000) is 0, and 0 / 0 is NaN: the largest score that a row may use has to become 0."),
        Rung("allowed scores near −20 000, blocked ones near 20 000",
            (np.ones((2, 1)), np.concatenate([quarters[:2] - 20_000.0, quarters[2:] + 20_000.0]), draw(rng, 4, 2),
                np.array([[True, True, False, False]] * 2)),
            "However low a finite fill is, an allowed score may be lower. Only −∞ is below all of them."),
        Rung("one of the scores far above the others",
            (np.ones((3, 1)), np.array([[1.0], [2.0], [3000.0], [0.5]]), draw(rng, 4, 2), ~np.eye(4, dtype=bool)[1:]),
            "Try a query and three keys with scores 1, 2 and 3000, and block one key after the other."),
        Rung("one query, 5 keys, any mask", (*arrays(1, 5, 3, 2), draw_mask(rng, 1, 5)), "A single query is one row."),
        Rung("one key for all", (*arrays(3, 1, 3, 2), np.ones((3, 1), dtype=bool)),
            "Every query gives its whole weight to the only key."),
    ]  # fmt: skip


def share_of_blocked(function: Callable, q: Array, k: Array, v: Array, mask: Array) -> dict[str, Any]:
    """Return the result, and 1.0 if a key that the mask blocks has a nonzero weight, else 0.0."""
    result = named(function(q, k, v, copy.deepcopy(mask)), ("output", "weights"))
    weights = np.asarray(result["weights"])
    share = (weights[~np.broadcast_to(np.asarray(mask), weights.shape)] != 0).any()
    return {**result, "measure": float(share)}


SMALL_SCORES = (
    Small(
        ("… n m", "mask …2 …1 n m", "… n m"),
        measures=(gradient,),
        names=("scores", "mask", "wanted"),
        code="weights = {f}(scores.requires_grad_(), mask)\n(weights * wanted).sum().backward()\nscores.grad",
    ),
    Small(("… n m", "mask …2 …1 n m")),
)
LADDERS = {
    "causal_mask": Ladder(("causal_mask",), ("mask",), causal_mask, convert=boolean_tensor, small=(Small((whole(),)),)),
    "by_hand_row": Ladder(
        ("weights_sat", "output_sat"),
        by_hand=True,
        advice="Go through it again. Dot products, scale, mask, exponentials, their sum and a division give the "
        "weights. The rows of X, each times its weight, add up to the output. Round at the end, to 3 decimals.",
    ),
    "causal_attention": Ladder(
        ("causal_attention",),
        ("output", "weights"),
        causal_attention,
        tensors=True,
        convert=tensor,
        forbidden=WHOLE_ATTENTION,
        small=(Small(("T c", "c d", "c d", "c e")),),
    ),
    "find_the_bug": Ladder(
        ("broken_masked_attention",),
        ("output", "weights"),
        find_the_bug,
        tensors=True,
        forbidden=WHOLE_ATTENTION,
        small=(Small(("… n d", "… m d", "… m e", "mask …2 …1 n m")),),
    ),
    "first_leak": Ladder(("first_leak",), ("pair",), first_leak, small=(Small((mixing, "=n", "=d")),)),
    "padding_mask": Ladder(
        ("padding_mask",),
        ("mask",),
        padding_mask,
        tensors=True,
        convert=boolean_tensor,
        small=(Small((up_to("B", "m"), "=m")),),
    ),
    "causal_and_padding": Ladder(
        ("causal_padding_mask",),
        ("mask",),
        causal_and_padding,
        tensors=True,
        convert=boolean_tensor,
        small=(Small((up_to("B", "m"), "=m")),),
    ),
    "packed_texts": Ladder(
        ("packed_mask",),
        ("mask",),
        packed_texts,
        tensors=True,
        convert=boolean_tensor,
        small=(Small((texts_in_rows,)),),
    ),
    "convert_mask": Ladder(
        ("to_mha_mask",), ("mask",), convert_mask, tensors=True, convert=boolean_tensor, small=(Small(("…",)),)
    ),
    "lower_right": Ladder(
        ("decoding_mask",),
        ("mask",),
        lower_right,
        convert=boolean_tensor,
        small=(Small((whole(), whole()), fits=lambda n, m: n <= m),),
    ),
    "masked_softmax": Ladder(
        ("masked_softmax",),
        ("weights",),
        masked_softmax,
        tensors=True,
        forbidden=WHOLE_ATTENTION,
        small=SMALL_SCORES,
    ),
    "diagnose": Ladder(
        ("first_lines",),
        by_hand=True,
        advice="Read the lines of that model from the top, and stop at the first that is not healthy.",
    ),
    "cross_attention": Ladder(
        ("cross_attention",),
        ("output", "weights"),
        cross_attention,
        tensors=True,
        convert=tensor,
        forbidden=WHOLE_ATTENTION,
        small=(Small(("n c", "m g", "c d", "g d", "g e", "m")),),
    ),
    "tells_right": Ladder(("tells_right",), ("verdict",), duel=True),
}
