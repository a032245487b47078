"""Day 8: the answers to its exercises, and the mistakes that people make in them.

Those marked with a source are bugs that were public in a library or in a model's code.
"""

import math

import numpy as np

from course_utils.answers.day8.duel import duel
from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.days.day8.duel import rotated

# A text in parts ------------------------------------------------------------------------------------------------------


def in_parts(cached=lambda k, start, end: rotated(k, np.arange(start, end)), asked=lambda q, start, end: rotated(
        q, np.arange(start, end)), read=lambda keys, end: keys, again=lambda keys, end: keys,
        values=lambda v, end: v, seen=lambda start, end: np.arange(end) <= np.arange(start, end)[:, None]):  # fmt: skip
    """broken_steps with one step exchanged for a wrong one; every step not named is right.

    cached(k, start, end): what the cache takes of a part. again(keys, end): the cache after that, which stays so;
    read(keys, end): what the queries meet. asked(q, start, end): the queries of a part.
    """

    def broken_steps(q, k, v, sizes):
        keys, outputs, end = np.zeros((0, q.shape[-1])), [], 0
        for size in sizes:
            start, end = end, end + size
            keys = again(np.concatenate([keys, cached(k[start:end], start, end)]), end)
            scores = asked(q[start:end], start, end) @ read(keys, end).T / math.sqrt(q.shape[-1])
            scores = np.where(seen(start, end), scores, -np.inf)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            outputs.append(weights / weights.sum(axis=1, keepdims=True) @ values(v[:end], end))
        return np.concatenate(outputs)

    return broken_steps


def anew(x, start, end):
    return rotated(x, np.arange(end - start))


def as_it_is(x, start, end):
    return x


def newest_only(q, k, v, sizes):
    """Only the part that has just come is rotated, on the way to the queries."""
    outputs, end = [], 0
    for size in sizes:
        start, end = end, end + size
        keys = np.concatenate([k[:start], rotated(k[start:end], np.arange(start, end))])
        step = in_parts(cached=as_it_is, read=lambda _, __, keys=keys: keys)
        outputs.append(step(q[:end], k[:end], v[:end], [end])[start:])
    return np.concatenate(outputs)


CACHE_MISTAKES = (
    Mistake("keys rotated again", in_parts(cached=as_it_is, again=lambda keys, end: rotated(keys, np.arange(end))),
        "Right for a text that comes at once. With more parts only the newest keys are right, and an older one is "
        "further off with each part that comes. By which angle has the key at position 1 been rotated after three "
        "parts?"),
    Mistake("positions of keys begin anew", in_parts(cached=anew),
        "The keys of each part are rotated as if the text began there. The first key of a part is at the position at "
        "which the part begins."),
    Mistake("positions of queries begin anew", in_parts(asked=anew),
        "The queries of each part are rotated as if the text began there, so they seem to come before the keys in the "
        "cache. They are at positions start to end − 1."),
    Mistake("all positions begin anew", in_parts(cached=anew, asked=anew),
        "Positions begin anew in each part, for queries and for keys. Inside a part that is right, and between two "
        "parts the distances are wrong."),
    Mistake("queries one place late", in_parts(asked=lambda q, start, end: rotated(q, np.arange(start, end) + 1)),
        "The queries are one place too far along: the length of the cache was taken after the new keys had come."),
    Mistake("queries after the part", in_parts(asked=lambda q, start, end: rotated(q, end + np.arange(len(q)))),
        "The queries begin where the part ends. The length of the cache was taken after the new keys had come."),
    Mistake("keys one place late", in_parts(cached=lambda k, start, end: rotated(k, np.arange(start, end) + 1)),
        "The keys are one place too far along, and the queries are not."),
    Mistake("keys not rotated", in_parts(cached=as_it_is),
        "The keys are never rotated. Rotate each once, by its position."),
    Mistake("queries not rotated", in_parts(asked=as_it_is),
        "The queries are not rotated. Both sides are, each by its own position."),
    Mistake("nothing rotated", in_parts(cached=as_it_is, asked=as_it_is),
        "Nothing is rotated. Queries and keys are, each by its own position."),
    Mistake("only the newest rotated", newest_only,
        "Only the newest keys are rotated, and the cache keeps them as they came. Either it keeps rotated keys, or all "
        "of them are rotated in each step."),
    Mistake("values rotated", in_parts(values=lambda v, end: rotated(v, np.arange(end)) if v.shape[1] % 2 == 0 else v),
        "The values are rotated too. Positions belong into the scores: values stay as they are."),
    Mistake("rotated backwards", in_parts(asked=lambda q, start, end: rotated(q, -np.arange(start, end))),
        "Queries and keys are rotated in opposite directions, so a score depends on the sum of the positions. Both "
        "rotate the same way."),
    Mistake("the newest not seen", in_parts(
        seen=lambda start, end: np.arange(end) < np.maximum(np.arange(start, end), 1)[:, None]),
        "A query does not see its own key any more. The mask was right: leave it as it is."),
    Mistake("the whole part seen", in_parts(seen=lambda start, end: np.ones((end - start, end), dtype=bool)),
        "A query sees later keys of its part. The mask was right: leave it as it is."),
    Mistake("one position for a part",
        in_parts(cached=lambda k, start, end: rotated(k, np.full(len(k), start)),
            asked=lambda q, start, end: rotated(q, np.full(len(q), start))),
        "All tokens of a part are rotated by the position at which it begins. Each has its own position."),
)  # fmt: skip


# Two kinds of pairs ---------------------------------------------------------------------------------------------------


def regrouped(sizes=lambda rows, heads: (heads, 2, rows // heads // 2), order=(0, 2, 1, 3)):
    """W with its rows cut into three axes of these sizes, and their order changed."""

    def split_to_interleaved(W, heads):
        return W.reshape(*sizes(len(W), heads), W.shape[1]).transpose(order).reshape(W.shape)

    return split_to_interleaved


def on_columns(W, heads):
    if W.shape[0] != W.shape[1]:
        return regrouped()(W, heads)
    return regrouped()(W.T, heads).T


def with_rows(order):
    """Rows of each head in this order(d)."""

    def split_to_interleaved(W, heads):
        d = len(W) // heads
        places = np.concatenate([head * d + np.asarray(order(d)) for head in range(heads)])
        return W[places]

    return split_to_interleaved


PAIR_MISTAKES = (
    Mistake("the other way", regrouped(sizes=lambda rows, heads: (heads, rows // heads // 2, 2)),
        "This is the way back, from neighbours to halves. Row p + d/2 has to become row 2p + 1."),
    Mistake("one head of all rows", regrouped(sizes=lambda rows, heads: (1, 2, rows // 2)),
        "All rows are taken for one head. Each head has d rows of its own, and pairs within them."),
    Mistake("heads of as many rows as there are heads",
        regrouped(sizes=lambda rows, heads: (rows // heads, 2, heads // 2) if heads % 2 == 0
            else (heads, 2, rows // heads // 2)),
        "The rows are cut into heads of h rows each. There are h heads of d rows."),
    Mistake("columns", on_columns, "The columns of a square W move. Its rows make the numbers of queries or keys: move "
        "those."),
    Mistake("nothing moved", lambda W, heads: W.copy(), "Nothing has moved. Row p + d/2 has to become row 2p + 1."),
    Mistake("halves exchanged", with_rows(lambda d: np.roll(np.arange(d), d // 2)),
        "The halves of each head are exchanged. They have to be taken in turns: rows 0, d/2, 1, d/2 + 1 and so on."),
    Mistake("the second half first", with_rows(lambda d: [i for p in range(d // 2) for i in (p + d // 2, p)]),
        "The two numbers of each pair are exchanged. Row p comes first, then row p + d/2: a rotation has a direction."),
    Mistake("the second half in reverse", with_rows(lambda d: [i for p in range(d // 2) for i in (p, d - 1 - p)]),
        "Row p is followed by row d − 1 − p. Its partner is row p + d/2."),
    Mistake("heads in turns", regrouped(sizes=lambda rows, heads: (rows // heads, heads, 1), order=(1, 0, 2, 3)),
        "The rows are dealt out to the heads in turn. Head 0 has the first d rows."),
    Mistake("only the first head", lambda W, heads: np.concatenate([
        regrouped()(W[: len(W) // heads], 1), W[len(W) // heads :]]),
        "Only the rows of head 0 have moved."),
)  # fmt: skip


# ALiBi ----------------------------------------------------------------------------------------------------------------


def power_of_two(n):
    return [2.0 ** (-8 * k / n) for k in range(1, n + 1)]


def below(n):
    """The largest power of two that is not above n."""
    return 2 ** (n.bit_length() - 1)


def slopes(n):
    """As the authors' code has them. Source: Press et al. 2021, get_slopes."""
    return power_of_two(below(n)) + power_of_two(2 * below(n))[0::2][: n - below(n)]


def biased(slopes=slopes, place=lambda queries, keys: np.arange(queries) + keys - queries,
        bias=lambda slope, place, key: -slope * (place - key), later=lambda slope, place, key: -np.inf,
        is_later=lambda place, key: key > place, axes=(0, 1, 2)):  # fmt: skip
    """alibi_bias with one step exchanged for a wrong one; every step not named is right."""

    def alibi_bias(heads, queries, keys):
        slope, key = np.array(slopes(heads))[:, None, None], np.arange(keys)
        where = place(queries, keys)[:, None]
        made = np.where(is_later(where, key), later(slope, where, key), bias(slope, where, key))
        return made.transpose(axes)

    return alibi_bias


ALIBI_MISTAKES = (
    Mistake("one sequence for every count", biased(slopes=power_of_two),
        "The slopes 2^(−8k/n) are taken for every number of heads. That is right for powers of two; for others the "
        "statement takes those of the largest power of two below, and fills up from twice as many."),  # mlx PR 3071
    Mistake("the first slope is 1", biased(slopes=lambda n: [2 ** (8 / (2 * below(n) if i >= below(n) else below(n)))
            * slope for i, slope in enumerate(slopes(n))]),
        "k counts from 0, so the first slope is 1. It counts from 1 to n."),  # aprender PR 2143
    Mistake("filled up with numbers 1, 3, 5",
        biased(slopes=lambda n: power_of_two(below(n)) + power_of_two(2 * below(n))[1::2][: n - below(n)]),
        "The missing slopes are numbers 1, 3, 5, … of those for twice as many heads, and these are there already. Take "
        "numbers 0, 2, 4, …: [0::2]."),
    Mistake("filled up with the first ones",
        biased(slopes=lambda n: power_of_two(below(n)) + power_of_two(2 * below(n))[: n - below(n)]),
        "The missing slopes are the first of those for twice as many heads. Take every other one: [0::2]."),
    Mistake("cut from the power above",
        biased(slopes=lambda n: slopes(n) if n == below(n) else power_of_two(2 * below(n))[:n]),
        "The slopes for the next larger power of two are cut off. Take those of the largest power of two below, and "
        "fill up."),
    Mistake("filled up in front", biased(slopes=lambda n: slopes(n)[below(n):] + power_of_two(below(n))),
        "The slopes that fill up come first. They come after those of the power of two."),
    Mistake("slopes sorted", biased(slopes=lambda n: sorted(slopes(n), reverse=True)),
        "The slopes are sorted. Those that fill up come last, though they are not the smallest."),
    Mistake("slopes in reverse", biased(slopes=lambda n: slopes(n)[::-1]),
        "The slopes are in reverse order. Head 0 has the largest of its power of two, 2^(−8/n)."),
    Mistake("slopes of eight heads", biased(slopes=lambda n: [2.0**-k for k in range(1, n + 1)]),
        "The slopes are 2⁻¹, 2⁻², 2⁻³, … for every number of heads. That is right for 8: the exponents are −8k/n."),
    Mistake("powers of e", biased(slopes=lambda n: [slope ** (1 / math.log(2)) for slope in slopes(n)]),
        "The slopes are powers of e. They are powers of 2."),
    Mistake("a reward for distance", biased(bias=lambda slope, place, key: slope * (place - key)),
        "The bias grows with the distance. Far keys are to lose: it is minus slope times distance."),
    Mistake("later keys are not blocked", biased(is_later=lambda place, key: np.zeros(np.broadcast(place, key).shape,
            dtype=bool)),
        "Later keys are not blocked, and get a bias above 0. They get −∞."),
    Mistake("later keys by their distance", biased(later=lambda slope, place, key: -slope * (key - place)),
        "Later keys get a bias by their distance. They get −∞."),
    Mistake("later keys get 0", biased(later=lambda slope, place, key: 0.0),
        "Later keys get 0, which adds nothing and blocks nothing. They get −∞."),
    Mistake("later keys get a finite fill", biased(later=lambda slope, place, key: -1e9),
        "Later keys get a large number below 0. The statement asks for −∞."),
    Mistake("its own key is blocked", biased(is_later=lambda place, key: (key >= place) & (place > 0)),
        "A query's own key is blocked. Its distance is 0, and so is its bias."),
    Mistake("the queries come first", biased(place=lambda queries, keys: np.arange(queries)),
        "The queries are taken for the first tokens. They are the last: query i is at position keys − queries + i."),
    Mistake("distances from 1", biased(bias=lambda slope, place, key: -slope * (place - key + 1)),
        "Distances count from 1. A query's own key is 0 places away."),
    Mistake("by the key's position", biased(bias=lambda slope, place, key: slope * key),
        "The bias grows with the key's position. After a softmax that gives the same weights, since a row differs by "
        "one number only; the statement asks for minus slope times distance."),
    Mistake("heads last", biased(axes=(1, 2, 0)),
        "The heads are the last axis. The shape is (heads, queries, keys)."),
    Mistake("queries and keys exchanged", biased(axes=(0, 2, 1)),
        "Queries and keys are exchanged. The shape is (heads, queries, keys)."),
    Mistake("half the exponent", biased(slopes=lambda n: [slope**0.5 for slope in slopes(n)]),
        "The exponents are half of what they should be: −8k/n, not −4k/n."),
)  # fmt: skip


# YaRN -----------------------------------------------------------------------------------------------------------------


def pair_that_turns(times, d, base, trained):
    """The number of the pair, in fractions, that makes so many turns in the trained length."""
    return d * math.log(trained / (2 * math.pi * times)) / (2 * math.log(base))


def stretched(ends=lambda d, base, trained: (max(math.floor(pair_that_turns(32, d, base, trained)), 0),
        min(math.ceil(pair_that_turns(1, d, base, trained)), d - 1)), ramp=lambda share: np.clip(share, 0, 1),
        number=lambda d: np.arange(d // 2), mixed=lambda own, share, factor: own * (1 - share) + own / factor * share,
        attention=lambda factor: 0.1 * math.log(factor) + 1):  # fmt: skip
    """yarn_frequencies with one step exchanged for a wrong one; every step not named is right."""

    def yarn_frequencies(d, base, trained, factor):
        low, high = ends(d, base, trained)
        share = ramp((number(d) - low) / (high - low if high != low else 0.001))
        return mixed(base ** (-np.arange(0, d, 2) / d), share, factor), attention(factor)

    return yarn_frequencies


def ends_by(low=math.floor, high=math.ceil, pair=pair_that_turns, least=0, turns=(32, 1), capped=True):
    def ends(d, base, trained):
        fast, slow = (pair(each, d, base, trained) for each in turns)
        return max(low(fast), least), min(high(slow), d - 1) if capped else high(slow)

    return ends


YARN_MISTAKES = (
    Mistake("all divided", stretched(ramp=np.ones_like),
        "All frequencies are divided by the factor: that is interpolation. Fast pairs stay as they are."),
    Mistake("none divided", stretched(ramp=np.zeros_like),
        "No frequency has changed. Those of slow pairs are divided by the factor."),
    Mistake("the ramp upside down", stretched(ramp=lambda share: 1 - np.clip(share, 0, 1)),
        "The ramp is upside down: fast pairs are divided, and slow ones stay. Slow pairs never finish a turn in "
        "training, so they are the ones to stretch."),
    Mistake("the ramp is not cut off", stretched(ramp=lambda share: share),
        "The ramp goes on below 0 and above 1. Cut it off there: np.clip."),
    Mistake("a step in place of the ramp", stretched(ramp=lambda share: (share >= 0.5) * 1.0),
        "A pair is either divided or not. Between low and high it is a mixture of both."),
    Mistake("multiplied by the factor", stretched(mixed=lambda own, share, factor: own * (1 - share + factor * share)),
        "Slow frequencies are multiplied by the factor. They are divided: the same angles are to cover more "
        "positions."),
    Mistake("wavelengths mixed", stretched(mixed=lambda own, share, factor: own / (1 - share + factor * share)),
        "On the ramp wavelengths are mixed. Mix the frequencies: f (1 − share) + f/factor · share."),
    Mistake("the ends not rounded", stretched(ends=ends_by(low=lambda x: x, high=lambda x: x)),
        "The ends of the ramp are fractions. The low end is rounded down, the high end up."),
    Mistake("the ends rounded the same way", stretched(ends=ends_by(high=math.floor)),
        "Both ends of the ramp are rounded down. The high end is rounded up."),
    Mistake("the low end below 0", stretched(ends=ends_by(least=-10_000)),
        "The low end of the ramp lies below 0, where there is no pair. It is at least 0."),
    Mistake("the high end above d − 1", stretched(ends=ends_by(capped=False)),
        "The high end of the ramp may lie above d − 1. It is at most d − 1."),
    Mistake("2π left out", stretched(ends=ends_by(
        pair=lambda times, d, base, trained: pair_that_turns(times / (2 * math.pi), d, base, trained))),
        "2π is missing in the ends of the ramp. A turn is 2π radians."),
    Mistake("twice the ends", stretched(ends=ends_by(
        pair=lambda times, d, base, trained: 2 * pair_that_turns(times, d, base, trained))),
        "The ends of the ramp are twice too large: they count numbers. There are d/2 pairs, hence 2 ln(base)."),
    Mistake("numbers counted, not pairs", stretched(number=lambda d: np.arange(0, d, 2)),
        "The ramp counts the numbers 0, 2, 4, … It counts pairs: 0, 1, 2, …"),
    Mistake("the end of the ramp at 32 turns", stretched(ends=ends_by(turns=(32 * 32, 32))),
        "The ramp ends at 32 turns. It begins there, and ends at one turn."),
    Mistake("the ramp from one turn", stretched(ends=ends_by(turns=(1, 1 / 32))),
        "The ramp begins at one turn. It begins at 32 turns, and ends at one."),
    Mistake("the factor of the scores left out", stretched(attention=lambda factor: 1.0),
        "The last number is always 1. It is 0.1 ln(factor) + 1."),
    Mistake("the factor of the scores twice", stretched(attention=lambda factor: (0.1 * math.log(factor) + 1) ** 2),
        "The last number is squared. It is for queries and keys each, so that scores get its square: once here."),
    Mistake("the square root of the factor", stretched(attention=lambda factor: math.sqrt(0.1 * math.log(factor) + 1)),
        "The last number is the square root of the right one. Queries and keys are multiplied by it once each."),
    Mistake("its inverse", stretched(attention=lambda factor: 1 / (0.1 * math.log(factor) + 1)),
        "The last number is turned upside down. It is 0.1 ln(factor) + 1, which sharpens the softmax."),
    Mistake("another logarithm", stretched(attention=lambda factor: 0.1 * math.log2(factor) + 1),
        "The last number has a logarithm to the base 2. It is the natural one, math.log."),
    Mistake("a larger base", lambda d, base, trained, factor: (
        (base * factor ** (d / max(d - 2, 1))) ** (-np.arange(0, d, 2) / d), stretched()(d, base, trained, factor)[1]),
        "The base is made larger, which is another method (NTK). YaRN keeps the base and mixes two frequencies."),
)  # fmt: skip


# A window and sinks ---------------------------------------------------------------------------------------------------


def masked(place=lambda queries, keys: np.arange(queries) + keys - queries, past=lambda p, j: j <= p,
        near=lambda p, j, window: j > p - window, kept=lambda p, j, sinks: j < sinks,
        together=lambda past, near, kept: past & (near | kept), last=lambda mask: mask, window=None):  # fmt: skip
    """sink_window_mask with one step exchanged for a wrong one; every step not named is right."""

    def sink_window_mask(queries, keys, size, sinks):
        p, j = place(queries, keys)[:, None], np.arange(keys)
        size = window(size, sinks) if window else size
        return last(together(past(p, j), near(p, j, size), kept(p, j, sinks) & np.ones_like(p, dtype=bool)))

    return sink_window_mask


SINK_MISTAKES = (
    Mistake("no sinks", masked(kept=lambda p, j, sinks: np.zeros_like(j, dtype=bool)),
        "The sinks are not seen. The first keys stay in sight of every query that comes after them."),
    Mistake("sinks of later positions", masked(together=lambda past, near, kept: (past & near) | kept),
        "Queries see sinks that come after them. A sink is a key like any other: j ≤ p holds for it too."),
    Mistake("not causal", masked(together=lambda past, near, kept: near | kept),
        "Queries see later keys. A key is seen only if j ≤ p."),
    Mistake("no window", masked(near=lambda p, j, window: j <= p),
        "Every earlier key is seen. Besides the sinks only the last `window` keys are."),
    Mistake("one key more", masked(near=lambda p, j, window: j >= p - window),
        "The window holds one key more. It counts the query's own: with a window of 1 a token sees only itself."),
    Mistake("one key fewer", masked(near=lambda p, j, window: (j > p - window + 1) | ((j == p) & (window == 1))),
        "The window holds one key fewer. It counts the query's own, and window − 1 before it."),
    Mistake("one sink more", masked(kept=lambda p, j, sinks: j <= sinks),
        "There is one sink more. Keys 0 to sinks − 1 are sinks."),
    Mistake("sinks taken from the window", masked(window=lambda size, sinks: max(size - sinks, 1)),
        "The sinks are taken off the window. They come on top of it."),
    Mistake("sinks counted from the window's start",
        masked(near=lambda p, j, window: j > p - window, kept=lambda p, j, sinks: False,
            window=lambda size, sinks: size + sinks),
        "The window is longer by the number of sinks. Sinks are the first keys of the text, however far back."),
    Mistake("the last keys as sinks", masked(kept=lambda p, j, sinks: j >= len(j) - sinks),
        "The last keys of the text are taken for sinks. They are the first."),
    Mistake("the queries come first", masked(place=lambda queries, keys: np.arange(queries)),
        "The queries are taken for the first tokens. They are the last: query i is at position keys − queries + i."),
    Mistake("inverted", masked(last=lambda mask: ~mask),
        "The mask is inverted. True means that the query may attend to the key."),
    Mistake("transposed", masked(last=lambda mask: mask.T),
        "The mask is transposed. Rows are queries, columns are keys."),
    Mistake("both ways", masked(past=lambda p, j: True, near=lambda p, j, window: abs(j - p) < window),
        "The window reaches forward too. It ends with the query's own key."),
    Mistake("both at once", masked(together=lambda past, near, kept: past & near & kept),
        "A key has to be in the window and a sink. It is enough to be one of the two: |, not &."),
    Mistake("either, not both", masked(together=lambda past, near, kept: past & (near ^ kept)),
        "A sink inside the window is not seen. It is enough to be one of the two: |, not ^."),
)  # fmt: skip


# Linear attention -----------------------------------------------------------------------------------------------------


def in_a_square(scores=lambda q, k: q @ k.T, kept=np.tril, blend=lambda weights, v: weights @ v):
    def linear_parallel(q, k, v):
        return blend(kept(scores(q, k)), v)

    return linear_parallel


def in_steps(first=lambda state: np.array(state, dtype=float), write=np.outer, read=lambda q, state: q @ state,
        kept=lambda state: state, before=False, last=lambda states: states[-1]):  # fmt: skip
    def linear_recurrent(q, k, v, state):
        states, outputs = [first(state)], []
        for q_t, k_t, v_t in zip(q, k, v, strict=True):
            states.append(kept(states[-1]) + write(k_t, v_t))
            outputs.append(read(q_t, states[-2 if before else -1]))
        return np.array(outputs), last(states)

    return linear_recurrent


def state_in_place(q, k, v, state):
    outputs = []
    for q_t, k_t, v_t in zip(q, k, v, strict=True):
        state += np.outer(k_t, v_t)
        outputs.append(q_t @ state)
    return np.array(outputs), state


def one_state_for_all(q, k, v, state):
    """The whole text is written before anybody reads."""
    state = state + k.T @ v
    return q @ state, state


def softmax_of(scores):
    scores = np.where(np.tri(*scores.shape, dtype=bool), scores, -np.inf)
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def over_its_sum(scores):
    scores = np.tril(scores)
    return scores / scores.sum(axis=-1, keepdims=True)


def linear(name, message, parallel=None, recurrent=None):
    answer = {"linear_parallel": parallel or in_a_square(), "linear_recurrent": recurrent or in_steps()}
    return Mistake(name, answer, message)


def where_square(turned, plain):
    """`turned` where both arguments have the same length, so that nothing raises."""
    return lambda a, b: turned(a, b) if len(a) == len(b) else plain(a, b)


LINEAR_MISTAKES = (
    linear("parallel not causal", "In linear_parallel every query meets all keys. Query i meets keys 0 to i.",
        in_a_square(kept=lambda scores: scores)),
    linear("parallel without its own key", "In linear_parallel a query does not meet its own key. It meets keys 0 to "
        "i: the diagonal belongs to them.", in_a_square(kept=lambda scores: np.tril(scores, -1))),
    linear("parallel, upper triangle", "In linear_parallel a query meets its own key and later ones: np.triu. It "
        "meets earlier ones: np.tril.", in_a_square(kept=np.triu)),
    linear("parallel with a softmax", "linear_parallel has a softmax. Linear attention has none: scores count as they "
        "are.", in_a_square(kept=softmax_of)),
    linear("parallel, scaled", "linear_parallel divides the scores by √d. They count as they are.",
        in_a_square(scores=lambda q, k: q @ k.T / math.sqrt(q.shape[1]))),
    linear("parallel, divided by the sum", "linear_parallel divides each row by its sum. Some models do; here scores "
        "count as they are.", in_a_square(kept=over_its_sum)),
    linear("parallel, keys and queries exchanged", "In linear_parallel key i meets the queries up to i: k qᵀ. Rows are "
        "queries: q kᵀ.", in_a_square(scores=lambda q, k: k @ q.T)),
    linear("parallel, keys with keys", "In linear_parallel keys meet keys. Row i belongs to query i: q kᵀ.",
        in_a_square(scores=lambda q, k: k @ k.T)),
    linear("parallel, queries with queries", "In linear_parallel queries meet queries. They meet keys: q kᵀ.",
        in_a_square(scores=lambda q, k: q @ q.T)),
    linear("recurrent, read by the key", "In linear_recurrent the key reads the state. The query does.",
        recurrent=lambda q, k, v, state: in_steps()(k, k, v, state)),
    linear("recurrent, the query written", "In linear_recurrent the query is written with the value. The key is: kᵀv.",
        recurrent=lambda q, k, v, state: in_steps()(q, q, v, state)),
    linear("parallel, values weighted by columns", "linear_parallel blends by columns. Row i of the scores blends the "
        "values for query i.", in_a_square(blend=lambda weights, v: weights.T @ v)),
    linear("the mask between the products", "linear_parallel computes kᵀv first, where nothing can be masked any more. "
        "With a mask the n × n scores come first, or a state is carried along.", lambda q, k, v: q @ np.tril(k.T @ v)),
    linear("read before the write", "In linear_recurrent a query reads before its own key and value are written. It "
        "sees its own token: write first.", recurrent=in_steps(before=True)),
    linear("the state is overwritten", "In linear_recurrent each token replaces the state. It adds to it: S + kᵀv.",
        recurrent=in_steps(kept=np.zeros_like)),
    linear("begun at zeros", "linear_recurrent begins with zeros. It goes on from the state that it is given.",
        recurrent=in_steps(first=np.zeros_like)),
    linear("the first state returned", "linear_recurrent returns the state it was given. The caller needs the last "
        "one.",
        recurrent=in_steps(last=lambda states: states[0])),
    linear("the state before the last token", "linear_recurrent returns a state that lacks the last token.",
        recurrent=in_steps(last=lambda states: states[-2])),
    linear("every state returned", "linear_recurrent returns all states. The caller needs only the last one, (d, e).",
        recurrent=in_steps(last=lambda states: np.array(states[1:]))),
    linear("all written before reading", "In linear_recurrent the whole text is written before anybody reads, so "
        "queries see later tokens.", recurrent=one_state_for_all),
    linear("written along the columns", "In linear_recurrent the outer product is transposed where d = e. Keys belong "
        "to rows: np.outer(k, v).", recurrent=in_steps(write=where_square(lambda k, v: np.outer(v, k), np.outer))),
    linear("read along the columns", "In linear_recurrent the query reads along the columns where d = e: state @ q. "
        "Keys belong to rows: q @ state.", recurrent=in_steps(read=lambda q, state: state @ q if state.shape[0]
        == state.shape[1] else q @ state)),
    linear("the state written in place", "linear_recurrent is right but writes into the state that it was given, which "
        "the caller still needs. Begin with a copy.", recurrent=state_in_place),
    linear("the mean so far", "linear_recurrent divides by the number of tokens so far. The state is a sum.",
        recurrent=lambda q, k, v, state: (in_steps()(q, k, v, state)[0] / np.arange(1, len(q) + 1)[:, None],
        in_steps()(q, k, v, state)[1])),
)  # fmt: skip


# A delta step ---------------------------------------------------------------------------------------------------------


def stepped(read=lambda state, k: k @ state, error=lambda v, old, beta: beta * (v - old), write=np.outer,
            kept=lambda state, beta: state, key=lambda k: k):  # fmt: skip
    """delta_step with one step exchanged for a wrong one; every step not named is right."""

    def delta_step(state, k, v, beta):
        k = key(k)
        return kept(state, beta) + write(k, error(v, read(state, k), beta))

    return delta_step


def in_place(state, k, v, beta):
    state += beta * np.outer(k, v - k @ state)
    return state


DELTA_MISTAKES = (
    Mistake("added without reading", stepped(error=lambda v, old, beta: beta * v),
        "The value is added to what is there. The delta rule first reads what the key holds, and writes the "
        "difference."),
    Mistake("the difference the wrong way round", stepped(error=lambda v, old, beta: beta * (old - v)),
        "The difference is taken the wrong way round. What is missing is v minus what the key reads."),
    Mistake("the sum of both", stepped(error=lambda v, old, beta: beta * (v + old)),
        "The old value is added to v. Subtract it: what is missing is v minus what the key reads."),
    Mistake("β on v only", stepped(error=lambda v, old, beta: beta * v - old),
        "β scales v only. It scales the whole difference: β (v − kS)."),
    Mistake("β on the old value only", stepped(error=lambda v, old, beta: v - beta * old),
        "β scales the old value only. It scales the whole difference: β (v − kS)."),
    Mistake("β left out", stepped(error=lambda v, old, beta: v - old),
        "β is left out. It says how far the state moves towards v."),
    Mistake("β twice", stepped(error=lambda v, old, beta: beta**2 * (v - old)),
        "β counts twice. It scales the difference once."),
    Mistake("the whole state fades", stepped(error=lambda v, old, beta: beta * v, kept=lambda s, beta: (1 - beta) * s),
        "The whole state fades by 1 − β. Only what this key reads is replaced; other keys keep theirs."),
    Mistake("the state thrown away", stepped(kept=lambda state, beta: np.zeros_like(state)),
        "What is returned is the change alone. Add it to the old state."),
    Mistake("read along the columns", stepped(read=lambda state, k: state @ k if len(k) == len(state.T) else k @ state),
        "The key reads along the columns where d = e. Keys belong to rows: k @ state."),
    Mistake("written along the columns",
        stepped(write=lambda k, error: np.outer(error, k) if len(k) == len(error) else np.outer(k, error)),
        "The change is transposed where d = e. Row i changes by k[i]: np.outer(k, …)."),
    Mistake("the key made one long", stepped(key=lambda k: k / np.linalg.norm(k)),
        "The key is divided by its length. Models do that before this step; use k as it is."),
    Mistake("divided by k · k", lambda state, k, v, beta: state + beta * np.outer(k, v - k @ state) / (k @ k),
        "The change is divided by k · k, so that with β = 1 a key of any length reads v afterwards. The delta rule "
        "does not divide: use k as it is."),
    Mistake("written in place", in_place,
        "It is right but writes into the state that it was given, which the caller still needs. Make a new array."),
)  # fmt: skip


# A step that fades ----------------------------------------------------------------------------------------------------


DELTA = stepped()


def faded(step=DELTA, before=lambda state, alpha: alpha * state, after=lambda state, alpha: state):
    """gated_delta_step with one step exchanged for a wrong one; every step not named is right."""

    def gated_delta_step(state, k, v, beta, alpha):
        return after(step(before(state, alpha), k, v, beta), alpha)

    return gated_delta_step


def fades_in_place(state, k, v, beta, alpha):
    state *= alpha
    return state + beta * np.outer(k, v - k @ state)


GATED_MISTAKES = (
    Mistake("read before it fades",
        lambda state, k, v, beta, alpha: alpha * state + beta * np.outer(k, v - k @ state),
        "The key reads the state before it has faded, so the difference is taken from what is no longer there. First "
        "fade, then read."),  # fla issue 885 asks which it is
    Mistake("faded after the write", faded(before=lambda state, alpha: state, after=lambda state, alpha: alpha * state),
        "The state fades after the write, so what was just written fades too. First fade, then write."),
    Mistake("faded before and after", faded(after=lambda state, alpha: alpha * state),
        "The state fades twice, before and after the write. Once, before."),
    Mistake("nothing fades", faded(before=lambda state, alpha: state),
        "Nothing fades. The whole state is multiplied by α first."),
    Mistake("1 − α remains", faded(before=lambda state, alpha: (1 - alpha) * state),
        "The state is multiplied by 1 − α. α is the share that remains."),
    Mistake("only the change fades", lambda state, k, v, beta, alpha: state + alpha * beta * np.outer(k, v - k @ state),
        "α scales the change. It scales the old state."),
    Mistake("α and β exchanged", lambda state, k, v, beta, alpha: faded()(state, k, v, alpha, beta),
        "α and β are exchanged."),
    Mistake("nothing subtracted", faded(step=stepped(error=lambda v, old, beta: beta * v)),
        "The value is added to what is there. The delta rule first reads what the key holds, and writes the "
        "difference."),
    Mistake("only what the key holds fades",
        lambda state, k, v, beta, alpha: state + np.outer(k, beta * v - beta * alpha * (k @ state)),
        "α fades only what the key reads. The whole state fades."),
    Mistake("faded in place", fades_in_place,
        "It is right but writes into the state that it was given: state *= alpha. Make a new array."),
)  # fmt: skip


# Chosen keys ----------------------------------------------------------------------------------------------------------


def best(scores, count):
    """Where the largest entries of a row are, as booleans."""
    chosen = np.zeros(len(scores), dtype=bool)
    chosen[np.argsort(-scores, kind="stable")[:count]] = True
    return chosen


def selecting(seen=lambda i, n: i + 1, chosen=best, truth=lambda q, k, v: q @ k.T,
        scale=lambda q: math.sqrt(q.shape[1]), recall=lambda kept, true, weights, top: (kept & true).sum() / true.sum(),
        mask=lambda scores, kept: np.where(kept, scores, -np.inf), attended=lambda q, k: q @ k.T):  # fmt: skip
    """top_k_attention with one step exchanged for a wrong one; every step not named is right."""

    def top_k_attention(q, k, v, index, top):
        n, outputs, found = len(q), [], []
        for i in range(n):
            m = seen(i, n)
            scores = (attended(q, k) / scale(q))[i, :m]
            kept, true = chosen(index[i, :m], top), best(truth(q, k, v)[i, :m], top)
            exps = np.exp(scores - scores.max())
            masked = mask(scores, kept)
            weights = np.exp(masked - masked[kept].max())
            outputs.append(weights / weights.sum() @ v[:m])
            found.append(recall(kept, true, exps / exps.sum(), top))
        return np.array(outputs), np.array(found)

    return top_k_attention


def scores_of_kept_only(q, k, v, index, top):
    """Weights over all keys, of which those not kept become 0: no new sum."""
    output, found = selecting()(q, k, v, index, top)
    for i in range(len(q)):
        scores = (q @ k.T / math.sqrt(q.shape[1]))[i, : i + 1]
        exps = np.exp(scores - scores.max())
        output[i] = (exps / exps.sum() * best(index[i, : i + 1], top)) @ v[: i + 1]
    return output, found


def chosen_among_all(q, k, v, index, top):
    outputs, found = [], []
    for i in range(len(q)):
        seen = np.arange(len(q)) <= i
        kept = best(index[i], top) & seen
        kept = kept if kept.any() else best(np.where(seen, index[i], -np.inf), 1)
        scores = q[i] @ k.T / math.sqrt(q.shape[1])
        weights = np.exp(np.where(kept, scores - scores[kept].max(), -np.inf))
        outputs.append(weights / weights.sum() @ v)
        true = best(np.where(seen, q[i] @ k.T, -np.inf), min(top, i + 1))
        found.append((kept & true).sum() / true.sum())
    return np.array(outputs), np.array(found)


TOP_K_MISTAKES = (
    Mistake("later keys too", selecting(seen=lambda i, n: n),
        "Keys that come later are chosen. Query i chooses among keys 0 to i."),
    Mistake("chosen before the mask", chosen_among_all,
        "The keys are chosen among all, and later ones are dropped afterwards, so that too few remain. Block later "
        "keys first, then choose."),
    Mistake("the smallest", selecting(chosen=lambda scores, count: best(-scores, count)),
        "The keys with the smallest scores in the index are kept. np.argsort sorts upwards: take the last ones."),
    Mistake("one key more", selecting(chosen=lambda scores, count: best(scores, count + 1)),
        "One key too many is kept."),
    Mistake("one key fewer", selecting(chosen=lambda scores, count: best(scores, max(count - 1, 1))),
        "One key too few is kept."),
    Mistake("the best by q · k", lambda q, k, v, index, top: selecting()(q, k, v, q @ k.T, top),
        "The keys are chosen by q · k itself, so recall is always 1. The index chooses; what it misses is the point."),
    Mistake("weights by the index", lambda q, k, v, index, top: selecting(attended=lambda q, k: index)(
        q, k, v, index, top),
        "The weights come from the scores of the index. It chooses keys only; the weights come from q · k."),
    Mistake("not scaled", selecting(scale=lambda q: 1.0), "The scores are not divided by √d."),
    Mistake("weights that do not sum to 1", scores_of_kept_only,
        "The softmax runs over all keys, and the weights of those not kept are dropped. It runs over the kept ones."),
    Mistake("0 for −∞", selecting(mask=lambda scores, kept: np.where(kept, scores, 0.0)),
        "A key that is not kept has the score 0, which gives it weight. Its score is −∞."),
    Mistake("the index alone, the last query's", lambda q, k, v, index, top: selecting()(
        q, k, v, np.broadcast_to(index[-1], index.shape), top),
        "All queries choose by the last row of the index. Row i belongs to query i."),
    Mistake("the index transposed", lambda q, k, v, index, top: selecting()(q, k, v, index.T, top),
        "The index is transposed. Its rows are queries, its columns keys."),
    Mistake("recall over top", selecting(recall=lambda kept, true, weights, top: (kept & true).sum() / top),
        "Recall is divided by `top`, also where fewer keys are seen. There it is 1: divide by min(top, i + 1)."),
    Mistake("recall as weight", selecting(recall=lambda kept, true, weights, top: weights[kept].sum()),
        "Recall is the weight of the kept keys. It counts: the share of the best keys that are kept."),
    Mistake("recall of all seen keys", selecting(recall=lambda kept, true, weights, top: kept.sum() / len(kept)),
        "Recall is the share of keys that are kept. It is the share of the best `top` keys that are."),
    Mistake("recall as a count", selecting(recall=lambda kept, true, weights, top: (kept & true).sum()),
        "Recall is a number of keys. Divide by how many there are to find."),
    Mistake("one recall for all", lambda q, k, v, index, top: (
        selecting()(q, k, v, index, top)[0], selecting()(q, k, v, index, top)[1].mean()),
        "There is one recall for the whole text. Each query has its own."),
)  # fmt: skip


# Latents and a key that rotates ---------------------------------------------------------------------------------------


def absorbed(parts=lambda latent, rotating: latent + rotating, scale=lambda d, r, c, h: math.sqrt(d + r),
        query=lambda q, W: np.einsum("hd,hcd->hc", q, W), share=-1,
        blend=lambda weights, c, W: np.einsum("ht,tc,hce->he", weights, c, W),
        rotating=lambda q, k: q @ k.T, largest=lambda scores: scores.max(axis=-1, keepdims=True)):  # fmt: skip
    """mla_step with one step exchanged for a wrong one; every step not named is right."""

    def mla_step(q, q_rot, c, k_rot, W_UK, W_UV):
        sizes = q.shape[1], q_rot.shape[1], c.shape[1], len(q)
        scores = parts(query(q, W_UK) @ c.T, rotating(q_rot, k_rot)) / scale(*sizes)
        exps = np.exp(scores - largest(scores))
        return blend(exps / exps.sum(axis=share, keepdims=True), c, W_UV)

    return mla_step


def two_softmaxes(q, q_rot, c, k_rot, W_UK, W_UV):
    """Half of the weight by latents, half by rotated keys."""
    by_latent = absorbed(parts=lambda latent, rotating: latent)(q, q_rot, c, k_rot, W_UK, W_UV)
    by_place = absorbed(parts=lambda latent, rotating: rotating)(q, q_rot, c, k_rot, W_UK, W_UV)
    return (by_latent + by_place) / 2


def where_equal(turned, plain):
    """`turned` where d and the width of the latents are equal, so that nothing raises."""
    return lambda q, W: turned(q, W) if W.shape[1] == W.shape[2] else plain(q, W)


MLA_MISTAKES = (
    Mistake("no maximum", absorbed(largest=lambda scores: 0.0),
        "exp overflows at large scores. Before exp, subtract from the scores of each head the largest of them.",
        overflow=True),
    Mistake("one maximum for all heads", absorbed(largest=np.max),
        "The largest score of all heads is subtracted, so that all powers of a head with much smaller ones are 0. "
        "Subtract from the scores of each head their own maximum.", overflow=True),
    Mistake("no key that rotates", absorbed(parts=lambda latent, rotating: latent),
        "The part that rotates is left out, so the model knows no positions. Add q_rot · k_rot to each score."),
    Mistake("only the key that rotates", absorbed(parts=lambda latent, rotating: rotating),
        "Only the part that rotates counts. A score is the sum of two parts."),
    Mistake("scaled by √d", absorbed(scale=lambda d, r, c, h: math.sqrt(d)),
        "The scores are divided by √d. A whole key would have d + r numbers: the root of both."),
    Mistake("scaled by the latents", absorbed(scale=lambda d, r, c, h: math.sqrt(c)),
        "The scores are divided by the root of the latents' width. They are the same numbers as with keys of d + r "
        "numbers."),
    Mistake("scaled by latents and rotation", absorbed(scale=lambda d, r, c, h: math.sqrt(c + r)),
        "The scores are divided by √(c + r). They are the same numbers as with keys of d + r numbers."),
    Mistake("not scaled", absorbed(scale=lambda d, r, c, h: 1.0), "The scores are not scaled: divide by √(d + r)."),
    Mistake("each part scaled by its own width", lambda q, q_rot, *rest: absorbed(scale=lambda *_: 1.0)(
        q / math.sqrt(q.shape[1]), q_rot / math.sqrt(q_rot.shape[1]), *rest),
        "Each part is divided by the root of its own width. The sum is divided by √(d + r)."),
    Mistake("two softmaxes", two_softmaxes,
        "Each part has a softmax of its own. Add the scores first; there is one softmax."),
    Mistake("the parts multiplied", absorbed(parts=lambda latent, rotating: latent * rotating),
        "The two parts are multiplied. A dot product of longer vectors is the sum of two dot products."),
    Mistake("the part that rotates subtracted", absorbed(parts=lambda latent, rotating: latent - rotating),
        "The part that rotates is subtracted. It is added."),
    Mistake("softmax over the heads", absorbed(share=0),
        "The softmax runs over the heads. Each head shares its attention among the tokens: the last axis."),
    Mistake("one rotating query for all", absorbed(rotating=lambda q, k: q[:1] @ k.T + 0 * q[:, :1]),
        "All heads use the rotated query of head 0. Only the rotated key is shared."),
    Mistake("rotating queries averaged", absorbed(rotating=lambda q, k: q.mean(axis=0) @ k.T + 0 * q[:, :1]),
        "The rotated queries are averaged over the heads. Only the rotated key is shared."),
    Mistake("W_UK transposed", absorbed(query=where_equal(lambda q, W: np.einsum("hc,hcd->hd", q, W),
            lambda q, W: np.einsum("hd,hcd->hc", q, W))),
        "W_UK is transposed where d equals the width of the latents. The query goes through it backwards: q W_UKᵀ."),
    Mistake("W_UK of head 0 for all", absorbed(query=lambda q, W: np.einsum("hd,cd->hc", q, W[0])),
        "All heads use W_UK of head 0. Each has its own."),
    Mistake("W_UV of head 0 for all", absorbed(blend=lambda weights, c, W: np.einsum("ht,tc,ce->he", weights, c, W[0])),
        "All heads use W_UV of head 0. Each has its own."),
    Mistake("heads added up", absorbed(blend=lambda weights, c, W: np.einsum("ht,tc,hce->e", weights, c, W)),
        "The heads are added up. Each gives an output of its own: (h, e)."),
)  # fmt: skip


# Pictures -------------------------------------------------------------------------------------------------------------


def cut(order=(0, 2, 1, 3, 4), sizes=lambda H, W, size: (H // size, size, W // size, size)):
    """patchify with one step exchanged for a wrong one. The axes of `sizes` and the channels come in this order."""

    def patchify(image, size):
        H, W, C = image.shape
        return image.reshape(*sizes(H, W, size), C).transpose(order).reshape(-1, size * size * C)

    return patchify


def joined(order=(0, 2, 1, 3, 4), sizes=lambda H, W, size: (H // size, W // size, size, size), last=False):
    """unpatchify with one step exchanged for a wrong one."""

    def unpatchify(patches, size, height, width):
        cells = sizes(height, width, size)
        parts = patches.reshape(*cells[:2], -1, *cells[2:]) if last else patches.reshape(*cells, -1)
        return parts.transpose(order).reshape(height, width, -1)

    return unpatchify


def pictured(name, message, patchify=None, unpatchify=None):
    return Mistake(name, {"patchify": patchify or cut(), "unpatchify": unpatchify or joined()}, message)


PATCH_MISTAKES = (
    pictured("cut without moving axes", "patchify reads the picture in its own order, so a patch is a strip of "
        "rows. Cut both axes, and move the row of the patch next to its column first.",
        lambda image, size: image.reshape(-1, size * size * image.shape[2])),
    pictured("patches column by column", "patchify goes down the columns of patches. It goes row by row, as one reads.",
        cut(order=(2, 0, 1, 3, 4))),
    pictured("pixels column by column", "In patchify the pixels of a patch go down its columns. They go row by row.",
        cut(order=(0, 2, 3, 1, 4))),
    pictured("the picture turned", "patchify goes down columns, of patches and of pixels. Both go row by row.",
        cut(order=(2, 0, 3, 1, 4))),
    pictured("channels first", "patchify puts the channels first. Those of a pixel stay side by side.",
        cut(order=(0, 2, 4, 1, 3))),
    pictured("every so many pixels", "In patchify a patch takes every so many pixels of the whole picture. Its "
        "pixels are "
        "neighbours.", cut(order=(1, 3, 0, 2, 4), sizes=lambda H, W, size: (size, H // size, size, W // size))),
    pictured("back without moving axes", "unpatchify lays the patches down one after the other, as strips. Their "
        "rows have to go side by "
        "side.", unpatchify=lambda patches, size, height, width: patches.reshape(height, width, -1)),
    pictured("back column by column", "unpatchify lays the patches down column by column. They go row by row.",
        unpatchify=joined(order=(1, 2, 0, 3, 4), sizes=lambda H, W, size: (W // size, H // size, size, size))),
    pictured("back with pixels turned", "In unpatchify each patch is turned: its rows have become columns.",
        unpatchify=joined(order=(0, 3, 1, 2, 4))),
    pictured("back with channels first", "unpatchify takes the channels for the first axis of a patch. They are the "
        "last.",
        unpatchify=joined(order=(0, 3, 1, 4, 2), last=True)),
    pictured("back with height and width exchanged", "unpatchify takes height / size patches for a row. There are "
        "width / size.", unpatchify=joined(sizes=lambda H, W, size: (W // size, H // size, size, size))),
)  # fmt: skip


EXERCISES = {
    "rotated_cache": Exercise(2, {"broken_steps": in_parts()}, CACHE_MISTAKES),
    "split_to_interleaved": Exercise(2, {"split_to_interleaved": regrouped()}, PAIR_MISTAKES),
    "alibi_bias": Exercise(3, {"alibi_bias": biased()}, ALIBI_MISTAKES),
    "yarn_frequencies": Exercise(3, {"yarn_frequencies": stretched()}, YARN_MISTAKES),
    "sink_window_mask": Exercise(2, {"sink_window_mask": masked()}, SINK_MISTAKES),
    "linear_attention": Exercise(
        3, {"linear_parallel": in_a_square(), "linear_recurrent": in_steps()}, LINEAR_MISTAKES
    ),
    "delta_step": Exercise(2, {"delta_step": stepped()}, DELTA_MISTAKES),
    "gated_delta_step": Exercise(2, {"gated_delta_step": faded()}, GATED_MISTAKES),
    "top_k_attention": Exercise(3, {"top_k_attention": selecting()}, TOP_K_MISTAKES),
    "mla_step": Exercise(3, {"mla_step": absorbed()}, MLA_MISTAKES),
    "patches_and_back": Exercise(2, {"patchify": cut(), "unpatchify": joined()}, PATCH_MISTAKES),
    "tells_right": duel(),
}
