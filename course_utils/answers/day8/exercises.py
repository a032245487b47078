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
        "Right for a text that comes at once. With more parts only the newest keys are right, and the oldest are "
        "furthest off. By which angle was the first part's key at position 1 rotated after three parts?"),
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
    linear("parallel, values weighted by columns", "linear_parallel blends by columns. Row i of the scores blends the "
        "values for query i.", in_a_square(blend=lambda weights, v: weights.T @ v)),
    linear("the mask between the products", "linear_parallel computes kᵀv first, where nothing can be masked any more. "
        "With a mask the n × n scores come first, or a state is carried along.", lambda q, k, v: q @ np.tril(k.T @ v)),
    linear("read before the write", "In linear_recurrent a query reads before its own key and value are written. It "
        "sees its own token: write first.", recurrent=in_steps(before=True)),
    linear("the state is overwritten", "In linear_recurrent each token replaces the state. It adds to it: S + k vᵀ.",
        recurrent=in_steps(kept=np.zeros_like)),
    linear("begun at zeros", "linear_recurrent begins with zeros. It goes on from the state that it is given.",
        recurrent=in_steps(first=np.zeros_like)),
    linear("the first state returned", "linear_recurrent returns the state it was given. The caller needs the last one.",
        recurrent=in_steps(last=lambda states: states[0])),
    linear("the state before the last token", "linear_recurrent returns a state that lacks the last token.",
        recurrent=in_steps(last=lambda states: states[-2])),
    linear("every state returned", "linear_recurrent returns all states. The caller needs only the last one, (d, e).",
        recurrent=in_steps(last=lambda states: np.array(states[1:]))),
    linear("all written before reading", "In linear_recurrent the whole text is written before anybody reads, so "
        "queries see later tokens.", recurrent=one_state_for_all),
    linear("written along the columns", "In linear_recurrent the outer product is transposed where d = e. Keys belong "
        "to rows: np.outer(k, v).", recurrent=in_steps(write=where_square(lambda k, v: np.outer(v, k), np.outer))),
    linear("read along the columns", "In linear_recurrent the query reads along the columns where d = e: state @ q. Keys "
        "belong to rows: q @ state.", recurrent=in_steps(read=lambda q, state: state @ q if state.shape[0]
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
        "The value is added to what is there. The delta rule first reads what the key holds, and writes the difference."),
    Mistake("the difference the wrong way round", stepped(error=lambda v, old, beta: beta * (old - v)),
        "The difference is taken the wrong way round. What is missing is v minus what the key reads."),
    Mistake("the sum of both", stepped(error=lambda v, old, beta: beta * (v + old)),
        "The old value is added to v. Subtract it: what is missing is v minus what the key reads."),
    Mistake("β on v only", stepped(error=lambda v, old, beta: beta * v - old),
        "β scales v only. It scales the whole difference: β (v − kᵀS)."),
    Mistake("β on the old value only", stepped(error=lambda v, old, beta: v - beta * old),
        "β scales the old value only. It scales the whole difference: β (v − kᵀS)."),
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
    Mistake("written in place", in_place,
        "It is right but writes into the state that it was given, which the caller still needs. Make a new array."),
)  # fmt: skip


EXERCISES = {
    "rotated_cache": Exercise(2, {"broken_steps": in_parts()}, CACHE_MISTAKES),
    "alibi_bias": Exercise(3, {"alibi_bias": biased()}, ALIBI_MISTAKES),
    "sink_window_mask": Exercise(2, {"sink_window_mask": masked()}, SINK_MISTAKES),
    "linear_attention": Exercise(
        3, {"linear_parallel": in_a_square(), "linear_recurrent": in_steps()}, LINEAR_MISTAKES
    ),
    "delta_step": Exercise(2, {"delta_step": stepped()}, DELTA_MISTAKES),
    "tells_right": duel(),
}
