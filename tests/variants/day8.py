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
def sinks_of_the_newest_part(queries, keys, window, sinks):
    """The sinks are the first keys of the queries' own part."""
    first = keys - queries
    place = np.arange(first, keys)[:, None]
    key = np.arange(keys)
    return (key <= place) & ((key > place - window) | ((key >= first) & (key < first + sinks)))


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


# split_to_interleaved -----------------------------------------------------------------------------------------------


@right(8, "split_to_interleaved")
def neighbours_by_stacking(W, heads):
    parts = []
    for head in np.split(W, heads):
        first, second = np.split(head, 2)
        parts.append(np.stack([first, second], axis=1).reshape(head.shape))
    return np.concatenate(parts)


@right(8, "split_to_interleaved")
def neighbours_row_by_row(W, heads):
    d = W.shape[0] // heads
    new = np.empty_like(W)
    for head in range(heads):
        for p in range(d // 2):
            new[head * d + 2 * p] = W[head * d + p]
            new[head * d + 2 * p + 1] = W[head * d + p + d // 2]
    return new


@right(8, "split_to_interleaved")
def neighbours_by_slices(W, heads):
    cut = W.reshape(heads, -1, W.shape[1])
    half = cut.shape[1] // 2
    new = np.zeros(cut.shape)
    new[:, 0::2], new[:, 1::2] = cut[:, :half], cut[:, half:]
    return new.reshape(W.shape)


@wrong(8, "split_to_interleaved")
def neighbours_by_swapping_axes_in_place(W, heads):
    W[:] = neighbours_by_stacking(W, heads)
    return W


@wrong(8, "split_to_interleaved")
def neighbours_by_a_step_of_half_a_head(W, heads):
    """Every (d/2)-th row of the whole matrix."""
    half = W.shape[0] // heads // 2
    return np.concatenate([W[p::half] for p in range(half)])


# yarn_frequencies ---------------------------------------------------------------------------------------------------


@right(8, "yarn_frequencies")
def yarn_pair_by_pair(d, base, trained, factor):
    ends = [d * math.log(trained / 2 / math.pi / turns) / 2 / math.log(base) for turns in (32, 1)]
    low, high = max(0, math.floor(ends[0])), min(d - 1, math.ceil(ends[1]))
    found = []
    for p in range(d // 2):
        f = 1 / base ** (2 * p / d)
        g = min(1, max(0, (p - low) / (high - low)))
        found.append((1 - g) * f + g * f / factor)
    return found, 1 + math.log(factor) / 10


@right(8, "yarn_frequencies")
def yarn_as_a_divisor(d, base, trained, factor):
    """As the library of most models has it: how much of a pair is extrapolated. Source: transformers."""

    def find_correction_dim(rotations):
        return (d * np.log(trained / (rotations * 2 * np.pi))) / (2 * np.log(base))

    low, high = np.floor(find_correction_dim(32)), np.ceil(find_correction_dim(1))
    low, high = max(low, 0), min(high, d - 1)
    pos_freqs = base ** (np.arange(0, d, 2) / d)
    extrapolation, interpolation = 1.0 / pos_freqs, 1.0 / (factor * pos_freqs)
    extrapolated = 1 - np.clip((np.arange(d // 2) - low) / (high - low), 0, 1)
    return interpolation * (1 - extrapolated) + extrapolation * extrapolated, 0.1 * np.log(factor) + 1.0


@wrong(8, "yarn_frequencies")
def yarn_that_rotates_by_wavelengths(d, base, trained, factor):
    own = base ** (-np.arange(0, d, 2) / d)
    turns = trained * own / (2 * np.pi)
    share = np.clip((32 - turns) / 31, 0, 1)
    return own * (1 - share) + own / factor * share, 0.1 * math.log(factor) + 1


# gated_delta_step ---------------------------------------------------------------------------------------------------


@right(8, "gated_delta_step")
def gated_by_a_matrix(state, k, v, beta, alpha):
    erase = np.eye(len(k)) - beta * np.outer(k, k)
    return alpha * erase @ state + beta * np.outer(k, v)


@right(8, "gated_delta_step")
def gated_on_a_copy(state, k, v, beta, alpha):
    left = state.copy()
    left *= alpha
    left += beta * k.reshape(-1, 1) * (v - left.T @ k)
    return left


@wrong(8, "gated_delta_step")
def gated_key_by_key(state, k, v, beta, alpha):
    """Only rows that the key uses fade."""
    faint = np.where(np.abs(k)[:, None] > 0, alpha, 1) * state
    return faint + beta * np.outer(k, v - alpha * (k @ state))


# top_k_attention ----------------------------------------------------------------------------------------------------


@right(8, "top_k_attention")
def chosen_query_by_query(q, k, v, index, top):
    outputs, recall = [], []
    for i in range(len(q)):
        kept = np.argsort(index[i, : i + 1])[-top:]
        scores = k[: i + 1] @ q[i]
        best = np.argsort(scores)[-top:]
        outputs.append(softmax(scores[kept] / math.sqrt(q.shape[1])) @ v[kept])
        recall.append(len(set(kept) & set(best)) / len(kept))
    return np.array(outputs), np.array(recall)


@right(8, "top_k_attention")
def chosen_by_a_threshold(q, k, v, index, top):
    n = len(q)
    later = np.triu(np.ones((n, n), dtype=bool), 1)

    def keep(x):
        x = np.where(later, -np.inf, x)
        least = np.sort(x, axis=1)[:, max(0, n - top)][:, None]
        return (x >= least) & ~later

    kept, wanted = keep(index), keep(q @ k.T)
    s = np.where(kept, q @ k.T / np.sqrt(q.shape[-1]), -np.inf)
    return [softmax(s) @ v, (kept & wanted).sum(1) / np.minimum(np.arange(1, n + 1), top)]


@wrong(8, "top_k_attention")
def chosen_among_the_latest(q, k, v, index, top):
    """Keys further back than 2 · top are never chosen."""
    outputs, recall = [], []
    for i in range(len(q)):
        first = max(0, i + 1 - 2 * top)
        kept = first + np.argsort(index[i, first : i + 1])[-top:]
        scores = k[: i + 1] @ q[i]
        e = np.exp((scores[kept] - scores[kept].max()) / math.sqrt(q.shape[1]))
        outputs.append(e / e.sum() @ v[kept])
        recall.append(len(set(kept) & set(np.argsort(scores)[-top:])) / len(kept))
    return np.array(outputs), np.array(recall)


@wrong(8, "top_k_attention")
def chosen_with_the_own_key_always(q, k, v, index, top):
    index = index.copy()
    index[np.arange(len(q)), np.arange(len(q))] = index.max() + 1
    return chosen_query_by_query(q, k, v, index, top)


# mla_step -----------------------------------------------------------------------------------------------------------


@right(8, "mla_step")
def latents_with_keys_and_values(q, q_rot, c, k_rot, W_UK, W_UV):
    outputs = []
    for head in range(len(q)):
        keys = np.concatenate([c @ W_UK[head], k_rot], axis=1)
        query = np.concatenate([q[head], q_rot[head]])
        outputs.append(softmax(keys @ query / math.sqrt(len(query))) @ (c @ W_UV[head]))
    return np.stack(outputs)


@right(8, "mla_step")
def latents_absorbed_head_by_head(q, q_rot, c, k_rot, W_UK, W_UV):
    scale = (q.shape[-1] + q_rot.shape[-1]) ** -0.5
    out = np.zeros((len(q), W_UV.shape[-1]))
    for i, (q_i, r_i, down, up) in enumerate(zip(q, q_rot, W_UK, W_UV, strict=True)):
        s = (c @ (down @ q_i) + k_rot @ r_i) * scale
        out[i] = softmax(s) @ c @ up
    return out


@wrong(8, "mla_step")
def latents_of_the_mean_head(q, q_rot, c, k_rot, W_UK, W_UV):
    """One row of weights for all heads, from their mean score."""
    s = np.einsum("hd,hcd,tc->t", q, W_UK, c) + (q_rot @ k_rot.T).sum(axis=0)
    s = s / len(q) / math.sqrt(q.shape[1] + q_rot.shape[1])
    e = np.exp(s - s.max())
    return np.einsum("t,tc,hce->he", e / e.sum(), c, W_UV)


@wrong(8, "mla_step")
def latents_with_the_newest_rotation(q, q_rot, c, k_rot, W_UK, W_UV):
    return latents_with_keys_and_values(q, q_rot, c, np.broadcast_to(k_rot[-1:], k_rot.shape), W_UK, W_UV)


# patches_and_back ---------------------------------------------------------------------------------------------------


def patches_in_loops(image, size):
    H, W, _ = image.shape
    return np.array([
        image[i : i + size, j : j + size].flatten() for i in range(0, H, size) for j in range(0, W, size)
    ])  # fmt: skip


def picture_in_loops(patches, size, height, width):
    image = np.zeros((height, width, patches.shape[1] // size**2))
    for n, patch in enumerate(patches):
        i, j = divmod(n, width // size)
        image[i * size : (i + 1) * size, j * size : (j + 1) * size] = patch.reshape(size, size, -1)
    return image


def patches_by_einsum(image, size):
    H, W, C = image.shape
    cells = image.reshape(H // size, size, W // size, size, C)
    return np.einsum("hpwqc->hwpqc", cells).reshape(-1, size * size * C)


def picture_by_stacking(patches, size, height, width):
    cells = patches.reshape(height // size, width // size, size, size, -1)
    return np.concatenate([np.concatenate(list(row), axis=1) for row in cells])


right(8, "patches_and_back")({"patchify": patches_in_loops, "unpatchify": picture_by_stacking})
right(8, "patches_and_back")({"patchify": patches_by_einsum, "unpatchify": picture_in_loops})


def patches_without_channels(image, size):
    return patches_in_loops(image.mean(axis=2, keepdims=True), size)


wrong(8, "patches_and_back")({"patchify": patches_without_channels, "unpatchify": picture_in_loops})
