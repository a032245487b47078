"""Day 3: the answers to its exercises, and the mistakes that people make in them.

References and mistakes work in PyTorch and take NumPy arrays too.
"""

import math
from dataclasses import replace

import numpy as np

from course_utils.answers.day3.duel import duel
from course_utils.answers.shared.masked import (
    AFTERWARDS,
    EXTREMES,
    INFINITY,
    LOG_WEIGHTS,
    LOW,
    MASK_ADDED,
    MULTIPLIED,
    MULTIPLIED_WITH_ZEROS,
    NO_SHIFT,
    OVER_QUERIES,
    RENORMALISED,
    SHIFTED_BY_ALL,
    STEPS,
    UNMASKED,
    WEIGHTS_AGAIN,
    ZERO_TIMES_INFINITY,
    ZEROS_BLOCKED,
    after,
    by_exponentials,
    filled,
    flawed,
    highest,
    multiplied,
    no_shift,
    reference_softmax,
    unmasked,
)
from course_utils.attention import arrays
from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.loader import lazy

torch = lazy("torch")
masks = lazy("course_utils.attention.masks")
tensors = lazy("course_utils.attention.tensors")

# Masks of one axis or two -------------------------------------------------------------------------------------------


def square(rule):
    """A mask of n by n from a rule on row and column numbers."""
    return lambda n: rule(torch.arange(n)[:, None].expand(n, n), torch.arange(n)[None, :].expand(n, n))


UPPER = Mistake(
    "upper triangle",
    square(lambda i, j: j >= i),
    "This is the upper triangle: each token sees itself and the later ones. Row i is the query and column j is the "
    "key. Which of the two must not be the later one?",
)
CAUSAL_MASK_MISTAKES = (
    UPPER,
    Mistake("diagonal excluded", square(lambda i, j: j < i),
        "The diagonal is False: no token sees itself, and the first one sees nothing. A token may attend to itself."),
    Mistake("True means blocked", square(lambda i, j: j > i),
        "This mask is inverted: it is True where a query may not attend. In this course True means may attend."),
    Mistake("one key too many", square(lambda i, j: j <= i + 1),
        "Each query sees one key too many, the next token. In torch.tril(…, diagonal=k), k = 0 keeps the diagonal "
        "and nothing above it."),
    Mistake("itself only", square(lambda i, j: j == i),
        "Each token sees only itself. It may also see all earlier ones."),
    Mistake("the other diagonal", square(lambda i, j: j < len(j) - i),
        "The triangle fills the top left corner, so the first query sees everything. It should see only itself, and "
        "the last query should see everything."),
    Mistake("the other diagonal, below it", square(lambda i, j: j >= len(j) - 1 - i),
        "The triangle fills the bottom right corner, so the first query sees only the last key. It should see only "
        "the first key, its own."),
    Mistake("first key only", square(lambda i, j: (j == 0) | (j == i)),
        "Each query sees the first key and itself, but not the keys in between."),
    Mistake("last two keys only", square(lambda i, j: (j == i) | (j == i - 1)),
        "Each query sees itself and one token before it. It may see all earlier tokens."),
)  # fmt: skip


def real_keys(rule, shape="b11m"):
    """A padding mask from a rule on key numbers (1, m), lengths (B, 1) and m."""

    def padding_mask(lengths, m):
        lengths = torch.as_tensor(lengths)
        mask = rule(torch.arange(m)[None, :], lengths[:, None], m)  # (B, m)
        return {
            "b11m": mask[:, None, None, :],
            "bm": mask,
            "b1m": mask[:, None, :],
            "b1m1": mask[:, None, :, None],
            "bm11": mask[:, :, None, None],
            "11bm": mask[None, None],
            "bm1": mask[:, :, None],
        }[shape]

    return padding_mask


def first_real(j, length, m):
    return j < length


def reference_padding(lengths, m):
    return masks.padding(torch.as_tensor(lengths), m)


def up_to_the_longest(lengths, m):
    return reference_padding(lengths, int(max(lengths)))


PADDING_MISTAKES = (
    Mistake("True means padding", real_keys(lambda j, length, m: j >= length),
        "This mask is inverted: it is True at the padding. In this course True means may attend, so the real keys "
        "are True."),
    Mistake("padding on the left", real_keys(lambda j, length, m: j >= m - length),
        "Here the last keys are the real ones, as if the padding were on the left. It is on the right: the first "
        "lengths[b] keys are real."),
    Mistake("one key too few", real_keys(lambda j, length, m: j < length - 1),
        "One key too few is real. Keys count from 0, so the last real one is lengths[b] − 1: j < lengths[b]."),
    Mistake("the length's own key only", real_keys(lambda j, length, m: j == length - 1),
        "Only the last real key is True. All keys before it are real too."),
    Mistake("shape (B, m)", real_keys(first_real, "bm"),
        "The entries are right, but the shape is (B, m). Against scores of (B, h, n, m) it would line up with the "
        "queries and keys. Add two axes of size 1: (B, 1, 1, m)."),
    Mistake("padding on the queries", real_keys(first_real, "b1m1"),
        "The shape is (B, 1, m, 1), so the mask falls on the queries, the third axis of the scores. Padding belongs "
        "to the keys, the last axis."),
    Mistake("as many keys as the longest sequence", up_to_the_longest,
        "The last axis is as long as the longest sequence. It should have all m keys, even those that are padding in "
        "every sequence."),
    Mistake("one length for all",
        lambda lengths, m: real_keys(first_real)(torch.full((len(lengths),), int(lengths[0])), m),
        "Every sequence gets the length of the first one."),
)  # fmt: skip


def causal_and_real(join=torch.logical_and, causal=masks.causal, padding=reference_padding):
    def causal_padding_mask(lengths, n):
        return join(causal(n), padding(lengths, n))

    return causal_padding_mask


def on_the_queries(lengths, n):
    return reference_padding(lengths, n).mT


def padding_without_axes(lengths, n):
    return causal_and_real(padding=real_keys(first_real, "bm"))(lengths, n)  # fits for B = 1 and for B = n


def squeezed(axes):
    def causal_padding_mask(lengths, n):
        mask = causal_and_real()(lengths, n)  # (B, 1, n, n)
        return mask[:, 0] if axes == 3 else mask.expand(-1, len(mask), -1, -1)

    return causal_padding_mask


def known(name, among):
    return next(mistake.answer for mistake in among if mistake.name == name)


CAUSAL_PADDING_MISTAKES = (
    Mistake("or in place of and", causal_and_real(torch.logical_or),
        "Here a key is allowed where either of the two rules holds. Both must hold: j ≤ i and j < lengths[b]. With "
        "booleans + is “or”; “and” is &."),
    Mistake("one of the two, not both", causal_and_real(torch.logical_xor),
        "Here a key is allowed where exactly one of the two rules holds. Both must hold."),
    Mistake("padding only, rows left out", causal_and_real(lambda a, b: b),
        "This is the padding mask alone. Combine it with the causal mask of n tokens."),
    Mistake("padding on the queries", causal_and_real(padding=on_the_queries),
        "The rows of padding are blocked. Padding belongs to the keys, the last axis: from column lengths[b], every "
        "row is False, and padding blocks nothing else."),
    Mistake("rows and columns exchanged", lambda lengths, n: causal_and_real()(lengths, n).mT,
        "Rows and columns are exchanged in both rules: each query sees itself and later ones, and the padding blocks "
        "rows. Queries are rows and keys are columns, the last axis."),
    Mistake("upper triangle", causal_and_real(causal=UPPER.answer),
        "The causal part is the upper triangle: queries see later tokens. Is the query the row or the column?"),
    Mistake("diagonal excluded", causal_and_real(causal=known("diagonal excluded", CAUSAL_MASK_MISTAKES)),
        "The diagonal is False: no token sees itself. A real token may attend to itself."),
    Mistake("True means blocked", lambda lengths, n: ~causal_and_real()(lengths, n),
        "The whole mask is inverted: it is True where a query may not attend."),
    Mistake("the causal part turned round", causal_and_real(causal=known("True means blocked", CAUSAL_MASK_MISTAKES)),
        "The padding is right, but the causal part is True where a query may not attend."),
    Mistake("the padding turned round", causal_and_real(padding=known("True means padding", PADDING_MISTAKES)),
        "The causal part is right, but the padding part is True at the padding."),
    Mistake("padding on the left", causal_and_real(padding=known("padding on the left", PADDING_MISTAKES)),
        "The first columns are blocked, as if the padding were on the left. It is on the right."),
    Mistake("one key too few", causal_and_real(padding=known("one key too few", PADDING_MISTAKES)),
        "One real key too many is blocked. Keys count from 0: the last real one is lengths[b] − 1."),
    Mistake("padding without its axes", padding_without_axes,
        "The padding mask of (B, n) is lined up with the causal one of (n, n), so its sequences fall on the queries. "
        "Give it the shape (B, 1, 1, n) first: [:, None, None, :]."),
    Mistake("shape (B, B, n, n)", squeezed(4),
        "The shape is (B, B, n, n): a padding mask of (B, n) was joined to the causal one with its sequences on the "
        "wrong axis. Give it the shape (B, 1, 1, n) first."),
)  # fmt: skip


def joined(same=torch.eq, real=lambda keys: keys >= 0, causal=masks.causal):
    """A mask of texts in a row from its three rules: numbers of queries and keys, of keys alone, and places."""

    def packed_mask(text_of):
        text_of = torch.as_tensor(text_of)
        queries, keys = text_of[..., :, None], text_of[..., None, :]
        return same(keys, queries) & real(keys) & causal(text_of.shape[-1])

    return packed_mask


def any_key(keys):
    return torch.ones_like(keys, dtype=torch.bool)


def rows_compared(text_of):
    text_of = torch.as_tensor(text_of)
    return (text_of[:, None] == text_of) & (text_of >= 0) & masks.causal(text_of.shape[-1])


def first_row_for_all(text_of):
    text_of = torch.as_tensor(text_of)
    return joined()(text_of[:1].expand_as(text_of) if text_of.ndim == 2 else text_of)


PACKED_MISTAKES = (
    Mistake("causal only", joined(same=lambda keys, queries: any_key(keys | queries)),
        "Each query sees all real tokens before it, even those of other texts. The numbers of query and key must be "
        "equal."),
    Mistake("compared with ≤", joined(same=torch.le),
        "Numbers are compared with ≤, so each text also sees earlier texts with smaller numbers. The numbers must be "
        "equal."),
    Mistake("compared with ≥", joined(same=torch.ge),
        "Numbers are compared with ≥, so each text also sees earlier texts with larger numbers. The numbers must be "
        "equal."),
    Mistake("text 0 taken for padding", joined(real=lambda keys: keys > 0),
        "The text with number 0 is blocked. 0 is a number like any other: padding is −1."),
    Mistake("diagonal excluded", joined(causal=lambda n: masks.causal(n).tril(-1)),
        "The diagonal is False: no token sees itself. A real token may attend to itself."),
    Mistake("upper triangle", joined(causal=lambda n: masks.causal(n).mT),
        "Each query sees itself and the later tokens of its text. It should see itself and the earlier ones."),
    Mistake("True means blocked", lambda text_of: ~joined()(text_of),
        "This mask is inverted: it is True where a query may not attend."),
    Mistake("other texts", joined(same=torch.ne),
        "Each query sees earlier tokens of other texts. It should see those of its own text."),
    Mistake("rows compared with rows", rows_compared,
        "Right for (T,). For (B, T), [:, None] puts the new axis right after the batch, so rows are compared with "
        "rows. Count from the end: [..., :, None] and [..., None, :]."),
    Mistake("the first row for all", first_row_for_all, "Every row of the batch gets the mask of the first one."),
)  # fmt: skip


def placed(first):
    """A causal mask of n by m whose row i is the token first(n, m) + i."""
    return lambda n, m: torch.arange(m)[None, :] <= torch.arange(n)[:, None] + first(n, m)


def new_only(n, m):
    return masks.causal(n, m) & (torch.arange(m) >= m - n)


LOWER_RIGHT_MISTAKES = (
    Mistake("top-left alignment", placed(lambda n, m: 0),
        "The triangle starts in the top left corner, as if the queries were the first tokens. They are the last n of "
        "the m tokens: the last query is the newest token and sees every key."),
    Mistake("one key too few", placed(lambda n, m: m - n - 1),
        "Every query sees one key too few, so not even itself. The last query is token m − 1 and sees itself, the "
        "last key."),
    Mistake("shifted the wrong way", placed(lambda n, m: n - m),
        "The shift has the wrong sign. Query 0 has m − n keys before it, and sees them all."),
    Mistake("new keys only", new_only,
        "The queries see each other, but not the m − n keys from before. Those were kept so that new queries can see "
        "them."),
    Mistake("old keys only", lambda n, m: (torch.arange(m) < m - n).expand(n, m),
        "The queries see the old keys, but not the new ones: each also sees itself and the new tokens before it."),
    Mistake("True means blocked", lambda n, m: ~masks.causal(n, m),
        "This mask is inverted: it is True where a query may not attend."),
    Mistake("upper triangle", lambda n, m: torch.arange(m)[None, :] >= torch.arange(n)[:, None] + m - n,
        "Each query sees its own place and the later ones. It should see its own place and the earlier ones."),
    Mistake("rows and columns exchanged", lambda n, m: masks.causal(n, m).mT,
        "The shape is (m, n). Rows are queries: (n, m)."),
    Mistake("all m tokens as queries", lambda n, m: masks.causal(m),
        "There is a row for each of the m tokens. Only the last n of them are queries: take the last n rows."),
    Mistake("rows from n on", lambda n, m: masks.causal(m)[n:],
        "You take the rows that begin at n, of which there are m − n. The last n rows begin at m − n: [-n:] counts "
        "from the end."),
    Mistake("the first rows", lambda n, m: masks.causal(n),
        "This is the causal mask of n tokens alone. The queries also see the m − n keys before them."),
)  # fmt: skip
EXCHANGED = (
    "Rows and columns are exchanged, and True still means may attend. Queries stay "
    "rows; only the meaning of True changes."
)


def every_axis(mask):
    return mask.permute(*reversed(range(mask.ndim)))


def diagonal_left_alone(mask):
    """The opposite, False on the diagonal."""
    mask = torch.as_tensor(mask)
    return ~mask & ~torch.eye(*mask.shape[-2:], dtype=torch.bool)


CONVERT_MISTAKES = (
    Mistake("unchanged", lambda mask: torch.as_tensor(mask),
        "The mask comes back unchanged. To nn.MultiheadAttention, True means ignore; here True means may attend."),
    Mistake("transposed", lambda mask: torch.as_tensor(mask).mT, EXCHANGED),
    Mistake("all axes exchanged", lambda mask: every_axis(torch.as_tensor(mask)), EXCHANGED),
    Mistake("two axes only", lambda mask: (~torch.as_tensor(mask) if mask.ndim == 2 else torch.as_tensor(mask)),
        "Right for a mask with two axes, but one with three comes back unchanged. Invert every entry, whatever the "
        "shape."),
    Mistake("turned round and transposed", lambda mask: ~torch.as_tensor(mask).mT,
        "The meaning of True is right now, but rows and columns are exchanged too. Queries are rows in both "
        "conventions."),
    Mistake("a causal mask, whatever is given", lambda mask: torch.ones(mask.shape, dtype=torch.bool).triu(1),
        "This is always the causal mask. Convert the mask that is given."),
    Mistake("nothing ignored", lambda mask: torch.zeros(mask.shape, dtype=torch.bool),
        "Every entry is False, so nn.MultiheadAttention would ignore nothing."),
    Mistake("everything ignored", lambda mask: torch.ones(mask.shape, dtype=torch.bool),
        "Every entry is True, so nn.MultiheadAttention would ignore every key."),
    Mistake("upside down", lambda mask: torch.as_tensor(mask).flip(0),
        "The rows are in reverse order. They stay where they are; the meaning of True changes."),
    Mistake("left and right exchanged", lambda mask: torch.as_tensor(mask).flip(-1),
        "The columns are in reverse order. They stay where they are; the meaning of True changes."),
    Mistake("diagonal left alone", diagonal_left_alone,
        "The diagonal stays as it was, or is always False. It is like any other "
        "entry: where it was False, it becomes True."),
    Mistake("queries with no key left alone",
        lambda mask: ~torch.as_tensor(mask) & torch.as_tensor(mask).any(dim=-1, keepdim=True),
        "A query that may attend to nothing comes out as all False, so nn.MultiheadAttention would let it attend to "
        "everything. Invert every entry, in every row."),
    Mistake("mask changed in place", lambda mask: torch.as_tensor(mask).logical_not_(),
        "The result is right, but it is the mask that was given, changed in place: logical_not_() and "
        "mask[...] = write into it. Make a new one: ~mask."),
)  # fmt: skip


# By hand ------------------------------------------------------------------------------------------------------------

THREE_DECIMALS = 5.5e-4  # half a unit of the last place, and a little for rounding on the way
X = np.array([[1.0, 0, 1, 0], [1, 1, 0, 0], [0, 1, 0, 1]])  # the, sat, cat


def by_hand(weights, blended=None):
    """The entries of one who has these weights, and with them the blend of the values."""
    weights = np.asarray(weights, dtype=float)
    return {"weights_sat": weights.tolist(), "output_sat": (weights @ X if blended is None else blended).tolist()}


def sat(scale=2.0, allowed=(1, 1, 0), row=1):
    scores = np.where(allowed, X @ X[row] / scale, -INFINITY)  # (3,)
    return by_hand(arrays.softmax(scores))


RIGHT_BY_HAND = sat()


def weights_alone(mistakes):
    """Each mistake once more, made by one whose output is right."""
    right = RIGHT_BY_HAND["output_sat"]
    return (Mistake(f"{m.name}, output right", {**m.answer, "output_sat": right}, m.message) for m in mistakes)


SAT = np.array(RIGHT_BY_HAND["weights_sat"])
WEIGHT_MISTAKES = (
    Mistake("no scaling", sat(scale=1.0),
        "These are the weights without the scale: the softmax of [1, 2]. Divide the scores by √d_k = 2 first."),
    Mistake("scaling by d_k", sat(scale=4.0),
        "These are the weights you get when the scores are divided by d_k = 4. Divide by √d_k = 2."),
    Mistake("multiplied by the root", sat(scale=0.5), "The scores are multiplied by √d_k. Divide by it."),
    Mistake("scaling by the root of the number of tokens", sat(scale=math.sqrt(3)),
        "The scores are divided by √3, the root of the number of tokens. d_k is the length of a key, 4."),
    Mistake("no mask", sat(allowed=(1, 1, 1)),
        "Here sat sees cat, which comes later. The mask is causal: the weight of cat is 0, and the other two share 1."),
    Mistake("masked after the softmax", by_hand([0.2741, 0.4519, 0.0]),
        "The weight of cat was taken away after the softmax, so the others do not sum to 1. Leave cat out of the sum "
        "of exponentials."),
    Mistake("a blocked score of 0", by_hand([0.3072, 0.5064, 0.1863]),
        "Here cat has a score of 0, whose exponential is 1. A blocked key gets no share at all."),
    Mistake("upper triangle", sat(allowed=(0, 1, 1)),
        "Here sat sees itself and cat, as with the upper triangle. It may see what comes before it, and itself."),
    Mistake("diagonal excluded, or the row of the", by_hand([1.0, 0.0, 0.0]),
        "All the weight is on the first token. Either this is the row of that token, or the mask keeps sat from "
        "seeing itself. A token may attend to itself."),
    Mistake("itself only", by_hand([0.0, 1.0, 0.0]),
        "Here sat sees only itself. It may also see the token before it."),
    Mistake("the row of cat", sat(allowed=(1, 1, 1), row=2),
        "This is the row of cat. The question is about sat, the second token."),
    Mistake("the order of the lesson", by_hand([0.2741, 0.2741, 0.4519]),
        "These are the weights of sat if it came last: the, cat, sat. Here it is in the middle: the, sat, cat."),
    Mistake("uniform weights", by_hand([0.5, 0.5, 0.0]),
        "Both keys get the same weight here. But the scores are not equal: sat matches itself best."),
    Mistake("scores in place of weights", by_hand([1.0, 2.0, 0.0]),
        "1 and 2 are the scores. Weights come after the scale and the softmax."),
    Mistake("scaled scores in place of weights", by_hand([0.5, 1.0, 0.0]),
        "0.5 and 1 are the scaled scores. Weights come after the softmax."),
    Mistake("exponentials not normalised", by_hand([1.6487, 2.7183, 0.0]),
        "These are the exponentials. Divide each by their sum, 4.367."),
    Mistake("no exponential", by_hand([1 / 3, 2 / 3, 0.0]),
        "0.333 and 0.667 are the scores over their sum: take exponentials before you divide. Or, if you divided the "
        "scores by √2: d_k is 4 here, so divide them by 2."),
)  # fmt: skip
BY_HAND_MISTAKES = (
    *WEIGHT_MISTAKES,
    *weights_alone(WEIGHT_MISTAKES),
    Mistake("two decimals", by_hand([0.38, 0.62, 0.0], np.array([1.0, 0.62, 0.38, 0.0])),
        "These are right, but rounded to 2 decimals. Give 3."),
    Mistake("the weights as output", by_hand(SAT, SAT),
        "The output is not the weights again. It is the blend of the three vectors, each times its weight, so it has "
        "four numbers."),
    Mistake("its own vector as output", by_hand(SAT, X[1]),
        "The weights are right. The output is not the vector of sat itself, but the blend of the vectors that sat "
        "sees, each times its weight."),
    Mistake("the mean as output", by_hand(SAT, X[:2].mean(axis=0)),
        "The weights are right, but the output is the plain mean of the two "
        "vectors. Each should count by its weight."),
    Mistake("the sum as output", by_hand(SAT, X[:2].sum(axis=0)),
        "The weights are right, but the output is the plain sum of the two "
        "vectors. Each should count by its weight."),
)  # fmt: skip


# Models that do not learn -------------------------------------------------------------------------------------------

FIRST_LINES = [4, 2, 5, 3]


def told(model, line, message):
    """The mistake of taking another line for the first that tells, of one model."""
    lines = [line if i == model else right for i, right in enumerate(FIRST_LINES)]
    return Mistake(f"model {model}, line {line}", {"first_lines": lines}, message)


DIAGNOSE_MISTAKES = (
    Mistake("the last line that tells", {"first_lines": [5, 5, 5, 5]},
        "The gradients of all four models are unhealthy. But they come last, and in three of the four an earlier "
        "line is unhealthy too."),
    Mistake("lines counted from 0", {"first_lines": [line - 1 for line in FIRST_LINES]},
        "You count lines from 0. Use the numbers 1 to 5, which are printed in front of them."),
    told(0, 1, "The loss of model 0 is at most 0.5 away from log 8, so it is healthy."),
    told(0, 2, "The scores of model 0 lie between −10 and 10 and differ, so they are healthy."),
    told(0, 3, "Line 3 of model 0 counts no key ahead and no empty row, so it is healthy. The bug may still be in "
        "the mask, but it shows in another line."),
    told(0, 5, "It is true that two gradients of model 0 are 0.000, but an earlier line is unhealthy too."),
    told(1, 4, "Row 4 of model 1 is even, which is healthy, because several keys have a weight. Why is it so even?"),
    told(1, 5, "It is true that two gradients of model 1 are 0.000, but an earlier line is unhealthy too."),
    told(2, 4, "Row 4 of model 2 is healthy: it sums to 1, several keys have a weight, and the later ones have 0."),
    told(3, 4, "Row 4 of model 3 sums to 1, and is 0 after position 4. It is 0 at position 4 too, but the cause of "
        "that shows in an earlier line."),
    told(3, 5, "It is true that the gradients of model 3 are nan, but an earlier line shows where the nan comes from."),
)  # fmt: skip


# Softmax under a mask -----------------------------------------------------------------------------------------------


def filled_by_where(scores, mask):
    """In float16 a fill of −1e9 becomes −∞ here, without an error."""
    return torch.softmax(torch.where(torch.as_tensor(mask), torch.as_tensor(scores), -1e9), dim=-1)


def assigned(scores, mask):
    scores = torch.as_tensor(scores) * 1.0
    scores[~torch.as_tensor(mask)] = -INFINITY
    return tensors.softmax(scores)


def multiplied_exponentials(scores, mask):
    """exp times the mask, over its sum: infinity times 0 is NaN."""
    exps = torch.exp(torch.as_tensor(scores)) * torch.as_tensor(mask)
    return exps / exps.sum(dim=-1, keepdim=True)


def multiplied_exponentials_with_care(scores, mask):
    exps = torch.exp(torch.as_tensor(scores)) * torch.as_tensor(mask)
    total = exps.sum(dim=-1, keepdim=True)
    return exps / total.masked_fill(total == 0, 1.0)


def opposite(scores, mask):
    return reference_softmax(scores, ~torch.as_tensor(mask))


def opposite_unrepaired(scores, mask):
    return filled(-INFINITY)(scores, ~torch.as_tensor(mask))


def along_axis_one(scores, mask):
    return tensors.softmax(torch.as_tensor(scores).masked_fill(~torch.as_tensor(mask), -INFINITY), dim=1)


def over_queries_unrepaired(scores, mask):
    return torch.softmax(torch.as_tensor(scores).masked_fill(~torch.as_tensor(mask), -INFINITY), dim=-2)


NO_KEY = (
    "Right where a row has a key. A row with none is all −∞, and its softmax is "
    "0 / 0: NaN. Such a row should hold zeros."
)
EQUAL = (
    "A row with no key comes out with equal shares: every score in it was replaced by the same number. It should hold "
    "zeros, so the mask is needed once more after the softmax."
)
SHARES = (
    "A row with no key comes out as if nothing were blocked: the same number was added to all of its scores, and that "
    "does not change a softmax. It should hold zeros."
)
OPPOSITE = Mistake(
    "True means blocked",
    opposite,
    "The keys with True get no weight. In this course True means may attend: fill where the mask is False, ~mask.",
)
OVER_QUERIES_NAN = Mistake(
    "softmax over queries, NaN",
    over_queries_unrepaired,
    OVER_QUERIES.message + " And a key that no query may see is a column of −∞, which gives NaN.",
)
SOFTMAX_MISTAKES = (
    Mistake("NaN in a fully masked row", filled(-INFINITY), NO_KEY),
    Mistake("NaN in a fully masked row, and in its gradient", filled(-INFINITY, added=True),
        NO_KEY + " If −∞ was added, replacing the NaN with zeros afterwards is too late for the gradient: keep NaN "
            "from arising."),
    Mistake("NaN repaired too late", filled(-INFINITY, care=True, added=True),
        "The weights are right, but adding −∞ to a whole row made NaN on the way, and the gradient of the repaired "
        "weights still passes through it. Replace the scores (masked_fill, torch.where) instead of adding to them, "
        "or let no row be all −∞."),
    Mistake("equal shares in a fully masked row", filled("lowest"), EQUAL),
    Mistake("a fill of −1e9", filled(-1e9), EQUAL + " And −1e9 does not fit into float16."),
    Mistake("a fill of −1e9, zeros afterwards", filled(-1e9, care=True),
        "Right for ordinary scores. But −1e9 does not fit into float16, which ends at 65 504, and real scores may "
        "lie below it: then the blocked keys win. Use −∞."),
    Mistake("−1e9 added", filled(-1e9, added=True), SHARES),
    Mistake("−1e9 added or put in by torch.where, zeros afterwards", filled(-1e9, care=True, added=True),
        "Right for ordinary scores. But " + LOW.format(fill="−1e9")),
    Mistake("a fill of −1e4", filled(-1e4), EQUAL + " And −1e4 is not even low: real scores may lie below it."),
    Mistake("a fill of −1e4, zeros afterwards", filled(-1e4, care=True),
        "Right for ordinary scores. But " + LOW.format(fill="−1e4")),
    Mistake("−1e4 added", filled(-1e4, added=True),
        SHARES + " And −1e4 is not even low: real scores may lie below it."),
    Mistake("a fill of −1e9 by torch.where", filled_by_where,
        EQUAL + " And −1e9 is not low enough for scores of any size."),
    AFTERWARDS,
    RENORMALISED,
    Mistake("mask after softmax, renormalised with care", after(lambda total: total.clamp(min=1e-9)),
        "The mask comes after the exponentials, and the rows are divided by their new sum, kept above 0. But where a "
        "blocked score is far above the others, their exponentials are already 0 by then. Block the scores before "
        "the softmax and before any maximum."),
    OPPOSITE,
    Mistake("True means blocked, NaN", opposite_unrepaired, OPPOSITE.message),
    OVER_QUERIES,
    OVER_QUERIES_NAN,
    MULTIPLIED,
    MULTIPLIED_WITH_ZEROS,
    UNMASKED,
    MASK_ADDED,
    LOG_WEIGHTS,
    SHIFTED_BY_ALL,
    Mistake("shift by the largest of all, NaN", by_exponentials(highest, care=False),
        SHIFTED_BY_ALL.message + " And a row with no key is 0 / 0: it should hold zeros."),
    NO_SHIFT,
    Mistake("exp without max-shift, NaN", by_exponentials(no_shift, care=False),
        NO_SHIFT.message + " And a row with no key is 0 / 0: it should hold zeros.", overflow=True),
    Mistake("exp without max-shift, times the mask", multiplied_exponentials,
        NO_SHIFT.message
        + " Infinity times a mask of 0 is NaN, and so is a row with no key, 0 / 0: it should hold zeros.",
        overflow=True),
    Mistake("exp without max-shift, times the mask, with care", multiplied_exponentials_with_care,
        NO_SHIFT.message + " Infinity times a mask of 0 is NaN too.", overflow=True),
    Mistake("softmax along axis 1", along_axis_one,
        "dim=1 is the last axis only of (n, m); of (B, h, n, m) it is the axis of the heads. Take the softmax along "
        "dim=-1."),
    ZEROS_BLOCKED,
    ZERO_TIMES_INFINITY,
    WEIGHTS_AGAIN,
    Mistake("scores assigned by index", assigned,
        "Right where mask and scores have the same shape. Indexing scores[~mask] does not broadcast: the mask may be "
        "(n, m) or (B, 1, 1, m). masked_fill and torch.where broadcast."),
)  # fmt: skip


# Attention ----------------------------------------------------------------------------------------------------------


def projected(attention=None, project=None, mask=masks.causal):
    """Causal self-attention with another attention, other projections, or another mask than the right ones."""

    def causal_attention(x, W_q, W_k, W_v):
        x, W_q, W_k, W_v = (torch.as_tensor(a, dtype=torch.float64) for a in (x, W_q, W_k, W_v))
        q, k, v = project(x, W_q, W_k, W_v) if project else (x @ W_q, x @ W_k, x @ W_v)
        return (attention or flawed())(q, k, v, mask(len(x)))

    return causal_attention


def scaled_by_model_width(x, W_q, W_k, W_v):
    return projected(flawed(scale=lambda q, k, v: math.sqrt(x.shape[-1])))(x, W_q, W_k, W_v)


def masked_output(x, W_q, W_k, W_v):
    """The weights are shown masked, but the output was blended before."""
    return projected(flawed(weigh=unmasked))(x, W_q, W_k, W_v)[0], projected(flawed())(x, W_q, W_k, W_v)[1]


PROJECTIONS = (
    Mistake("weight matrices transposed", lambda x, W_q, W_k, W_v: (x @ W_q.T, x @ W_k.T, x @ W_v.T),
        "You multiply by the transposed matrices, as torch.nn.Linear does. Here it is x @ W."),
    Mistake("keys made with W_q", lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_q, x @ W_v),
        "Keys are made with W_q. Use W_k for them."),
    Mistake("queries made with W_k", lambda x, W_q, W_k, W_v: (x @ W_k, x @ W_k, x @ W_v),
        "Queries are made with W_k. Use W_q for them."),
    Mistake("queries and keys exchanged", lambda x, W_q, W_k, W_v: (x @ W_k, x @ W_q, x @ W_v),
        "Rows and columns of the scores are exchanged: rows are queries, columns are keys."),
    Mistake("values not projected", lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_k, x),
        "The output blends x itself. Blend x @ W_v."),
    Mistake("keys blended in place of values", lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_k, x @ W_k),
        "The output blends the keys. The weights come from the keys; what is blended is x @ W_v."),
    Mistake("nothing projected", lambda x, W_q, W_k, W_v: (x, x, x),
        "The weight matrices are not used. Make q, k and v first: x @ W_q, x @ W_k, x @ W_v."),
)  # fmt: skip
UP = known("upper triangle", CAUSAL_MASK_MISTAKES)
WITHOUT_DIAGONAL = known("diagonal excluded", CAUSAL_MASK_MISTAKES)
TURNED = known("True means blocked", CAUSAL_MASK_MISTAKES)
CAUSAL_MISTAKES = (
    Mistake("upper triangle", projected(mask=UP),
        "Each token attends to itself and the later ones: this is the upper "
        "triangle. Row i is the query, column j the key."),
    Mistake("diagonal excluded", projected(mask=WITHOUT_DIAGONAL),
        "The diagonal is blocked too, so no token sees itself and the first sees "
        "nothing. A token may attend to itself."),
    Mistake("diagonal excluded, NaN", projected(flawed(weigh=filled(-INFINITY)), mask=WITHOUT_DIAGONAL),
        "The first row is NaN, because all of its keys are blocked, its own included. A token may attend to itself, "
        "so look at the diagonal."),
    Mistake("True means blocked", projected(mask=TURNED),
        "Each token attends to the later ones, and the last one to nothing: the mask is inverted. Fill where it is "
        "False, ~mask."),
    Mistake("True means blocked, NaN", projected(flawed(weigh=filled(-INFINITY)), mask=TURNED),
        "The last row is NaN, because all of its keys are blocked. The mask is inverted: fill where it is False, "
        "~mask."),
    Mistake("one key too many", projected(mask=known("one key too many", CAUSAL_MASK_MISTAKES)),
        "Each token also sees the next one. Look at the diagonal argument, or at < and ≤."),
    *(replace(m, answer=projected(m.answer)) for m in STEPS),
    Mistake("only the shown weights masked", masked_output,
        "The weights are right, but the output was blended with weights that are not masked. Mask first, then blend."),
    *(replace(m, answer=projected(flawed(weigh=m.answer))) for m in EXTREMES),
    Mistake("scaling by the root of d_model", scaled_by_model_width,
        "You divide by √d_model, the root of the width of x. Divide by √d_k, the root of the width of x @ W_q."),
    *(Mistake(m.name, projected(project=m.answer), m.message) for m in PROJECTIONS),
)  # fmt: skip


def crossed(attention=None, project=None, mask=lambda given, n: given.expand(n, -1)):
    """Cross-attention with another attention, other projections, or another use of memory_mask than the right ones."""

    def cross_attention(x, memory, W_q, W_k, W_v, memory_mask=None):
        x, memory, W_q, W_k, W_v = (torch.as_tensor(a, dtype=torch.float64) for a in (x, memory, W_q, W_k, W_v))
        project_all = project or (lambda x, memory, W_q, W_k, W_v: (x @ W_q, memory @ W_k, memory @ W_v))
        q, k, v = project_all(x, memory, W_q, W_k, W_v)
        given = torch.ones(len(k), dtype=torch.bool) if memory_mask is None else torch.as_tensor(memory_mask)
        return (attention or flawed())(q, k, v, mask(given, len(q)))

    return cross_attention


def without_mask(x, memory, W_q, W_k, W_v, memory_mask=None):
    return crossed()(x, memory, W_q, W_k, W_v)


def misused(mask, weigh=reference_softmax):
    """Cross-attention that uses `mask(memory_mask)` where one is given."""

    def cross_attention(x, memory, W_q, W_k, W_v, memory_mask=None):
        if memory_mask is None:
            return crossed()(x, memory, W_q, W_k, W_v)
        attention = crossed(flawed(weigh=weigh), mask=lambda given, n: mask(given))
        return attention(x, memory, W_q, W_k, W_v, memory_mask)

    return cross_attention


def turned(given):
    return ~given


def on_query_axis(given):
    return given[:, None]


def with_causal(given, n):
    return given.expand(n, -1) & (torch.arange(len(given)) <= torch.arange(n)[:, None])


def memory_blanked(x, memory, W_q, W_k, W_v, memory_mask=None):
    memory = torch.as_tensor(memory)
    blanked = memory if memory_mask is None else memory * torch.as_tensor(memory_mask)[:, None]
    return crossed()(x, blanked, W_q, W_k, W_v)


def values_blanked(x, memory, W_q, W_k, W_v, memory_mask=None):
    output, weights = crossed()(x, memory, W_q, W_k, W_v)
    if memory_mask is not None:
        output = weights * torch.as_tensor(memory_mask) @ torch.as_tensor(memory) @ torch.as_tensor(W_v)
    return output, weights


CROSS_PROJECTIONS = (
    Mistake("x and memory exchanged", lambda x, memory, W_q, W_k, W_v: (memory @ W_q, x @ W_k, x @ W_v),
        "Here queries come from memory, and keys and values come from x. It should be the other way around."),
    Mistake("self-attention", lambda x, memory, W_q, W_k, W_v: (x @ W_q, x @ W_k, x @ W_v),
        "Keys and values come from x: that is self-attention. They come from memory."),
    Mistake("values from x", lambda x, memory, W_q, W_k, W_v: (x @ W_q, memory @ W_k, x @ W_v),
        "The values come from x. Keys and values both come from memory."),
    Mistake("keys from x", lambda x, memory, W_q, W_k, W_v: (x @ W_q, x @ W_k, memory @ W_v),
        "The keys come from x. Keys and values both come from memory."),
    Mistake("queries from memory", lambda x, memory, W_q, W_k, W_v: (memory @ W_q, memory @ W_k, memory @ W_v),
        "The queries come from memory, and x is not used. Each token of x has a row of the output."),
    Mistake("weight matrices transposed", lambda x, memory, W_q, W_k, W_v: (x @ W_q.T, memory @ W_k.T, memory @ W_v.T),
        "You multiply by the transposed matrices. Here it is x @ W."),
    Mistake("keys made with W_q", lambda x, memory, W_q, W_k, W_v: (x @ W_q, memory @ W_q, memory @ W_v),
        "Keys are made with W_q. Use W_k for them."),
    Mistake("values not projected", lambda x, memory, W_q, W_k, W_v: (x @ W_q, memory @ W_k, memory),
        "The output blends memory itself. Blend memory @ W_v."),
    Mistake("keys blended in place of values", lambda x, memory, W_q, W_k, W_v: (x @ W_q, memory @ W_k, memory @ W_k),
        "The output blends the keys. What is blended is memory @ W_v."),
)  # fmt: skip
TURNED_MEMORY = (
    "The real memory tokens get no weight: the mask is inverted. True means real, so fill where it is False, "
    "~memory_mask."
)
ON_QUERIES = (
    "The mask is applied to the rows of the scores. It belongs to memory, whose tokens are the columns: shape (m,) or "
    "(1, m) broadcasts over the rows."
)


def scaled_by(width):
    """Cross-attention whose scale is the root of width(x, memory)."""

    def answer(x, memory, W_q, W_k, W_v, memory_mask=None):
        attend = flawed(scale=lambda q, k, v: math.sqrt(width(x, memory)))
        return crossed(attend)(x, memory, W_q, W_k, W_v, memory_mask)

    return answer


CROSS_MISTAKES = (
    Mistake("scaling by the root of d_model", scaled_by(lambda x, memory: x.shape[-1]),
        "The scale is √d_model, the width of x. It should be √d_k, the width of x @ W_q."),
    Mistake("scaling by the root of d_memory", scaled_by(lambda x, memory: memory.shape[-1]),
        "The scale is √d_memory, the width of memory. It should be √d_k, the width of memory @ W_k."),
    Mistake("mask ignored", without_mask,
        "memory_mask changes nothing here: padded memory tokens still have weight. "
        "Where it is False, the score must be −∞."),
    Mistake("memory multiplied by the mask", memory_blanked,
        "The padded tokens of memory are set to 0, so their scores are 0, and e^0 = 1 is still a share. Block their "
        "scores with −∞."),
    Mistake("values multiplied by the mask", values_blanked,
        "The padded values are left out of the blend, but their weights are still there, and the others do not sum "
        "to 1. Block the scores before the softmax."),
    Mistake("True means padding", misused(turned), TURNED_MEMORY),
    Mistake("True means padding, NaN", misused(turned, filled(-INFINITY)), TURNED_MEMORY),
    Mistake("True means padding, finite fill", misused(turned, filled(-1e9)), TURNED_MEMORY),
    Mistake("mask on the queries", misused(on_query_axis), ON_QUERIES),
    Mistake("mask on the queries, NaN", misused(on_query_axis, filled(-INFINITY)), ON_QUERIES),
    Mistake("causal as well", crossed(mask=with_causal),
        "A causal mask is applied too. All of memory is there from the beginning, so every query may see all of its "
        "real tokens."),
    *(Mistake(m.name, crossed(project=m.answer), m.message) for m in CROSS_PROJECTIONS),
    *(Mistake(m.name, crossed(m.answer), m.message) for m in STEPS if m.name != "no mask"),
    Mistake(OVER_QUERIES_NAN.name, crossed(flawed(weigh=OVER_QUERIES_NAN.answer)), OVER_QUERIES_NAN.message),
    *(replace(m, answer=crossed(flawed(weigh=m.answer))) for m in EXTREMES if m.name != "−1e4 added"),
)  # fmt: skip


# Find the bug -------------------------------------------------------------------------------------------------------

HALF_MENDED = "The weights are right now, but the output was blended with the old ones. Blend last."


def opposite_and_zeros(scores, mask):
    return torch.where(mask, opposite_unrepaired(scores, mask), 0.0)


BROKEN = flawed(weigh=by_exponentials(highest, care=False))
BUG_MISTAKES = (
    Mistake("the peak of all", BROKEN,
        "Right until one score is far above the others; then the row is NaN. Whose score is it, and which line still "
        "uses it?"),
    Mistake("only the shown weights mended",
        lambda q, k, v, mask: (BROKEN(q, k, v, mask)[0], flawed()(q, k, v, mask)[1]), HALF_MENDED),
    Mistake("only the output mended",
        lambda q, k, v, mask: (flawed()(q, k, v, mask)[0], BROKEN(q, k, v, mask)[1]),
        "The output is right now, but the weights you return are still the old ones."),
    Mistake("zeros in place of NaN", flawed(weigh=by_exponentials(highest)),
        "The NaN is gone, but zeros have taken its place. The row has keys, so its weights should sum to 1. The peak "
        "is still that of a blocked key."),
    Mistake("no peak", flawed(weigh=by_exponentials(no_shift, care=False)),
        "Without the peak, exp overflows on large scores and gives 0 / 0 on very negative ones. "
        "Subtract the largest score that the row may use.", overflow=True),
    Mistake("renormalised down the columns",
        flawed(weigh=lambda s, m: (lambda w: w / w.sum(dim=-2, keepdim=True))(after()(s, m))),
        "You divide by the sums of the columns. A query is a row: sum along the last axis."),
    Mistake("softmax once more", flawed(weigh=lambda s, m: torch.softmax(after()(s, m), dim=-1)),
        "The masked weights went through a second softmax, which gives the blocked keys e^0 = 1 each. Only scores go "
        "into a softmax, and only once."),
    Mistake("scores 0 before, mask after", flawed(weigh=lambda s, m: multiplied(s, m) * m),
        "Blocked scores are 0 before the softmax, so they still take a share, e^0 = 1, which is then "
        "thrown away. What number takes no share?"),
    Mistake("True means blocked", flawed(weigh=opposite), OPPOSITE.message),
    Mistake("True means blocked, NaN", flawed(weigh=opposite_unrepaired), OPPOSITE.message),
    Mistake("True means blocked, zeros afterwards", flawed(weigh=opposite_and_zeros), OPPOSITE.message),
    Mistake("a fill that is not low enough", flawed(weigh=filled(-20.0)),
        "Blocked keys still have a weight, though a small one. A fill is a number like any other: what number takes "
        "no share at all?"),
    *(Mistake(m.name, m.answer, m.message) for m in STEPS if m.name != MULTIPLIED_WITH_ZEROS.name),
    Mistake(OVER_QUERIES_NAN.name, flawed(weigh=OVER_QUERIES_NAN.answer), OVER_QUERIES_NAN.message),
)  # fmt: skip


# Leaks --------------------------------------------------------------------------------------------------------------


def in_size(change):
    return change.abs().amax(dim=1)


def at_random(d):
    """A change of a token, (d,), the same each time: this seed makes none of the numbers small."""
    return torch.randn(d, dtype=torch.float64, generator=torch.Generator().manual_seed(329))


def alike(d):
    return torch.ones(d, dtype=torch.float64)


def dependences(
    fn, n, d, features=slice(None), outputs=slice(None), start=None, moves=in_size, step=1.0, change=at_random
):
    """How much output i moves when token j does: (n, n).

    features: those that are changed, by `step` times change(d); outputs: those compared; start: the tokens before;
    moves(difference): of the outputs (n, d_out), how much each has moved (n,).
    """
    x = torch.linspace(-1.0, 1.0, n * d, dtype=torch.float64).reshape(n, d) if start is None else start(n, d)
    before, moved = fn(x), torch.zeros(n, n)
    for j in range(n):
        changed = x.clone()
        changed[j, features] += step * change(d)[features]
        moved[:, j] = moves((fn(changed) - before)[:, outputs])
    return moved


def found(pairs, order=min, least=1e-6, **seen):
    """first_leak that looks at `pairs(n)` only and returns one of those that depend, the smallest by default."""

    def first_leak(fn, n, d):
        moved = dependences(fn, n, d, **seen)
        leaks = [(i, j) for i, j in pairs(n) if moved[i, j] > least]
        return order(leaks) if leaks else None

    return first_leak


def zeros(n, d):
    return torch.zeros(n, d, dtype=torch.float64)


def later(n):
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


def earlier(n):
    return [(i, j) for i in range(n) for j in range(i)]


def smallest_j(leaks):
    return min(leaks, key=lambda pair: pair[::-1])


def picked(rule):
    return lambda n: [(i, j) for i, j in later(n) if rule(i, j, n)]


def strongest(fn, n, d):
    moved = dependences(fn, n, d).triu(1)
    return divmod(int(moved.argmax()), n) if moved.any() else None


def whole_output(fn, n, d):
    """Compares all outputs at once: every change counts as a leak into output 0."""
    moved = dependences(fn, n, d)
    return next(((i, j) for i, j in later(n) if moved[:, j].any()), None)


def own_output(fn, n, d):
    moved = dependences(fn, n, d)
    return next(((i, j) for i, j in later(n) if moved[j, j]), None)


def changed_pair(change, base=None):
    def first_leak(fn, n, d):
        pair = (base or found(later))(fn, n, d)
        return None if pair is None else change(*pair)

    return first_leak


def piled_up(fn, n, d):
    """Changes one token after the other and puts none back."""
    x = torch.linspace(-1.0, 1.0, n * d, dtype=torch.float64).reshape(n, d)
    before = fn(x)
    for i, j in later(n):
        x[j] += at_random(d)
        if not torch.equal(fn(x)[i], before[i]):
            return i, j
    return None


LEAK_MISTAKES = (
    Mistake("always None", lambda fn, n, d: None,
        "None comes back even where there is a leak. Is a return missing in the branch that finds one? Does the "
        "token really change, and is it compared with the output from before? (x and x.clone() differ: a tensor "
        "changed in place changes under every name.)"),
    Mistake("always (0, 1)", lambda fn, n, d: (0, 1), "(0, 1) comes back whatever fn does."),
    Mistake("changes that pile up", piled_up,
        "A token that was changed stays changed, so in later rounds an output's own token may be a changed one. "
        "Start each round from a fresh copy: x.clone()."),
    Mistake("the changed token's own output compared", own_output,
        "You change token j and compare output j, its own, which may move without a leak. Compare output i, the "
        "earlier row."),
    Mistake("all outputs compared at once", whole_output,
        "(0, 1) comes back as soon as anything changes. Every token changes its own output, and that is no leak: "
        "compare row i of the output alone, for one i at a time (or take the gradient of output[i].sum())."),
    Mistake("smallest j first", found(later, order=smallest_j),
        "This is a leak, but the smallest j came first. In Python's order of tuples i counts "
        "first: the loop over i is the outer one."),
    Mistake("the last one found", found(later, order=max),
        "This is a leak, but the largest pair, not the smallest: return at the first one."),
    Mistake("the last leak of the first output",
        found(later, order=lambda leaks: max(pair for pair in leaks if pair[0] == min(leaks)[0])),
        "The output is the right one, but this is the last token that leaks into it. The smallest j counts."),
    Mistake("the strongest leak", strongest, "This is the strongest leak. Return the smallest pair (i, j)."),
    Mistake("(j, i) in place of (i, j)", changed_pair(lambda i, j: (j, i)),
        "The pair is reversed: it should be (output i, token j), with the smaller number first."),
    Mistake("counted from 1", changed_pair(lambda i, j: (i + 1, j + 1)),
        "Both numbers are 1 too large: tokens count from 0."),
    Mistake("the token itself counted", found(lambda n: [(i, j) for i in range(n) for j in range(i, n)]),
        "An output may depend on its own token: that is no leak. j must be larger than i."),
    Mistake("earlier tokens counted", found(earlier),
        "You report that an output depends on an earlier token, which is what it should do. A leak "
        "is a dependence on a later one: j > i."),
    Mistake("any other token counted", found(lambda n: [(i, j) for i in range(n) for j in range(n) if i != j]),
        "Here dependences on earlier tokens count as leaks. Only those on later tokens are: j > i."),
    Mistake("rows and columns exchanged",
        changed_pair(lambda i, j: (j, i), found(earlier, order=smallest_j)),
        "You report an earlier token that changes a later output, with the numbers exchanged. That is no leak: a "
        "leak is a later token that changes an earlier output."),
    Mistake("last token never changed", found(picked(lambda i, j, n: j < n - 1)),
        "Leaks from the last token are missed: check where the loop over j ends."),
    Mistake("first output never looked at", found(picked(lambda i, j, n: i > 0)),
        "Leaks into output 0 are missed: the loop over i should begin at 0."),
    Mistake("last output but one never looked at", found(picked(lambda i, j, n: i < n - 2)),
        "The pair (n − 2, n − 1) is not tried: check where the loop over i ends."),
    Mistake("next token only", found(picked(lambda i, j, n: j == i + 1)),
        "Only the next token is tried. A leak may come from any later one: every j from i + 1 to n − 1."),
    Mistake("next token never tried", found(picked(lambda i, j, n: j > i + 1)),
        "The next token is never tried: j should begin at i + 1."),
    Mistake("last token only", found(picked(lambda i, j, n: j == n - 1)),
        "Only the last token is tried. A leak may come from any later one."),
    Mistake("first output only", found(picked(lambda i, j, n: i == 0)),
        "You look only at output 0. Try the others too."),
    Mistake("first feature changed only", found(later, features=slice(0, 1)),
        "A token has d numbers, and fn may look at any of them. You change only the first."),
    Mistake("last feature changed only", found(later, features=slice(-1, None)),
        "A token has d numbers, and fn may look at any of them. You change only the last."),
    Mistake("first output feature compared only", found(later, outputs=slice(0, 1)),
        "An output has several numbers, and a leak may show in any of them. You compare only the first."),
    Mistake("last output feature compared only", found(later, outputs=slice(-1, None)),
        "An output has several numbers, and a leak may show in any of them. You compare only the last."),
    Mistake("tokens of zeros", found(later, start=zeros),
        "Zeros are special tokens: a layer may take them for padding, or multiply one token by another. Start "
        "from random tokens, torch.randn(n, d)."),
    Mistake("NaN as the change", found(later, step=INFINITY - INFINITY, moves=lambda change: change.isnan().any(dim=1)),
        "0 times NaN is NaN: a layer that multiplies later tokens by 0, as attention under a mask does, passes NaN "
        "on without a leak. Change a token to other numbers."),
    Mistake("the same added to all numbers", found(later, change=alike),
        "You add the same number everywhere in a token. A layer that normalises each token first subtracts the mean "
        "of its numbers, and what you added with it. Add random numbers, torch.randn(d)."),
    Mistake("rises counted only", found(later, change=alike, moves=lambda change: change.amax(dim=1)),
        "You see only outputs that rise. A leak may also lower them: compare sizes (abs), or ask whether anything "
        "differs."),
    Mistake("changes added up", found(later, change=alike, moves=lambda change: change.sum(dim=1).abs()),
        "You add up before you compare. Where one number rises as much as another falls, the sum does not move: take "
        "the size of each number first (abs), then the largest or the sum. The same holds for a gradient."),
    Mistake("changes averaged", found(later, least=0.1, change=alike, moves=lambda change: change.abs().mean(dim=1)),
        "You take the mean over the numbers of an output, so a leak into one of them is diluted and falls below the "
        "threshold. Compare the largest change, or ask whether anything differs."),
    Mistake("weak leaks not seen", found(later, least=0.2),
        "Your test misses weak leaks. Whatever moves an output by more than 10⁻³ counts, so use a threshold below "
        "that, or none."),
)  # fmt: skip


EXERCISES = {
    "causal_mask": Exercise(1, {"causal_mask": masks.causal}, CAUSAL_MASK_MISTAKES),
    "by_hand_row": Exercise(2, RIGHT_BY_HAND, BY_HAND_MISTAKES, rtol=0.0, atol=THREE_DECIMALS),
    "causal_attention": Exercise(4, {"causal_attention": projected()}, CAUSAL_MISTAKES, ("causal_mask",)),
    "find_the_bug": Exercise(2, {"broken_masked_attention": flawed()}, BUG_MISTAKES),
    "first_leak": Exercise(3, {"first_leak": found(later)}, LEAK_MISTAKES),
    "padding_mask": Exercise(2, {"padding_mask": reference_padding}, PADDING_MISTAKES),
    "causal_and_padding": Exercise(
        2,
        {"causal_padding_mask": causal_and_real()},
        CAUSAL_PADDING_MISTAKES,
        uses=("causal_mask", "padding_mask"),
    ),
    "packed_texts": Exercise(3, {"packed_mask": joined()}, PACKED_MISTAKES, uses=("causal_mask",)),
    "convert_mask": Exercise(1, {"to_mha_mask": lambda mask: ~torch.as_tensor(mask)}, CONVERT_MISTAKES),
    "lower_right": Exercise(2, {"decoding_mask": masks.causal}, LOWER_RIGHT_MISTAKES, uses=("causal_mask",)),
    "masked_softmax": Exercise(4, {"masked_softmax": reference_softmax}, SOFTMAX_MISTAKES),
    "diagnose": Exercise(3, {"first_lines": FIRST_LINES}, DIAGNOSE_MISTAKES, rtol=0.0, atol=1e-3),
    "cross_attention": Exercise(3, {"cross_attention": crossed()}, CROSS_MISTAKES, ("masked_softmax",)),
    "tells_right": duel(),
}
