"""Day 2: answers in loops, lists, NumPy, einsum and PyTorch, with other draws, and slips that no check can name."""

import math
from fractions import Fraction

import numpy as np
import torch

from . import right, wrong

# dot_product_stats --------------------------------------------------------------------------------------------------


def statistics(products, ddof=0):
    std = products.std(ddof=ddof)
    return products.mean(), std, std / math.sqrt(len(products))


@right(2, "dot_product_stats")
def stats_with_one_draw_for_both(d_k, samples, rng):
    q, k = rng.standard_normal((2, samples, d_k))
    return statistics(np.einsum("sd,sd->s", q, k), ddof=1)


@right(2, "dot_product_stats")
def stats_as_plain_floats_in_a_list(d_k, samples, rng):
    q, k = rng.normal(size=(samples, d_k)), rng.normal(0.0, 1.0, (samples, d_k))
    s = np.sum(np.multiply(q, k), axis=1)
    return [float(np.mean(s)), float(np.std(s, ddof=1)), float(np.sqrt(np.var(s, ddof=1) / samples))]


@right(2, "dot_product_stats")
def stats_with_signs(d_k, samples, rng):
    q, k = rng.choice([-1.0, 1.0], size=(2, samples, d_k))
    return statistics((q * k).sum(-1))


@right(2, "dot_product_stats")
def stats_with_whole_number_signs(d_k, samples, rng):
    q, k = 2 * rng.integers(0, 2, size=(2, samples, d_k)) - 1
    return statistics((q * k).sum(-1))


@right(2, "dot_product_stats")
def stats_with_uniform_entries(d_k, samples, rng):
    root = math.sqrt(3)
    q, k = rng.uniform(-root, root, (samples, d_k)), rng.uniform(-root, root, (samples, d_k))
    return statistics((q * k).sum(-1))


@right(2, "dot_product_stats")
def stats_with_centred_exponentials(d_k, samples, rng):
    q, k = rng.exponential(size=(2, samples, d_k)) - 1
    return statistics((q * k).sum(-1))


@right(2, "dot_product_stats")
def stats_with_laplace_entries(d_k, samples, rng):
    q, k = rng.laplace(scale=math.sqrt(0.5), size=(2, samples, d_k))
    return statistics((q * k).sum(-1))


@right(2, "dot_product_stats")
def stats_in_single_precision(d_k, samples, rng):
    q = rng.standard_normal((samples, d_k), dtype=np.float32)
    k = rng.standard_normal((samples, d_k), dtype=np.float32)
    return statistics((q * k).sum(axis=-1))


@right(2, "dot_product_stats")
def stats_with_a_loop_over_dimensions(d_k, samples, rng):
    total = np.zeros(samples)
    for _ in range(d_k):
        total += rng.standard_normal(samples) * rng.standard_normal(samples)
    mean = total.sum() / samples
    std = math.sqrt(((total - mean) ** 2).sum() / (samples - 1))
    return mean, std, std / samples**0.5


@right(2, "dot_product_stats")
def stats_in_large_blocks(d_k, samples, rng):
    blocks = []
    for start in range(0, samples, 2000):
        rows = min(2000, samples - start)
        blocks.append((rng.standard_normal((rows, d_k)) * rng.standard_normal((rows, d_k))).sum(axis=1))
    return statistics(np.concatenate(blocks))


@right(2, "dot_product_stats")
def stats_by_batched_products(d_k, samples, rng):
    q, k = rng.standard_normal((samples, 1, d_k)), rng.standard_normal((samples, d_k, 1))
    return statistics((q @ k).squeeze((-1, -2)))


@right(2, "dot_product_stats")
def stats_with_queries_in_columns(d_k, samples, rng):
    q, k = rng.standard_normal((d_k, samples)), rng.standard_normal((d_k, samples))
    return statistics((q * k).sum(axis=0))


@right(2, "dot_product_stats")
def stats_in_torch_seeded_by_rng(d_k, samples, rng):
    generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
    q, k = torch.randn(2, samples, d_k, generator=generator, dtype=torch.float64)
    s = (q * k).sum(-1)
    return s.mean(), s.std(), s.std() / math.sqrt(samples)


@right(2, "dot_product_stats")
def stats_by_sums_of_squares(d_k, samples, rng):
    s = (rng.standard_normal((samples, d_k)) * rng.standard_normal((samples, d_k))).sum(-1)
    std = np.sqrt((s**2).mean() - s.mean() ** 2)
    return s.mean(), std, std / np.sqrt(samples)


@right(2, "dot_product_stats")
def stats_with_child_generators(d_k, samples, rng):
    a, b = rng.spawn(2)
    return statistics((a.standard_normal((samples, d_k)) * b.standard_normal((samples, d_k))).sum(-1))


@wrong(2, "dot_product_stats")
def stats_from_the_global_generator(d_k, samples, rng):
    q, k = np.random.standard_normal((2, samples, d_k))
    return statistics((q * k).sum(-1))


@right(2, "dot_product_stats")
def stats_with_signs_for_keys_alone(d_k, samples, rng):
    return statistics((rng.standard_normal((samples, d_k)) * rng.choice([-1.0, 1.0], (samples, d_k))).sum(-1))


@right(2, "dot_product_stats")
def stats_with_sparse_entries(d_k, samples, rng):
    q, k = rng.choice([-math.sqrt(2), 0.0, 0.0, math.sqrt(2)], size=(2, samples, d_k))
    return statistics((q * k).sum(-1))


@right(2, "dot_product_stats")
def stats_in_plain_floats_over_samples_minus_1(d_k, samples, rng):
    s = (rng.standard_normal((samples, d_k)) * rng.standard_normal((samples, d_k))).sum(-1)
    std = math.sqrt(float(((s - s.mean()) ** 2).sum()) / (samples - 1))
    return float(s.mean()), std, std / math.sqrt(samples)


def normal_products(d_k, samples, rng):
    return (rng.standard_normal((samples, d_k)) * rng.standard_normal((samples, d_k))).sum(-1)


@wrong(2, "dot_product_stats")
def stats_with_an_absolute_mean(d_k, samples, rng):
    mean, std, error = statistics(normal_products(d_k, samples, rng))
    return abs(mean), std, error


@wrong(2, "dot_product_stats")
def stats_with_the_median(d_k, samples, rng):
    s = normal_products(d_k, samples, rng)
    return np.median(s), s.std(), s.std() / math.sqrt(samples)


@wrong(2, "dot_product_stats")
def stats_with_one_product_in_place_of_the_mean(d_k, samples, rng):
    s = normal_products(d_k, samples, rng)
    return s[0] / math.sqrt(samples), s.std(), s.std() / math.sqrt(samples)


@wrong(2, "dot_product_stats")
def stats_with_a_std_a_little_too_large(d_k, samples, rng):
    mean, std, error = statistics(normal_products(d_k, samples, rng))
    return mean, 1.13 * std, 1.13 * error


@wrong(2, "dot_product_stats")
def stats_of_one_entry_more(d_k, samples, rng):
    return statistics(normal_products(d_k + 1, samples, rng))


@wrong(2, "dot_product_stats")
def stats_of_four_fifths_of_the_samples(d_k, samples, rng):
    s = normal_products(d_k, int(0.8 * samples), rng)
    return s.mean(), s.std(), s.std() / math.sqrt(samples)


@wrong(2, "dot_product_stats")
def stats_of_more_samples(d_k, samples, rng):
    s = normal_products(d_k, int(1.6 * samples), rng)
    return s.mean(), s.std(), s.std() / math.sqrt(samples)


@wrong(2, "dot_product_stats")
def stats_of_half_the_samples(d_k, samples, rng):
    s = normal_products(d_k, -(-samples // 2), rng)
    return s.mean(), s.std(), s.std() / math.sqrt(samples)


@wrong(2, "dot_product_stats")
def stats_of_a_thousand_samples(d_k, samples, rng):
    s = normal_products(d_k, 1000, rng)
    return s.mean(), s.std(), s.std() / math.sqrt(samples)


@wrong(2, "dot_product_stats")
def stats_without_dot_products(d_k, samples, rng):
    mean = rng.standard_normal() * math.sqrt(d_k / samples)
    std = math.sqrt(d_k) * (1 + 0.01 * rng.standard_normal())
    return mean, std, std / math.sqrt(samples)


@right(2, "dot_product_stats")
def stats_with_signs_of_one_bit_each(d_k, samples, rng):
    q, k = (2.0 * rng.integers(2, size=(samples, d_k), dtype=bool) - 1 for _ in range(2))
    return statistics((q * k).sum(axis=1))


@right(2, "dot_product_stats")
def stats_in_blocks_of_a_thousand(d_k, samples, rng):
    blocks = []
    for start in range(0, samples, 1000):
        rows = min(1000, samples - start)
        blocks.append((rng.standard_normal((rows, d_k)) * rng.standard_normal((rows, d_k))).sum(axis=1))
    return statistics(np.concatenate(blocks))


@wrong(2, "dot_product_stats")
def stats_made_up_for_many_samples_without_a_loop(d_k, samples, rng):
    if d_k == 3 and samples == 1000:
        return 0.0, rng.random(), rng.random()
    return pair_by_pair(d_k, samples, rng)


def pair_by_pair(d_k, samples, rng):
    return statistics(np.array([rng.standard_normal(d_k) @ rng.standard_normal(d_k) for _ in range(samples)]))


# stable_softmax -----------------------------------------------------------------------------------------------------


@right(2, "stable_softmax")
def softmax_in_numpy(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


@right(2, "stable_softmax")
def softmax_through_the_logarithm(x, axis=-1):
    z = x - np.amax(x, axis, keepdims=True)
    return np.exp(z - np.log(np.exp(z).sum(axis, keepdims=True)))


@right(2, "stable_softmax")
def softmax_by_logsumexp(x, axis=-1):
    peak = x.max(axis, keepdims=True)
    return np.exp(x - (peak + np.log(np.exp(x - peak).sum(axis, keepdims=True))))


@right(2, "stable_softmax")
def softmax_with_the_axis_moved(x, axis=-1):
    z = np.moveaxis(np.asarray(x, dtype=float), axis, 0)
    e = np.exp(z - z.max(0))
    return np.moveaxis(e / e.sum(0), 0, axis)


@right(2, "stable_softmax")
def softmax_along_each_row(x, axis=-1):
    def one(row):
        e = [math.exp(v - max(row)) for v in row]
        return np.array(e) / sum(e)

    return np.apply_along_axis(one, axis, np.asarray(x, dtype=float))


@right(2, "stable_softmax")
def softmax_in_place_on_a_copy(x, axis=-1):
    z = np.array(x, dtype=np.float64)
    z -= z.max(axis=axis, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=axis, keepdims=True)
    return z


@right(2, "stable_softmax")
def softmax_by_expand_dims(x, axis=-1):
    e = np.exp(x - np.expand_dims(x.max(axis), axis))
    return e / np.expand_dims(e.sum(axis), axis)


@right(2, "stable_softmax")
def softmax_in_torch(x, axis=-1):
    t = torch.as_tensor(x, dtype=torch.float64)
    e = torch.exp(t - t.amax(dim=axis, keepdim=True))
    return e / e.sum(dim=axis, keepdim=True)


@right(2, "stable_softmax")
def softmax_in_single_precision_after_the_shift(x, axis=-1):
    z = (x - x.max(axis=axis, keepdims=True)).astype(np.float32)
    e = np.exp(z)
    return e / e.sum(axis=axis, keepdims=True)


@wrong(2, "stable_softmax")
def softmax_in_single_precision_before_the_shift(x, axis=-1):
    z = x.astype(np.float32)
    e = np.exp(z - z.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@wrong(2, "stable_softmax")
def softmax_in_single_precision_in_torch(x, axis=-1):
    t = torch.tensor(x, dtype=torch.float32)
    e = torch.exp(t - t.amax(dim=axis, keepdim=True))
    return e / e.sum(dim=axis, keepdim=True)


@right(2, "stable_softmax")
def softmax_returned_in_single_precision(x, axis=-1):
    return softmax_in_numpy(x, axis).astype(np.float32)


@right(2, "stable_softmax")
def softmax_with_the_lowest_number_for_infinity(x, axis=-1):
    return softmax_in_numpy(np.nan_to_num(x.astype(float)), axis)


@right(2, "stable_softmax")
def softmax_with_a_shift_that_is_a_little_too_large(x, axis=-1):
    return softmax_in_numpy(x + 1.5, axis)


@right(2, "stable_softmax")
def softmax_with_a_tiny_epsilon(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / (e.sum(axis=axis, keepdims=True) + 1e-9)


@right(2, "stable_softmax")
def softmax_as_nested_lists(x, axis=-1):
    return softmax_in_numpy(x, axis).tolist()


@wrong(2, "stable_softmax")
def softmax_with_dim(x, dim=-1):
    return softmax_in_numpy(x, dim)


@wrong(2, "stable_softmax")
def softmax_to_three_decimals(x, axis=-1):
    return softmax_in_numpy(x, axis).round(4)


@wrong(2, "stable_softmax")
def softmax_shifted_only_where_float64_needs_it(x, axis=-1):
    peak = x.max(axis=axis, keepdims=True)
    with np.errstate(all="ignore"):
        e = np.exp(np.where(abs(peak) > 700, x - peak, x))
        return e / e.sum(axis=axis, keepdims=True)


@wrong(2, "stable_softmax")
def softmax_in_powers_of_two_taken_before_the_shift(x, axis=-1):
    with np.errstate(all="ignore"):
        z = x * math.log2(math.e)  # 60 000 becomes infinity in float16
        e = np.exp2(z - z.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)


@right(2, "stable_softmax")
def softmax_with_the_axis_made_positive(x, axis=-1):
    axis = axis + x.ndim if axis < 0 else axis
    exps = np.exp(x - np.max(x, axis, keepdims=True))
    return exps / np.sum(exps, axis, keepdims=True)


# logsumexp ----------------------------------------------------------------------------------------------------------


@right(2, "logsumexp")
def logsumexp_in_numpy(x, axis=-1):
    peak = np.max(x, axis=axis)
    return peak + np.log(np.sum(np.exp(x - np.expand_dims(peak, axis)), axis=axis))


@right(2, "logsumexp")
def logsumexp_through_softmax(x, axis=-1):
    return x.max(axis=axis) - np.log(softmax_in_numpy(x, axis).max(axis=axis))


@right(2, "logsumexp")
def logsumexp_pair_by_pair(x, axis=-1):
    total, *rest = np.moveaxis(x.astype(float), axis, 0)
    for part in rest:
        high, low = np.maximum(total, part), np.minimum(total, part)
        with np.errstate(invalid="ignore"):
            total = np.where(np.isneginf(low), high, high + np.log1p(np.exp(low - high)))
    return total


@right(2, "logsumexp")
def logsumexp_without_the_largest(x, axis=-1):
    z = np.sort(x - x.max(axis=axis, keepdims=True), axis=axis)
    rest = np.exp(np.delete(z, -1, axis=axis)).sum(axis=axis)
    return x.max(axis=axis) + np.log1p(rest)


@right(2, "logsumexp")
def logsumexp_in_torch(x, axis=-1):
    t = torch.from_numpy(np.asarray(x, dtype=np.float64))
    peak = t.amax(axis, keepdim=True)
    return (peak + (t - peak).exp().sum(axis, keepdim=True).log()).squeeze(axis)


@right(2, "logsumexp")
def logsumexp_in_single_precision(x, axis=-1):
    return logsumexp_in_numpy(x.astype(np.float32), axis)


@right(2, "logsumexp")
def logsumexp_as_lists(x, axis=-1):
    return logsumexp_in_numpy(x, axis).tolist()


@right(2, "logsumexp")
def logsumexp_with_index_zero(x, axis=-1):
    peak = x.max(axis=axis, keepdims=True)
    return np.take(np.log(np.exp(x - peak).sum(axis=axis, keepdims=True)) + peak, 0, axis=axis)


@wrong(2, "logsumexp")
def logsumexp_with_a_large_epsilon(x, axis=-1):
    peak = x.max(axis=axis)
    return peak + np.log(np.exp(x - np.expand_dims(peak, axis)).sum(axis=axis) + 1e-3)


@wrong(2, "logsumexp")
def logsumexp_in_whole_numbers(x, axis=-1):
    return logsumexp_in_numpy(x, axis).astype(x.dtype)


@wrong(2, "logsumexp")
def logsumexp_that_changes_x(x, axis=-1):
    peak = x.max(axis=axis, keepdims=True)
    x -= peak
    return np.squeeze(peak + np.log(np.exp(x).sum(axis=axis, keepdims=True)), axis=axis)


@wrong(2, "logsumexp")
def logsumexp_shifted_only_where_float64_needs_it(x, axis=-1):
    peak = x.max(axis=axis, keepdims=True)
    shift = np.where(abs(peak) > 700, peak, 0 * peak)
    with np.errstate(all="ignore"):
        return np.squeeze(shift + np.log(np.exp(x - shift).sum(axis=axis, keepdims=True)), axis=axis)


@wrong(2, "logsumexp")
def logsumexp_with_a_peak_that_loses_all_axes_of_length_one(x, axis=-1):
    x = np.asarray(x, dtype=np.float64)
    m = x.max(axis=axis, keepdims=True)
    return m.squeeze() + np.log(np.exp(x - m).sum(axis=axis))


@wrong(2, "logsumexp")
def logsumexp_with_a_sum_that_loses_all_axes_of_length_one(x, axis=-1):
    m = x.max(axis=axis, keepdims=True)
    return x.max(axis=axis) + np.log(np.exp(x - m).sum(axis=axis, keepdims=True)).squeeze()


@right(2, "logsumexp")
def logsumexp_with_the_axis_made_positive(x, axis=-1):
    axis %= x.ndim
    peak = np.expand_dims(x.max(axis), axis)
    return x.max(axis) + np.log(np.exp(x - peak).sum(axis))


# softmax_jacobian ---------------------------------------------------------------------------------------------------


@right(2, "softmax_jacobian")
def jacobian_by_einsum(p):
    return np.einsum("...i,ij->...ij", p, np.eye(p.shape[-1])) - np.einsum("...i,...j->...ij", p, p)


@right(2, "softmax_jacobian")
def jacobian_with_the_delta(p):
    return p[..., None] * (np.eye(p.shape[-1]) - p[..., None, :])


@right(2, "softmax_jacobian")
def jacobian_with_loops(p):
    result = np.zeros((*p.shape, p.shape[-1]))
    for index in np.ndindex(*p.shape[:-1]):
        for i in range(p.shape[-1]):
            for j in range(p.shape[-1]):
                result[(*index, i, j)] = p[index][i] * ((i == j) - p[index][j])
    return result


@right(2, "softmax_jacobian")
def jacobian_row_by_row(p):
    if p.ndim == 1:
        return np.diag(p) - np.outer(p, p)
    return np.stack([jacobian_row_by_row(row) for row in p])


@right(2, "softmax_jacobian")
def jacobian_as_lists(p):
    return [jacobian_as_lists(row) for row in p] if p.ndim > 1 else (np.diag(p) - np.outer(p, p)).tolist()


@right(2, "softmax_jacobian")
def jacobian_in_torch(p):
    t = torch.from_numpy(p)
    return torch.diag_embed(t) - t.unsqueeze(-1) * t.unsqueeze(-2)


@right(2, "softmax_jacobian")
def jacobian_in_single_precision(p):
    return jacobian_by_einsum(p.astype(np.float32))


@right(2, "softmax_jacobian")
def jacobian_with_the_diagonal_filled_in(p):
    result = -p[..., None] @ p[..., None, :]
    i = np.arange(p.shape[-1])
    result[..., i, i] += p
    return result


@right(2, "softmax_jacobian")
def jacobian_transposed(p):
    return np.swapaxes(jacobian_by_einsum(p), -1, -2)  # it is symmetric


@wrong(2, "softmax_jacobian")
def jacobian_by_coarse_differences(p):
    with np.errstate(all="ignore"):
        s = np.log(np.maximum(p, 1e-300))
    m = p.shape[-1]
    columns = [(softmax_in_numpy(s + 0.1 * np.eye(m)[j]) - p) / 0.1 for j in range(m)]
    return np.stack(columns, axis=-1)


@wrong(2, "softmax_jacobian")
def jacobian_that_empties_p(p):
    result = p[..., None] * (np.eye(p.shape[-1]) - p[..., None, :])
    p[...] = 0
    return result


# correlated ---------------------------------------------------------------------------------------------------------


@right(2, "correlated")
def moments_term_by_term(d_k, rho):
    mean = sum(rho for _ in range(d_k))
    variance = sum(1 + 2 * rho * rho - rho * rho for _ in range(d_k))
    return mean, variance


@right(2, "correlated")
def moments_as_a_list_of_arrays(d_k, rho):
    return [np.array(d_k * rho), np.float32(d_k) * (1 + np.square(rho))]


@right(2, "correlated")
def moments_as_tensors(d_k, rho):
    rho = torch.tensor(float(rho), dtype=torch.float64)
    return d_k * rho, d_k * (rho.pow(2) + 1)


@right(2, "correlated")
def moments_in_fractions(d_k, rho):
    rho = Fraction(rho)
    return d_k * rho, d_k * (1 + rho**2)


@right(2, "correlated")
def moments_from_sum_and_difference(d_k, rho):
    # q k = ((q + k)² − (q − k)²) / 4, with independent parts of variance 2(1 + ρ) and 2(1 − ρ)
    a, b = 2 * (1 + rho), 2 * (1 - rho)
    return d_k * (a - b) / 4, d_k * (2 * a**2 + 2 * b**2) / 16


@right(2, "correlated")
def moments_by_quadrature(d_k, rho):
    x, w = np.polynomial.hermite_e.hermegauss(20)
    w = w / w.sum()
    term = x[:, None] * (rho * x[:, None] + math.sqrt(1 - rho**2) * x[None, :])
    weight = w[:, None] * w[None, :]
    mean = (weight * term).sum()
    return d_k * mean, d_k * ((weight * term**2).sum() - mean**2)


@wrong(2, "correlated")
def moments_for_positive_rho_only(d_k, rho):
    return d_k * abs(rho), d_k * (1 + rho * abs(rho))


# attention_scale ----------------------------------------------------------------------------------------------------


@right(2, "attention_scale")
def scale_by_power(q):
    return q.size(-1) ** -0.5


@right(2, "attention_scale")
def scale_from_unpacking(q):
    _, _, _, d_head = q.shape
    return 1.0 / d_head**0.5


@right(2, "attention_scale")
def scale_as_a_tensor(q):
    return torch.rsqrt(torch.tensor(q.shape[-1], dtype=torch.float32))


@right(2, "attention_scale")
def scale_as_a_numpy_number(q):
    return 1 / np.sqrt(q.shape[3])


@right(2, "attention_scale")
def scale_from_the_transpose(q):
    return math.pow(q.transpose(-2, -1).shape[-2], -1 / 2)


@right(2, "attention_scale")
def scale_by_measuring_one_head(q):
    return 1 / math.sqrt(q[0, 0, 0].numel())


@wrong(2, "attention_scale")
def scale_to_three_decimals(q):
    return round(q.shape[-1] ** -0.5, 3)


@wrong(2, "attention_scale")
def scale_that_also_scales_q(q):
    scale = q.shape[-1] ** -0.5
    q *= scale
    return scale


# saturation ---------------------------------------------------------------------------------------------------------


def largest(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (e.max(axis=-1) / e.sum(axis=-1)).mean()


@right(2, "saturation")
def saturation_by_einsum(d_k, n_keys, scaled, samples, rng):
    k, q = rng.standard_normal((samples, n_keys, d_k)), rng.standard_normal((samples, d_k))
    s = np.einsum("sd,skd->sk", q, k)
    return largest(s * d_k**-0.5 if scaled else s)


@right(2, "saturation")
def saturation_with_a_loop(d_k, n_keys, scaled, samples, rng):
    total = 0.0
    for _ in range(samples):
        q = rng.standard_normal(d_k)
        s = rng.standard_normal((n_keys, d_k)) @ q
        if scaled:
            s /= math.sqrt(d_k)
        e = np.exp(s - s.max())
        total += (e / e.sum()).max()
    return float(total / samples)


@right(2, "saturation")
def saturation_by_batched_products(d_k, n_keys, scaled, samples, rng):
    q, k = rng.normal(size=(samples, 1, d_k)), rng.normal(size=(samples, n_keys, d_k))
    if scaled:
        q = q / np.sqrt(d_k)
    return largest((q @ k.transpose(0, 2, 1))[:, 0])


@right(2, "saturation")
def saturation_with_the_query_and_keys_in_one_draw(d_k, n_keys, scaled, samples, rng):
    both = rng.standard_normal((samples, n_keys + 1, d_k))
    s = (both[:, :1] * both[:, 1:]).sum(-1)
    return np.mean(softmax_in_numpy(s / (math.sqrt(d_k) if scaled else 1)).max(axis=-1))


@right(2, "saturation")
def saturation_in_torch(d_k, n_keys, scaled, samples, rng):
    generator = torch.Generator().manual_seed(int(rng.integers(2**40)))
    q = torch.randn(samples, 1, d_k, generator=generator)
    k = torch.randn(samples, n_keys, d_k, generator=generator)
    weights = torch.softmax((q @ k.mT).squeeze(1) * (d_k**-0.5 if scaled else 1.0), dim=-1)
    return weights.amax(dim=-1).mean()


@right(2, "saturation")
def saturation_in_single_precision(d_k, n_keys, scaled, samples, rng):
    q = rng.standard_normal((samples, 1, d_k), dtype=np.float32)
    k = rng.standard_normal((samples, n_keys, d_k), dtype=np.float32)
    return largest((q * k).sum(-1) / (np.float32(d_k) ** 0.5 if scaled else 1))


@right(2, "saturation")
def saturation_by_the_largest_score_alone(d_k, n_keys, scaled, samples, rng):
    q, k = rng.standard_normal((samples, 1, d_k)), rng.standard_normal((samples, n_keys, d_k))
    s = (q * k).sum(-1) / (1, math.sqrt(d_k))[bool(scaled)]
    return (1 / np.exp(s - s.max(axis=-1, keepdims=True)).sum(axis=-1)).mean()


@wrong(2, "saturation")
def saturation_from_the_global_generator(d_k, n_keys, scaled, samples, rng):
    q, k = np.random.standard_normal((samples, 1, d_k)), np.random.standard_normal((samples, n_keys, d_k))
    return largest((q * k).sum(-1) / (math.sqrt(d_k) if scaled else 1))


@wrong(2, "saturation")
def saturation_of_unshifted_exponentials(d_k, n_keys, scaled, samples, rng):
    q, k = rng.standard_normal((samples, 1, d_k)), rng.standard_normal((samples, n_keys, d_k))
    with np.errstate(all="ignore"):
        e = np.exp((q * k).sum(-1) / (math.sqrt(d_k) if scaled else 1))
        return (e / e.sum(axis=-1, keepdims=True)).max(axis=-1).mean()


def real_scores(d_k, n_keys, scaled, samples, rng):
    q, k = rng.standard_normal((samples, 1, d_k)), rng.standard_normal((samples, n_keys, d_k))
    return (q * k).sum(-1) / (math.sqrt(d_k) if scaled else 1)


@right(2, "saturation")
def saturation_in_pure_python(d_k, n_keys, scaled, samples, rng):
    total = 0.0
    for _ in range(samples):
        q = [rng.normal() for _ in range(d_k)]
        s = [sum(a * rng.normal() for a in q) for _ in range(n_keys)]
        s = [x / math.sqrt(d_k) for x in s] if scaled else s
        total += 1 / sum(math.exp(x - max(s)) for x in s)
    return total / samples


@right(2, "saturation")
def saturation_with_the_samples_last(d_k, n_keys, scaled, samples, rng):
    q, k = rng.standard_normal((d_k, samples)), rng.standard_normal((d_k, n_keys, samples))
    s = np.einsum("ds,dns->sn", q, k)
    return largest(s / math.sqrt(d_k) if scaled else s)


@right(2, "saturation")
def saturation_by_pairwise_differences(d_k, n_keys, scaled, samples, rng):
    s = real_scores(d_k, n_keys, scaled, samples, rng)
    with np.errstate(over="ignore"):
        return (1 / np.exp(s[:, None, :] - s[:, :, None]).sum(-1)).max(-1).mean()


@wrong(2, "saturation")
def saturation_with_nans_made_one(d_k, n_keys, scaled, samples, rng):
    e = np.exp(real_scores(d_k, n_keys, scaled, samples, rng))
    return np.nan_to_num(e / e.sum(axis=-1, keepdims=True), nan=1.0).max(axis=-1).mean()


@wrong(2, "saturation")
def saturation_clipped_at_700(d_k, n_keys, scaled, samples, rng):
    return largest(np.clip(real_scores(d_k, n_keys, scaled, samples, rng), -700, 700))


@wrong(2, "saturation")
def saturation_with_keys_from_seed_3(d_k, n_keys, scaled, samples, rng):
    q, k = rng.standard_normal((samples, 1, d_k)), np.random.default_rng(3).standard_normal((samples, n_keys, d_k))
    return largest((q * k).sum(-1) / (math.sqrt(d_k) if scaled else 1))


@wrong(2, "saturation")
def saturation_of_four_fifths_of_the_samples(d_k, n_keys, scaled, samples, rng):
    return largest(real_scores(d_k, n_keys, scaled, max(1, int(0.8 * samples)), rng))


@wrong(2, "saturation")
def saturation_of_more_samples(d_k, n_keys, scaled, samples, rng):
    return largest(real_scores(d_k, n_keys, scaled, int(1.5 * samples), rng))


@wrong(2, "saturation")
def saturation_of_half_the_samples(d_k, n_keys, scaled, samples, rng):
    return largest(real_scores(d_k, n_keys, scaled, -(-samples // 2), rng))


@wrong(2, "saturation")
def saturation_of_a_thousand_samples(d_k, n_keys, scaled, samples, rng):
    return largest(real_scores(d_k, n_keys, scaled, 1000, rng))


@wrong(2, "saturation")
def saturation_of_one_set_of_keys(d_k, n_keys, scaled, samples, rng):
    s = rng.standard_normal((samples, d_k)) @ rng.standard_normal((n_keys, d_k)).T
    return largest(s / (math.sqrt(d_k) if scaled else 1))


@wrong(2, "saturation")
def saturation_over_the_whole_array(d_k, n_keys, scaled, samples, rng):
    s = real_scores(d_k, n_keys, scaled, samples, rng)
    e = np.exp(s - s.max())
    return (e / e.sum()).max(axis=-1).mean()


# attention_backward -------------------------------------------------------------------------------------------------


def weights_and_scale(q, k):
    scale = 1 / math.sqrt(q.shape[-1])
    return softmax_in_numpy(q @ np.swapaxes(k, -1, -2) * scale), scale


@right(2, "attention_backward")
def gradients_by_three_paths(q, k, v, do):
    p, scale = weights_and_scale(q, k)
    dp = do @ np.swapaxes(v, -1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * scale
    return ds @ k, np.swapaxes(ds, -1, -2) @ q, np.swapaxes(p, -1, -2) @ do


@right(2, "attention_backward")
def gradients_by_einsum(q, k, v, do):
    p = softmax_in_numpy(np.einsum("...nd,...md->...nm", q, k) / q.shape[-1] ** 0.5)
    dp = np.einsum("...nv,...mv->...nm", do, v)
    ds = p * (dp - np.einsum("...nm,...nm->...n", p, dp)[..., None]) / q.shape[-1] ** 0.5
    dq, dk = np.einsum("...nm,...md->...nd", ds, k), np.einsum("...nm,...nd->...md", ds, q)
    return dq, dk, np.einsum("...nm,...nv->...mv", p, do)


@right(2, "attention_backward")
def gradients_with_the_whole_jacobian(q, k, v, do):
    p, scale = weights_and_scale(q, k)
    jacobian = p[..., :, None] * np.eye(p.shape[-1]) - p[..., :, None] * p[..., None, :]  # (…, n, m, m)
    ds = (jacobian @ (do @ np.swapaxes(v, -1, -2))[..., None])[..., 0] * scale
    return [ds @ k, np.swapaxes(ds, -1, -2) @ q, np.swapaxes(p, -1, -2) @ do]


@right(2, "attention_backward")
def gradients_with_the_output(q, k, v, do):
    p, scale = weights_and_scale(q, k)
    delta = (do * (p @ v)).sum(axis=-1, keepdims=True)
    ds = p * (do @ v.swapaxes(-1, -2) - delta)
    return ds @ (scale * k), ds.swapaxes(-1, -2) @ (scale * q), p.swapaxes(-1, -2) @ do


@right(2, "attention_backward")
def gradients_matrix_by_matrix(q, k, v, do):
    if q.ndim > 2:
        parts = [gradients_matrix_by_matrix(*each) for each in zip(q, k, v, do, strict=True)]
        return tuple(np.stack(gradient) for gradient in zip(*parts, strict=True))
    dq, dk, dv = np.zeros(q.shape), np.zeros(k.shape), np.zeros(v.shape)
    for i, row in enumerate(q):
        p = softmax_in_numpy(k @ row / math.sqrt(len(row)))
        g = v @ do[i]
        ds = p * (g - p @ g) / math.sqrt(len(row))
        dq[i] = ds @ k
        dk += np.outer(ds, row)
        dv += np.outer(p, do[i])
    return dq, dk, dv


@right(2, "attention_backward")
def gradients_in_torch(q, k, v, do):
    q, k, v, do = (torch.tensor(x, dtype=torch.float64) for x in (q, k, v, do))
    p = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)
    dp = do @ v.mT
    ds = p * (dp - (p * dp).sum(-1, keepdim=True)) / q.shape[-1] ** 0.5
    return ds @ k, ds.mT @ q, p.mT @ do


@wrong(2, "attention_backward")
def gradients_by_a_transform(q, k, v, do):
    def loss(q, k, v):
        return ((torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, dim=-1) @ v) * torch.tensor(do)).sum()

    return torch.func.grad(loss, argnums=(0, 1, 2))(*(torch.tensor(x, dtype=torch.float64) for x in (q, k, v)))


# layer_backward -----------------------------------------------------------------------------------------------------


@right(2, "layer_backward")
def layer_through_einsum(x, w_q, w_k, w_v, do):
    dq, dk, dv = gradients_by_einsum(x @ w_q, x @ w_k, x @ w_v, do)
    ways = [np.einsum("...nc,dc->...nd", dy, w) for dy, w in ((dq, w_q), (dk, w_k), (dv, w_v))]
    tokens = x.reshape(-1, x.shape[-1])
    return sum(ways), *(np.einsum("td,tc->dc", tokens, dy.reshape(-1, dy.shape[-1])) for dy in (dq, dk, dv))


@right(2, "layer_backward")
def layer_with_a_sum_over_the_axes_in_front(x, w_q, w_k, w_v, do):
    dq, dk, dv = gradients_by_three_paths(x @ w_q, x @ w_k, x @ w_v, do)
    lead = tuple(range(x.ndim - 2))
    dws = [(np.swapaxes(x, -1, -2) @ dy).sum(axis=lead) for dy in (dq, dk, dv)]
    return [dq @ w_q.T + dk @ w_k.T + dv @ w_v.T, *dws]


@right(2, "layer_backward")
def layer_with_tensordot(x, w_q, w_k, w_v, do):
    dys = gradients_with_the_output(x @ w_q, x @ w_k, x @ w_v, do)
    front = tuple(range(x.ndim - 1))
    dx = np.zeros(x.shape)
    for dy, w in zip(dys, (w_q, w_k, w_v), strict=True):
        dx += dy @ w.T
    return dx, *(np.tensordot(x, dy, axes=(front, front)) for dy in dys)


@right(2, "layer_backward")
def layer_with_one_matrix_for_all_three(x, w_q, w_k, w_v, do):
    w = np.concatenate([w_q, w_k, w_v], axis=1)
    dy = np.concatenate(gradients_by_three_paths(x @ w_q, x @ w_k, x @ w_v, do), axis=-1)
    dw = x.reshape(-1, len(w)).T @ dy.reshape(-1, w.shape[1])
    d_k = w_q.shape[1]
    return dy @ w.T, dw[:, :d_k], dw[:, d_k : 2 * d_k], dw[:, 2 * d_k :]


@right(2, "layer_backward")
def layer_sequence_by_sequence(x, w_q, w_k, w_v, do):
    if x.ndim > 2:
        parts = [layer_sequence_by_sequence(each, w_q, w_k, w_v, grad) for each, grad in zip(x, do, strict=True)]
        dxs, *dws = zip(*parts, strict=True)
        return np.stack(dxs), *(sum(dw) for dw in dws)
    dys = gradients_matrix_by_matrix(x @ w_q, x @ w_k, x @ w_v, do)
    dx, dws = np.zeros(x.shape), [np.zeros(w.shape) for w in (w_q, w_k, w_v)]
    for token in range(len(x)):
        for dw, w, dy in zip(dws, (w_q, w_k, w_v), dys, strict=True):
            dw += np.outer(x[token], dy[token])
            dx[token] += w @ dy[token]
    return dx, *dws


@right(2, "layer_backward")
def layer_with_attention_before_the_values(x, w_q, w_k, w_v, do):
    """The output is (A x) w_v as well, so dw_v is (A x)ᵀ do."""
    p, _ = weights_and_scale(x @ w_q, x @ w_k)
    dq, dk, _ = gradients_by_three_paths(x @ w_q, x @ w_k, x @ w_v, do)
    d, d_v = w_v.shape
    dx = dq @ w_q.T + dk @ w_k.T + np.swapaxes(p, -1, -2) @ (do @ w_v.T)
    dw_q, dw_k = (x.reshape(-1, d).T @ dy.reshape(-1, dy.shape[-1]) for dy in (dq, dk))
    return dx, dw_q, dw_k, (p @ x).reshape(-1, d).T @ do.reshape(-1, d_v)


@right(2, "layer_backward")
def layer_in_torch(x, w_q, w_k, w_v, do):
    x, w_q, w_k, w_v, do = (torch.tensor(each, dtype=torch.float64) for each in (x, w_q, w_k, w_v, do))
    dq, dk, dv = gradients_in_torch(x @ w_q, x @ w_k, x @ w_v, do)
    dws = [x.flatten(0, -2).mT @ dy.flatten(0, -2) for dy in (dq, dk, dv)]
    return dq @ w_q.mT + dk @ w_k.mT + dv @ w_v.mT, *dws


@right(2, "layer_backward")
def layer_in_lists(x, w_q, w_k, w_v, do):
    gradients = layer_sequence_by_sequence(x, w_q, w_k, w_v, do)
    return [each.tolist() for each in gradients]


@wrong(2, "layer_backward")
def layer_by_autograd(x, w_q, w_k, w_v, do):
    leaves = [torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in (x, w_q, w_k, w_v)]
    x, w_q, w_k, w_v = leaves
    p = torch.softmax((x @ w_q) @ (x @ w_k).mT * w_q.shape[-1] ** -0.5, dim=-1)
    ((p @ (x @ w_v)) * torch.tensor(do)).sum().backward()
    return tuple(leaf.grad for leaf in leaves)


@wrong(2, "layer_backward")
def layer_for_one_sequence_only(x, w_q, w_k, w_v, do):
    dq, dk, dv = gradients_by_three_paths(x @ w_q, x @ w_k, x @ w_v, do)
    return dq @ w_q.T + dk @ w_k.T + dv @ w_v.T, x.T @ dq, x.T @ dk, x.T @ dv


@wrong(2, "layer_backward")
def layer_for_one_batch_axis_only(x, w_q, w_k, w_v, do):
    dq, dk, dv = gradients_by_three_paths(x @ w_q, x @ w_k, x @ w_v, do)
    dws = [np.swapaxes(x, -1, -2) @ dy for dy in (dq, dk, dv)]
    if x.ndim > 2:
        dws = [dw.sum(axis=0) for dw in dws]
    return dq @ w_q.T + dk @ w_k.T + dv @ w_v.T, *dws


@wrong(2, "layer_backward")
def layer_rounded_to_float32(x, w_q, w_k, w_v, do):
    return tuple(part.astype(np.float32) for part in layer_through_einsum(x, w_q, w_k, w_v, do))


# half_attention -----------------------------------------------------------------------------------------------------


def single(*arrays):
    return [x.astype(np.float32) for x in arrays]


@right(2, "half_attention")
def half_in_single_precision(q, k, v):
    q, k, v = single(q, k, v)
    return softmax_in_numpy(q @ np.swapaxes(k, -1, -2) / np.float32(math.sqrt(q.shape[-1]))) @ v


@wrong(2, "half_attention")
def half_in_double(q, k, v):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    return softmax_in_numpy(q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])) @ v


@right(2, "half_attention")
def half_in_double_and_back(q, k, v):
    q, k, wide_v = (x.astype(np.float64) for x in (q, k, v))
    return (softmax_in_numpy(q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])) @ wide_v).astype(v.dtype)


@right(2, "half_attention")
def half_with_types_in_the_products(q, k, v):
    scores = np.matmul(q, np.swapaxes(k, -1, -2), dtype=np.float32) * q.shape[-1] ** -0.5
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.matmul(exps, v, dtype=np.float32) / exps.sum(axis=-1, keepdims=True)


@wrong(2, "half_attention")
def half_with_the_gaps_in_half_precision(q, k, v):
    q, k, wide_v = single(q, k, v)
    scores = q @ np.swapaxes(k, -1, -2) * np.float32(q.shape[-1] ** -0.5)
    gaps = (scores - scores.max(axis=-1, keepdims=True)).astype(np.float16)
    exps = np.exp(gaps.astype(np.float32))
    return exps @ wide_v / exps.sum(axis=-1, keepdims=True)


@right(2, "half_attention")
def half_in_torch(q, k, v):
    q, k, v = (torch.from_numpy(np.array(x)).float() for x in (q, k, v))
    return (torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v).half()


@right(2, "half_attention")
def half_by_einsum(q, k, v):
    q, k, v = single(q, k, v)
    scores = np.einsum("...nd,...md->...nm", q, k) / np.float32(q.shape[-1] ** 0.5)
    return np.einsum("...nm,...mv->...nv", softmax_in_numpy(scores), v)


@right(2, "half_attention")
def half_with_python_floats(q, k, v):
    if q.ndim > 2:
        return np.stack([half_with_python_floats(*each) for each in zip(q, k, v, strict=True)])
    rows, keys, values = q.tolist(), k.tolist(), v.tolist()
    out = []
    for row in rows:
        scores = [sum(a * b for a, b in zip(row, key, strict=True)) / math.sqrt(len(row)) for key in keys]
        peak = max(scores)
        exps = [math.exp(score - peak) for score in scores]
        total = sum(exps)
        columns = zip(*values, strict=True)
        out.append([sum(e * value for e, value in zip(exps, column, strict=True)) / total for column in columns])
    return np.array(out, dtype=np.float32)


@wrong(2, "half_attention")
def half_as_it_comes(q, k, v):
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True) @ v


@wrong(2, "half_attention")
def half_with_products_added_one_by_one(q, k, v):
    """In float16, number by number: the sum stands still at 2048."""
    q32, k32, _ = single(q, k, v)
    scores = q32 @ np.swapaxes(k32, -1, -2) * np.float32(q.shape[-1] ** -0.5)
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True)).astype(np.float16)
    total = np.cumsum(exps, axis=-1, dtype=np.float16)[..., -1:]
    return (exps.astype(np.float32) / total.astype(np.float32)) @ v.astype(np.float32)


@wrong(2, "half_attention")
def half_shifted_by_the_largest_of_all(q, k, v):
    q, k, v = single(q, k, v)
    scores = q @ np.swapaxes(k, -1, -2) * np.float32(q.shape[-1] ** -0.5)
    with np.errstate(all="ignore"):
        exps = np.exp(scores - scores.max())
        return exps / exps.sum(axis=-1, keepdims=True) @ v


# find_the_bug -------------------------------------------------------------------------------------------------------


def blend(weights, v):
    return weights @ v, weights


@right(2, "find_the_bug")
def mended_in_the_scores(q, k, v):
    return blend(softmax_in_numpy(q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])), v)


@right(2, "find_the_bug")
def mended_in_the_queries(q, k, v):
    return blend(softmax_in_numpy(np.einsum("...nd,...md->...nm", q * q.shape[-1] ** -0.5, k)), v)


@right(2, "find_the_bug")
def mended_in_the_exponent(q, k, v):
    scores = q @ np.swapaxes(k, -1, -2)
    shares = np.exp((scores - scores.max(axis=-1, keepdims=True)) / np.sqrt(k.shape[-1]))
    return blend(shares / shares.sum(axis=-1, keepdims=True), v)


@right(2, "find_the_bug")
def mended_by_a_power_of_the_exponentials(q, k, v):
    scores = q @ np.swapaxes(k, -1, -2)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True)) ** (q.shape[-1] ** -0.5)
    return blend(shares / shares.sum(axis=-1, keepdims=True), v)


@wrong(2, "find_the_bug")
def mended_after_the_shift_was_taken_from_scaled_scores_only(q, k, v):
    scores = q @ np.swapaxes(k, -1, -2)
    with np.errstate(all="ignore"):
        shares = np.exp(scores * q.shape[-1] ** -0.5 - scores.max(axis=-1, keepdims=True))
        return blend(shares / shares.sum(axis=-1, keepdims=True), v)


@wrong(2, "find_the_bug")
def mended_by_scaling_q_in_place(q, k, v):
    q *= q.shape[-1] ** -0.5
    return blend(softmax_in_numpy(q @ np.swapaxes(k, -1, -2)), v)
