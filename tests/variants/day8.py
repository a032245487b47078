"""Day 8: rotations, biases, masks and states, as people write them."""

import math
from itertools import accumulate

import numpy as np

from course_utils.days.day8.duel import rotated

from . import right, wrong

# rotated_cache ------------------------------------------------------------------------------------------------------


def softmax(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@right(8, "rotated_cache")
def steps_with_keys_as_they_came(q, k, v, sizes):
    outputs = []
    keys = np.empty((0, q.shape[1]))
    for size in sizes:
        begin = len(keys)
        keys = np.vstack([keys, k[begin : begin + size]])
        turned_keys = rotated(keys, np.arange(len(keys)))
        queries = rotated(q[begin : begin + size], np.arange(begin, begin + size))
        s = queries @ turned_keys.T / np.sqrt(q.shape[1])
        s[np.arange(len(keys)) > np.arange(begin, begin + size)[:, None]] = -np.inf
        outputs.append(softmax(s) @ v[: len(keys)])
    return np.concatenate(outputs)


@right(8, "rotated_cache")
def steps_all_at_once(q, k, v, sizes):
    T, d = q.shape
    places = np.arange(T)
    s = rotated(q, places) @ rotated(k, places).T / math.sqrt(d)
    return softmax(np.where(np.tri(T, dtype=bool), s, -np.inf)) @ v


@right(8, "rotated_cache")
def steps_query_by_query(q, k, v, sizes):
    keys, rows = [], []
    for t in range(sum(sizes)):
        keys.append(rotated(k[t : t + 1], np.array([t]))[0])
        query = rotated(q[t : t + 1], np.array([t]))[0]
        weights = softmax(np.array([query @ key / math.sqrt(len(key)) for key in keys]))
        rows.append(weights @ v[: t + 1])
    return np.array(rows)


@right(8, "rotated_cache")
def steps_counted_from_the_end(q, k, v, sizes):
    """The key at the newest position is not rotated: only differences count."""
    outputs = []
    for size, end in zip(sizes, accumulate(sizes), strict=True):
        keys = rotated(k[:end], np.arange(end) - end)
        queries = rotated(q[end - size : end], np.arange(-size, 0))
        s = queries @ keys.T / math.sqrt(q.shape[1])
        s = np.where(np.tri(size, end, k=end - size, dtype=bool), s, -np.inf)
        outputs.append(softmax(s) @ v[:end])
    return np.concatenate(outputs)


@wrong(8, "rotated_cache")
def steps_that_forget_the_parts_before(q, k, v, sizes):
    outputs, begin = [], 0
    for size in sizes:
        part = slice(begin, begin + size)
        outputs.append(steps_all_at_once(q[part], k[part], v[part], [size]))
        begin += size
    return np.concatenate(outputs)


@wrong(8, "rotated_cache")
def steps_that_turn_the_cache_by_the_size_of_the_part(q, k, v, sizes):
    outputs, keys, end = [], np.empty((0, q.shape[1])), 0
    for size in sizes:
        begin, end = end, end + size
        keys = rotated(keys, np.full(len(keys), size))
        keys = np.vstack([keys, rotated(k[begin:end], np.arange(begin, end))])
        s = rotated(q[begin:end], np.arange(begin, end)) @ keys.T / math.sqrt(q.shape[1])
        s = np.where(np.tri(size, end, k=begin, dtype=bool), s, -np.inf)
        outputs.append(softmax(s) @ v[:end])
    return np.concatenate(outputs)


# alibi_bias ---------------------------------------------------------------------------------------------------------


@right(8, "alibi_bias")
def bias_by_the_code_of_the_paper(heads, queries, keys):
    def get_slopes(n):
        if math.log2(n).is_integer():
            start = 2 ** (-(2 ** -(math.log2(n) - 3)))
            return [start * start**i for i in range(n)]
        closest = 2 ** math.floor(math.log2(n))
        return get_slopes(closest) + get_slopes(2 * closest)[0::2][: n - closest]

    bias = np.empty((heads, queries, keys))
    for h, slope in enumerate(get_slopes(heads)):
        for i in range(queries):
            for j in range(keys):
                away = keys - queries + i - j
                bias[h, i, j] = -slope * away if away >= 0 else -math.inf
    return bias


@right(8, "alibi_bias")
def bias_by_a_power_of_the_whole(heads, queries, keys):
    n = 1
    while 2 * n <= heads:
        n = 2 * n
    exponents = np.concatenate([8 / n * np.arange(1, n + 1), 4 / n * np.arange(1, 2 * n, 2)])[:heads]
    p = np.arange(queries) + keys - queries
    distance = np.subtract.outer(p, np.arange(keys)).astype(float)
    distance[distance < 0] = np.inf
    return -np.power(2.0, -exponents).reshape(-1, 1, 1) * distance


@right(8, "alibi_bias")
def bias_as_slope_times_key_less_its_last(heads, queries, keys):
    power = 2 ** int(np.log2(heads))
    slopes = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    slopes += [2 ** (-4 * (2 * h + 1) / power) for h in range(heads - power)]
    mask = np.triu(np.full((queries, keys), -np.inf), k=keys - queries + 1)
    place = np.arange(keys)[keys - queries :, None]
    return np.einsum("h,ij->hij", slopes, np.arange(keys) - np.minimum(place, keys)) + mask


@wrong(8, "alibi_bias")
def bias_with_the_nearest_power(heads, queries, keys):
    n = 2 ** round(math.log2(heads))
    slopes = np.array([2 ** (-8 * (k % n + 1) / n) for k in range(heads)])
    away = np.arange(keys - queries, keys)[:, None] - np.arange(keys)
    return np.where(away < 0, -np.inf, -slopes[:, None, None] * away)


# sink_window_mask ---------------------------------------------------------------------------------------------------


@right(8, "sink_window_mask")
def sinks_in_loops(queries, keys, window, sinks):
    mask = np.zeros((queries, keys), dtype=bool)
    for i in range(queries):
        p = keys - queries + i
        mask[i, max(0, p - window + 1) : p + 1] = True
        mask[i, : min(sinks, p + 1)] = True
    return mask


@right(8, "sink_window_mask")
def sinks_by_triangles(queries, keys, window, sinks):
    last = keys - queries
    past = np.tri(queries, keys, last, dtype=bool)
    far = np.tri(queries, keys, last - window, dtype=bool)
    far[:, :sinks] = False
    return past & ~far


@right(8, "sink_window_mask")
def sinks_by_distance(queries, keys, window, sinks):
    away = (np.arange(queries) + (keys - queries)).reshape(-1, 1) - np.arange(keys).reshape(1, -1)
    return np.logical_and(away >= 0, np.logical_or(away < window, np.arange(keys) < sinks))


@wrong(8, "sink_window_mask")
def sinks_as_numbers(queries, keys, window, sinks):
    return sinks_in_loops(queries, keys, window, sinks).astype(float)


@wrong(8, "sink_window_mask")
def sinks_for_late_queries_only(queries, keys, window, sinks):
    mask = sinks_in_loops(queries, keys, window, 0)
    mask[window:, :sinks] = True
    return mask & np.tri(queries, keys, keys - queries, dtype=bool)


# linear_attention ---------------------------------------------------------------------------------------------------


def parallel_by_einsum(q, k, v):
    scores = np.einsum("id,jd->ij", q, k)
    return np.einsum("ij,je->ie", np.where(np.tri(len(q), dtype=bool), scores, 0), v)


def recurrent_by_running_sums(q, k, v, state):
    states = state + np.cumsum(k[:, :, None] * v[:, None, :], axis=0)
    return (q[:, None, :] @ states)[:, 0], states[-1]


def parallel_in_loops(q, k, v):
    out = np.zeros(v.shape)
    for i in range(len(q)):
        for j in range(i + 1):
            out[i] += q[i].dot(k[j]) * v[j]
    return out


def recurrent_in_place_of_a_copy(q, k, v, state):
    state = state.copy()
    out = np.empty((len(q), state.shape[1]))
    for t in range(len(q)):
        state += k[t][:, None] * v[t]
        out[t] = state.T @ q[t]
    return [out, state]


def recurrent_by_scores(q, k, v, state):
    return np.tril(q @ k.T) @ v + q @ state, state + k.T @ v


right(8, "linear_attention")({
    "linear_parallel": parallel_by_einsum, "linear_recurrent": recurrent_by_running_sums,
})  # fmt: skip
right(8, "linear_attention")({
    "linear_parallel": parallel_in_loops, "linear_recurrent": recurrent_in_place_of_a_copy,
})  # fmt: skip
right(8, "linear_attention")({
    "linear_parallel": parallel_by_einsum, "linear_recurrent": recurrent_by_scores,
})  # fmt: skip


def recurrent_that_goes_on(q, k, v, state, kept=[]):  # noqa: B006  # the mistake
    if not kept:
        kept.append(np.array(state))
    out, kept[0] = recurrent_by_scores(q, k, v, kept[0] if kept[0].shape == state.shape else state)
    return out, kept[0]


wrong(8, "linear_attention")({
    "linear_parallel": parallel_by_einsum, "linear_recurrent": recurrent_that_goes_on,
})  # fmt: skip


# delta_step ---------------------------------------------------------------------------------------------------------


@right(8, "delta_step")
def delta_by_erasing_first(state, k, v, beta):
    erased = state - beta * np.outer(k, k) @ state
    return erased + beta * np.outer(k, v)


@right(8, "delta_step")
def delta_in_loops(state, k, v, beta):
    new = np.array(state, dtype=float)
    for column in range(state.shape[1]):
        old = sum(k[row] * state[row, column] for row in range(state.shape[0]))
        for row in range(state.shape[0]):
            new[row, column] += beta * k[row] * (v[column] - old)
    return new


@right(8, "delta_step")
def delta_by_columns(state, k, v, beta):
    wrong_by = state.T @ k - v
    return state - beta * k[:, np.newaxis] * wrong_by


@wrong(8, "delta_step")
def delta_of_a_state_that_it_keeps(state, k, v, beta, kept={}):  # noqa: B006  # the mistake
    old = kept.get("state", state)
    old = old if old.shape == state.shape else state
    kept["state"] = old + beta * np.outer(k, v - k @ old)
    return kept["state"]
