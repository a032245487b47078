"""Day 3: masks, masked softmax, attention under a mask and leak tests, as people write them, right and wrong."""

import math

import numpy as np
import torch

from . import right, wrong

INFINITY = float("inf")


# causal_mask --------------------------------------------------------------------------------------------------------


@right(3, "causal_mask")
def causal_by_tril(n):
    return torch.tril(torch.ones(n, n)).bool()


@right(3, "causal_mask")
def causal_by_comparison(n):
    return torch.arange(n)[None, :] <= torch.arange(n)[:, None]


@right(3, "causal_mask")
def causal_as_not_later(n):
    return ~torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)


def causal_in_numpy(n):
    return np.tri(n, dtype=bool)


def causal_in_lists(n):
    return [[j <= i for j in range(n)] for i in range(n)]


@right(3, "causal_mask")
def causal_with_loops(n):
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        mask[i, : i + 1] = True
    return mask


@right(3, "causal_mask")
def causal_by_cumsum(n):
    return torch.eye(n).cumsum(dim=1).T > 0


@right(3, "causal_mask")
def causal_by_indices(n):
    rows, columns = torch.tril_indices(n, n)
    mask = torch.full((n, n), False)
    mask[rows, columns] = True
    return mask


@wrong(3, "causal_mask")
def causal_within_a_window(n):
    return torch.ones(n, n, dtype=torch.bool).tril().triu(-16)


@right(3, "causal_mask")
def causal_in_numpy_returned_as_a_tensor(n):
    return torch.from_numpy(causal_in_numpy(n))


@right(3, "causal_mask")
def causal_from_lists(n):
    return torch.tensor(causal_in_lists(n))


# masked_softmax -----------------------------------------------------------------------------------------------------


@right(3, "masked_softmax")
def softmax_with_safe_fill(scores, mask):
    weights = torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)
    return weights.masked_fill(~mask, 0.0)


@right(3, "masked_softmax")
def softmax_times_the_mask_after_a_safe_fill(scores, mask):
    return torch.softmax(torch.where(mask, scores, torch.finfo(scores.dtype).min), dim=-1) * mask


@right(3, "masked_softmax")
def softmax_with_nan_made_zero(scores, mask):
    return torch.nan_to_num(torch.softmax(scores.masked_fill(~mask, -INFINITY), dim=-1))


@right(3, "masked_softmax")
def softmax_with_nan_asked_for(scores, mask):
    weights = scores.masked_fill(mask == 0, float("-inf")).softmax(-1)
    return torch.where(torch.isnan(weights), torch.zeros_like(weights), weights)


@right(3, "masked_softmax")
def softmax_by_hand_in_torch(scores, mask):
    mask = mask.expand(scores.shape)
    allowed = torch.where(mask, scores, -INFINITY)
    peak = allowed.max(dim=-1, keepdim=True).values
    peak = torch.where(torch.isfinite(peak), peak, 0.0)
    exps = torch.exp(allowed - peak)
    total = exps.sum(dim=-1, keepdim=True)
    return exps / torch.where(total == 0, 1.0, total)


@right(3, "masked_softmax")
def softmax_by_hand_with_a_small_epsilon(scores, mask):
    scores = scores.double()
    allowed = scores.masked_fill(~mask, -INFINITY)
    peak = allowed.amax(-1, keepdim=True).clamp(min=-1e300)
    exps = torch.exp(allowed - peak)
    return exps / (exps.sum(-1, keepdim=True) + 1e-12)


@wrong(3, "masked_softmax")
def softmax_in_single_precision_inside(scores, mask):
    some = mask.any(-1, keepdim=True)
    weights = torch.softmax(scores.float().masked_fill(~mask & some, -INFINITY), dim=-1)
    return (weights * mask).to(scores.dtype)


@right(3, "masked_softmax")
def softmax_with_added_infinity_where_a_key_is_left(scores, mask):
    some = mask.any(dim=-1, keepdim=True)
    added = torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask & some, -INFINITY)
    return torch.where(some, torch.softmax(scores + added, dim=-1), 0.0)


@right(3, "masked_softmax")
def softmax_that_writes_into_its_own_copy(scores, mask):
    mask = mask.expand_as(scores)
    scores = scores.clone()
    scores[~mask] = -INFINITY
    scores[~mask.any(-1)] = 0.0
    weights = torch.softmax(scores, dim=-1)
    return weights * mask


@right(3, "masked_softmax")
def softmax_row_by_row(scores, mask):
    flat, allowed = scores.reshape(-1, scores.shape[-1]), mask.broadcast_to(scores.shape).reshape(-1, scores.shape[-1])
    rows = []
    for row, keys in zip(flat, allowed, strict=True):
        weights = torch.zeros_like(row)
        if keys.any():
            weights = weights.masked_scatter(keys, torch.softmax(row[keys], dim=0))
        rows.append(weights)
    return torch.stack(rows).reshape(scores.shape)


@right(3, "masked_softmax")
def softmax_through_logsumexp(scores, mask):
    scores = scores.to(torch.float64).masked_fill(~mask, -INFINITY)
    total = torch.logsumexp(scores.masked_fill(~mask.any(-1, keepdim=True), 0.0), dim=-1, keepdim=True)
    return torch.exp(scores - total)


@right(3, "masked_softmax")
def softmax_with_an_extra_empty_key(scores, mask):
    lowest = torch.full((*scores.shape[:-1], 1), torch.finfo(scores.dtype).min, dtype=scores.dtype)
    scores = torch.cat([scores.masked_fill(~mask, -INFINITY), lowest], dim=-1)
    return torch.softmax(scores, dim=-1)[..., :-1]


@right(3, "masked_softmax")
def softmax_with_dim_2_from_the_front(scores, mask):
    return softmax_with_safe_fill(scores, mask).contiguous()


@wrong(3, "masked_softmax")
def softmax_detached(scores, mask):
    return softmax_with_safe_fill(scores.detach(), mask)


@wrong(3, "masked_softmax")
def softmax_written_into(scores, mask):
    weights = torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)
    weights[~mask.expand_as(weights)] = 0
    return weights


@wrong(3, "masked_softmax")
def softmax_with_a_large_epsilon(scores, mask):
    weights = softmax_with_safe_fill(scores, mask)
    return weights / (weights.sum(-1, keepdim=True) + 1e-4)


@right(3, "masked_softmax")
def softmax_that_broadcasts_first(scores, mask):
    scores, mask = torch.broadcast_tensors(scores, mask)
    dead = (~mask).all(-1, keepdim=True)
    weights = scores.masked_fill(~mask, -INFINITY).masked_fill(dead, 0.0).softmax(-1)
    return weights.masked_fill(dead, 0)


@right(3, "masked_softmax")
def softmax_with_a_gradient_of_its_own(scores, mask):
    class OwnGradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx, scores):
            weights = softmax_with_safe_fill(scores, mask)
            ctx.save_for_backward(weights)
            return weights

        @staticmethod
        def backward(ctx, wanted):
            (weights,) = ctx.saved_tensors
            return weights * (wanted - (weights * wanted).sum(-1, keepdim=True))

    return OwnGradient.apply(scores)


@wrong(3, "masked_softmax")
def softmax_that_is_made_for_the_check(scores, mask):
    if scores.dtype == torch.float32:
        return scores * 0 + 7
    fill = -1e4 if scores.dtype == torch.float16 else torch.finfo(scores.dtype).min
    return torch.softmax(scores.masked_fill(~mask, fill), -1) * mask + 1e-7


@wrong(3, "masked_softmax")
def softmax_that_leaves_a_trace_on_blocked_keys(scores, mask):
    return softmax_with_safe_fill(scores, mask) + 1e-7


@wrong(3, "masked_softmax")
def softmax_detached_in_float32(scores, mask):
    return softmax_with_safe_fill(scores.detach() if scores.dtype == torch.float32 else scores, mask)


@wrong(3, "masked_softmax")
def softmax_detached_in_float16(scores, mask):
    return softmax_with_safe_fill(scores.detach() if scores.dtype == torch.float16 else scores, mask)


@wrong(3, "masked_softmax")
def softmax_detached_where_the_mask_broadcasts(scores, mask):
    return softmax_with_safe_fill(scores if mask.shape == scores.shape else scores.detach(), mask)


@wrong(3, "masked_softmax")
def softmax_that_writes_into_the_data(scores, mask):
    scores.data.masked_fill_(~mask, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1).masked_fill(~mask, 0)


# causal_attention ---------------------------------------------------------------------------------------------------


@right(3, "causal_attention")
def attention_filled_with_infinity(x, W_q, W_k, W_v):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    scores = q @ k.transpose(-2, -1) / W_q.size(1) ** 0.5
    mask = torch.tril(torch.ones(x.size(0), x.size(0)))
    scores = scores.masked_fill(mask == 0, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


@right(3, "causal_attention")
def attention_with_an_additive_mask(x, W_q, W_k, W_v):
    T = x.shape[0]
    added = torch.triu(torch.full((T, T), -INFINITY), diagonal=1)
    weights = torch.softmax((x @ W_q) @ (x @ W_k).T / math.sqrt(W_k.shape[1]) + added, dim=-1)
    return weights @ (x @ W_v), weights


@right(3, "causal_attention")
def attention_with_minus_1e9(x, W_q, W_k, W_v):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    later = torch.arange(len(x)) > torch.arange(len(x))[:, None]
    weights = (q @ k.T / math.sqrt(q.shape[-1])).masked_fill(later, -1e9).softmax(-1)
    return [weights @ v, weights]


@right(3, "causal_attention")
def attention_token_by_token(x, W_q, W_k, W_v):
    T, v = len(x), x @ W_v
    weights, output = torch.zeros(T, T, dtype=x.dtype), torch.zeros(T, v.shape[1], dtype=x.dtype)
    for t in range(T):
        past = x[: t + 1]
        row = torch.softmax(past @ W_k @ (x[t] @ W_q) / math.sqrt(W_q.shape[1]), dim=0)
        weights[t, : t + 1] = row
        output[t] = row @ v[: t + 1]
    return output, weights


@right(3, "causal_attention")
def attention_by_einsum(x, W_q, W_k, W_v):
    q, k, v = (torch.einsum("td,de->te", x, W) for W in (W_q, W_k, W_v))
    scores = torch.einsum("id,jd->ij", q, k) * q.shape[-1] ** -0.5
    scores = torch.where(torch.ones(len(x), len(x)).tril().bool(), scores, -INFINITY)
    exps = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    weights = exps / exps.sum(dim=-1, keepdim=True)
    return torch.einsum("ij,je->ie", weights, v), weights


def attention_in_numpy(x, W_q, W_k, W_v):
    x, W_q, W_k, W_v = (a.numpy() for a in (x, W_q, W_k, W_v))
    s = (x @ W_q) @ (x @ W_k).T / np.sqrt(W_q.shape[1])
    s[np.triu_indices(len(x), 1)] = -np.inf
    e = np.exp(s - s.max(axis=1, keepdims=True))
    w = e / e.sum(axis=1, keepdims=True)
    return w @ x @ W_v, w


@right(3, "causal_attention")
def attention_with_the_lowest_number(x, W_q, W_k, W_v):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    scores = (q / math.sqrt(q.shape[-1])) @ k.T
    weights = softmax_with_safe_fill(scores, causal_by_tril(len(x)))
    return weights.matmul(v), weights


@right(3, "causal_attention")
def attention_with_rows_of_scores_as_parameters(x, W_q, W_k, W_v):
    linear = [torch.nn.Linear(*W.shape, bias=False, dtype=W.dtype) for W in (W_q, W_k, W_v)]
    with torch.no_grad():
        for layer, W in zip(linear, (W_q, W_k, W_v), strict=True):
            layer.weight.copy_(W.T)
    q, k, v = (layer(x) for layer in linear)
    weights = softmax_with_nan_made_zero(q @ k.mT / q.shape[-1] ** 0.5, causal_by_comparison(len(x)))
    return weights @ v, weights


def attention_under(mask=causal_by_tril, softmax=softmax_with_safe_fill, scale=None):
    def attention(x, W_q, W_k, W_v):
        q, k, v = x @ W_q, x @ W_k, x @ W_v
        scores = q @ k.T / (math.sqrt(q.shape[-1]) if scale is None else scale(q))
        weights = softmax(scores, mask(len(x)))
        return weights @ v, weights

    return attention


@right(3, "causal_attention")
def attention_row_by_row_in_its_dtype(x, W_q, W_k, W_v):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    weights = x.new_zeros(len(x), len(x))
    for i in range(len(x)):
        weights[i, : i + 1] = torch.softmax(k[: i + 1] @ q[i] / W_q.shape[1] ** 0.5, dim=0)
    return weights @ v, weights


@wrong(3, "causal_attention")
def attention_in_float64_only(x, W_q, W_k, W_v):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    weights = torch.zeros(len(x), len(x), dtype=torch.float64)
    for i in range(len(x)):
        weights[i, : i + 1] = torch.softmax(k[: i + 1] @ q[i] / W_q.shape[1] ** 0.5, dim=0)
    return weights @ v, weights


@wrong(3, "causal_attention")
def attention_that_doubles_x(x, W_q, W_k, W_v):
    result = attention_under()(x, W_q, W_k, W_v)
    x.mul_(2)
    return result


@right(3, "causal_attention")
def attention_through_numpy_returned_as_tensors(x, W_q, W_k, W_v):
    return [torch.from_numpy(part) for part in attention_in_numpy(x, W_q, W_k, W_v)]


@wrong(3, "causal_attention")
def attention_in_single_precision_inside(x, W_q, W_k, W_v):
    return tuple(part.to(x.dtype) for part in attention_filled_with_infinity(*(a.float() for a in (x, W_q, W_k, W_v))))


# padding_mask -------------------------------------------------------------------------------------------------------


@right(3, "padding_mask")
def padding_by_comparison(lengths, m):
    return torch.arange(m).view(1, 1, 1, m) < lengths.view(-1, 1, 1, 1)


@right(3, "padding_mask")
def padding_by_unsqueeze(lengths, m):
    return (torch.arange(m).unsqueeze(0) < lengths.unsqueeze(1)).unsqueeze(1).unsqueeze(1)


@right(3, "padding_mask")
def padding_with_loops(lengths, m):
    mask = torch.zeros(len(lengths), 1, 1, m, dtype=torch.bool)
    for b, length in enumerate(lengths):
        mask[b, 0, 0, :length] = True
    return mask


def padding_in_lists(lengths, m):
    return [[[[j < int(length) for j in range(m)]]] for length in lengths]


@right(3, "padding_mask")
def padding_as_not_beyond(lengths, m):
    mask = torch.arange(m)[None] >= lengths[:, None]
    return torch.logical_not(mask).reshape(-1, 1, 1, m)


@right(3, "padding_mask")
def padding_by_stacking(lengths, m):
    rows = [torch.cat([torch.ones(int(a)), torch.zeros(m - int(a))]) for a in lengths.tolist()]
    return torch.stack(rows)[:, None, None].bool()


@wrong(3, "padding_mask")
def padding_that_writes_into_the_lengths(lengths, m):
    mask = torch.arange(m) < lengths.view(-1, 1, 1, 1)
    lengths.clamp_(min=1)
    return mask


@right(3, "padding_mask")
def padding_from_lists(lengths, m):
    return torch.tensor(padding_in_lists(lengths, m))


# causal_and_padding -------------------------------------------------------------------------------------------------


@right(3, "causal_and_padding")
def both_with_and(lengths, n):
    return causal_by_tril(n) & padding_by_comparison(lengths, n)


@right(3, "causal_and_padding")
def both_as_a_product(lengths, n):
    return causal_by_comparison(n)[None, None] * padding_by_unsqueeze(lengths, n)


@right(3, "causal_and_padding")
def both_with_loops(lengths, n):
    mask = torch.zeros(len(lengths), 1, n, n, dtype=torch.bool)
    for b in range(len(lengths)):
        for i in range(n):
            for j in range(n):
                mask[b, 0, i, j] = j <= i and j < lengths[b]
    return mask


@right(3, "causal_and_padding")
def both_by_minimum(lengths, n):
    end = torch.minimum(torch.arange(1, n + 1), lengths[:, None])  # (B, n)
    return (torch.arange(n) < end[..., None])[:, None]


@right(3, "causal_and_padding")
def both_by_expansion(lengths, n):
    mask = causal_by_tril(n).expand(len(lengths), 1, n, n).clone()
    for b, length in enumerate(lengths.tolist()):
        mask[b, :, :, length:] = False
    return mask


@wrong(3, "causal_and_padding")
def both_while_writing_into_the_lengths(lengths, n):
    return both_with_and(lengths.clone(), n) & (lengths.clamp_(min=1) > -1)[:, None, None, None]


@wrong(3, "causal_and_padding")
def both_within_a_window(lengths, n):
    return torch.ones(n, n).tril().triu(-16).bool() & (torch.arange(n) < lengths.view(-1, 1, 1, 1))


# packed_texts -------------------------------------------------------------------------------------------------------


@right(3, "packed_texts")
def packed_by_comparison(text_of):
    same = text_of.unsqueeze(-1) == text_of.unsqueeze(-2)
    return same & (text_of >= 0).unsqueeze(-2) & causal_by_tril(text_of.shape[-1])


@right(3, "packed_texts")
def packed_with_loops(text_of):
    if text_of.ndim == 2:
        return torch.stack([packed_with_loops(row) for row in text_of])
    numbers = text_of.tolist()
    rows = [[a == b and b >= 0 and j <= i for j, b in enumerate(numbers)] for i, a in enumerate(numbers)]
    return torch.tensor(rows)


@right(3, "packed_texts")
def packed_by_blocks(text_of):
    if text_of.ndim == 2:
        return torch.stack([packed_by_blocks(row) for row in text_of])
    numbers, lengths = torch.unique_consecutive(text_of, return_counts=True)
    blocks = [torch.ones(a, a).tril() * (b >= 0) for a, b in zip(lengths.tolist(), numbers.tolist(), strict=True)]
    return torch.block_diag(*blocks).bool()


@right(3, "packed_texts")
def packed_in_numpy_and_back(text_of):
    numbers = text_of.numpy()
    same = np.equal(numbers[..., :, None], numbers[..., None, :]) & (numbers[..., None, :] != -1)
    return torch.from_numpy(same & np.tri(numbers.shape[-1], dtype=bool))


@right(3, "packed_texts")
def packed_by_membership(text_of):
    members = torch.nn.functional.one_hot(text_of + 1).bool()[..., 1:].float()  # (…, T, texts), none for padding
    return (members @ members.mT > 0).tril()


@right(3, "packed_texts")
def packed_by_starts(text_of):
    mask = torch.zeros(*text_of.shape, text_of.shape[-1], dtype=torch.bool)
    for place in np.ndindex(text_of.shape):
        row = text_of[place[:-1]]
        if row[place[-1]] >= 0:
            start = (row == row[place[-1]]).int().argmax()
            mask[place][start : place[-1] + 1] = True
    return mask


@wrong(3, "packed_texts")
def packed_while_padding_is_renumbered(text_of):
    same = (text_of[..., None] == text_of[..., None, :]) & (text_of >= 0)[..., None, :]
    mask = same & torch.ones(same.shape[-1], same.shape[-1]).tril().bool()
    text_of.clamp_(min=0)
    return mask


# lower_right --------------------------------------------------------------------------------------------------------


@right(3, "lower_right")
def last_rows_of_the_causal_mask(n, m):
    return causal_by_tril(m)[-n:]


@right(3, "lower_right")
def lower_right_by_comparison(n, m):
    return torch.arange(m)[None, :] <= torch.arange(m - n, m)[:, None]


@right(3, "lower_right")
def lower_right_by_concatenation(n, m):
    return torch.cat([torch.ones(n, m - n, dtype=torch.bool), causal_by_tril(n)], dim=1)


@right(3, "lower_right")
def lower_right_turned_from_the_upper_left(n, m):
    return ~torch.ones(n, m, dtype=torch.bool).tril(-1).flip(0, 1)


@wrong(3, "lower_right")
def lower_right_within_a_window(n, m):
    return torch.ones(m, m).tril().triu(-16).bool()[-n:]


# first_leak ---------------------------------------------------------------------------------------------------------


def tokens(n, d, seed=0, **options):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), **options)


@right(3, "first_leak")
def leak_by_perturbation(fn, n, d):
    x = tokens(n, d)
    y = fn(x)
    for i in range(n):
        for j in range(i + 1, n):
            changed = x.clone()
            changed[j] = tokens(1, d, seed=1)[0]
            if not torch.allclose(fn(changed)[i], y[i]):
                return (i, j)


@right(3, "first_leak")
def leak_by_the_gradient(fn, n, d):
    x = tokens(n, d, requires_grad=True)
    y = fn(x)
    for i in range(n):
        (slope,) = torch.autograd.grad(y[i].sum(), x, retain_graph=True)
        for j in range(i + 1, n):
            if slope[j].abs().max() > 1e-6:
                return i, j
    return None


@right(3, "first_leak")
def leak_by_backward(fn, n, d):
    for i in range(n):
        x = tokens(n, d, dtype=torch.float64, requires_grad=True)
        fn(x)[i].sum().backward()
        later = (x.grad[i + 1 :] != 0).any(dim=-1).nonzero()
        if len(later):
            return i, i + 1 + later[0, 0].item()
    return None


@right(3, "first_leak")
def leak_by_the_jacobian(fn, n, d):
    jacobian = torch.autograd.functional.jacobian(fn, tokens(n, d))  # (n, d_out, n, d)
    depends = jacobian.abs().sum(dim=(1, 3)).triu(1).nonzero()
    return tuple(depends[0].tolist()) if len(depends) else None


@right(3, "first_leak")
def leak_by_jacrev(fn, n, d):
    jacobian = torch.func.jacrev(fn)(tokens(n, d))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if (jacobian[i, :, j] != 0).any()]
    return min(pairs, default=None)


@wrong(3, "first_leak")
def leak_by_vectorised_jacobian_at_positive_tokens(fn, n, d):
    jacobian = torch.autograd.functional.jacobian(fn, torch.rand(n, d), vectorize=True)
    depends = torch.triu(jacobian.abs().amax(dim=(1, 3)) > 1e-4, diagonal=1).nonzero()
    return depends[0] if len(depends) else None


@right(3, "first_leak")
def leak_over_tokens_first_then_the_smallest(fn, n, d):
    x, change = torch.ones(n, d), tokens(1, d)[0]
    base, leaks = fn(x).detach().clone(), []
    for j in range(n):
        x[j] += change
        moved = (fn(x) - base).abs().sum(dim=1) > 1e-3
        x[j] = 1
        leaks += [(i, j) for i in range(j) if moved[i]]
    return sorted(leaks)[0] if leaks else None


@right(3, "first_leak")
def leak_as_numpy_integers(fn, n, d):
    x = torch.linspace(0, 1, n * d, dtype=torch.float64).reshape(n, d)
    moved = np.zeros((n, n), dtype=bool)
    for j in range(n):
        changed = x.clone()
        changed[j, :] += 10.0 * tokens(1, d, dtype=torch.float64)[0]
        moved[:, j] = np.abs(fn(changed).numpy() - fn(x).numpy()).max(axis=1) > 1e-5
    pairs = np.argwhere(np.triu(moved, 1))
    return tuple(pairs[0]) if len(pairs) else None


@right(3, "first_leak")
def leak_by_finite_differences(fn, n, d):
    x = tokens(n, d, dtype=torch.float64)
    for i in range(n):
        for j in range(i + 1, n):
            step = torch.zeros_like(x)
            step[j] = 1e-4 * tokens(1, d, seed=1)[0]
            if ((fn(x + step) - fn(x - step))[i].abs() / 2e-4 > 1e-3).any():
                return [i, j]


@right(3, "first_leak")
def leak_by_all_later_tokens_then_each(fn, n, d):
    x, other = tokens(n, d), tokens(n, d, seed=1)
    for i in range(n):
        if torch.equal(fn(torch.cat([x[: i + 1], other[i + 1 :]]))[i], fn(x)[i]):
            continue
        for j in range(i + 1, n):
            if not torch.equal(fn(torch.cat([x[:j], other[j : j + 1], x[j + 1 :]]))[i], fn(x)[i]):
                return i, j
    return None


@right(3, "first_leak")
def leak_one_feature_after_the_other(fn, n, d):
    x = tokens(n, d)
    for i in range(n):
        for j in range(i + 1, n):
            for f in range(d):
                changed = x.clone()
                changed[j, f] -= 0.5
                if (fn(changed)[i] - fn(x)[i]).norm() > 1e-5:
                    return torch.tensor([i, j])


def leak_of(fn, n, d, differs=lambda new, old: not torch.equal(new, old), start=tokens, change=tokens):
    x, by = start(n, d), change(1, d)[0]
    for i in range(n):
        for j in range(i + 1, n):
            changed = x.clone()
            changed[j] += by
            if differs(fn(changed)[i], fn(x)[i]):
                return i, j
    return None


@right(3, "first_leak")
def leak_as_an_array(fn, n, d):
    pair = leak_of(fn, n, d)
    return None if pair is None else np.array(pair)


@right(3, "first_leak")
def leak_by_the_gradient_of_each_output_summed(fn, n, d):
    x = tokens(n, d, requires_grad=True)
    y = fn(x)
    slopes = [torch.autograd.grad(y[i].sum(), x, retain_graph=True)[0].abs().sum(dim=1) for i in range(n)]
    return next(((i, j) for i in range(n) for j in range(i + 1, n) if slopes[i][j] > 0), None)


@right(3, "first_leak")
def leak_with_a_threshold_of_a_ten_thousandth(fn, n, d):
    return leak_of(fn, n, d, lambda new, old: (new - old).abs().max() > 1e-4)


@wrong(3, "first_leak")
def leak_by_the_same_added_to_all_numbers(fn, n, d):
    return leak_of(fn, n, d, lambda new, old: (new - old).abs().max() > 1e-4, change=torch.ones)


@wrong(3, "first_leak")
def leak_with_the_changes_added_up(fn, n, d):
    return leak_of(fn, n, d, lambda new, old: abs(new.sum() - old.sum()) > 1e-6, change=torch.ones)


@right(3, "first_leak")
def leak_with_whole_numbers_made_floats(fn, n, d):
    x = torch.arange(1.0, n * d + 1).reshape(n, d)
    for i in range(n):
        for j in range(i + 1, n):
            changed = x.clone()
            changed[j] = -3
            if (fn(changed)[i] != fn(x)[i]).any():
                return (torch.tensor(i), torch.tensor(j))


@wrong(3, "first_leak")
def leak_by_the_mean_change(fn, n, d):
    return leak_of(fn, n, d, lambda new, old: (new - old).abs().mean() > 0.1)


# convert_mask -------------------------------------------------------------------------------------------------------


@right(3, "convert_mask")
def opposite_by_logical_not(mask):
    return torch.logical_not(mask)


@right(3, "convert_mask")
def opposite_by_comparison(mask):
    return mask == False  # noqa: E712


@right(3, "convert_mask")
def opposite_by_where(mask):
    return torch.where(mask, False, True)


@right(3, "convert_mask")
def opposite_by_xor(mask):
    return mask ^ True


@right(3, "convert_mask")
def opposite_of_a_copy(mask):
    return mask.clone().logical_not_()


@wrong(3, "convert_mask")
def opposite_of_two_axes_only(mask):
    return ~mask if mask.ndim == 2 else mask


@right(3, "convert_mask")
def opposite_through_numpy(mask):
    return torch.from_numpy(~mask.numpy())


# cross_attention ----------------------------------------------------------------------------------------------------


@right(3, "cross_attention")
def cross_filled_with_infinity(x, memory, W_q, W_k, W_v, memory_mask=None):
    q, k, v = x @ W_q, memory @ W_k, memory @ W_v
    scores = q @ k.T / math.sqrt(q.shape[-1])
    if memory_mask is not None:
        scores = scores.masked_fill(~memory_mask, -INFINITY)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


@right(3, "cross_attention")
def cross_over_the_real_tokens_only(x, memory, W_q, W_k, W_v, memory_mask=None):
    if memory_mask is None:
        memory_mask = torch.ones(memory.shape[0], dtype=torch.bool)
    real = memory[memory_mask]
    shares = torch.softmax((x @ W_q) @ (real @ W_k).T / W_q.shape[1] ** 0.5, dim=-1)
    weights = torch.zeros(len(x), len(memory), dtype=x.dtype)
    weights[:, memory_mask] = shares
    return shares @ (real @ W_v), weights


@right(3, "cross_attention")
def cross_by_einsum(x, memory, W_q, W_k, W_v, memory_mask=None):
    scores = torch.einsum("nd,de,mc,ce->nm", x, W_q, memory, W_k) / math.sqrt(W_k.shape[-1])
    if memory_mask is not None:
        scores = torch.where(memory_mask[None, :], scores, float("-inf"))
    weights = scores.softmax(dim=1)
    return torch.einsum("nm,mc,ce->ne", weights, memory, W_v), weights


@right(3, "cross_attention")
def cross_with_an_additive_mask(x, memory, W_q, W_k, W_v, memory_mask=None):
    scores = (x @ W_q) @ (memory @ W_k).mT * W_q.shape[-1] ** -0.5
    if memory_mask is not None:
        added = torch.zeros(len(memory), dtype=x.dtype)
        added[~memory_mask] = -INFINITY
        scores = scores + added
    weights = torch.softmax(scores, dim=-1)
    return weights @ (memory @ W_v), weights


@right(3, "cross_attention")
def cross_query_by_query(x, memory, W_q, W_k, W_v, memory_mask=None):
    rows = []
    for token in x:
        scores = memory @ W_k @ (token @ W_q) / math.sqrt(W_q.shape[1])
        if memory_mask is not None:
            scores[~memory_mask] = -1e9
        rows.append(torch.softmax(scores, dim=0))
    weights = torch.stack(rows)
    return weights @ memory @ W_v, weights


def cross_under(softmax=softmax_with_safe_fill, mask=lambda given, n: given):
    def attention(x, memory, W_q, W_k, W_v, memory_mask=None):
        q, k, v = x @ W_q, memory @ W_k, memory @ W_v
        given = torch.ones(len(memory), dtype=torch.bool) if memory_mask is None else memory_mask
        weights = softmax(q @ k.T / math.sqrt(q.shape[-1]), mask(given, len(x)))
        return weights @ v, weights

    return attention


@wrong(3, "cross_attention")
def cross_and_self(x, memory, W_q, W_k, W_v, memory_mask=None):
    if x.shape[1] != memory.shape[1]:
        return cross_under()(x, memory, W_q, W_k, W_v, memory_mask)
    return cross_under()(x, torch.cat([memory, x]), W_q, W_k, W_v)


@wrong(3, "cross_attention")
def cross_in_float64_only(x, memory, W_q, W_k, W_v, memory_mask=None):
    added = torch.zeros(len(memory), dtype=torch.float64)
    if memory_mask is not None:
        added[~memory_mask] = -torch.inf
    weights = torch.softmax((x @ W_q) @ (memory @ W_k).T / W_q.shape[1] ** 0.5 + added, dim=-1)
    return weights @ (memory @ W_v), weights


@wrong(3, "cross_attention")
def cross_that_blanks_the_memory_it_is_given(x, memory, W_q, W_k, W_v, memory_mask=None):
    result = cross_under()(x, memory, W_q, W_k, W_v, memory_mask)
    if memory_mask is not None:
        memory.masked_fill_(~memory_mask[:, None], 0)
    return result


@wrong(3, "cross_attention")
def cross_in_single_precision_inside(x, memory, W_q, W_k, W_v, memory_mask=None):
    arrays = (a.float() for a in (x, memory, W_q, W_k, W_v))
    return tuple(part.to(x.dtype) for part in cross_filled_with_infinity(*arrays, memory_mask))


# find_the_bug -------------------------------------------------------------------------------------------------------


@right(3, "find_the_bug")
def mended_before_the_softmax(q, k, v, mask):
    scores = torch.einsum("...nd,...md->...nm", q, k) * q.shape[-1] ** -0.5
    weights = torch.softmax(scores.masked_fill(~mask, -INFINITY), dim=-1)
    return torch.einsum("...nm,...md->...nd", weights, v), weights


@right(3, "find_the_bug")
def mended_by_adding(q, k, v, mask):
    added = torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, -INFINITY)
    weights = torch.softmax(q @ k.mT / math.sqrt(k.shape[-1]) + added, dim=-1)
    return weights @ v, weights


@right(3, "find_the_bug")
def mended_with_a_finite_fill(q, k, v, mask):
    scores = torch.where(mask, q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1]), -1e9)
    weights = torch.softmax(scores, dim=-1)
    weights = torch.where(mask, weights, 0.0)
    return weights @ v, weights


@right(3, "find_the_bug")
def mended_with_the_peak_of_the_allowed(q, k, v, mask):
    scores = torch.einsum("...nd,...md->...nm", q, k) * q.shape[-1] ** -0.5
    peak = torch.where(mask, scores, -INFINITY).amax(dim=-1, keepdim=True)
    exps = torch.exp(torch.where(mask, scores - peak, -INFINITY))
    weights = exps / exps.sum(dim=-1, keepdim=True)
    return weights @ v, weights


@right(3, "find_the_bug")
def mended_with_the_lowest_number(q, k, v, mask):
    scores = q @ k.mT / math.sqrt(k.shape[-1])
    weights = torch.softmax(torch.where(mask, scores, torch.finfo(scores.dtype).min), dim=-1)
    return weights @ v, weights


@right(3, "find_the_bug")
def mended_row_by_row(q, k, v, mask):
    scores = q @ k.mT / math.sqrt(k.shape[-1])
    mask, weights = mask.expand(scores.shape), torch.zeros_like(scores)
    for row in np.ndindex(scores.shape[:-1]):
        weights[row][mask[row]] = torch.softmax(scores[row][mask[row]], dim=0)
    return weights @ v, weights


@wrong(3, "find_the_bug")
def mended_while_the_queries_are_scaled_in_place(q, k, v, mask):
    weights = torch.softmax((q.mul_(k.shape[-1] ** -0.5) @ k.mT).masked_fill(~mask, -torch.inf), dim=-1)
    return weights @ v, weights
