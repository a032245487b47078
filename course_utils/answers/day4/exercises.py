"""Day 4: the answers to its exercises, and the mistakes that people make in them.

References and mistakes work in PyTorch and take NumPy arrays too.
"""

import math
from dataclasses import replace

from course_utils.answers.day4.duel import duel
from course_utils.answers.shared.masked import EXTREMES, INFINITY, LOW, NO_SHIFT, STEPS
from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.costs import counts
from course_utils.loader import lazy

torch = lazy("torch")
nn = lazy("torch.nn")
F = lazy("torch.nn.functional")
multihead = lazy("course_utils.attention.multihead")

# Heads cut and joined -------------------------------------------------------------------------------------------------


def tensors_in(function):
    """A function of a tensor as one that takes an array too."""
    return lambda x, *rest: function(torch.as_tensor(x), *rest)


def cut(order=(0, 2, 1, 3), inner=False):
    """(B, T, D) cut into (B, T, h, d_head), or (B, T, d_head, h) where inner, with its axes in this order."""

    @tensors_in
    def split_heads(x, n_heads):
        B, T, D = x.shape
        sizes = (D // n_heads, n_heads) if inner else (n_heads, D // n_heads)
        return x.reshape(B, T, *sizes).permute(*order)

    return split_heads


@tensors_in
def viewed_at_once(x, n_heads):
    B, T, D = x.shape
    return x.reshape(B, n_heads, T, D // n_heads)


@tensors_in
def transposed_first(x, n_heads):
    B, T, D = x.shape
    return x.mT.reshape(B, n_heads, T, D // n_heads)


@tensors_in
def viewed_only(x, n_heads):
    """The same, but it raises where x is not contiguous."""
    B, T, D = x.shape
    return x.view(B, n_heads, T, D // n_heads)


interleaved = cut(order=(0, 3, 1, 2), inner=True)
reference_split, reference_merge = tensors_in(multihead.split_heads), tensors_in(multihead.merge_heads)
VIEWED = Mistake(
    "viewed at once",
    viewed_at_once,
    "The shape is right, but the numbers are not where they belong. A view straight to (B, h, T, d_head) goes through "
    "the memory in order: the first head gets the first tokens whole, not a part of every token. Cut the last "
    "axis first, (B, T, h, d_head), and then swap the two axes.",
)
SPLIT_MISTAKES = (
    VIEWED,
    replace(VIEWED, name="viewed at once, by view", answer=viewed_only),
    Mistake("not transposed", cut(order=(0, 1, 2, 3)),
        "The cut is right, but heads and tokens are the wrong way round: the axes are "
        "(B, T, h, d_head). Swap axes 1 and 2."),
    Mistake("every other number", interleaved,
        "Head 0 gets every h-th number of a token. It should get the first d_head of them in a row: the last axis "
        "is cut into (h, d_head), in this order."),
    Mistake("n_heads taken for the width", cut(inner=True),
        "There are d_head heads of width n_heads here. The last axis is cut into "
        "(n_heads, d_head), and d_head = D // n_heads."),
    Mistake("heads before the batch", cut(order=(2, 0, 1, 3)),
        "The head axis comes before the batch. The axes are (B, h, T, d_head)."),
    Mistake("batch and tokens exchanged", cut(order=(1, 2, 0, 3)),
        "The batch axis and the token axis are exchanged. The axes are (B, h, T, d_head)."),
    Mistake("batch and heads exchanged", cut(order=(2, 1, 0, 3)),
        "Batch and heads are exchanged: transpose(0, 2) instead of transpose(1, 2)."),
    Mistake("batch axis lost", tensors_in(lambda x, n_heads: reference_split(x, n_heads)[0]),
        "The batch axis is gone. The axes are (B, h, T, d_head), even when B = 1."),
    Mistake("heads in reverse order", tensors_in(lambda x, n_heads: reference_split(x, n_heads).flip(1)),
        "The last part of a token goes to head 0. The heads keep the order of the "
        "numbers: head 0 gets the first d_head."),
    Mistake("heads joined to the batch", tensors_in(lambda x, n_heads: reference_split(x, n_heads).flatten(0, 1)),
        "The heads are cut correctly, but they went into the batch axis: (B · h, T, d_head). "
        "Keep an axis for them: (B, h, T, d_head)."),
    Mistake("transposed before the cut", transposed_first,
        "Tokens and numbers were exchanged before the cut, so a head gets numbers of several tokens in the wrong "
        "order. Cut the last axis first, (B, T, h, d_head), and then swap axes 1 and 2."),
    Mistake("the first part for every head",
        tensors_in(lambda x, n_heads: reference_split(x, n_heads)[:, :1].expand(-1, n_heads, -1, -1)),
        "Every head gets the first d_head numbers. Each has a part of its own."),
)  # fmt: skip


def joined(order, shape):
    """(B, h, T, d_head) with its axes in this order, then in the shape that shape(B, h, T, d_head) gives."""
    return tensors_in(lambda x: x.permute(*order).reshape(shape(*x.shape)))


def as_tokens(B, h, T, d_head):
    return B, T, h * d_head


reshaped_at_once = joined((0, 1, 2, 3), as_tokens)
UNTURNED = Mistake(
    "not transposed",
    reshaped_at_once,
    "The shape is right, but the numbers are not where they belong: unless you swap heads and tokens, the first "
    "rows hold nothing but head 0. Swap axes 1 and 2 first, then join the last two axes.",
)
MERGE_MISTAKES = (
    UNTURNED,
    replace(UNTURNED, name="not transposed, by view", answer=tensors_in(lambda x: x.view(x.shape[0], x.shape[2], -1))),
    Mistake("every other number", joined((0, 2, 3, 1), as_tokens),
        "The heads are mixed number by number. First come all numbers of head 0, then those of head 1."),
    Mistake("tokens and numbers exchanged", joined((0, 1, 3, 2), as_tokens),
        "The last two axes were swapped before the reshape. Swap the axes of heads and tokens, 1 and 2."),
    Mistake("not merged", joined((0, 2, 1, 3), lambda B, h, T, d: (B, T, h, d)),
        "Heads and tokens are in the right order now, but there are still four axes. Join "
        "the last two: (B, T, h · d_head)."),
    Mistake("tokens merged", joined((0, 1, 2, 3), lambda B, h, T, d: (B, h, T * d)),
        "The tokens went into the last axis, and the heads stayed. It should be the heads: (B, T, h · d_head)."),
    Mistake("heads stacked as tokens", joined((0, 1, 2, 3), lambda B, h, T, d: (B, h * T, d)),
        "The heads are stacked one below the other, as if they were more tokens. They "
        "belong side by side: (B, T, h · d_head)."),
    Mistake("batch and heads exchanged", joined((2, 0, 1, 3), lambda B, h, T, d: (T, B, h * d)),
        "The token axis comes before the batch. The result is (B, T, h · d_head)."),
    Mistake("tokens and numbers exchanged, then merged", joined((0, 3, 2, 1), lambda B, h, T, d: (B, T, h * d)),
        "Heads and numbers were swapped: transpose(1, 3) instead of transpose(1, 2). Swap "
        "the axes of heads and tokens, 1 and 2."),
    Mistake("heads in reverse order", tensors_in(lambda x: reference_merge(x.flip(1))),
        "The last head comes first. They stay in order."),
    Mistake("heads added up", tensors_in(lambda x: x.sum(dim=1)),
        "The heads are added up. They should go side by side: nothing is added."),
    Mistake("heads averaged", tensors_in(lambda x: x.mean(dim=1)),
        "The heads are averaged. They should go side by side, not be averaged."),
)  # fmt: skip


# Attention in heads, step by step -------------------------------------------------------------------------------------


def filled_with(value):
    return lambda scores, mask: scores.masked_fill(~mask, value)


def along(axis):
    return lambda scores: torch.softmax(scores, dim=axis)


def root_of_width(q, k):
    return math.sqrt(q.shape[-1])


def weighted(weights, v):
    return weights @ v


block_keys, along_keys = filled_with(-INFINITY), along(-1)


def in_steps(scale=root_of_width, block=block_keys, share=along_keys, after=None, blend=weighted):
    """Attention with one step exchanged for a wrong one; every step not named is right. mask may be None.

    scale(q, k) -> divisor; block(scores, mask) and after(weights, mask) run where there is a mask; share(scores) ->
    weights; blend(weights, v).
    """

    def attention(q, k, v, mask=None):
        scores = q @ k.mT / scale(q, k)
        weights = share(scores if mask is None else block(scores, mask))
        weights = weights if mask is None or after is None else after(weights, mask)
        return blend(weights, v), weights

    return attention


def left_alone(scores, mask):
    return scores


def exponentials(scores):
    return torch.exp(scores - scores.amax(dim=-1, keepdim=True))


def unshifted(scores):
    exps = torch.exp(scores)
    return exps / exps.sum(dim=-1, keepdim=True)


def shifted_by_all(scores):
    exps = torch.exp(scores - scores.max())
    return exps / exps.sum(dim=-1, keepdim=True)


def on_queries(scores, mask):
    return scores.masked_fill(~mask.expand(scores.shape).mT, -INFINITY)


def as_the_first_query(scores, mask):
    """What the mask allows to the first query is allowed to all; it raises for a mask of one axis."""
    return scores.masked_fill(~mask[..., :1, :], -INFINITY)


def as_the_first_query_of_all(scores, mask):
    return scores.masked_fill(~mask.expand(scores.shape)[..., :1, :], -INFINITY)


def with_later_blocked(scores):
    return scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -INFINITY)


def masked_and_renormalised(weights, mask):
    return weights * mask / (weights * mask).sum(dim=-1, keepdim=True)


def said(name):
    """What day 3 says to a mistake in attention, in the letters of heads."""
    return next(m.message for m in (*STEPS, *EXTREMES) if m.name == name).replace("d_k", "d_head")


QUERIES = said("softmax over queries")
HEADS = (
    "The softmax runs over the heads, dim=1. Each query shares its attention among "
    "the keys, separately in each head: dim=-1."
)
FIRST_ROW = (
    "Every query gets the first row of the mask. Row i of it belongs to query i: use "
    "the mask as it is, and let it broadcast."
)
TURNED = (
    "The keys with True get no weight: the mask is inverted. True means may attend, so fill where it is False, ~mask."
)
SCALES_IN_HEADS = (
    ("no scaling", in_steps(scale=lambda q, k: 1.0), said("no scaling")),
    ("scaling by the width", in_steps(scale=lambda q, k: q.shape[-1]), said("scaling by d_k")),
    ("multiplied by the root", in_steps(scale=lambda q, k: q.shape[-1] ** -0.5), said("multiplied by the root")),
    ("scaling by the root of the number of keys", in_steps(scale=lambda q, k: math.sqrt(k.shape[-2])),
        said("scaling by the root of m")),
)  # fmt: skip
STEPS_IN_HEADS = (
    ("softmax over queries", in_steps(share=along(-2)), QUERIES),
    ("softmax over queries, finite fill", in_steps(block=filled_with(-1e9), share=along(-2)), QUERIES),
    ("softmax over the heads", in_steps(share=along(1)), HEADS),
    ("softmax over the heads, finite fill", in_steps(block=filled_with(-1e9), share=along(1)), HEADS),
    ("softmax twice", in_steps(share=lambda scores: torch.softmax(torch.softmax(scores, dim=-1), dim=-1)),
        said("softmax twice")),
    ("softmax left out", in_steps(block=filled_with(0.0), share=lambda scores: scores),
        "The scores blend the values as they are. A softmax along the keys turns them into weights."),
    ("exponentials not normalised", in_steps(share=exponentials), said("exponentials not normalised")),
    ("uniform weights", in_steps(share=lambda scores: torch.softmax(torch.where(scores.isinf(), scores, 0.0), dim=-1)),
        said("uniform weights")),
    (NO_SHIFT.name, in_steps(share=unshifted), NO_SHIFT.message),
    ("the largest of all scores subtracted", in_steps(share=shifted_by_all),
        "The largest of all scores is subtracted before exp. A row that lies far below it becomes all zeros, and "
        "0 / 0. Subtract the largest score of each row."),
    ("values weighted by columns", in_steps(blend=lambda weights, v: weights.mT @ v),
        said("values weighted by columns")),
    ("no mask", in_steps(block=left_alone),
        "The mask changes nothing: keys that it forbids still have weight. Where it is "
        "False the score is −∞ before the softmax."),
    ("True means blocked", in_steps(block=lambda scores, mask: scores.masked_fill(mask, -INFINITY)), TURNED),
    ("True means blocked, finite fill", in_steps(block=lambda scores, mask: scores.masked_fill(mask, -1e9)), TURNED),
    ("mask after softmax", in_steps(block=left_alone, after=lambda weights, mask: weights * mask),
        said("mask after softmax")),
    ("mask after softmax, renormalised",
        in_steps(block=left_alone, after=masked_and_renormalised),
        said("mask after softmax, renormalised")),
    ("scores multiplied by the mask", in_steps(block=lambda scores, mask: scores * mask),
        said("scores multiplied by the mask")),
    ("mask added as 0 and 1", in_steps(block=lambda scores, mask: scores + mask), said("mask added as 0 and 1")),
    ("0 times infinity", in_steps(block=lambda scores, mask: scores + (1 - mask.to(scores.dtype)) * -INFINITY),
        said("0 times infinity")),
    ("a finite fill", in_steps(block=filled_with(-1e9)),
        "Right for ordinary scores. But " + LOW.format(fill="−1e4 or −1e9")),
    ("blocked keys keep a little", in_steps(block=lambda scores, mask: scores + torch.log(mask + 1e-9)),
        "Blocked keys keep a little weight: log(0 + 1e-9) is only −21, which a large score outweighs. "
        "Where the mask is False the score is −∞."),
    ("the mask's first row for all", in_steps(block=as_the_first_query), FIRST_ROW),
    ("the first row of the whole mask for all", in_steps(block=as_the_first_query_of_all), FIRST_ROW),
    ("mask on the queries", in_steps(block=on_queries),
        "The mask is applied to the queries instead of the keys: it is transposed. Its last axis "
        "is the keys, as in the scores."),
)  # fmt: skip


# The layer ------------------------------------------------------------------------------------------------------------


def in_thirds(fused):
    return fused.chunk(3, dim=-1)


def exchanged_thirds(*order):
    def parts(fused):
        thirds = fused.chunk(3, dim=-1)
        return (thirds[i] for i in order)

    return parts


def layer(*, thirds=in_thirds, split=multihead.split_heads, attention=None, merge=multihead.merge_heads, last=None):
    """A class for the layer with one step exchanged for a wrong one; every step not named is right.

    thirds(fused) -> q, k, v (B, T, D), or with split None (B, h, T, d_head); attention(d_model) -> (q, k, v, mask) ->
    (output, weights); merge(heads); last(W_o, merged) -> output.
    """

    class MultiHead(nn.Module):
        def __init__(self, d_model, n_heads):
            super().__init__()
            self.n_heads = n_heads
            self.W_qkv = nn.Linear(d_model, 3 * d_model, bias=False)
            self.W_o = nn.Linear(d_model, d_model, bias=False)

        def forward(self, x, mask=None):
            D = x.shape[-1]
            fused = self.W_qkv(x)  # (B, T, 3 * D)
            if split is None:
                q, k, v = thirds(fused, self.n_heads)
            else:
                q, k, v = (split(part, self.n_heads) for part in thirds(fused))  # (B, h, T, d_head)
            attend = attention(D) if attention else in_steps()
            merged = merge(attend(q, k, v, mask)[0])
            return last(self.W_o, merged) if last else self.W_o(merged)

    return MultiHead


def causal_softmax(scores):
    return torch.softmax(with_later_blocked(scores), dim=-1)


def causal_without_mask(q, k, v, mask=None):
    T = q.shape[-2]
    return in_steps()(q, k, v, torch.ones(T, T, dtype=torch.bool).tril() if mask is None else mask)


def by_head(fused, n_heads):
    """q, k and v of one head next to each other, then those of the next: (B, h, T, d_head) each."""
    B, T, D = fused.shape
    return fused.reshape(B, T, n_heads, 3, D // (3 * n_heads)).permute(3, 0, 2, 1, 4)


def by_number(fused, n_heads):
    B, T, D = fused.shape
    return fused.reshape(B, T, n_heads, D // (3 * n_heads), 3).permute(4, 0, 2, 1, 3)


VIEWED_AT_ONCE = (
    "The shapes are right, but the numbers are not. Heads were cut with a view straight to (B, h, T, d_head), so a "
    "head gets whole tokens instead of its part of every token. Cut the last axis, then swap axes 1 and 2."
)
LAYER_MISTAKES = (
    Mistake("viewed at once", layer(split=viewed_at_once), VIEWED_AT_ONCE),
    Mistake("viewed at once, and back", layer(split=viewed_at_once, merge=reshaped_at_once),
        VIEWED_AT_ONCE + " Merging has the same problem: swap the axes, then join the last two."),
    Mistake("merged without transposing", layer(merge=reshaped_at_once),
        "The heads are right, but they were put together without swapping heads and tokens first: the numbers of "
        "one token are in several rows. Swap axes 1 and 2, then join the last two."),
    Mistake("every other number", layer(split=interleaved),
        "A head gets every h-th column of q, k and v. Head 0 has the first d_head of "
        "them in a row: (h, d_head) in this order."),
    Mistake("heads mixed when merged", layer(merge=joined((0, 2, 3, 1), as_tokens)),
        "The heads are mixed number by number before W_o. First come all numbers of head 0, then those of head 1."),
    Mistake("one head as wide as the model", layer(split=lambda x, h: reference_split(x, 1)),
        "There is only one head here, as wide as the model. Cut q, k and v into n_heads heads."),
    Mistake("scaling by the root of d_model",
        layer(attention=lambda d_model: in_steps(scale=lambda q, k: math.sqrt(d_model))),
        "The scores are divided by √d_model. A query has d_head numbers, so divide by √d_head."),
    Mistake("scaling by the root of the number of heads",
        layer(attention=lambda d_model: in_steps(scale=lambda q, k: math.sqrt(d_model // q.shape[-1]))),
        "The scores are divided by √h, the root of the number of heads. Divide by √d_head."),
    *(
        Mistake(name, layer(attention=lambda d_model, steps=steps: steps), message, name == NO_SHIFT.name)
        for name, steps, message in (*SCALES_IN_HEADS, *STEPS_IN_HEADS)
    ),
    Mistake("causal where no mask is given", layer(attention=lambda d_model: causal_without_mask),
        "Where no mask is given, later tokens are blocked. mask=None means that "
        "every token may attend to every token."),
    Mistake("always causal", layer(attention=lambda d_model: in_steps(share=causal_softmax)),
        "Later tokens are blocked whatever the mask says. The layer should be causal only when the mask is."),
    Mistake("keys first", layer(thirds=exchanged_thirds(1, 0, 2)),
        "Queries and keys are exchanged. Either the scores are k qᵀ, and should be q kᵀ, or the first third of "
        "W_qkv(x) is taken for the keys: its order is Q, K, V."),
    Mistake("values first", layer(thirds=exchanged_thirds(1, 2, 0)),
        "The first third of W_qkv(x) is taken for the values. The order is Q, K, V."),
    Mistake("values in the middle", layer(thirds=exchanged_thirds(0, 2, 1)),
        "Keys and values are exchanged. The order in W_qkv is Q, K, V."),
    Mistake("values are keys", layer(thirds=exchanged_thirds(0, 1, 1)),
        "The output blends the keys. What is blended is the last third of W_qkv(x)."),
    Mistake("W_qkv head by head", layer(thirds=by_head, split=None),
        "W_qkv(x) is read head by head, each with its q, k and v. Here its rows are first all of Q, then all of K, "
        "then all of V: cut it into thirds first, and each third into heads."),
    Mistake("W_qkv number by number", layer(thirds=by_number, split=None),
        "W_qkv(x) is read as q, k, v number by number. Its rows are first all of Q, then all of K, then all of V."),
    Mistake("W_o left out", layer(last=lambda W_o, merged: merged),
        "The merged heads are returned as they are. W_o comes last."),
    Mistake("W_o transposed", layer(last=lambda W_o, merged: merged @ W_o.weight),
        "W_o is applied the wrong way round. Call it: self.W_o(merged)."),
    Mistake("W_o twice", layer(last=lambda W_o, merged: W_o(W_o(merged))), "W_o is applied twice."),
)  # fmt: skip


# The block ------------------------------------------------------------------------------------------------------------


def gated(self, x, gate=None):
    """The feed-forward network, with gate(self, x) in the place of SiLU(self.gate(x))."""
    return self.down((F.silu(self.gate(x)) if gate is None else gate(self, x)) * self.up(x))


def pre_norm(
    network=gated, mask_passed=True, first=lambda self, x: self.norm_1(x), second=lambda self, x: self.norm_2(x)
):
    """forward with another network, another norm, or without the mask."""

    def forward(self, x, mask=None):
        x = x + self.attention(first(self, x), mask if mask_passed else None)
        return x + network(self, second(self, x))

    return forward


def post_norm(self, x, mask=None):
    x = self.norm_1(x + self.attention(x, mask))
    return self.norm_2(x + gated(self, x))


def normed_stream(self, x, mask=None):
    x = self.norm_1(x)
    x = self.norm_2(x + self.attention(x, mask))
    return x + gated(self, x)


def side_by_side(self, x, mask=None):
    return x + self.attention(self.norm_1(x), mask) + gated(self, self.norm_2(x))


def nothing_added(self, x, mask=None):
    return gated(self, self.norm_2(self.attention(self.norm_1(x), mask)))


def first_not_added(self, x, mask=None):
    x = self.attention(self.norm_1(x), mask)
    return x + gated(self, self.norm_2(x))


def second_not_added(self, x, mask=None):
    x = x + self.attention(self.norm_1(x), mask)
    return gated(self, self.norm_2(x))


def first_forgotten(self, x, mask=None):
    after = x + self.attention(self.norm_1(x), mask)
    return x + gated(self, self.norm_2(after))


def block(forward=None, norm=lambda d_model: nn.RMSNorm(d_model, eps=1e-5)):
    """A class for the block with another forward, or with another norm; what is not named is right."""

    class Block(nn.Module):
        def __init__(self, attention, d_model, d_ff):
            super().__init__()
            self.attention = attention
            self.norm_1, self.norm_2 = norm(d_model), norm(d_model)
            self.gate = nn.Linear(d_model, d_ff, bias=False)
            self.up = nn.Linear(d_model, d_ff, bias=False)
            self.down = nn.Linear(d_ff, d_model, bias=False)

    Block.forward = forward or pre_norm()
    return Block


def gate_by(function):
    return block(pre_norm(lambda self, x: gated(self, x, lambda self, x: function(self.gate(x)))))


BLOCK_MISTAKES = (
    Mistake("post-norm", block(post_norm),
        "The norms are on the stream, after each sum, as in the first transformer. Here they come before each "
        "part: x + attention(norm_1(x)), and the stream itself is never normed."),
    Mistake("the stream is normed", block(normed_stream),
        "The norm replaces the stream: x = norm(x), and then the part is added to that. Norm the copy that a part "
        "reads, and add to x as it was."),
    Mistake("both parts side by side", block(side_by_side),
        "Both parts read the same x. The feed-forward network should read the sum, which already includes the result "
        "of attention."),
    Mistake("nothing is added to x", block(nothing_added),
        "Neither part is added to the stream: each replaces it. Write x + attention(…), then x + feed-forward(…)."),
    Mistake("attention replaces x", block(first_not_added),
        "The result of attention replaces x. It should be added: x = x + attention(norm_1(x), mask)."),
    Mistake("the network replaces x", block(second_not_added),
        "The result of the feed-forward network replaces x. It should be added to the sum so far."),
    Mistake("attention is lost", block(first_forgotten),
        "The feed-forward network reads the sum, but its result is added to the first x, so what attention found is "
        "missing in the output. Assign the sum to x."),
    Mistake("norm_1 twice", block(pre_norm(second=lambda self, x: self.norm_1(x))),
        "norm_1 comes before both parts. The feed-forward network has a norm of its own, norm_2."),
    Mistake("norms exchanged",
        block(pre_norm(first=lambda self, x: self.norm_2(x), second=lambda self, x: self.norm_1(x))),
        "norm_1 and norm_2 are swapped: norm_1 belongs to attention."),
    Mistake("norm_1 left out", block(pre_norm(first=lambda self, x: x)),
        "Attention reads x as it is. It should read norm_1(x)."),
    Mistake("norm_2 left out", block(pre_norm(second=lambda self, x: x)),
        "The feed-forward network reads the sum as it is. It should read norm_2 of the sum."),
    Mistake("eps of the library", block(norm=nn.RMSNorm),
        "Right for tokens of ordinary size. Without eps=1e-5, nn.RMSNorm takes a much smaller one, and a token near "
        "zero is made too large."),
    Mistake("LayerNorm", block(norm=lambda d_model: nn.LayerNorm(d_model, eps=1e-5, bias=False)),
        "The mean is subtracted, as nn.LayerNorm does. nn.RMSNorm only divides by the root of the mean square."),
    Mistake("gate and up exchanged",
        block(pre_norm(lambda self, x: self.down(F.silu(self.up(x)) * self.gate(x)))),
        "SiLU is on up. It belongs to gate: SiLU(gate(y)) · up(y)."),
    Mistake("SiLU left out", gate_by(lambda z: z),
        "gate and up are multiplied as they are. gate goes through SiLU first."),
    Mistake("SiLU of the product", block(pre_norm(lambda self, x: self.down(F.silu(self.gate(x) * self.up(x))))),
        "SiLU is applied to the product. Apply it to gate(y) alone, and then multiply by up(y)."),
    Mistake("sigmoid for SiLU", gate_by(torch.sigmoid),
        "gate goes through a sigmoid. SiLU(z) is z times the sigmoid of z: F.silu."),
    Mistake("GELU for SiLU", gate_by(F.gelu), "gate goes through GELU. Here it goes through SiLU: F.silu."),
    Mistake("gate and up added", block(pre_norm(lambda self, x: self.down(F.silu(self.gate(x)) + self.up(x)))),
        "gate and up are added. They should be multiplied, number by number."),
    Mistake("gate left out", block(pre_norm(lambda self, x: self.down(F.silu(self.up(x))))),
        "There is no gate: the output of up goes through SiLU and on to down. It is multiplied by SiLU(gate(y))."),
    Mistake("mask not handed on", block(pre_norm(mask_passed=False)),
        "The mask does not reach attention: self.attention(self.norm_1(x), mask)."),
)  # fmt: skip


# A layer by pencil ----------------------------------------------------------------------------------------------------


def by_hand(d_model=120, h=6, h_kv=2, d_head=40, T=10, **changed):
    """The five numbers of a layer, some of them changed."""
    q, k = h * d_head, h_kv * d_head
    right = (q, k, 2 * d_model * (q + k), 2 * k, h * T * T)
    names = ("columns_of_W_Q", "columns_of_W_K", "parameters_in_all", "kept_of_a_token", "scores_of_a_text")
    return dict(zip(names, right, strict=True)) | changed


HAND_MISTAKES = (
    Mistake("d_model / h", by_hand(d_head=20),
        "These are the numbers for heads of 120 / 6 = 20. Here a head has 40, as the statement says: "
        "h · d_head need not be d_model."),
    Mistake("keys as many as queries", by_hand(h_kv=6),
        "W_K, W_V and what is kept are counted for six key heads. There are two, each read by three query heads."),
    Mistake("W_O left out", by_hand(parameters_in_all=48_000),
        "These are the parameters of W_Q, W_K and W_V. W_O leads from 240 numbers back to 120."),
    Mistake("W_O from d_model to d_model", by_hand(parameters_in_all=62_400),
        "W_O is counted as 120 by 120. The merged heads have h · d_head numbers: W_O is 240 by 120."),
    Mistake("keys alone are kept", by_hand(kept_of_a_token=80),
        "These are the keys of a token. A later query reads its values too."),
    Mistake("the token is kept", by_hand(kept_of_a_token=120),
        "This is the token as it comes in. A later query reads its keys and values: two heads of each."),
    Mistake("scores of one head", by_hand(scores_of_a_text=100),
        "These are the scores of one head: 10 queries with 10 keys. Each of the six query heads has its own."),
    Mistake("scores of the key heads", by_hand(scores_of_a_text=200),
        "Scores are counted for two heads. Sharing keys saves no scores: each query head has a table of its own."),
    Mistake("scores of a causal triangle", by_hand(scores_of_a_text=330),
        "These are the scores that a causal mask keeps: 55 in a head. Count all of them; the mask comes after."),
    Mistake("products in place of scores", by_hand(scores_of_a_text=24_000),
        "These are the multiplications. Each score is one number, whatever d_head is."),
)  # fmt: skip


# Counts ---------------------------------------------------------------------------------------------------------------


def parameters(q=1, k=1, v=1, o=1, kv=lambda h, h_kv: h_kv, width=lambda d_model, h, d_head: d_head):
    """attention_parameters from how often each matrix counts, how many heads keys have, and how wide a head is."""

    def attention_parameters(d_model, n_heads, n_kv_heads=None, d_head=None):
        key_heads = kv(n_heads, n_heads if n_kv_heads is None else n_kv_heads)
        wide = width(d_model, n_heads, d_model // n_heads if d_head is None else d_head)
        return d_model * wide * (n_heads * (q + o) + key_heads * (k + v))

    return attention_parameters


def matrices(of_all_heads, of_key_heads):
    """attention_parameters with so many matrices as wide as all heads, and so many as wide as the key heads."""
    return parameters(q=of_all_heads, k=of_key_heads, v=0, o=0)


def parameters_with_biases(d_model, n_heads, n_kv_heads=None, d_head=None):
    return counts.attention_parameters(d_model, n_heads, n_kv_heads, d_head, bias=True)


def parameters_of_full_queries(d_model, n_heads, n_kv_heads=None, d_head=None):
    key_heads = n_heads if n_kv_heads is None else n_kv_heads
    return 2 * d_model**2 + 2 * d_model * key_heads * (d_model // n_heads if d_head is None else d_head)


def parameters_of_wide_key_heads(d_model, n_heads, n_kv_heads=None, d_head=None):
    if n_kv_heads in (None, n_heads):
        return counts.attention_parameters(d_model, n_heads, n_kv_heads, d_head)
    return 2 * d_model * n_heads * (d_head or d_model // n_heads) + 2 * d_model**2 * n_kv_heads


PARAMETER_MISTAKES = (
    Mistake("biases counted", parameters_with_biases, "The biases are counted too. There are none here."),
    Mistake("every head as wide as the model", parameters(width=lambda d_model, h, d_head: h * d_head),
        "This is too large by a factor of h. A head has d_head columns, not d_model: together they "
        "make one matrix of d_model by h · d_head."),
    Mistake("n_kv_heads ignored", parameters(kv=lambda h, h_kv: h),
        "Right for multi-head attention, but n_kv_heads changes nothing here. W_K and W_V "
        "have only n_kv_heads · d_head columns."),
    Mistake("d_head ignored", parameters(width=lambda d_model, h, d_head: d_model // h),
        "Right where d_head is d_model / n_heads, but d_head changes nothing here. A head that "
        "is wider makes all four matrices larger."),
    Mistake("d_head for keys and values only", parameters_of_full_queries,
        "W_K and W_V follow d_head, W_Q and W_O do not. W_Q has n_heads · d_head columns, and W_O as many rows."),
    Mistake("only keys or values grouped", matrices(3, 1),
        "Only one of W_K and W_V is counted as smaller. Keys and values share their heads: "
        "both have n_kv_heads · d_head columns."),
    Mistake("W_Q or W_O grouped too", matrices(1, 3),
        "Besides W_K and W_V a third matrix is counted as smaller: W_Q or W_O. Both belong to the query heads, so "
        "W_Q stays d_model by n_heads · d_head, and W_O leads back."),
    Mistake("everything grouped", matrices(0, 4),
        "All four matrices are counted as smaller. Only keys and values have fewer heads."),
    Mistake("group size in place of the heads", parameters(kv=lambda h, h_kv: h if h == h_kv else h // h_kv),
        "W_K and W_V have n_kv_heads heads, not n_heads / n_kv_heads of them."),
    Mistake("key heads as wide as the model", parameters_of_wide_key_heads,
        "A key head has d_head columns, not d_model: W_K is d_model by n_kv_heads · d_head."),
)  # fmt: skip


def flops(T, d_model, d_ff):
    projections, core, feed_forward = counts.layer_flops(T, d_model, d_ff=d_ff)
    return projections, core, feed_forward


def scaled_flops(projections=1, core=1, feed_forward=1):
    """layer_flops with its three numbers multiplied by these factors, or by factor(T, d_model, d_ff)."""

    def layer_flops(T, d_model, d_ff):
        factors = (f(T, d_model, d_ff) if callable(f) else f for f in (projections, core, feed_forward))
        return tuple(f * count for f, count in zip(factors, flops(T, d_model, d_ff), strict=True))

    return layer_flops


def reordered(*order):
    return lambda T, d_model, d_ff: tuple(flops(T, d_model, d_ff)[i] for i in order)


FLOPS_MISTAKES = (
    Mistake("multiply-adds", scaled_flops(0.5, 0.5, 0.5),
        "These are multiply-adds. Each is a multiplication and an addition, so two FLOPs: "
        "everything is half of what it should be."),
    Mistake("three projections", scaled_flops(projections=0.75),
        "Three projections are counted: W_Q, W_K and W_V. W_O is the fourth."),
    Mistake("core without its width", scaled_flops(core=lambda T, d, ff: 1 / d),
        "The core counts one product per pair of tokens. A score is a dot product of d_head numbers in "
        "each head, d_model in all heads together."),
    Mistake("core and feed-forward exchanged", reordered(0, 2, 1),
        "The second and third number are exchanged: (projections, core, feed_forward)."),
    Mistake("projections and core exchanged", reordered(1, 0, 2),
        "The first and second number are exchanged: (projections, core, feed_forward)."),
    Mistake("projections and feed-forward exchanged", reordered(2, 1, 0),
        "The first and third number are exchanged: (projections, core, feed_forward)."),
)  # fmt: skip
CROSSOVER_MISTAKES = (
    Mistake("core = projections", lambda d_model, d_ff: 2 * d_model,
        "This is where the core equals the projections. The question is where it equals the feed-forward."),
    Mistake("core = all the rest", lambda d_model, d_ff: 2 * d_model + d_ff,
        "This is where the core equals projections and feed-forward together. It should equal the feed-forward alone."),
    Mistake("twice as long", lambda d_model, d_ff: 2 * d_ff,
        "This is twice as long, as for a causal core that skips half, or for a core with one product. The core "
        "has two products, and all T² pairs count."),
    Mistake("half as long", lambda d_model, d_ff: d_ff / 2,
        "This is half of it, as with one matrix in the feed-forward. It has two."),
    Mistake("multiply-adds against FLOPs", lambda d_model, d_ff: d_ff / 4,
        "This is a quarter of it. Compare like with like: FLOPs on both sides, or multiply-adds on "
        "both, two products against two matrices."),
)  # fmt: skip


# Rotation -------------------------------------------------------------------------------------------------------------


def speeds(d, base):
    return float(base) ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)  # (d / 2,)


def neighbours(x):
    return x[..., 0::2], x[..., 1::2]


def halves(x):
    return x.chunk(2, dim=-1)


def between(a, b):
    return torch.stack([a, b], dim=-1).flatten(-2)


def one_after_the_other(a, b):
    return torch.cat([a, b], dim=-1)


def turned(
    speed=speeds, place=lambda positions: positions, apart=neighbours, together=between, backwards=False, turn=None
):
    """rotate with one step exchanged for a wrong one; every step not named is right.

    speed(d, base): radians per place of each pair; place(positions); apart(x): both numbers of each pair;
    together(a, b): x again; turn(a, b, cos, sin): the pairs turned.
    """

    def rotate(x, positions, base=10000.0):
        x, positions = torch.as_tensor(x), torch.as_tensor(positions)
        angles = place(positions)[:, None] * speed(x.shape[-1], base)  # (T, d / 2)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = apart(x)
        sin = -sin if backwards else sin
        a, b = (a * cos - b * sin, a * sin + b * cos) if turn is None else turn(a, b, cos, sin)
        return together(a, b)

    return rotate


def overwriting(a, b, cos, sin):
    a = a * cos - b * sin
    return a, a * sin + b * cos


ROTATION_MISTAKES = (
    Mistake("the other way round", turned(backwards=True),
        "The pairs are rotated the other way round: it should be (a cos − b sin, a sin + b cos), so the minus is in "
        "the first number."),
    Mistake("halves are paired", turned(apart=halves, together=one_after_the_other),
        "Number i is paired with number i + d/2, as some models do. Here neighbours are a pair: numbers 2p and 2p + 1, "
        "x[..., 0::2] and x[..., 1::2]."),
    Mistake("pairs not put back", turned(together=one_after_the_other),
        "The pairs are rotated correctly, but the first numbers of all pairs come before all the second ones. Numbers "
        "2p and 2p + 1 belong together: torch.stack((a, b), dim=-1).flatten(-2)."),
    Mistake("half the exponent", turned(speed=lambda d, base: speeds(d, base).sqrt()),
        "Pair p rotates by base^(−p/d) here. The exponent is −2p/d, so that the last pair is nearly at 1/base."),
    Mistake("twice the exponent", turned(speed=lambda d, base: speeds(d, base) ** 2),
        "Pair p rotates by base^(−4p/d) here. The exponent is −2p/d, and d counts numbers: there are d/2 pairs."),
    Mistake("the exponent without its sign", turned(speed=lambda d, base: 1 / speeds(d, base)),
        "Pair p rotates by base^(2p/d) here, so later pairs rotate ever faster. The exponent is −2p/d."),
    Mistake("all pairs at one speed", turned(speed=lambda d, base: torch.ones(d // 2, dtype=torch.float64)),
        "All pairs rotate by 1 radian per position. Pair p should rotate by base^(−2p/d)."),
    Mistake("pairs counted from 1",
        turned(speed=lambda d, base: speeds(d, base) * float(base) ** (-2 / d)),
        "Pairs are counted from 1. Pair 0 rotates by 1 radian per position."),
    Mistake("the slowest pair first", turned(speed=lambda d, base: speeds(d, base).flip(0)),
        "The first pair is the slowest. Pair 0 is the fastest, at 1 radian per position."),
    Mistake("the base is always 10,000", turned(speed=lambda d, base: speeds(d, 10000.0)),
        "Right for a base of 10,000, but base changes nothing here."),
    Mistake("places from 0", turned(place=lambda positions: torch.arange(len(positions))),
        "The tokens are rotated as if they were at positions 0, 1, 2, …. Use the argument positions."),
    Mistake("places from 1", turned(place=lambda positions: positions + 1),
        "Every position is too large by one: at position 0 nothing is rotated."),
    Mistake("two minuses", turned(turn=lambda a, b, cos, sin: (a * cos - b * sin, b * cos - a * sin)),
        "That is not a rotation: lengths change. It should be (a cos − b sin, a sin + b cos), with a plus in the "
        "second number."),
    Mistake("a overwritten", turned(turn=overwriting),
        "The second number is made from the a that has already been rotated. Both are made from the old a and b."),
)  # fmt: skip


# Grouped queries ------------------------------------------------------------------------------------------------------


def interleave(k, group):
    return k.repeat_interleave(group, dim=1)


def tile(k, group):
    return k.repeat(1, group, 1, 1)


def grouped(share_k=interleave, share_v=None, attention=None):
    """Grouped-query attention with one step exchanged. share_k(k, group): a key head for each query head."""

    def grouped_query_attention(q, k, v, mask=None):
        q, k, v = (torch.as_tensor(a) for a in (q, k, v))
        group = q.shape[1] // k.shape[1]
        k, v = share_k(k, group), (share_v or share_k)(v, group)
        return (attention or in_steps())(q, k, v, None if mask is None else torch.as_tensor(mask))[0]

    return grouped_query_attention


def one_of_all(pick):
    return lambda k, group: pick(k).expand(-1, k.shape[1] * group, -1, -1)


def root_of_all(q, k):
    return math.sqrt(q.shape[1] * q.shape[-1])


TILED = (
    "The key heads are repeated as a whole: 0, 1, 0, 1. Neighbouring query heads share, so each key head is repeated "
    "by itself: 0, 0, 1, 1. That is repeat_interleave along the head axis; repeat (and tile) give the other order."
)
ONLY = (
    "The {} are shared among neighbours, but the {} are repeated as a whole, 0, 1, 0, 1. Both need repeat_interleave."
)


SQUARE = ("values weighted by columns", "mask on the queries")  # these raise where n and m differ
GROUPED_MISTAKES = (
    Mistake("repeat for repeat_interleave", grouped(tile), TILED),
    Mistake("repeat for the values", grouped(share_v=tile), ONLY.format("keys", "values")),
    Mistake("repeat for the keys", grouped(tile, interleave), ONLY.format("values", "keys")),
    Mistake("first key head for all", grouped(one_of_all(lambda k: k[:, :1])),
        "Every query head reads the first key head. That is right for h_kv = 1 "
        "only: each group has a key head of its own."),
    Mistake("mean of the key heads", grouped(one_of_all(lambda k: k.mean(dim=1, keepdim=True))),
        "Every query head reads the mean of all key heads. Each group reads its own, as it is."),
    Mistake("key heads in reverse order", grouped(lambda k, group: interleave(k.flip(1), group)),
        "The first group reads the last key head. The groups are in the order of the heads."),
    Mistake("no softmax", grouped(attention=lambda q, k, v, mask: (q @ k.mT / math.sqrt(q.shape[-1]) @ v,)),
        "The values are blended with the scores. The weights are their softmax over the keys."),
    Mistake("scaling by the whole width", grouped(attention=in_steps(scale=root_of_all)),
        "The scores are divided by √(h · d). A query has d numbers, so divide by √d."),
    *(
        Mistake(name, grouped(attention=steps), message.replace("d_head", "d"), name == NO_SHIFT.name)
        for name, steps, message in STEPS_IN_HEADS
        if name not in SQUARE
    ),
)  # fmt: skip


# Looking into heads ---------------------------------------------------------------------------------------------------


def looked_back(offset, rows=lambda period: range(period, 2 * period), over=None, swapped=False):
    """The mean of weights[i, i − period + offset] over the rows i that have such a key. over(period): the divisor."""

    def score(weights, period):
        weights = torch.as_tensor(weights)
        weights = weights.T if swapped else weights
        pairs = [(i, i - period + offset) for i in rows(period) if 0 <= i - period + offset < 2 * period]
        found = sum(weights[i, j].item() for i, j in pairs)
        return found / (over(period) if over else len(pairs))

    return score


def everywhere(period):
    return range(2 * period)


def induction(weights, period):
    return torch.as_tensor(weights).diagonal(1 - period)[1:].mean()


def previous_tokens(weights, period):
    return torch.as_tensor(weights).diagonal(-1).mean()


def hits(weights, period):
    rows = torch.as_tensor(weights)[period:].argmax(dim=-1)
    return (rows == torch.arange(1, period + 1)).double().mean()


def from_the_end(weights, period):
    """All rows, with keys that count from the end where i < period − 1."""
    return sum(torch.as_tensor(weights)[i, i - period + 1].item() for i in range(2 * period)) / (2 * period)


def picked(made):
    """A number made of the weights that are asked for, of their rows and of the period."""

    def score(weights, period):
        rows = torch.as_tensor(weights)[period:]
        return made(torch.as_tensor(weights).diagonal(1 - period)[1:], rows, period)

    return score


def around(weights, period):
    """Keys that go round within the first copy: the last query looks at key 0."""
    weights = torch.as_tensor(weights)
    return sum(weights[period + i, (i + 1) % period].item() for i in range(period)) / period


def in_the_first_copy(weights, period):
    weights = torch.as_tensor(weights)
    return sum(weights[i, i - period + 1].item() for i in range(period)) / period


INDUCTION_MISTAKES = (
    Mistake("the same token", looked_back(0),
        "The key is i − period, the earlier occurrence of the token itself. An induction head looks "
        "at what came after that: i − period + 1."),
    Mistake("two tokens after", looked_back(2),
        "The key is i − period + 2, one too far. The token after the earlier occurrence of token i is at i − period + "
        "1."),
    Mistake("the token before the first occurrence", looked_back(-1),
        "The key is i − period − 1, the token before the earlier occurrence. The score takes the one after it: i − "
        "period + 1."),
    Mistake("the previous token", lambda weights, period: looked_back(period - 1)(weights, period),
        "The key is i − 1, the token just before. That is the score of a previous-token head. An induction head "
        "looks one period back, and then one token on: i − period + 1."),
    Mistake("the previous token, everywhere", previous_tokens,
        "This is the mean weight on the token just before, over all queries: the score of a previous-token head. "
        "Look at key i − period + 1, for the queries of the second copy."),
    Mistake("the wrong end of the line left out", looked_back(1, lambda period: range(period - 1, 2 * period - 1)),
        "The line parallel to the diagonal has one entry too many, and the wrong one is left out. It is the first "
        "that belongs to the first copy, to query period − 1; the last belongs to the last token, which counts."),
    Mistake("one query too many", looked_back(1, lambda period: range(period - 1, 2 * period)),
        "The whole diagonal is averaged. Its first entry belongs to query "
        "period − 1, in the first copy: leave it out."),
    Mistake("one query too many, divided by period",
        looked_back(1, lambda period: range(period - 1, 2 * period), over=lambda period: period),
        "The entry of query period − 1 is added too. It belongs to the first copy: begin at i = period."),
    Mistake("all queries, negative keys", from_the_end,
        "All queries count here, and for the first ones the key i − period + 1 is negative, which "
        "counts from the end. Begin at i = period."),
    Mistake("all queries that have such a key", looked_back(1, everywhere, over=lambda period: 2 * period),
        "All queries count here, and the sum is divided by all of them. Only those of the second copy "
        "count: i from period to 2 · period − 1."),
    Mistake("first query left out", looked_back(1, lambda period: range(period + 1, 2 * period)),
        "Query i = period, the first of the second copy, is left out. Its token also occurs "
        "at 0, and the token after that is key 1."),
    Mistake("last query left out", looked_back(1, lambda period: range(period, 2 * period - 1)),
        "The last query is left out. Its key is `period`, the first token of the second copy."),
    Mistake("divided by one too few", looked_back(1, over=lambda period: period - 1),
        "The sum is right, but there are `period` queries in the second copy, not period − 1."),
    Mistake("rows and columns exchanged", looked_back(1, swapped=True),
        "Rows and columns are exchanged: weights[i, j] is what query i gives to key j. "
        "The row is the token of the second copy."),
    Mistake("keys that go round", around,
        "The key of the last query is 0 here, a remainder modulo `period`. The token after the earlier occurrence of "
        "the last one is the first of the second copy, key `period`."),
    Mistake("queries of the first copy", in_the_first_copy,
        "The queries are those of the first copy, 0 to period − 1, and most of their keys are negative, which counts "
        "from the end. They are period to 2 · period − 1."),
    Mistake("the token before, from the end",
        lambda weights, period: sum(float(weights[i, i - period - 1]) for i in range(period, 2 * period)) / period,
        "The key is i − period − 1, the token before the earlier occurrence, and the first one is −1, which is the "
        "last key. It should be i − period + 1."),
    Mistake("the largest", picked(lambda line, rows, period: line.max()),
        "This is the largest of the weights asked for. Take their mean."),
    Mistake("the smallest", picked(lambda line, rows, period: line.min()),
        "This is the smallest of the weights asked for. Take their mean."),
    Mistake("the median", picked(lambda line, rows, period: line.median()),
        "This is the median of the weights asked for. Take their mean."),
    Mistake("squared", picked(lambda line, rows, period: (line**2).mean()),
        "The weights are squared before the mean. They count as they are."),
    Mistake("all weight on the first copy", picked(lambda line, rows, period: rows[:, :period].sum(dim=-1).mean()),
        "This is what the second copy gives to the first copy as a whole. The score takes "
        "one key for each query: i − period + 1."),
    Mistake("the mean weight on the first copy", picked(lambda line, rows, period: rows[:, :period].mean()),
        "This is the mean over all pairs of a query in the second copy and a key in the first. The score takes "
        "one key for each query: i − period + 1."),
    Mistake("the mean of all weights", lambda weights, period: torch.as_tensor(weights).mean(),
        "This is the mean of all weights, which is the same for every head. The score takes "
        "one key for each query: i − period + 1."),
    Mistake("every query with every key",
        lambda weights, period: torch.as_tensor(weights)[period:, 1 : period + 1].mean(),
        "Every query of the second copy meets all the keys asked for. Each has one of its own: index "
        "with two arrays, weights[queries, keys]."),
    Mistake("over the largest of each row", picked(lambda line, rows, period: (line / rows.max(dim=-1)[0]).mean()),
        "Each weight is divided by the largest of its row. It counts as it is."),
    Mistake("over the sum of the first copy",
        picked(lambda line, rows, period: (line / rows[:, :period].sum(dim=-1)).mean()),
        "Each weight is divided by what the query gives to the first copy. It counts as it is."),
    Mistake("two keys for each query",
        lambda weights, period: looked_back(1)(weights, period) + looked_back(0)(weights, period),
        "The weight on the token itself is added to that on the token after it. Only "
        "the latter counts, key i − period + 1."),
    Mistake("share of queries whose largest weight is there", hits,
        "You count the queries that look there most. The score is the mean weight itself, so "
        "weaker looks count too, with their weight."),
)  # fmt: skip


def next_token_loss(model, tokens, masks, positions=slice(None), rows=slice(None)):
    logits = model(tokens, head_masks=masks)[rows]  # (B, T, V)
    losses = F.cross_entropy(logits[:, :-1].transpose(1, 2), tokens[rows, 1:], reduction="none")  # (B, T - 1)
    return losses[:, positions].mean()


def own_token_loss(model, tokens, masks):
    return F.cross_entropy(model(tokens, head_masks=masks).flatten(0, 1), tokens.flatten())


def token_before_loss(model, tokens, masks):
    logits = model(tokens, head_masks=masks)  # (B, T, V)
    return F.cross_entropy(logits[:, 1:].flatten(0, 1), tokens[:, :-1].flatten())


def rolled_loss(model, tokens, masks):
    """Every position has a next token here: after the last comes the first again."""
    return F.cross_entropy(model(tokens, head_masks=masks).flatten(0, 1), tokens.roll(-1, 1).flatten())


def surprise(measure):
    """A loss from the probabilities of the next tokens (B, T − 1)."""

    def loss(model, tokens, masks):
        shares = torch.softmax(model(tokens, head_masks=masks)[:, :-1], dim=-1)
        return measure(shares.gather(-1, tokens[:, 1:, None])[..., 0], shares)

    return loss


def worst(
    loss=next_token_loss, best=max, off=0.0, on=1.0, reset=True, change=lambda rise: rise, start=None, among=None
):
    """most_important_head by the change of a loss when heads are set to `off` and all others are `on`."""

    def most_important_head(model, tokens):
        sizes = (len(model.blocks), model.n_heads)
        before, rises = loss(model, tokens, torch.ones(sizes)), {}
        masks = torch.full(sizes, on)
        for layer in range(sizes[0]):
            for head in range(sizes[1]):
                masks = torch.full(sizes, on) if reset else masks
                masks[layer, head] = off
                rises[layer, head] = change((loss(model, tokens, masks) - before).item())
        kept = {place: rise for place, rise in rises.items() if among is None or among(*place, *sizes)}
        found = best(kept, key=kept.get)
        return found if start is None or kept[found] > start else (0, 0)

    return most_important_head


def last_rise(rises, key):
    """The last head without which the loss rises; the first of all where there is none."""
    return next((place for place in reversed(rises) if rises[place] > 0), next(iter(rises)))


def turned_round(change, base=None):
    def most_important_head(model, tokens):
        return change(*(base or worst())(model, tokens), len(model.blocks), model.n_heads)

    return most_important_head


def logits_moved(model, tokens):
    sizes, moved = (len(model.blocks), model.n_heads), {}
    with torch.no_grad():
        for place in ((layer, head) for layer in range(sizes[0]) for head in range(sizes[1])):
            masks = torch.ones(sizes)
            masks[place] = 0
            moved[place] = (model(tokens, head_masks=masks) - model(tokens)).norm().item()
    return max(moved, key=moved.get)


def by_slope(size):
    """The head whose mask the loss depends on most steeply, for size(slopes)."""

    def most_important_head(model, tokens):
        masks = torch.ones(len(model.blocks), model.n_heads, requires_grad=True)
        (slopes,) = torch.autograd.grad(next_token_loss(model, tokens, masks), masks)
        return divmod(size(slopes).argmax().item(), model.n_heads)

    return most_important_head


SLOPE = (
    "The slope of the loss decides here, its gradient with respect to the masks. That tells what a little less of a "
    "head does, not what is lost without it: set its mask to 0 and compute the loss."
)
ABLATION_MISTAKES = (
    Mistake("the least important head", worst(best=min),
        "This is the head without which the loss is lowest. Return the one without which it is "
        "highest: max and argmax, not min and argmin."),
    Mistake("the largest change", worst(change=abs),
        "The size of the change decides here, so a head that does harm can win. Only a rise counts: no abs."),
    Mistake("heads alone", worst(best=min, off=1.0, on=0.0),
        "You keep one head and switch off all others. The question is what is lost without a head: "
        "switch off that one, and keep all others on."),
    Mistake("heads alone, the worst", worst(off=1.0, on=0.0),
        "You keep one head, switch off all others, and take the one with the highest loss. Switch off one head at "
        "a time: masks of ones with a single 0."),
    Mistake("masks not made anew", worst(reset=False),
        "Each head is switched off and never on again, so later ones are off in addition to all earlier ones. "
        "Begin each round with new masks of ones."),
    Mistake("the present token as target", worst(own_token_loss),
        "The logits at position t are compared with the token at t. They are for token "
        "t + 1: logits[:, :-1] against tokens[:, 1:]."),
    Mistake("the token before as target", worst(token_before_loss),
        "The shift goes the wrong way: logits[:, 1:] against tokens[:, :-1]. It "
        "is logits[:, :-1] against tokens[:, 1:]."),
    Mistake("rolled targets", worst(rolled_loss),
        "The targets are the tokens rolled by one, so the last position is asked for a first token, which does not "
        "follow it. The last position has no next token: leave it out, logits[:, :-1] against tokens[:, 1:]."),
    Mistake("the last position only",
        worst(lambda model, tokens, masks: next_token_loss(model, tokens, masks, positions=slice(-1, None))),
        "Only the last position counts here. The loss is the mean over all positions that have a next token."),
    Mistake("the first sequence only",
        worst(lambda model, tokens, masks: next_token_loss(model, tokens, masks, rows=slice(0, 1))),
        "Only one sequence of the batch counts here, such as the first. The loss is the mean over all of them."),
    Mistake("probabilities in place of losses", worst(surprise(lambda right, shares: -right.mean())),
        "F.cross_entropy takes logits and does the softmax itself: do not apply one first. (F.nll_loss takes "
        "log-probabilities.) As it is, a rare word that is predicted badly counts too little, as in the mean "
        "probability of the right token, or in a median."),
    Mistake("hits in place of losses",
        worst(surprise(lambda right, shares: (right < shares.amax(dim=-1)).double().mean())),
        "You count how often the likeliest token is right. Measure the rise of the cross-entropy."),
    Mistake("the change of the logits", logits_moved,
        "The head that moves the logits most was chosen. That can leave the loss as it was: measure the loss."),
    Mistake("the slope in place of the loss", by_slope(torch.neg), SLOPE),
    Mistake("the size of the slope", by_slope(torch.abs), SLOPE),
    Mistake("(head, layer)", turned_round(lambda layer, head, L, h: (head, layer)),
        "The pair is the wrong way round: (layer, head)."),
    Mistake("divided by the number of layers", turned_round(lambda layer, head, L, h: divmod(layer * h + head, L)),
        "The position in the row of all heads is divided by the number of layers. Each layer has n_heads "
        "entries: divmod(position, model.n_heads)."),
    Mistake("position and 0", turned_round(lambda layer, head, L, h: (0, layer * h + head)),
        "The second number counts through all heads of all layers. divmod(position, model.n_heads) "
        "gives the layer and the head within it."),
    Mistake("begun at 0", worst(start=0.0),
        "Where no head helps, the answer is (0, 0): the search begins with a rise of 0. "
        "Begin with −∞, or with the first head."),
    Mistake("the last head that rises", worst(best=last_rise),
        "The last head without which the loss rises is chosen, not the one without which it is highest. Where you "
        "find a new best, keep its loss too, for the comparison."),
    Mistake("the last head of all", turned_round(lambda layer, head, L, h: (L - 1, h - 1)),
        "The answer is always the last head. Where you find a new best, keep its "
        "loss too, and compare the next with it."),
    Mistake("the first layer only", worst(among=lambda layer, head, L, h: layer == 0),
        "Only heads of layer 0 are tried."),
    Mistake("the last layer only", worst(among=lambda layer, head, L, h: layer == L - 1),
        "Only heads of the last layer are tried."),
    Mistake("as many heads as layers tried", worst(among=lambda layer, head, L, h: head < L),
        "Not every head is tried: the inner loop ends at the number of layers. It runs over model.n_heads."),
    Mistake("first head never tried", worst(among=lambda layer, head, L, h: head > 0),
        "Head 0 is never tried: heads count from 0."),
)  # fmt: skip


# Find the bug ---------------------------------------------------------------------------------------------------------


def in_groups(root=lambda d, h, h_kv: math.sqrt(d), share_k=interleave, share_v=None, attention=None):
    """Attention in groups of heads, with one step exchanged. root(d, h, h_kv): what the scores are divided by."""

    def broken_groups(q, k, v, n_heads, n_kv_heads):
        divisor = root(q.shape[-1] // n_heads, n_heads, n_kv_heads)
        q, k, v = (reference_split(part, count) for part, count in ((q, n_heads), (k, n_kv_heads), (v, n_kv_heads)))
        group = n_heads // n_kv_heads
        k, v = share_k(k, group), (share_v or share_k)(v, group)
        output, weights = (attention or in_steps(scale=lambda q, k: divisor))(q, k, v)
        return reference_merge(output), weights

    return broken_groups


BUG_MISTAKES = (
    Mistake("the root of all key heads", in_groups(lambda d, h, h_kv: math.sqrt(h_kv * d)),
        "Right with one key head. With more, the rows of weights still sum to 1 and are in the right order, but too "
        "even, and the more key heads there are, the more even they are. What makes weights more even?"),
    Mistake("the root of all heads", in_groups(lambda d, h, h_kv: math.sqrt(h * d)),
        "The scores are divided by the root of h · d, the width of all query heads together. A score is a dot "
        "product of the numbers of one head."),
    Mistake("the root of the number of key heads", in_groups(lambda d, h, h_kv: math.sqrt(h_kv)),
        "The scores are divided by the root of the number of key heads. A score is a sum of d products: what does its "
        "size grow with?"),
    Mistake("the root of a group", in_groups(lambda d, h, h_kv: math.sqrt(d * h / h_kv)),
        "The scores are divided by the root of the numbers of a whole group. A score is a dot product of the numbers "
        "of one head."),
    Mistake("repeat for repeat_interleave", in_groups(share_k=tile), TILED),
    Mistake("repeat for the values", in_groups(share_v=tile), ONLY.format("keys", "values")),
    Mistake("repeat for the keys", in_groups(share_k=tile, share_v=interleave), ONLY.format("values", "keys")),
    *(
        Mistake(name, in_groups(attention=steps), message.replace("d_head", "d"))
        for name, steps, message in (*SCALES_IN_HEADS, *STEPS_IN_HEADS)
        if name in ("no scaling", "scaling by the width", "multiplied by the root", "softmax over queries")
    ),
)  # fmt: skip


EXERCISES = {
    "split_heads": Exercise(2, {"split_heads": reference_split}, SPLIT_MISTAKES),
    "merge_heads": Exercise(1, {"merge_heads": reference_merge}, MERGE_MISTAKES),
    "multi_head": Exercise(5, {"MultiHead": layer()}, LAYER_MISTAKES, ("split_heads", "merge_heads")),
    "block": Exercise(4, {"Block": block()}, BLOCK_MISTAKES),
    "count_flops": Exercise(3, {"layer_flops": flops}, FLOPS_MISTAKES, rtol=1e-9, atol=1e-9),
    "crossover": Exercise(
        1,
        {"crossover_length": lambda d_model, d_ff: counts.crossover_length(d_model, d_ff=d_ff)},
        CROSSOVER_MISTAKES,
        uses=("count_flops",),
    ),
    "rotation": Exercise(3, {"rotate": turned()}, ROTATION_MISTAKES, rtol=1e-4, atol=1e-4),
    "grouped_query": Exercise(
        4,
        {"grouped_query_attention": grouped()},
        GROUPED_MISTAKES,
        scaled=lambda factor: grouped(attention=in_steps(scale=lambda q, k: math.sqrt(q.shape[-1]) / factor)),
    ),
    "layer_by_hand": Exercise(2, by_hand(), HAND_MISTAKES, rtol=0.0, atol=0.5),
    "count_parameters": Exercise(
        2, {"attention_parameters": counts.attention_parameters}, PARAMETER_MISTAKES, rtol=1e-9, atol=1e-9
    ),
    "find_the_bug": Exercise(2, {"broken_groups": in_groups()}, BUG_MISTAKES),
    "induction_score": Exercise(3, {"induction_score": induction}, INDUCTION_MISTAKES),
    "head_ablation": Exercise(3, {"most_important_head": worst()}, ABLATION_MISTAKES),
    "tells_right": duel(),
}
