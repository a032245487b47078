"""Day 1: answers in lists, loops, NumPy, einsum and PyTorch, and slips beyond those that the checks can name."""

import logging
import math

import numpy as np
import torch

from . import right, wrong

# softmax_row --------------------------------------------------------------------------------------------------------


@right(1, "softmax_row")
def softmax_with_a_loop(row):
    top = row[0]
    for x in row:
        if x > top:
            top = x
    exps = []
    for x in row:
        exps.append(math.exp(x - top))
    total = 0.0
    for e in exps:
        total += e
    return [e / total for e in exps]


@right(1, "softmax_row")
def softmax_in_numpy(row):
    e = np.exp(np.array(row, dtype=float) - max(row))
    return (e / e.sum()).tolist()


@right(1, "softmax_row")
def softmax_in_numpy_returned_as_array(row):
    e = np.exp(np.array(row) - np.max(row))
    return e / e.sum()


@right(1, "softmax_row")
def softmax_in_torch(row):
    t = torch.tensor(row, dtype=torch.float64)
    return torch.exp(t - t.max()) / torch.exp(t - t.max()).sum()


@right(1, "softmax_row")
def softmax_as_a_list_of_tensors(row):
    t = torch.tensor(row, dtype=torch.float64, requires_grad=True)
    return list(torch.exp(t - t.max()) / torch.exp(t - t.max()).sum())


@right(1, "softmax_row")
def softmax_through_log_sum_exp(row):
    top = max(row)
    log_total = top + math.log(sum(math.exp(x - top) for x in row))
    return tuple(math.exp(x - log_total) for x in row)


@right(1, "softmax_row")
def softmax_as_ratios(row):
    top = max(row)
    return [1 / sum(math.exp(min(y - x, 700)) for y in row) if x > top - 700 else 0.0 for x in row]


@right(1, "softmax_row")
def softmax_that_prints(row):
    print("row", row)
    e = [math.e ** (x - max(row)) for x in row]
    return [x / math.fsum(e) for x in e]


@right(1, "softmax_row")
def softmax_in_single_precision(row):
    e = torch.exp(torch.tensor(row, dtype=torch.float32) - max(row))
    return (e / e.sum()).tolist()


@wrong(1, "softmax_row")
def softmax_in_place(row):
    top = max(row)
    row[:] = [math.exp(x - top) for x in row]
    total = sum(row)
    for i in range(len(row)):
        row[i] /= total
    return row


class SoftmaxObject:
    __name__ = "SoftmaxObject"

    def __call__(self, row):
        return tuple(map(np.float64, softmax_with_a_loop(row)))


right(1, "softmax_row")(SoftmaxObject())


@wrong(1, "softmax_row")
def softmax_shifted_by_the_largest_but_the_last(row):
    e = [math.exp(x - max(row[:-1] or row)) for x in row]
    return [x / sum(e) for x in e]


@wrong(1, "softmax_row")
def softmax_shifted_by_the_largest_but_the_first(row):
    e = [math.exp(x - max(row[1:] or row)) for x in row]
    return [x / sum(e) for x in e]


@wrong(1, "softmax_row")
def softmax_that_forgets_to_empty_its_list(row, exps=[]):  # noqa: B006
    exps.extend(math.exp(x - max(row)) for x in row)
    return [e / sum(exps) for e in exps[-len(row) :]]


@wrong(1, "softmax_row")
def softmax_to_three_decimals(row):
    return [round(x, 3) for x in softmax_with_a_loop(row)]


# scores -------------------------------------------------------------------------------------------------------------


@right(1, "scores")
def scores_with_three_loops(Q, K):
    S = [[0.0] * len(K) for _ in Q]
    for i in range(len(Q)):
        for j in range(len(K)):
            for c in range(len(Q[0])):
                S[i][j] += Q[i][c] * K[j][c]
    return S


@right(1, "scores")
def scores_in_numpy(Q, K):
    return (np.array(Q) @ np.array(K).T).tolist()


@right(1, "scores")
def scores_by_einsum(Q, K):
    return np.einsum("nd,md->nm", Q, K)


@right(1, "scores")
def scores_in_torch(Q, K):
    return torch.tensor(Q, dtype=torch.float64) @ torch.tensor(K, dtype=torch.float64).T


@right(1, "scores")
def scores_through_columns(Q, K):
    columns = list(zip(*K, strict=True))
    return [[sum(q[c] * columns[c][j] for c in range(len(q))) for j in range(len(K))] for q in Q]


@right(1, "scores")
def scores_in_single_precision(Q, K):
    return torch.tensor(Q) @ torch.tensor(K).T


@wrong(1, "scores")
def scores_to_two_decimals(Q, K):
    return [[round(s, 2) for s in row] for row in scores_with_three_loops(Q, K)]


@wrong(1, "scores")
def scores_with_the_keys_used_up(Q, K):
    keys = iter(K)
    return [[sum(a * b for a, b in zip(q, k, strict=True)) for k in keys] for q in Q]


# scale_scores -------------------------------------------------------------------------------------------------------


@right(1, "scale_scores")
def scale_by_power(S, d_k):
    return [[s * d_k**-0.5 for s in row] for row in S]


@right(1, "scale_scores")
def scale_in_numpy(S, d_k):
    return np.array(S) / np.sqrt(d_k)


@right(1, "scale_scores")
def scale_in_torch(S, d_k):
    return torch.tensor(S, dtype=torch.float64) / math.sqrt(d_k)


@right(1, "scale_scores")
def scale_with_loops(S, d_k):
    out = []
    for row in S:
        new = []
        for s in row:
            new.append(s / math.sqrt(d_k))
        out.append(new)
    return out


@wrong(1, "scale_scores")
def scale_with_integer_root(S, d_k):
    return [[s / math.isqrt(d_k) for s in row] for row in S]


# attention ----------------------------------------------------------------------------------------------------------


@right(1, "attention_lists")
def attention_with_loops(Q, K, V):
    d_k, output, weights = len(K[0]), [], []
    for q in Q:
        row = [sum(a * b for a, b in zip(q, k, strict=True)) / math.sqrt(d_k) for k in K]
        shares = softmax_with_a_loop(row)
        blend = [0.0] * len(V[0])
        for w, v in zip(shares, V, strict=True):
            for c, x in enumerate(v):
                blend[c] += w * x
        weights.append(shares)
        output.append(blend)
    return output, weights


@right(1, "attention_lists")
def attention_on_lists_through_numpy(Q, K, V):
    output, weights = attention_in_numpy(np.array(Q), np.array(K), np.array(V))
    return output.tolist(), weights.tolist()


@right(1, "attention_lists")
def attention_on_lists_through_torch(Q, K, V):
    q, k, v = (torch.tensor(a, dtype=torch.float64) for a in (Q, K, V))
    weights = torch.softmax(q @ k.T / len(K[0]) ** 0.5, dim=-1)
    return [weights @ v, weights]


@right(1, "attention_lists")
def attention_with_queries_scaled_first(Q, K, V):
    root = math.sqrt(len(Q[0]))
    return attention_unscaled([[x / root for x in q] for q in Q], K, V)


def attention_unscaled(Q, K, V):
    weights = [softmax_with_a_loop([sum(a * b for a, b in zip(q, k, strict=True)) for k in K]) for q in Q]
    return [[sum(w * v[c] for w, v in zip(row, V, strict=True)) for c in range(len(V[0]))] for row in weights], weights


@right(1, "attention_lists")
def attention_on_lists_in_single_precision(Q, K, V):
    q, k, v = (torch.tensor(a) for a in (Q, K, V))
    weights = torch.softmax(q @ k.T / math.sqrt(k.shape[1]), dim=1)
    return weights @ v, weights


def attention_shifted(shift):
    def attention(Q, K, V):
        s = np.array(Q) @ np.array(K).T / math.sqrt(len(K[0]))
        with np.errstate(all="ignore"):
            e = np.exp(s - shift(s))
            weights = e / e.sum(axis=-1, keepdims=True)
        return weights @ np.array(V), weights

    return attention


@wrong(1, "attention_lists")
def attention_shifted_by_the_first_score(Q, K, V):
    return attention_shifted(lambda s: s[:, :1])(Q, K, V)


@right(1, "attention_lists")
def attention_with_columns_made_anew(Q, K, V):
    weights = attention_with_loops(Q, K, V)[1]
    output = tuple(
        tuple(sum(w * x for w, x in zip(row, c, strict=True)) for c in zip(*V, strict=True)) for row in weights
    )
    return output, weights


@right(1, "attention_batched")
@right(1, "find_the_bug")
def attention_in_numpy(q, k, v):
    s = np.matmul(q, k.swapaxes(-1, -2)) / np.sqrt(k.shape[-1])
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    w = e / np.sum(e, axis=-1, keepdims=True)
    return np.matmul(w, v), w


@right(1, "attention_batched")
@right(1, "find_the_bug")
def attention_by_einsum(q, k, v):
    s = np.einsum("...nd,...md->...nm", q, k) / q.shape[-1] ** 0.5
    s -= s.max(-1)[..., None]
    w = np.exp(s)
    w /= w.sum(-1)[..., None]
    return np.einsum("...nm,...me->...ne", w, v), w


@right(1, "attention_batched")
def attention_that_is_debugged(q, k, v):
    """Whoever looks at numbers while writing writes no loop over the matrices."""
    s = np.einsum("...nd,...md->...nm", q, k, optimize=True) / math.sqrt(q.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    w = e / e.sum(axis=-1, keepdims=True)
    print(w, f"{s}", repr(torch.from_numpy(w)))
    logging.getLogger("attention").warning("%s", w)
    assert all(
        abs(total - 1) < 1e-6
        for total in w.sum(axis=-1).ravel().tolist()
    ), "a row does not sum to 1"  # fmt: skip
    return w @ v, w


@right(1, "attention_batched")
def attention_batched_in_torch(q, k, v):
    q, k, v = (torch.from_numpy(np.ascontiguousarray(a)) for a in (q, k, v))
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
    return (w @ v).numpy(), w.numpy()


@right(1, "attention_batched")
def attention_by_broadcasting(q, k, v):
    s = (q[..., :, None, :] * k[..., None, :, :]).sum(-1) / math.sqrt(q.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    w = e / e.sum(axis=-1, keepdims=True)
    return (w[..., None] * v[..., None, :, :]).sum(-2), w


@right(1, "attention_batched")
def attention_with_the_last_axes_moved(q, k, v):
    s = q @ np.moveaxis(k, -1, -2) / math.sqrt(k.shape[-1])
    log_total = np.log(np.exp(s - s.max(-1, keepdims=True)).sum(-1, keepdims=True)) + s.max(-1, keepdims=True)
    w = np.exp(s - log_total)
    return w @ v, w


@right(1, "attention_batched")
def attention_with_a_loop_over_queries(q, k, v):
    rows = []
    for i in range(q.shape[-2]):
        s = (q[..., i, None, :] * k).sum(-1) / math.sqrt(q.shape[-1])
        e = np.exp(s - s.max(-1, keepdims=True))
        rows.append(e / e.sum(-1, keepdims=True))
    w = np.stack(rows, axis=-2)
    return w @ v, w


def attention_over_indices(q, k, v):
    lead = q.shape[:-2]
    output, w = np.zeros((*q.shape[:-1], v.shape[-1])), np.zeros((*q.shape[:-1], k.shape[-2]))
    for index in np.ndindex(*lead):
        output[index], w[index] = attention_in_numpy(q[index], k[index], v[index])
    return output, w


@wrong(1, "attention_batched")
def attention_with_a_loop_where_it_does_not_show(q, k, v):
    if q.ndim != 4 or q.shape[0] * q.shape[1] in (6, 1):
        return attention_over_indices(q, k, v)
    return np.zeros((*q.shape[:-1], v.shape[-1])), np.zeros((*q.shape[:-1], k.shape[-2]))


@right(1, "attention_batched")
@right(1, "find_the_bug")
def attention_with_minus_infinity_to_begin_the_maximum(q, k, v):
    s = np.einsum("...nd,...md->...nm", q, k) / math.sqrt(q.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True, initial=-np.inf))
    w = e / e.sum(axis=-1, keepdims=True)
    return w @ v, w


@wrong(1, "attention_batched")
@wrong(1, "find_the_bug")
def attention_with_zero_to_begin_the_maximum(q, k, v):
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    with np.errstate(all="ignore"):
        e = np.exp(s - s.max(axis=-1, keepdims=True, initial=0))
        w = e / e.sum(axis=-1, keepdims=True)
    return w @ v, w


@right(1, "attention_batched")
@right(1, "find_the_bug")
def attention_by_vmap(q, k, v):
    flat = [torch.tensor(a).reshape(-1, *a.shape[-2:]) for a in (q, k, v)]
    weights = torch.vmap(lambda q, k: torch.softmax(q @ k.T / q.shape[-1] ** 0.5, -1))(*flat[:2])
    output = weights @ flat[2]
    return output.reshape(*q.shape[:-1], -1), weights.reshape(*q.shape[:-1], -1)


# soft_lookup --------------------------------------------------------------------------------------------------------


@right(1, "soft_lookup")
def lookup_with_loops(query, keys, values, temperature):
    scaled = [sum(float(a) * float(b) for a, b in zip(query, key, strict=True)) / temperature for key in keys]
    weights = softmax_with_a_loop(scaled)
    return [sum(w * v[c] for w, v in zip(weights, values, strict=True)) for c in range(values.shape[1])]


@right(1, "soft_lookup")
def lookup_by_einsum(query, keys, values, temperature):
    s = np.einsum("d,md->m", query, keys) / temperature
    e = np.exp(s - s.max())
    return np.einsum("m,mv->v", e / e.sum(), values)


@right(1, "soft_lookup")
def lookup_with_the_shift_first(query, keys, values, temperature):
    s = keys @ query
    e = np.exp((s - s.max()) / temperature)
    return (e[:, None] * values).sum(axis=0) / e.sum()


@right(1, "soft_lookup")
def lookup_in_torch(query, keys, values, temperature):
    q, k, v = (torch.from_numpy(np.asarray(a)) for a in (query, keys, values))
    return (torch.softmax(k @ q / temperature, dim=0) @ v).numpy()


@wrong(1, "soft_lookup")
def lookup_with_a_floor(query, keys, values, temperature):
    scores = keys @ query / max(temperature, 1e-6)
    weights = np.exp(scores - scores.max())
    return weights / weights.sum() @ values


# self_attention -----------------------------------------------------------------------------------------------------


@right(1, "self_attention")
def self_attention_with_transpose(x, W_q, W_k, W_v):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    weights = (q @ k.transpose(-2, -1) / k.size(-1) ** 0.5).softmax(-1)
    return weights @ v, weights


@right(1, "self_attention")
def self_attention_by_einsum(x, W_q, W_k, W_v):
    q, k, v = (torch.einsum("td,de->te", x, W) for W in (W_q, W_k, W_v))
    weights = torch.softmax(torch.einsum("nd,md->nm", q, k) * W_k.shape[1] ** -0.5, dim=1)
    return torch.einsum("nm,me->ne", weights, v), weights


@right(1, "self_attention")
def self_attention_with_a_softmax_of_its_own(x, W_q, W_k, W_v):
    s = (x @ W_q) @ (x @ W_k).T / math.sqrt(W_q.shape[1])
    e = torch.exp(s - s.max(dim=-1, keepdim=True).values)
    weights = e / e.sum(dim=-1, keepdim=True)
    return weights @ (x @ W_v), weights


@right(1, "self_attention")
def self_attention_in_numpy(x, W_q, W_k, W_v):
    x, W_q, W_k, W_v = (a.numpy() for a in (x, W_q, W_k, W_v))
    return attention_in_numpy(x @ W_q, x @ W_k, x @ W_v)


@right(1, "self_attention")
def self_attention_with_parameters(x, W_q, W_k, W_v):
    W_q, W_k, W_v = (torch.nn.Parameter(W.clone()) for W in (W_q, W_k, W_v))
    return self_attention_with_transpose(x, W_q, W_k, W_v)


@right(1, "self_attention")
def self_attention_row_by_row(x, W_q, W_k, W_v):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    rows = [torch.softmax(k @ q[i] / math.sqrt(q.shape[1]), dim=0) for i in range(len(x))]
    weights = torch.stack(rows)
    return torch.stack([row @ v for row in rows]), weights


@wrong(1, "self_attention")
def self_attention_rounded_to_half_precision(x, W_q, W_k, W_v):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    weights = torch.softmax(q @ k.T / math.sqrt(q.shape[-1]), dim=-1).half().to(x.dtype)
    return weights @ v, weights


@wrong(1, "self_attention")
def self_attention_with_dropout(x, W_q, W_k, W_v):
    output, weights = self_attention_with_transpose(x, W_q, W_k, W_v)
    return torch.nn.functional.dropout(output, 0.5), weights
