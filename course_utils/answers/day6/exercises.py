"""Day 6: the answers to its exercises, and the mistakes that people make in them.

References and mistakes work in PyTorch and take NumPy arrays too. Those of the Triton loops are in NumPy: they run in
arrays and `Tiles` of them, so that who judges a kernel needs no Triton.
"""

import math

import numpy as np

from course_utils.answers.day6.duel import duel
from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.loader import lazy

torch = lazy("torch")
tiled = lazy("course_utils.attention.tiled")
traffic = lazy("course_utils.attention.traffic")

INFINITY = math.inf
LOG2_E = math.log2(math.e)


# By hand ------------------------------------------------------------------------------------------------------------

THREE_DECIMALS = 5.5e-4  # half a unit of the last place, and a little for rounding on the way
HAND_SCORES, HAND_VALUES = (1.0, 3.0, 2.0), (4.0, 0.0, 8.0)


def worked(
    peak=max,
    l_factor=lambda old, new: math.exp(old - new),
    o_factor=lambda old, new: math.exp(old - new),
    term=lambda s, new: math.exp(s - new),
    after=lambda x, old, new: x,
    end=lambda l, o: o / l,
):
    """The three entries of one who goes through the keys like this."""
    m, l, o, m_after, l_after = HAND_SCORES[0], 1.0, HAND_VALUES[0], [HAND_SCORES[0]], [1.0]
    for s, v in zip(HAND_SCORES[1:], HAND_VALUES[1:], strict=True):
        new = peak(m, s)
        l = after(l * l_factor(m, new) + term(s, new), m, new)
        o = after(o * o_factor(m, new) + term(s, new) * v, m, new)
        m = new
        m_after.append(m)
        l_after.append(l)
    return {"m_after": m_after, "l_after": l_after, "output": end(l, o)}


def unshrunk(old, new):
    return 1.0


HAND_MISTAKES = (
    Mistake("nothing is rescaled", worked(l_factor=unshrunk, o_factor=unshrunk),
        "Nothing shrinks when the maximum grows. When it goes from 1 to 3, the sum so far shrinks to e^(1 − 3) of what "
        "it was, and so does the blend of the values."),
    Mistake("l is not rescaled", worked(l_factor=unshrunk),
        "l does not shrink when the maximum grows from 1 to 3: multiply it by e^(1 − 3) before the new term is added."),
    Mistake("the blend is not rescaled", worked(o_factor=unshrunk),
        "m and l are right. The blend of the values has to shrink by the same factor as l when the maximum grows."),
    Mistake("the factor upside down",
        worked(l_factor=lambda old, new: math.exp(new - old), o_factor=lambda old, new: math.exp(new - old)),
        "The factor is upside down: it is e^(m_old − m_new), at most 1."),
    Mistake("each score its own peak", worked(peak=lambda m, s: s),
        "m follows the newest score. It is the largest so far, so it stays at 3 when 2 comes."),
    Mistake("the new term shrinks too",
        worked(l_factor=unshrunk, o_factor=unshrunk, after=lambda x, old, new: x * math.exp(old - new)),
        "What the new key adds is already relative to the new maximum. Only what was there before shrinks."),
    Mistake("every key counts 1", worked(term=lambda s, new: 1.0),
        "Each key adds e^(s − m) to l, which is 1 only where it is the largest."),
    Mistake("no maximum subtracted in l", worked() | {"l_after": np.exp(HAND_SCORES).cumsum().tolist()},
        "l sums e^s here. That is the same softmax, but it overflows for large scores: l sums e^(s − m)."),
    Mistake("not divided", worked(end=lambda l, o: o), "Divide the blend by l, once, at the end."),
    Mistake("rounded on the way",
        worked(
            l_factor=lambda old, new: round(math.exp(old - new), 2),
            o_factor=lambda old, new: round(math.exp(old - new), 2),
            term=lambda s, new: round(math.exp(s - new), 2),
        ),
        "Nearly right. It looks as if e^−1 and e^−2 were rounded to 2 decimals on the way. Keep 4 decimals, and round "
        "at the end."),
    Mistake("the plain mean", worked(end=lambda l, o: sum(HAND_VALUES) / 3),
        "The output is the plain mean of the values. Each should count by its e^(s − m)."),
    Mistake("the value of the largest score", worked(end=lambda l, o: 0.0),
        "The output is the value of the largest score alone. The others count too, though less."),
)  # fmt: skip


# The running maximum and sum ----------------------------------------------------------------------------------------


def below(x, m):
    """e^(x − m), and 0 where both are −∞."""
    return 0.0 if x == -INFINITY else naive(x, m)


def naive(x, m):
    """e^(x − m), NaN where both are −∞, ∞ where it overflows."""
    return float(np.exp(np.float64(x) - np.float64(m)))


def one_if_equal(x, m):
    """e^(x − m), and 1 where both are −∞."""
    return 1.0 if x == m else below(x, m)


def running(
    start=-INFINITY,
    rescale=lambda l, old, new: l * below(old, new),
    term=lambda x, old, new: below(x, new),
    result=lambda m, l: (m, l),
):
    def online_max_sum(stream):
        m, l = start, 0.0
        for x in stream:
            new = max(m, x)
            l = rescale(l, m, new) + term(x, m, new)
            m = new
        return result(m, l)

    return online_max_sum


def in_two_passes(stream):
    m = max(stream)
    return m, sum(below(x, m) for x in stream)


def in_two_loops(stream):
    m, l = -INFINITY, 0.0
    for x in stream:
        m = max(m, x)
    for x in stream:
        l += below(x, m)
    return m, l


def kept_in_a_list(stream):
    return running()(list(stream))


TWICE = (
    "The stream is read twice, once for the maximum and once for the sum, and the second time it is "
    "empty. Carry m and l along in one pass."
)
ONLINE_MISTAKES = (
    Mistake("l is not rescaled", running(rescale=lambda l, old, new: l),
        "When the maximum grows, l stays as it was, although it was summed relative to the old maximum. Multiply it by "
        "e^(m_old − m_new) first."),
    Mistake("the factor upside down",
        running(rescale=lambda l, old, new: 0.0 if old == -INFINITY else l * naive(new, old)),
        "The factor is upside down: with a larger maximum l shrinks, so it is e^(m_old − m_new), never above 1."),
    Mistake("relative to the old maximum",
        running(term=lambda x, old, new: 1.0 if old == -INFINITY < x else below(x, old)),
        "A number is added relative to the previous maximum. First update m, then add e^(x − m) with the new m."),
    Mistake("l begins anew at each maximum", running(rescale=lambda l, old, new: l if new == old else 0.0),
        "At a new maximum l starts again, and the sum so far is lost. Multiply it by e^(m_old − m_new) instead."),
    Mistake("a new maximum is not added", running(term=lambda x, old, new: below(x, new) if x <= old else 0.0),
        "A number that is a new maximum is not added. Rescale l first, then add it: e^0 = 1."),
    Mistake("the two factors added",
        running(rescale=lambda l, old, new: l + below(old, new) - 1 if old != -INFINITY else l),
        "A term is added to l for the change. The sum so far is relative to the old maximum: multiply it by e^(m_old − "
        "m_new)."),
    Mistake("m begins at 0", running(start=0.0),
        "m begins at 0, so it never goes below 0. Before the first number the maximum is −∞."),
    Mistake("m begins at −1e9", running(start=-1e9),
        "m begins at a large negative number, which is a number like any other: "
        "here all others are below it. Begin at −∞."),
    Mistake("NaN from −∞ − (−∞)",
        running(rescale=lambda l, old, new: l * naive(old, new), term=lambda x, old, new: naive(x, new)),
        "−∞ − (−∞) is NaN, and a NaN in l stays. While the maximum is still −∞ nothing has been summed: let l be 0."),
    Mistake("−∞ counts 1",
        running(rescale=lambda l, old, new: l * one_if_equal(old, new), term=lambda x, old, new: one_if_equal(x, new)),
        "Each −∞ counts as e^0 = 1 until the first number arrives. It has no weight: l stays 0."),
    Mistake("plain exponentials",
        running(rescale=lambda l, old, new: l, term=lambda x, old, new: float(np.exp(np.float64(x)))),
        "l is the sum of e^x. It should be the sum of e^(x − m), which cannot overflow."),
    Mistake("log-sum-exp in place of l", running(result=lambda m, l: (m, m + math.log(l) if l else -INFINITY)),
        "The second number is m + log l, the log-sum-exp. Return l itself."),
    Mistake("(l, m)", running(result=lambda m, l: (l, m)), "The pair is the wrong way round: (m, l)."),
    Mistake("the numbers counted", running(rescale=lambda l, old, new: l, term=lambda x, old, new: 1.0),
        "l counts the numbers. Each should count as e^(x − m), which is 1 only for the maximum."),
    Mistake("two passes", in_two_passes, TWICE),
    Mistake("two passes, in loops", in_two_loops, TWICE),
    Mistake("the numbers are kept", kept_in_a_list,
        "The result is right, but the numbers are kept, in a list or elsewhere. A stream may be longer than memory: "
        "read it with one for loop, carrying only m and l."),
)  # fmt: skip


# Merging ------------------------------------------------------------------------------------------------------------


def tensors_of(part):
    return tiled.Partial(*(torch.as_tensor(x) for x in part))


def reference_merge(a, b):
    return tuple(tiled.merge(tensors_of(a), tensors_of(b)))


def shrink(x, m):
    """e^(x − m), and 0 where both are −∞."""
    return torch.exp(x - m.masked_fill(m == -INFINITY, 0.0))


def joined(
    maximum=torch.maximum,
    factor=lambda own, other, m: shrink(own, m),
    of_l=None,
    of_o=None,
    add=lambda x, y: x + y,
    end=lambda m, l, o: (m, l, o),
):
    def merge(a, b):
        (m_a, l_a, o_a), (m_b, l_b, o_b) = tensors_of(a), tensors_of(b)
        m = maximum(m_a, m_b)
        a_l, b_l = (f(*own, m) for f, own in zip((of_l or factor,) * 2, ((m_a, m_b), (m_b, m_a)), strict=True))
        a_o, b_o = (f(*own, m) for f, own in zip((of_o or factor,) * 2, ((m_a, m_b), (m_b, m_a)), strict=True))
        return end(m, add(l_a * a_l, l_b * b_l), add(o_a * a_o[..., None], o_b * b_o[..., None]))

    return merge


def ones(own, other, m):
    return torch.ones_like(m)


def of_blends(a, b):
    """The rule for parts whose o is divided by l already."""
    (m_a, l_a, o_a), (m_b, l_b, o_b) = tensors_of(a), tensors_of(b)
    m = torch.maximum(m_a, m_b)
    a_l, b_l = l_a * shrink(m_a, m), l_b * shrink(m_b, m)
    return m, a_l + b_l, (o_a * a_l[..., None] + o_b * b_l[..., None]) / (a_l + b_l)[..., None]


def times_l(a, b):
    """o is weighted with l, and not divided by it."""
    m, l, o = of_blends(a, b)
    return m, l, o * l[..., None]


def one_sided(side, l_too=True):
    """Only a, or only b, is rescaled; in o alone, or in l too."""

    def merge(a, b):
        (m_a, l_a, o_a), (m_b, l_b, o_b) = tensors_of(a), tensors_of(b)
        m = torch.maximum(m_a, m_b)
        a_l, b_l = (shrink(m_a, m), ones(m_b, m_a, m)) if side == "a" else (ones(m_a, m_b, m), shrink(m_b, m))
        l = l_a * a_l + l_b * b_l if l_too else joined()(a, b)[1]
        return m, l, o_a * a_l[..., None] + o_b * b_l[..., None]

    return merge


def with_the_factor_on_the_wrong_axis(a, b):
    (m_a, l_a, o_a), (m_b, l_b, o_b) = tensors_of(a), tensors_of(b)
    m = torch.maximum(m_a, m_b)
    a_l, b_l = shrink(m_a, m), shrink(m_b, m)
    return m, l_a * a_l + l_b * b_l, o_a * a_l + o_b * b_l


ONE_SIDED = (
    "Only {} is rescaled, and {} is added as it is. Either may have the smaller maximum, so "
    "each gets its own factor, e^(m_part − m)."
)
MERGE_MISTAKES = (
    Mistake("neither l nor o is rescaled", joined(factor=ones),
        "l and o of the two parts are added as they are. Each part was summed relative to its own "
        "maximum: multiply by e^(m_part − m) first."),
    Mistake("only a is rescaled", one_sided("a"), ONE_SIDED.format("a", "b")),
    Mistake("only b is rescaled", one_sided("b"), ONE_SIDED.format("b", "a")),
    Mistake("powers of two", joined(factor=lambda own, other, m: torch.exp2(own - m.masked_fill(m == -INFINITY, 0.0))),
        "The factors are powers of 2. l and o hold powers of e, so it is e^(m_part − m)."),
    Mistake("exponentials of the maxima",
        joined(factor=lambda own, other, m: torch.exp(own) / torch.exp(m.masked_fill(m == -INFINITY, 0.0))),
        "The factor is e^m_part over e^m, and of large maxima both overflow. "
        "Subtract first: e^(m_part − m) is at most 1."),
    Mistake("o is not rescaled", joined(of_o=ones),
        "l is right, but the two o are added as they are. Each shrinks by the same factor as its l."),
    Mistake("l is not rescaled", joined(of_l=ones),
        "o is right, but the two l are added as they are. Each shrinks by the same factor as its o."),
    Mistake("of o only that of a is rescaled", one_sided("a", l_too=False),
        "l is right. Only a's o is rescaled, and b's is added as it is. Either may have the smaller maximum, so each "
        "gets its own factor."),
    Mistake("of o only that of b is rescaled", one_sided("b", l_too=False),
        "l is right. Only b's o is rescaled, and a's is added as it is. Either may have the smaller maximum, so each "
        "gets its own factor."),
    Mistake("o times l", times_l,
        "o is multiplied by l. It is already a sum, Σ e^(score − m) · value: it needs the factor e^(m_part − m) and "
        "nothing else."),
    Mistake("(l, m, o)", joined(end=lambda m, l, o: (l, m, o)), "m and l have changed places: return (m, l, o)."),
    Mistake("the differences, not their exponentials",
        joined(factor=lambda own, other, m: own - m.masked_fill(m == -INFINITY, 0.0)),
        "l and o are multiplied by m_part − m itself. The factor is e to that power."),
    Mistake("the factors are exchanged", joined(factor=lambda own, other, m: shrink(other, m)),
        "The factors are exchanged: each part is multiplied by the other's factor. The part with the smaller maximum "
        "shrinks."),
    Mistake("the factor upside down", joined(factor=lambda own, other, m: torch.exp(m - own)),
        "The factors are upside down. No part grows: the factor is e^(m_part − m), at most 1."),
    Mistake("factors from both maxima", joined(factor=lambda own, other, m: torch.exp(own - other)),
        "The factors compare the two maxima with each other. Compare each part with the common maximum: e^(m_part − "
        "m)."),
    Mistake("NaN from −∞ − (−∞)", joined(factor=lambda own, other, m: torch.exp(own - m)),
        "Where both maxima are −∞, −∞ − (−∞) is NaN, and 0 times NaN is NaN. Nothing has been summed there: give such "
        "a part any finite factor."),
    Mistake("o is divided by l", joined(end=lambda m, l, o: (m, l, o / l[..., None])),
        "o is divided by l here. A part keeps o as a sum, so that it can be merged again: "
        "l is divided out once, at the very end."),
    Mistake("o divided and safe", joined(end=lambda m, l, o: (m, l, o / l.masked_fill(l == 0, 1.0)[..., None])),
        "o is divided by l here. A part keeps o as a sum, so that it can be merged again: "
        "l is divided out once, at the very end."),
    Mistake("o taken for a blend", of_blends,
        "o is weighted with l and divided by it, as if it were an average. It is a sum, Σ "
        "e^(score − m) · value: multiply it by the same factor as l."),
    Mistake("the smaller maximum", joined(maximum=torch.minimum),
        "m is the smaller of the two maxima. Then factors are above 1, and can overflow."),
    Mistake("the maximum of a", joined(maximum=lambda m_a, m_b: m_a),
        "m is always a's maximum, even where b has the larger one."),
    Mistake("one maximum for all queries",
        joined(maximum=lambda m_a, m_b: torch.maximum(m_a, m_b).max().expand(m_a.shape)),
        "There is one maximum for all queries. Each query has its own: torch.maximum(m_a, m_b), entry by entry."),
    Mistake("log-sum-exp in place of m", joined(end=lambda m, l, o: (m + torch.log(l), l, o)),
        "The first entry is the log-sum-exp, m + log l. It should be m, the largest score."),
    Mistake("the factor on the wrong axis", with_the_factor_on_the_wrong_axis,
        "The factor (…, n) meets the last axis of o, the value dimensions. Give it one more axis: factor[..., None]."),
)  # fmt: skip


# Tiles --------------------------------------------------------------------------------------------------------------


def reference_tiled(q, k, v, block_q, block_k, causal=False):
    return tiled.forward(*map(torch.as_tensor, (q, k, v)), causal, block_q, block_k)


def untiled(q, k, v, block_q, block_k, causal=False):
    """All scores at once."""
    q, k, v = map(torch.as_tensor, (q, k, v))
    scores = q @ k.T / math.sqrt(q.shape[1])
    if causal:
        n, m = scores.shape
        scores = scores.masked_fill(~torch.ones(n, m, dtype=torch.bool).tril(m - n), -INFINITY)
    lse = torch.logsumexp(scores, dim=-1)
    return torch.exp(scores - lse[:, None]) @ v, lse


def in_tiles(
    scale=lambda d: d**-0.5,
    l_factor=lambda f: f,
    acc_factor=lambda f: f,
    running=torch.maximum,
    allowed=lambda i, j, n, m: j <= i + m - n,
    mask=lambda s, keep: s.masked_fill(~keep, -INFINITY),
    late=lambda p, keep: p,
    visible=lambda queries, n, m: queries[-1] + m - n,
    keys_of=lambda m, block_k: range(0, m, block_k),
    local=False,
    lse=lambda m, l: m + torch.log(l),
    divide=lambda acc, l: acc / l[:, None],
    padded=False,
    start=-INFINITY,
):
    """The tiled forward with one thing changed."""

    def tiled_attention(q, k, v, block_q, block_k, causal=False):
        q, k, v = map(torch.as_tensor, (q, k, v))
        n, n_keys = len(q), len(k)
        o, sums = q.new_zeros(n, v.shape[1]), q.new_zeros(n)
        for i in range(0, n, block_q):
            rows = torch.arange(i, min(i + block_q, n))
            m, l, acc = q.new_full((len(rows),), start), q.new_zeros(len(rows)), q.new_zeros(len(rows), v.shape[1])
            for j in keys_of(n_keys, block_k):
                if causal and j > visible(rows, n, n_keys):
                    break
                columns = torch.arange(j, min(j + block_k, n_keys))
                s = q[rows] @ k[columns].T * scale(q.shape[1])
                if padded and len(columns) < block_k:
                    s = torch.cat([s, s.new_zeros(len(rows), block_k - len(columns))], dim=1)
                    columns = torch.arange(j, j + block_k)
                keep = torch.ones(s.shape, dtype=torch.bool)
                if causal:
                    keep = allowed(
                        rows[:, None] - i * local, columns[None] - j * local, n * (not local), n_keys * (not local)
                    )
                s = mask(s, keep)
                new = running(m, s.amax(dim=1))
                factor, p = torch.exp(m - new), late(torch.exp(s - new[:, None]), keep)
                values = v[columns[columns < n_keys]]
                l = l * l_factor(factor) + p.sum(dim=1)
                acc = acc * acc_factor(factor)[:, None] + p[:, : len(values)] @ values
                m = new
            o[rows], sums[rows] = divide(acc, l), lse(m, l)
        return o, sums

    return tiled_attention


def none_of_it(factor):
    return torch.ones_like(factor)


def everything(queries, n, m):
    return m


def without_the_last(m, block_k):
    return range(0, max(m // block_k, 1) * block_k, block_k)


def whole_blocks(m, block_k):
    """None where all keys are fewer than a block."""
    return range(0, m // block_k * block_k, block_k)


def no_mask(s, keep):
    return s


def row_of_tiles(q, k, v, block_q, block_k, causal=False):
    """Blocks of queries, but all keys at once."""
    q, k, v = map(torch.as_tensor, (q, k, v))
    n, n_keys = len(q), len(k)
    rows = []
    for i in range(0, n, block_q):
        last = min(i + block_q, n)
        seen = last + n_keys - n if causal else n_keys
        rows.append(in_tiles()(q[i:last], k[:seen], v[:seen], block_q, n_keys, causal))
    return tuple(torch.cat(x) for x in zip(*rows, strict=True))


def begun_at(name, start):
    return Mistake(
        f"m begins at {name}",
        in_tiles(start=start),
        f"m begins at a number such as {name}, and where all scores are below it, every weight becomes 0. Begin at −∞.",
    )


RAGGED = (
    "Keys past the last whole block are left out. range(0, m, block_k) begins a block there, and slices stop by "
    "themselves."
)
TILED_MISTAKES = (
    Mistake("untiled", untiled,
        "The numbers are right, but all n × m scores are made at once, or all of a block of queries. Loop over "
        "blocks of queries and, inside, over blocks of keys, and carry m, l and acc from tile to tile."),
    Mistake("keys not in blocks", row_of_tiles,
        "The numbers are right, but a block of queries meets all its keys at once. Loop over blocks of "
        "keys too, with m, l and acc carried along."),
    Mistake("masked, not skipped", in_tiles(visible=everything),
        "The numbers are right, but tiles above the diagonal are made and then masked. No query in the block sees "
        "their keys: end the loop before them."),
    Mistake("acc is not rescaled", in_tiles(acc_factor=none_of_it),
        "lse is right and o is not: acc is not rescaled when the maximum grows. It "
        "shrinks by e^(m_old − m_new), as l does."),
    Mistake("l is not rescaled", in_tiles(l_factor=none_of_it),
        "l is not rescaled when the maximum grows. It shrinks by e^(m_old − m_new), as acc does."),
    Mistake("nothing is rescaled", in_tiles(l_factor=none_of_it, acc_factor=none_of_it),
        "Neither l nor acc is rescaled when the maximum grows. Both were summed relative to the old "
        "one: multiply them by e^(m_old − m_new)."),
    Mistake("the factor upside down", in_tiles(l_factor=lambda f: 1 / f, acc_factor=lambda f: 1 / f),
        "The factor is upside down: it is e^(m_old − m_new), at most 1, and 0 for the first block."),
    Mistake("each block alone",
        in_tiles(l_factor=torch.zeros_like, acc_factor=torch.zeros_like, running=lambda m, new: new),
        "Only the last block of keys counts: m, l and acc start again in each. Start them once for each block of "
        "queries, outside the loop over keys."),
    Mistake("no scale", in_tiles(scale=lambda d: 1.0), "The scores are not scaled. Divide them by √d_k."),
    Mistake("the scale twice", in_tiles(scale=lambda d: 1 / d),
        "The scores are divided by d_k: the scale 1/√d_k came in twice, or without its root."),
    Mistake("the scale of the values",
        lambda q, k, v, *rest: in_tiles(scale=lambda d: v.shape[1] ** -0.5)(q, k, v, *rest),
        "The scores are divided by √d_v. The scale belongs to q and k: √d_k."),
    Mistake("o is not divided by l", in_tiles(divide=lambda acc, l: acc),
        "o is not divided by l. Divide once, after the last block of keys."),
    Mistake("log l without m", in_tiles(lse=lambda m, l: torch.log(l)),
        "lse is log l here. The sum was taken relative to m, so the log-sum-exp is m + log l."),
    Mistake("m in place of lse", in_tiles(lse=lambda m, l: m),
        "The second result is m, the maximum. The log-sum-exp is m + log l."),
    Mistake("l in place of lse", in_tiles(lse=lambda m, l: l),
        "The second result is l, the sum. The log-sum-exp is m + log l."),
    Mistake("lse in powers of two", in_tiles(lse=lambda m, l: m + torch.log2(l)),
        "lse has log2 l in it. The log-sum-exp is m + log l, the natural logarithm."),
    Mistake("causal left out", in_tiles(mask=no_mask, visible=everything),
        "causal=True changes nothing: every query sees every key."),
    Mistake("tiles on the diagonal not masked", in_tiles(mask=no_mask),
        "Tiles above the diagonal are skipped, but in the tile on the diagonal all keys "
        "are seen. Mask the later ones with −∞."),
    Mistake("upper-left alignment",
        in_tiles(allowed=lambda i, j, n, m: j <= i, visible=lambda queries, n, m: queries[-1]),
        "With n < m the queries are the last n tokens: query i sees keys 0 to i + m − n."),
    Mistake("the mask counts within the tile", in_tiles(local=True),
        "The causal mask compares places within the tile. Compare the numbers of query and key in the whole "
        "sequence: the block's first one plus the place."),
    Mistake("diagonal excluded", in_tiles(allowed=lambda i, j, n, m: j < i + m - n),
        "A query does not see its own token, but it should: j ≤ i + m − n."),
    Mistake("one key too many",
        in_tiles(allowed=lambda i, j, n, m: j <= i + m - n + 1, visible=lambda queries, n, m: queries[-1] + m - n + 1),
        "Each query sees one key too many."),
    Mistake("masked with 0", in_tiles(mask=lambda s, keep: s * keep),
        "Masked scores are 0, which counts as e^0 = 1 before the maximum is subtracted. A score that counts for "
        "nothing is −∞."),
    Mistake("masked after the maximum", in_tiles(mask=no_mask, late=lambda p, keep: p * keep),
        "The mask comes after the maximum: a large masked score pushes all others down to 0. Put −∞ in before the "
        "maximum."),
    Mistake("a tile on the diagonal is skipped", in_tiles(visible=lambda queries, n, m: queries[0] + m - n),
        "A tile is skipped although the last query of the block still sees its first key. Go on as long as the tile's "
        "first key is visible to the block's last query."),
    Mistake("the last block of keys is left out", in_tiles(keys_of=without_the_last), RAGGED),
    Mistake("whole blocks of keys only", in_tiles(keys_of=whole_blocks), RAGGED),
    begun_at("−1e4", -1e4),
    begun_at("−1e9", -1e9),
    Mistake("zeros past the end", in_tiles(padded=True),
        "The last block is padded with scores of 0, each of which counts as e^0. Leave them out, or pad with −∞."),
)  # fmt: skip


# Traffic ------------------------------------------------------------------------------------------------------------


def reference_flash(T, d, block_q, bytes_per_value=2):
    return sum(traffic.tiled_traffic(T, T, d, d, block_q, 1, bytes_per_value).values())


def reference_naive(T, d, bytes_per_value=2):
    return sum(traffic.naive_traffic(T, T, d, d, bytes_per_value).values())


def moved(blocks):
    """Both counts, where k and v are read for each of blocks(T, block_q)."""

    def flash_bytes(T, d, block_q, bytes_per_value=2):
        return (2 * T * d + blocks(T, block_q) * 2 * T * d + T) * bytes_per_value

    return {"flash_bytes": flash_bytes, "naive_bytes": reference_naive}


def whole_blocks_flash(T, d, block_q, bytes_per_value=2):
    rows = math.ceil(T / block_q) * block_q
    return (rows * d + math.ceil(T / block_q) * 2 * T * d + rows * (d + 1)) * bytes_per_value


def q_with_each_block(T, d, block_q, bytes_per_value=2):
    return (math.ceil(T / block_q) * 3 * T * d + T * (d + 1)) * bytes_per_value


BYTES_MISTAKES = (
    Mistake("k and v once in all", moved(lambda T, block_q: 1),
        "In flash_bytes, k and v are read only once. They are read again for every block of queries."),
    Mistake("blocks rounded down", moved(lambda T, block_q: T // block_q),
        "In flash_bytes the number of blocks is rounded down. The last block may be smaller, but it still reads all of "
        "k and v."),
    Mistake("blocks not rounded", moved(lambda T, block_q: T / block_q),
        "In flash_bytes the number of blocks is not a whole number. Round it up."),
    Mistake("k and v for each query", moved(lambda T, block_q: T),
        "In flash_bytes k and v are read for each query. They are read once for each block of queries."),
    Mistake("q or o with each block", {"flash_bytes": q_with_each_block, "naive_bytes": reference_naive},
        "In flash_bytes q or o is moved with every block of queries, as often as k and v. A block of queries stays in "
        "fast memory while the keys are read: all of q is read once, and all of o is written once."),
    Mistake("whole blocks of q", {"flash_bytes": whole_blocks_flash, "naive_bytes": reference_naive},
        "In flash_bytes q, o and lse have as many rows as whole blocks. They have T rows: the last block is shorter."),
)  # fmt: skip


# Backward -----------------------------------------------------------------------------------------------------------


def reference_backward(q, k, v, o, lse, do):
    return tiled.backward(*map(torch.as_tensor, (q, k, v, o, lse, do)))


def backwards(
    scale=lambda d: d**-0.5,
    after=lambda d: d**-0.5,
    weigh=lambda s, lse: torch.exp(s - lse[:, None]),
    delta=lambda do, o, p, dp: (do * o).sum(dim=-1, keepdim=True),
    jacobian=lambda p, dp, delta: p * (dp - delta),
    values=lambda p, ds, do: p.T @ do,
):
    """The backward with one thing changed."""

    def flash_backward(q, k, v, o, lse, do):
        q, k, v, o, lse, do = map(torch.as_tensor, (q, k, v, o, lse, do))
        d = q.shape[1]
        p = weigh(q @ k.T * scale(d), lse)
        dp = do @ v.T
        ds = jacobian(p, dp, delta(do, o, p, dp))
        return ds @ k * after(d), ds.T @ q * after(d), values(p, ds, do)

    return flash_backward


def unscaled(d):
    return 1.0


def scaled_delta(q, k, v, o, lse, do):
    scale = q.shape[1] ** -0.5
    return backwards(delta=lambda do, o, p, dp: (do * o).sum(dim=-1, keepdim=True) * scale)(q, k, v, o, lse, do)


def scaled_by_values(q, k, v, o, lse, do):
    scale = v.shape[1] ** -0.5
    return backwards(scale=lambda d: scale, after=lambda d: scale)(q, k, v, o, lse, do)


def softmax_again(s, lse):
    return torch.softmax(s, dim=-1)


def delta_of_given_keys(do, o, p, dp):
    return (p * dp).sum(dim=-1, keepdim=True)


def dv_from_o(q, k, v, o, lse, do):
    dq, dk, _ = reference_backward(q, k, v, o, lse, do)
    return dq, dk, backwards()(q, k, v, do, lse, torch.as_tensor(o))[2]


def dv_from_dp(q, k, v, o, lse, do):
    dq, dk, _ = reference_backward(q, k, v, o, lse, do)
    v, do = torch.as_tensor(v), torch.as_tensor(do)
    return dq, dk, (do @ v.T).T @ do


BACKWARD_MISTAKES = (
    Mistake("delta left out", backwards(jacobian=lambda p, dp, delta: p * dp),
        "delta is missing: dS = P ∘ (dP − delta), with delta the row sum of do ∘ o. Each weight can only grow at the "
        "expense of the others."),
    Mistake("delta added", backwards(jacobian=lambda p, dp, delta: p * (dp + delta)),
        "delta is added. It is subtracted: dS = P ∘ (dP − delta)."),
    Mistake("dS without P", backwards(jacobian=lambda p, dp, delta: dp - delta),
        "dS is dP − delta here. It is P ∘ (dP − delta): what has little weight gets little gradient."),
    Mistake("delta of a row of do", backwards(delta=lambda do, o, p, dp: do.sum(dim=-1, keepdim=True)),
        "delta is the row sum of do here. It should be the row sum of do ∘ o."),
    Mistake("delta as a mean", backwards(delta=lambda do, o, p, dp: (do * o).mean(dim=-1, keepdim=True)),
        "delta is a mean over the value dimensions. It is a sum."),
    Mistake("one delta for all queries", backwards(delta=lambda do, o, p, dp: (do * o).sum()),
        "delta is one number for all queries. Each query has its own: sum along the last axis, and keep that axis."),
    Mistake("delta from the given keys", backwards(delta=delta_of_given_keys),
        "delta is computed from the given keys, as the row sum of P ∘ dP. That is right only when these are all keys. "
        "rowsum(do ∘ o) is always right, and cheaper."),
    Mistake("softmax again", backwards(weigh=softmax_again),
        "P is a softmax over the given keys, and lse is not used. k and v may belong to only some of the keys: the "
        "weights are e^(score − lse)."),
    Mistake("softmax again, delta too",
        backwards(weigh=softmax_again, delta=delta_of_given_keys),
        "Everything is computed again from q, k and v, and neither o nor lse is used. k and v may belong to only some "
        "of the keys: the weights are e^(score − lse), and delta is rowsum(do ∘ o)."),
    Mistake("lse for each key", backwards(weigh=lambda s, lse: torch.exp(s - lse)),
        "lse is subtracted along the keys. It has one number for each query, so make it a column: lse[:, None]."),
    Mistake("lse taken for l", backwards(weigh=lambda s, lse: torch.exp(s) / lse[:, None]),
        "P is e^score divided by lse. lse is a logarithm: e^(score − lse)."),
    Mistake("lse added", backwards(weigh=lambda s, lse: torch.exp(s + lse[:, None])),
        "P is e^(score + lse). Dividing by the sum is subtracting its logarithm: e^(score − lse)."),
    Mistake("P without the scale", backwards(scale=unscaled),
        "The scores are not scaled when P is computed again. lse is the log-sum-exp of the scaled scores."),
    Mistake("scaled by d_k", backwards(scale=lambda d: 1 / d, after=lambda d: 1 / d),
        "The scale is 1/d_k here, in the scores and in dq and dk. It is 1/√d_k."),
    Mistake("the scores scaled by d_k", backwards(scale=lambda d: 1 / d),
        "The scores are divided by d_k when P is computed again. lse belongs to scores divided by √d_k."),
    Mistake("the scale upside down", backwards(scale=lambda d: d**0.5, after=lambda d: d**0.5),
        "The scale is √d_k here. It is 1/√d_k."),
    Mistake("the scale of the values",
        scaled_by_values,
        "The scale is computed from d_v. It is 1/√d_k: scores are products of queries and keys."),
    Mistake("powers of two", backwards(weigh=lambda s, lse: torch.exp2(s - lse[:, None])),
        "P is 2^(score − lse). It is e^(score − lse)."),
    Mistake("P without lse", backwards(weigh=lambda s, lse: torch.exp(s)),
        "P is e^score, not normalised. It is e^(score − lse)."),
    Mistake("the largest score in place of lse",
        backwards(weigh=lambda s, lse: torch.exp(s - s.amax(dim=-1, keepdim=True))),
        "P is e^(score − the largest score), not normalised. It is e^(score − lse), and lse is given."),
    Mistake("P and delta not in one bracket", backwards(jacobian=lambda p, dp, delta: p * dp - delta),
        "dS is P ∘ dP − delta here. P multiplies both: P ∘ (dP − delta)."),
    Mistake("delta twice", backwards(jacobian=lambda p, dp, delta: p * (dp - 2 * delta)), "delta is subtracted twice."),
    Mistake("delta of o", backwards(delta=lambda do, o, p, dp: o.sum(dim=-1, keepdim=True)),
        "delta is the row sum of o here. It should be the row sum of do ∘ o."),
    Mistake("delta of do ∘ do", backwards(delta=lambda do, o, p, dp: (do * do).sum(dim=-1, keepdim=True)),
        "delta is the row sum of do ∘ do here. It should be the row sum of do ∘ o."),
    Mistake("delta of o ∘ o", backwards(delta=lambda do, o, p, dp: (o * o).sum(dim=-1, keepdim=True)),
        "delta is the row sum of o ∘ o here. It should be the row sum of do ∘ o."),
    Mistake("delta over all queries' products",
        backwards(delta=lambda do, o, p, dp: (do @ o.T).sum(dim=-1, keepdim=True)),
        "delta is the row sum of do oᵀ here, which mixes queries. It should be the row sum of do ∘ o, entry by entry."),
    Mistake("delta scaled", scaled_delta,
        "delta is divided by √d_k. It is the row sum of do ∘ o as it is: the scale comes in afterwards, for dP − delta "
        "as a whole."),
    Mistake("P (1 − P)", backwards(jacobian=lambda p, dp, delta: p * (1 - p) * dp),
        "dS is P (1 − P) dP, the derivative of a sigmoid. Each weight of a softmax depends on "
        "all scores of its row: P ∘ (dP − delta)."),
    Mistake("P squared", backwards(jacobian=lambda p, dp, delta: p * p * (dp - delta)),
        "P is multiplied twice: dS = P ∘ (dP − delta)."),
    Mistake("dv from o",
        dv_from_o,
        "dv is Pᵀ o here. It is Pᵀ do."),
    Mistake("dv from dP",
        dv_from_dp,
        "dv is dPᵀ do here. o = P v, so dv = Pᵀ do."),
    Mistake("no scale at all", backwards(scale=unscaled, after=unscaled),
        "The scale 1/√d_k is missing, in the scores and in dq and dk."),
    Mistake("dv from dS", backwards(values=lambda p, ds, do: ds.T @ do), "dv is dSᵀ do here. o = P v, so dv = Pᵀ do."),
)  # fmt: skip


# Backward of a block of queries --------------------------------------------------------------------------------------


def reference_block_backward(q, k, v, o, lse, do, first, block_k):
    return block_backwards()(q, k, v, o, lse, do, first, block_k)


def block_backwards(
    scale=lambda d: d**-0.5,
    after=lambda d: d**-0.5,
    allowed=lambda row, column: column <= row,
    mask=lambda s, keep: s.masked_fill(~keep, -INFINITY),
    weigh=lambda s, lse: torch.exp(s - lse[:, None]),
    late=lambda p, keep: p,
    delta=lambda do, o, p, dp: (do * o).sum(dim=-1, keepdim=True),
    jacobian=lambda p, dp, delta: p * (dp - delta),
    stop=lambda first, b, m: min(first + b, m),
    keys_of=lambda stop, block_k: range(0, stop, block_k),
    local=lambda first, j: (first, j),
    more=lambda dq, tile: dq + tile,
    at=lambda j: j,
    values=lambda p, ds, do: p.T @ do,
):
    """The backward of one block of queries, tile by tile, with one thing changed."""

    def block_backward(q, k, v, o, lse, do, first, block_k):
        q, k, v, o, lse, do = map(torch.as_tensor, (q, k, v, o, lse, do))
        d = q.shape[1]
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        end = stop(first, len(q), len(k))
        for j in keys_of(end, block_k):
            tile = slice(j, min(j + block_k, len(k)))
            s = q @ k[tile].T * scale(d)
            rows, columns = (start + torch.arange(n) for start, n in zip(local(first, j), s.shape, strict=True))
            keep = allowed(rows[:, None], columns)
            p = late(weigh(mask(s, keep), lse), keep)
            dp = do @ v[tile].T
            ds = jacobian(p, dp, delta(do, o, p, dp))
            dq = more(dq, ds @ k[tile] * after(d))
            place = slice(at(j), at(j) + s.shape[1])
            dk[place] += ds.T @ q * after(d)
            dv[place] += values(p, ds, do)
        return dq, dk, dv

    return block_backward


def all_tiles(first, b, m):
    return m


def unmasked(s, keep):
    return s


def whole_row(q, k, v, o, lse, do, first, block_k):
    """All keys that the block sees in one tile."""
    return block_backwards()(q, k, v, o, lse, do, first, len(k))


def first_rows_only(j):
    return 0


BLOCK_MISTAKES = (
    Mistake("not in tiles", whole_row,
        "The gradients are right, but the block meets all its keys in one tile. Loop over the keys, block_k at a time, "
        "and let each tile go before the next."),
    Mistake("masked, not skipped", block_backwards(stop=all_tiles),
        "The gradients are right, but tiles that no query in the block sees are made and masked. End the loop after "
        "the last key that the block's last query sees."),
    Mistake("not masked", block_backwards(mask=unmasked),
        "Nothing is masked in the tiles that are visited. The query of row r sees the keys up to first + r: P is 0 "
        "elsewhere."),
    Mistake("no mask at all", block_backwards(mask=unmasked, stop=all_tiles),
        "Every query sees every key. The query of row r sees the keys up to first + r."),
    Mistake("masked with 0", block_backwards(mask=lambda s, keep: s * keep),
        "Masked scores are 0, and e^(0 − lse) is not 0. Put −∞ in their place."),
    Mistake("masked after the exponential", block_backwards(mask=unmasked, late=lambda p, keep: p * keep),
        "The mask comes after the exponential. Where a later key has a large score, e^(score − lse) is ∞, and ∞ · 0 is "
        "NaN. Put −∞ into the scores before."),
    Mistake("the mask counts within the tile", block_backwards(local=lambda first, j: (0, 0)),
        "The mask compares places within the tile. Row r is token first + r of the text, and column c is token j + c."),
    Mistake("first left out", block_backwards(local=lambda first, j: (0, j)),
        "The rows are counted from 0. Row r of the block is token first + r of the text."),
    Mistake("diagonal excluded", block_backwards(allowed=lambda row, column: column < row),
        "A query does not see its own key. It should: the keys up to first + r."),
    Mistake("one key too many", block_backwards(allowed=lambda row, column: column <= row + 1,
        stop=lambda first, b, m: min(first + b + 1, m)),
        "Each query sees one key too many. The query of row r sees the keys up to first + r."),
    Mistake("ends at the block's first query", block_backwards(stop=lambda first, b, m: min(first + 1, m)),
        "The loop ends at the last key that the block's first query sees. The last query sees more: go on to "
        "first + b − 1."),
    Mistake("whole tiles only",
        block_backwards(keys_of=lambda stop, block_k: range(0, stop // block_k * block_k, block_k)),
        "The last, smaller tile of keys is left out. range(0, stop, block_k) begins a tile there."),
    Mistake("dq of the last tile", block_backwards(more=lambda dq, tile: tile),
        "dq comes from the last tile of keys alone. It should be the sum over all tiles."),
    Mistake("each tile in the first rows", block_backwards(at=first_rows_only),
        "Every tile is added to the first rows of dk and dv. The tile that begins at key j belongs to the rows "
        "starting at j."),
    Mistake("delta left out", block_backwards(jacobian=lambda p, dp, delta: p * dp),
        "delta is missing: dS = P ∘ (dP − delta), with delta the row sum of do ∘ o."),
    Mistake("delta of each tile", block_backwards(delta=lambda do, o, p, dp: (p * dp).sum(dim=-1, keepdim=True)),
        "delta is computed from one tile, by P ∘ dP. It belongs to the whole row: rowsum(do ∘ o), because o is already "
        "a sum over the row."),
    Mistake("softmax of each tile", block_backwards(weigh=lambda s, lse: torch.nan_to_num(torch.softmax(s, dim=-1))),
        "P is a softmax over one tile. lse belongs to all keys that the query sees: P = e^(score − lse)."),
    Mistake("the scale is missing after", block_backwards(after=lambda d: 1.0),
        "dq and dk are too large by √d_k: the scores were divided by √d_k, so their gradient is, too."),
    Mistake("the scale is missing in P", block_backwards(scale=lambda d: 1.0),
        "The scores are not divided by √d_k when P is computed again. lse is the log-sum-exp of the scaled scores."),
    Mistake("no scale at all", block_backwards(scale=lambda d: 1.0, after=lambda d: 1.0),
        "√d_k is missing, in the scores and in dq and dk."),
    Mistake("lse taken for l", block_backwards(weigh=lambda s, lse: torch.exp(s) / lse[:, None]),
        "P is e^score divided by lse. lse is a logarithm: e^(score − lse)."),
    Mistake("dv from dS", block_backwards(values=lambda p, ds, do: ds.T @ do),
        "dv is dSᵀ do here. o = P v, so dv = Pᵀ do."),
)  # fmt: skip


# A row in blocks, in NumPy --------------------------------------------------------------------------------------------


def passed_over(
    fill=lambda s, seen: np.where(seen, s, -INFINITY),
    value=lambda v, seen: np.where(seen, v, 0.0),
    start=-INFINITY,
    blocks=lambda n, BLOCK: range(0, n, BLOCK),
    at=lambda j, BLOCK: j,
    seen_up_to=lambda n: n,
    maximum=lambda m, s: np.maximum(m, s.max()),
    l_factor=lambda f: f,
    o_factor=lambda f: f,
    power=lambda s, old, new: np.exp(s - new),
    factor=lambda old, new: np.exp(old - new),
    after=lambda x, f: x,
    late=False,
    end=lambda m, l, o: (m, l, o),
):
    """The pass over a row with one thing changed."""

    def one_pass(scores, values, n, BLOCK):
        m, l, o = start, 0.0, 0.0
        with np.errstate(all="ignore"):
            for j in blocks(n, BLOCK):
                columns = at(j, BLOCK) + np.arange(BLOCK)
                seen = columns < seen_up_to(n)
                reach = np.minimum(columns, len(scores) - 1)
                s, v = scores[reach], value(values[reach], seen)
                if not late:
                    s = fill(s, seen)
                new = maximum(m, s)
                p = power(s, m, new)
                if late:
                    p = np.where(seen, p, 0.0)
                f = factor(m, new)
                l = after(l * l_factor(f) + p.sum(), f)
                o = after(o * o_factor(f) + (p * v).sum(), f)
                m = new
        return end(m, l, o)

    return one_pass


def one(factor):
    return np.ones_like(factor)


def nothing_left(f):
    return 0.0


ROW_MISTAKES = (
    Mistake("o is not rescaled", passed_over(o_factor=one),
        "lse is right and o is not: o does not shrink when the maximum grows. It has the same factor as l."),
    Mistake("l is not rescaled", passed_over(l_factor=one),
        "l does not shrink when the maximum grows: multiply it by e^(m_old − m_new) before the block is added."),
    Mistake("nothing is rescaled", passed_over(l_factor=one, o_factor=one),
        "Neither l nor o shrinks when the maximum grows: multiply both by e^(m_old − m_new)."),
    Mistake("the factor upside down", passed_over(factor=lambda old, new: np.exp(new - old)),
        "The factor is upside down: it is e^(m_old − m_new), at most 1."),
    Mistake("zeros past the end", passed_over(fill=lambda s, seen: np.where(seen, s, 0.0)),
        "What lies past the end counts as a score of 0, and e^0 is not 0. Which score has a weight of 0?"),
    Mistake("no mask", passed_over(fill=lambda s, seen: s),
        "The last block counts numbers that lie after the row. Which of its columns are in the row?"),
    Mistake("the values without a mask", passed_over(value=lambda v, seen: v),
        "lse is right, but o is NaN: the memory after the values may hold anything, here NaN, and 0 · NaN is NaN, as 0 "
        "· −∞ is. The values need a mask too."),
    Mistake("neither with a mask", passed_over(fill=lambda s, seen: s, value=lambda v, seen: v),
        "Nothing is masked, so the last block reads what lies after the row and after the values."),
    Mistake("masked after the maximum", passed_over(late=True),
        "The mask comes after the maximum, so a number after the row can be the maximum. Put −∞ in before tl.max."),
    Mistake("one number too many", passed_over(seen_up_to=lambda n: n + 1, value=lambda v, seen: np.nan_to_num(v)),
        "One number too many is read: columns < n, since columns count from 0."),
    Mistake("one number too few", passed_over(seen_up_to=lambda n: n - 1),
        "The last number of the row is left out: columns < n, since columns count from 0."),
    Mistake("whole blocks only", passed_over(blocks=lambda n, BLOCK: range(0, n // BLOCK * BLOCK, BLOCK)),
        "A last block that is not whole is left out. The loop goes on to n, and the mask does the rest."),
    Mistake("one block only", passed_over(blocks=lambda n, BLOCK: range(0, min(n, BLOCK), BLOCK)),
        "Only the first block is read. Go on in steps of BLOCK, up to n."),
    Mistake("the first block always", passed_over(at=lambda j, BLOCK: 0),
        "Every turn reads the first block: the columns are start + tl.arange(0, BLOCK)."),
    Mistake("the start is multiplied by BLOCK", passed_over(at=lambda j, BLOCK: j * BLOCK),
        "The columns begin at start · BLOCK. start already counts numbers, in steps of BLOCK."),
    Mistake("m begins at a number", passed_over(start=-1e9),
        "m begins at a number, 0 or −1e9 for instance. Where all scores are far below it, every e^(score − m) is 0. "
        'Begin at float("-inf").'),
    Mistake("filled with −1e9", passed_over(fill=lambda s, seen: np.where(seen, s, -1e9)),
        "What lies past the end counts as a score of −1e9. Scores may lie below that: other=float(\"-inf\")."),
    Mistake("each block its own maximum", passed_over(maximum=lambda m, s: s.max()),
        "m is the maximum of the block alone. Take the larger of that and m: otherwise the factor can overflow."),
    Mistake("each block alone", passed_over(l_factor=nothing_left, o_factor=nothing_left),
        "l and o hold only the last block: add to the rescaled sums of the blocks before it."),
    Mistake("rescaled after adding", passed_over(l_factor=one, o_factor=one, after=lambda x, f: x * f),
        "What this block adds is rescaled too, although it is already relative to the new maximum. Rescale first, then "
        "add. At the first block the factor is 0, and everything is lost."),
    Mistake("no maximum subtracted", passed_over(power=lambda s, old, new: np.exp(s)),
        "The weights are e^s. Subtract the running maximum first, e^(s − m_new): otherwise they overflow, and do not "
        "fit the factor."),
    Mistake("relative to the old maximum", passed_over(power=lambda s, old, new: np.exp(s - old)),
        "The weights are relative to the maximum before this block, which is −∞ at first. Subtract m_new."),
    Mistake("o is divided by l", passed_over(end=lambda m, l, o: (m, l, o / l)),
        "o is divided by l. The kernel does that: return the sum."),
    Mistake("(m, o, l)", passed_over(end=lambda m, l, o: (m, o, l)),
        "l and o have changed places, so the kernel divides l by o. Return (m, l, o)."),
    Mistake("(l, m, o)", passed_over(end=lambda m, l, o: (l, m, o)),
        "m and l have changed places, so the kernel divides o by m. Return (m, l, o)."),
    Mistake("(o, l, m)", passed_over(end=lambda m, l, o: (o, l, m)),
        "m and o have changed places, so the kernel divides m by l. Return (m, l, o)."),
    Mistake("(l, o, m)", passed_over(end=lambda m, l, o: (l, o, m)),
        "The three numbers come in a different order, so the kernel divides m by o. Return (m, l, o)."),
    Mistake("(o, m, l)", passed_over(end=lambda m, l, o: (o, m, l)),
        "The three numbers come in a different order, so the kernel divides l by m. Return (m, l, o)."),
    Mistake("powers of two", passed_over(power=lambda s, old, new: np.exp2(s - new),
        factor=lambda old, new: np.exp2(old - new)),
        "The exponentials are powers of 2. Here the scores are used as they are: tl.exp."),
)  # fmt: skip


# The Triton loop, in NumPy ------------------------------------------------------------------------------------------


def looped(
    exp2=np.exp2,
    scale=lambda scale_log2, D_HEAD: scale_log2,
    mask=lambda s, columns, j, last: np.where(columns[None, :] <= last[:, None], s, -INFINITY),
    blocks=range,
    l_factor=lambda f: f,
    acc_factor=lambda f: f,
    maximum=lambda m, s: np.maximum(m, s),
    head_of=lambda head: head,
    begin=lambda acc, l, m: (acc, l, m),
    end=lambda acc, l, m, given: (acc, l, m),
    late=False,
    masks=lambda masked: masked,
    at=lambda j, BLOCK_K: j,
    tiles=lambda k, v: (k, v),
    weights=lambda exp2, s, new, m, scale_log2: exp2(s - new[:, None]),
    sums=lambda p: p.sum(axis=1),
    blend=lambda p, v: p @ v,
    after=lambda x, factor: x,
):
    """The inner loop with one thing changed."""

    def attend_to_keys(acc, l, m, q, keys, values, head, start, stop, last, scale_log2, MASKED, D_HEAD, BLOCK_K):
        given = m
        acc, l, m = begin(acc, l, m)
        with np.errstate(all="ignore"):
            for j in blocks(start, stop, BLOCK_K):
                place = [head_of(head), at(j, BLOCK_K), 0]
                k, v = tiles(*(x.load(place).reshape(BLOCK_K, D_HEAD) for x in (keys, values)))
                s = q @ k.T * scale(scale_log2, D_HEAD)
                columns = j + np.arange(BLOCK_K)
                if masks(MASKED) and not late:
                    s = mask(s, columns, j, last)
                new = maximum(m, s.max(axis=1))
                p = weights(exp2, s, new, m, scale_log2)
                if masks(MASKED) and late:
                    p = np.where(columns[None, :] <= last[:, None], p, 0.0)
                factor = exp2(m - new)
                l = after(l * l_factor(factor) + sums(p), factor)
                acc = after(acc * acc_factor(factor)[:, None] + blend(p, v), factor[:, None])
                m = new
        return end(acc, l, m, given)

    return attend_to_keys


def anew(acc, l, m):
    return np.zeros_like(acc), np.zeros_like(l), np.full_like(m, -INFINITY)


def scaled_after_the_maximum(exp2, s, new, m, scale):
    return exp2((s - new[:, None]) * scale)


def normalised_by_block(exp2, s, new, m, scale):
    return exp2(s - new[:, None]) / exp2(s - new[:, None]).sum(axis=1, keepdims=True)


LOOP_MISTAKES = (
    Mistake("acc is not rescaled", looped(acc_factor=one),
        "lse is right but o is not: acc is not rescaled when the maximum grows. Give tl.dot acc * rescale[:, None] to "
        "add to."),
    Mistake("l is not rescaled", looped(l_factor=one),
        "l is not rescaled when the maximum grows. It shrinks by the same factor as acc, 2^(m_old − m_new)."),
    Mistake("nothing is rescaled", looped(l_factor=one, acc_factor=one),
        "Neither l nor acc is rescaled when the maximum grows: multiply both by 2^(m_old − m_new)."),
    Mistake("the factor upside down", looped(l_factor=lambda f: 1 / f, acc_factor=lambda f: 1 / f),
        "The factor is upside down: it is 2^(m_old − m_new), at most 1."),
    Mistake("e in place of 2", looped(exp2=np.exp),
        "The exponentials have base e. scale_log2 holds the scale times log2 e, so that 2^x does the work: tl.exp2."),
    Mistake("no scale", looped(scale=lambda scale_log2, D_HEAD: 1.0), "The scores are not multiplied by scale_log2."),
    Mistake("log2 e left out", looped(scale=lambda scale_log2, D_HEAD: D_HEAD**-0.5),
        "The scores are scaled by 1/√d_head only. In powers of two they need log2 e as well: scale_log2 holds both."),
    Mistake("the scale twice", looped(scale=lambda scale_log2, D_HEAD: scale_log2 * D_HEAD**-0.5),
        "The scale 1/√d_head comes in twice: scale_log2 already includes it."),
    Mistake("log2 e twice", looped(scale=lambda scale_log2, D_HEAD: scale_log2 * math.log2(math.e)),
        "log2 e comes in twice: scale_log2 already includes it."),
    Mistake("no mask", looped(masks=lambda masked: False),
        "Nothing is masked. Where MASKED is True, a query sees columns up to its entry of last."),
    Mistake("the mask turned round",
        looped(mask=lambda s, columns, j, last: np.where(columns[None, :] <= last[:, None], -INFINITY, s)),
        "The mask is turned round: keep the score where the column is at most last, and put −∞ elsewhere."),
    Mistake("the last key excluded",
        looped(mask=lambda s, columns, j, last: np.where(columns[None, :] < last[:, None], s, -INFINITY)),
        "The last key that a query sees is blocked. last is a key that it sees: columns <= last."),
    Mistake("one key too many",
        looped(mask=lambda s, columns, j, last: np.where(columns[None, :] <= last[:, None] + 1, s, -INFINITY)),
        "One key too many is seen: columns <= last."),
    Mistake("columns without j",
        looped(mask=lambda s, columns, j, last: np.where(columns[None, :] - j <= last[:, None], s, -INFINITY)),
        "The columns of the mask begin at 0 in every block. They count in the whole sequence, from j: j + tl.arange(0, "
        "BLOCK_K)."),
    Mistake("masked with 0",
        looped(mask=lambda s, columns, j, last: np.where(columns[None, :] <= last[:, None], s, 0.0)),
        'Masked scores are 0, and count like any other. −∞ counts for nothing: float("-inf").'),
    Mistake("masked after the maximum", looped(late=True),
        "The mask comes after the maximum. A large masked score pushes all others down to 0: put −∞ in before tl.max."),
    Mistake("the loop begins at 0", looped(blocks=lambda start, stop, step: range(0, stop, step)),
        "The loop begins at 0 each time, so the second call counts keys that the first has already counted. Begin at "
        "start."),
    Mistake("one block too few", looped(blocks=lambda start, stop, step: range(start, stop - step, step)),
        "The last block is left out: the loop ends at stop, as range does, with the "
        "last block possibly reaching beyond it."),
    Mistake("whole blocks only",
        looped(blocks=lambda start, stop, step: range(start, start + (stop - start) // step * step, step)),
        "The last block is left out where it is not whole. The loop ends at stop; what is past the "
        "last key reads as zeros and is masked."),
    Mistake("the state begins anew", looped(begin=anew),
        "acc, l and m start again in each call, so what the first call gathered is lost. Go on from the ones that are "
        "passed in."),
    Mistake("m stays as it was", looped(end=lambda acc, l, m, given: (acc, l, given)),
        "The returned m is the old one. Set m = m_new at the end of each turn."),
    Mistake("each block its own maximum", looped(maximum=lambda m, s: s),
        "m is the maximum of the block alone. Take the larger of that and m: otherwise the factor can overflow."),
    Mistake("each block alone", looped(l_factor=np.zeros_like, acc_factor=np.zeros_like),
        "l and acc hold only the last block: add to the sums of the blocks before it, rescaled by 2^(m_old − m_new)."),
    Mistake("acc of the last block alone", looped(acc_factor=np.zeros_like),
        "lse is right, but acc holds only the last block: add p · v to acc * rescale[:, None], the third argument of "
        "tl.dot."),
    Mistake("l of the last block alone", looped(l_factor=np.zeros_like),
        "l holds only the last block. It should be l * rescale plus the sum of p."),
    Mistake("rescaled after adding", looped(l_factor=one, acc_factor=one, after=lambda x, factor: x * factor),
        "What this block adds is rescaled too, although it is already relative to the new maximum. Rescale first, then "
        "add. At the first block the factor is 0, and everything is lost."),
    Mistake("only the factor in powers of e", looped(l_factor=lambda f: f**LOG2_E, acc_factor=lambda f: f**LOG2_E),
        "The weights are powers of 2 and the factor is a power of e: both are tl.exp2."),
    Mistake("only the weights in powers of e", looped(weights=lambda exp2, s, new, m, scale: np.exp(s - new[:, None])),
        "The factor is a power of 2 and the weights are powers of e: both are tl.exp2."),
    Mistake("no maximum subtracted", looped(weights=lambda exp2, s, new, m, scale: exp2(s)),
        "The weights are 2^s. Subtract the running maximum first, 2^(s − m_new): otherwise "
        "they overflow, and do not fit the factor."),
    Mistake("relative to the old maximum", looped(weights=lambda exp2, s, new, m, scale: exp2(s - m[:, None])),
        "The weights are relative to the maximum before this block, which is −∞ at first. Subtract m_new."),
    Mistake("the scale after the maximum",
        looped(scale=lambda scale_log2, D_HEAD: 1.0, weights=scaled_after_the_maximum),
        "scale_log2 is multiplied to s − m_new, so m and the factor are in different units from the weights. Scale the "
        "scores first, then take the maximum."),
    Mistake("divided by the scale", looped(scale=lambda scale_log2, D_HEAD: 1 / scale_log2),
        "The scores are divided by scale_log2. Multiply: it is log2 e / √d_head."),
    Mistake("m in powers of e", looped(end=lambda acc, l, m, given: (acc, l, m / LOG2_E)),
        "m is converted to powers of e. The kernel does that at its end: m counts in powers of two."),
    Mistake("acc is divided by l", looped(end=lambda acc, l, m, given: (acc / l[:, None], l, m)),
        "acc is divided by l. The kernel divides once, after both calls: return the sum."),
    Mistake("(acc, m, l)", looped(end=lambda acc, l, m, given: (acc, m, l)),
        "l and m have changed places: return (acc, l, m)."),
    Mistake("acc and l are divided",
        looped(weights=normalised_by_block),
        "The weights of each block are normalised by themselves. Sum them into l as they "
        "are; the kernel divides by l at its end."),
    Mistake("the values are the keys", looped(tiles=lambda k, v: (k, k)),
        "p meets the keys where the values should be: load v from values."),
    Mistake("the keys are the values", looped(tiles=lambda k, v: (v, v)),
        "q meets the values where the keys should be: load k from keys."),
    Mistake("keys and values exchanged", looped(tiles=lambda k, v: (v, k)),
        "Keys and values are exchanged: q should meet the keys, and p the values."),
    Mistake("the keys not transposed", looped(tiles=lambda k, v: (k.T, v)),
        "The tile of keys is not transposed: scores are q · kᵀ, a row for each query and a column for each key. With "
        "square tiles this raises no error."),
    Mistake("the weights transposed", looped(blend=lambda p, v: p.T @ v),
        "The weights are transposed before they meet the values. p is (BLOCK_Q, BLOCK_K) "
        "and v is (BLOCK_K, D_HEAD): tl.dot(p, v)."),
    Mistake("summed over queries", looped(sums=lambda p: p.sum(axis=0)),
        "The weights are summed over the queries, axis 0. l has one number for each query: tl.sum(p, 1)."),
    Mistake("j is multiplied by BLOCK_K", looped(at=lambda j, BLOCK_K: j * BLOCK_K),
        "The tile begins at j · BLOCK_K. j already counts keys, from start in steps of BLOCK_K: load [head, j, 0]."),
    Mistake("the first tile always", looped(at=lambda j, BLOCK_K: 0),
        "Every turn loads the first tile: load [head, j, 0]."),
    Mistake("blocks numbered from 0", looped(blocks=lambda start, stop, step: range(start // step, stop // step)),
        "j counts blocks here, 0, 1, 2, and is used as the number of a key. Step by "
        "BLOCK_K: tl.range(start, stop, BLOCK_K)."),
    Mistake("one key at a time", looped(blocks=lambda start, stop, step: range(start, stop)),
        "The loop moves on by one key, but each turn takes BLOCK_K keys, so keys count several times. Step by BLOCK_K: "
        "tl.range(start, stop, BLOCK_K)."),
    Mistake("one block too many", looped(blocks=lambda start, stop, step: range(start, stop + step, step)),
        "The loop goes one block too far. It ends before stop, as range does."),
    Mistake("head 0 always", looped(head_of=lambda head: 0),
        "Keys and values are always those of head 0. Load from [head, j, 0]."),
)  # fmt: skip


# Find the bug -------------------------------------------------------------------------------------------------------


def streamed(
    cut=lambda start, block_k, length: min(start + block_k, length),
    blocks=lambda length, block_k: range(0, length, block_k),
    score=lambda s, seen: s,
    share=lambda p, seen: p,
    acc=lambda acc, f, pv: acc * f[..., None] + pv,
    l=lambda l, f, row: l * f + row,
):
    """Attention to the first `length` keys of a cache in blocks, with which keys a block takes and what counts."""

    def broken_tiled_attention(q, k, v, length, block_k):
        q, k, v = map(torch.as_tensor, (q, k, v))
        m = q.new_full(q.shape[:-1], -INFINITY)
        total, blend = torch.zeros_like(m), q.new_zeros(*q.shape[:-1], v.shape[-1])
        for start in blocks(length, block_k):
            stop = cut(start, block_k, length)
            keys, values = k[..., start:stop, :], v[..., start:stop, :]
            seen = torch.arange(start, start + keys.shape[-2]) < length
            s = score(q @ keys.mT * q.shape[-1] ** -0.5, seen)
            new = torch.maximum(m, s.amax(dim=-1))
            p, factor = share(torch.exp(s - new[..., None]), seen), torch.exp(m - new)
            total, blend = l(total, factor, p.sum(dim=-1)), acc(blend, factor, p @ values)
            m = new
        return blend / total[..., None], m + torch.log(total)

    return broken_tiled_attention


def beyond(start, block_k, length):
    return start + block_k


def whole(q, k, v, length, block_k):
    """Right values, from all keys in one block."""
    return streamed()(q, k, v, length, length)


BUG_MISTAKES = (
    Mistake("the bug as it stands", streamed(cut=beyond),
        "The numbers are still those of the broken code. Take a cache with room for three keys of which two count, and "
        "blocks of three: how many terms does the sum have?"),
    Mistake("the whole cache", streamed(blocks=lambda length, block_k: range(1), cut=lambda *_: None),
        "All keys of the cache count now. Only the first `length` of them do."),
    Mistake("whole blocks only",
        streamed(blocks=lambda length, block_k: range(0, length // block_k * block_k, block_k)),
        "A last block that is not whole is left out now, and its keys count too."),
    Mistake("scores of 0 past the length", streamed(cut=beyond, score=lambda s, seen: s * seen),
        "The keys past the length have a score of 0 now. e^0 is 1, so they still count."),
    Mistake("masked after the maximum", streamed(cut=beyond, share=lambda p, seen: p * seen),
        "The keys past the length have weight 0 now, but one of them can still be the maximum, and push all others "
        "down to 0. Leave them out before the maximum is taken."),
    Mistake("filled with −1e9 or so", streamed(cut=beyond, score=lambda s, seen: torch.where(seen, s, -30.0)),
        "The keys past the length have a low score, but it still counts. Leave them out, or use −∞."),
    Mistake("one key too few", streamed(cut=lambda start, block_k, length: min(start + block_k, length - 1),
        blocks=lambda length, block_k: range(0, max(length - 1, 1), block_k)),
        "The last key that counts is left out. A slice ends before its second number."),
    Mistake("one key too many", streamed(cut=lambda start, block_k, length: min(start + block_k, length + 1)),
        "One key too many counts. A slice ends before its second number, so use the length there."),
    Mistake("the blend is not rescaled any more", streamed(acc=lambda acc, f, pv: acc + pv),
        "What shrinks when the maximum grows was right before. Now the blend does not."),
    Mistake("not in blocks", whole,
        "The numbers are right, but the loop no longer takes block_k keys at a time: it takes all at once, or one by "
        "one, whatever block_k is. Keep the loop over blocks of keys, and change only which keys it takes."),
)  # fmt: skip


EXERCISES = {
    "by_hand_online": Exercise(3, worked(), HAND_MISTAKES, rtol=0.0, atol=THREE_DECIMALS),
    "online_softmax": Exercise(3, {"online_max_sum": running()}, ONLINE_MISTAKES),
    "merge_partials": Exercise(4, {"merge": reference_merge}, MERGE_MISTAKES),
    "tiled_attention": Exercise(6, {"tiled_attention": reference_tiled}, TILED_MISTAKES),
    "bytes_moved": Exercise(
        2, {"flash_bytes": reference_flash, "naive_bytes": reference_naive}, BYTES_MISTAKES, rtol=1e-7
    ),
    "find_the_bug": Exercise(2, {"broken_tiled_attention": streamed()}, BUG_MISTAKES),
    "flash_backward": Exercise(5, {"flash_backward": reference_backward}, BACKWARD_MISTAKES),
    "block_backward": Exercise(5, {"block_backward": reference_block_backward}, BLOCK_MISTAKES),
    "row_in_blocks": Exercise(4, {"one_pass": passed_over()}, ROW_MISTAKES, rtol=1e-4, atol=1e-4),
    "triton_inner_loop": Exercise(5, {"attend_to_keys": looped()}, LOOP_MISTAKES, rtol=1e-4, atol=1e-4),
    "tells_right": duel(),
}
