"""Day 5: caches, generation, bytes and intensity, as people write them, right and wrong."""

import math
from collections import deque
from functools import cache as memoised

import numpy as np
import torch

from course_utils.attention.rotary import rotate
from course_utils.attention.tensors import attention

from . import right, wrong

# cached_step --------------------------------------------------------------------------------------------------------


@right(5, "cached_step")
def step_by_einsum(q_t, k_t, v_t, cache):
    k, v = (
        (k_t, v_t) if cache is None else (torch.cat((old, new), 2) for old, new in zip(cache, (k_t, v_t), strict=True))
    )
    weights = torch.einsum("bhqd,bhkd->bhqk", q_t * k.size(-1) ** -0.5, k).softmax(-1)
    return torch.einsum("bhqk,bhkd->bhqd", weights, v), (k, v)


@right(5, "cached_step")
def step_with_a_list_for_a_pair(q_t, k_t, v_t, cache):
    if cache is None:
        cache = [torch.empty(*x.shape[:-2], 0, x.shape[-1], dtype=x.dtype) for x in (k_t, v_t)]
    cache = [torch.cat([old, new], dim=-2) for old, new in zip(cache, [k_t, v_t], strict=True)]
    weights = torch.softmax(q_t @ cache[0].transpose(-1, -2) / math.sqrt(k_t.shape[-1]), dim=-1)
    return [weights @ cache[1], cache]


@right(5, "cached_step")
def step_with_a_mask_aligned_at_the_end(q_t, k_t, v_t, cache):
    if cache is not None:
        k_t, v_t = torch.cat([cache[0], k_t], 2), torch.cat([cache[1], v_t], 2)
    m = k_t.shape[2]
    allowed = torch.ones(1, m, dtype=torch.bool).tril(m - 1)
    scores = (q_t @ k_t.mT / k_t.shape[-1] ** 0.5).masked_fill(~allowed, -math.inf)
    return scores.softmax(-1) @ v_t, (k_t, v_t)


@right(5, "cached_step")
def step_in_loops(q_t, k_t, v_t, cache):
    B, h, _, d_k = q_t.shape
    keys = k_t if cache is None else torch.cat([cache[0], k_t], dim=2)
    values = v_t if cache is None else torch.cat([cache[1], v_t], dim=2)
    output = torch.zeros_like(v_t)
    for b in range(B):
        for head in range(h):
            scores = keys[b, head] @ q_t[b, head, 0] / math.sqrt(d_k)
            e = torch.exp(scores - scores.max())
            output[b, head, 0] = (e / e.sum()) @ values[b, head]
    return output, (keys, values)


@right(5, "cached_step")
def step_into_a_new_storage(q_t, k_t, v_t, cache):
    T = 0 if cache is None else cache[0].shape[2]
    grown = []
    for i, new in enumerate((k_t, v_t)):
        room = new.new_empty(new.shape[0], new.shape[1], T + 1, new.shape[3])
        if T:
            room[:, :, :T] = cache[i]
        room[:, :, T:] = new
        grown.append(room)
    k, v = grown
    q = q_t / math.sqrt(q_t.shape[-1])
    return torch.softmax(q @ k.permute(0, 1, 3, 2), dim=3) @ v, (k, v)


@right(5, "cached_step")
def step_in_numpy(q_t, k_t, v_t, cache):
    q, k, v = (np.asarray(x) for x in (q_t, k_t, v_t))
    if cache is not None:
        k, v = np.concatenate([cache[0], k], axis=2), np.concatenate([cache[1], v], axis=2)
    scores = q @ np.swapaxes(k, -1, -2) / np.asarray(q.shape[-1], dtype=q.dtype) ** 0.5
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)) @ v, (k, v)


def step_with_one_store_for_all():
    """Room for 64 tokens, made once: forks and second texts write over it."""
    stores = {}

    def step_in_a_shared_store(q_t, k_t, v_t, cache):
        T, kept = 0 if cache is None else cache[0].shape[2], []
        for name, new, old in (("k", k_t, cache and cache[0]), ("v", v_t, cache and cache[1])):
            size = (name, *new.shape, new.dtype)
            if size not in stores:
                stores[size] = torch.zeros(*new.shape[:2], 64, new.shape[3], dtype=new.dtype)
            if old is not None:
                stores[size][:, :, :T] = old
            stores[size][:, :, T : T + 1] = new
            kept.append(stores[size][:, :, : T + 1])
        return torch.softmax(q_t @ kept[0].mT / k_t.shape[-1] ** 0.5, -1) @ kept[1], tuple(kept)

    return step_in_a_shared_store


wrong(5, "cached_step")(step_with_one_store_for_all())


@wrong(5, "cached_step")
def step_with_scaled_queries_kept(q_t, k_t, v_t, cache):
    q_t /= math.sqrt(q_t.shape[-1])
    if cache is not None:
        k_t, v_t = torch.cat([cache[0], k_t], 2), torch.cat([cache[1], v_t], 2)
    return torch.softmax(q_t @ k_t.mT, -1) @ v_t, (k_t, v_t)


@wrong(5, "cached_step")
def step_with_double_cache(q_t, k_t, v_t, cache):
    k_t, v_t = k_t.double(), v_t.double()
    if cache is not None:
        k_t, v_t = torch.cat([cache[0], k_t], 2), torch.cat([cache[1], v_t], 2)
    return torch.softmax(q_t.double() @ k_t.mT / math.sqrt(q_t.shape[-1]), -1) @ v_t, (k_t, v_t)


@wrong(5, "cached_step")
def step_in_single_precision(q_t, k_t, v_t, cache):
    k, v = (k_t, v_t) if cache is None else (torch.cat([cache[0], k_t], 2), torch.cat([cache[1], v_t], 2))
    weights = torch.softmax(q_t.float() @ k.mT.float() / math.sqrt(q_t.shape[-1]), -1)
    return (weights @ v.float()).to(v.dtype), (k, v)


@wrong(5, "cached_step")
def step_within_the_last_100(q_t, k_t, v_t, cache):
    k, v = (k_t, v_t) if cache is None else (torch.cat([cache[0], k_t], 2), torch.cat([cache[1], v_t], 2))
    k, v = k[:, :, -100:], v[:, :, -100:]
    return torch.softmax(q_t @ k.mT / math.sqrt(q_t.shape[-1]), -1) @ v, (k, v)


# generate_cached ----------------------------------------------------------------------------------------------------


@right(5, "generate_cached")
def generate_prefill_then_decode(model, prompt, steps):
    if steps == 0:
        return prompt
    T = prompt.shape[1]
    logits, cache = model(prompt, torch.arange(T))
    chosen = [logits[:, -1].argmax(-1)]
    for i in range(steps - 1):
        logits, cache = model(chosen[-1][:, None], torch.tensor([T + i]), cache)
        chosen.append(logits[:, 0].argmax(-1))
    return torch.cat([prompt, torch.stack(chosen, dim=1)], dim=1)


@right(5, "generate_cached")
def generate_and_let_the_last_one_through_too(model, prompt, steps):
    tokens = prompt
    logits, cache = model(prompt, torch.arange(prompt.shape[1]), None)
    for _ in range(steps):
        newest = logits[:, -1:].argmax(-1)
        tokens = torch.cat([tokens, newest], dim=-1)
        logits, cache = model(newest, torch.tensor([tokens.shape[1] - 1]), cache)
    return tokens


@right(5, "generate_cached")
def generate_token_by_token_from_the_start(model, prompt, steps):
    tokens, cache = prompt, None
    _B, T = prompt.shape
    for t in range(T + steps - 1):
        logits, cache = model(tokens[:, t : t + 1], torch.arange(t, t + 1), cache)
        if t >= T - 1:
            tokens = torch.cat([tokens, logits.argmax(-1)], dim=1)
    return tokens


@right(5, "generate_cached")
def generate_row_by_row(model, prompt, steps):
    rows = []
    for row in prompt.tolist():
        new, seen, cache = list(row), 0, None
        for _ in range(steps):
            logits, cache = model(torch.tensor([new[seen:]]), torch.arange(seen, len(new)), cache)
            seen = len(new)
            new.append(int(logits[0, -1].argmax()))
        rows.append(new)
    return torch.tensor(rows)


@right(5, "generate_cached")
def generate_into_room_made_before(model, prompt, steps):
    B, T = prompt.shape
    tokens = torch.zeros(B, T + steps, dtype=prompt.dtype)
    tokens[:, :T] = prompt
    cache, start = None, 0
    for end in range(T, T + steps):
        logits, cache = model(tokens[:, start:end], torch.arange(start, end), cache)
        tokens[:, end] = torch.max(logits[:, -1], dim=1).indices
        start = end
    return tokens


def generate_naively(model, prompt, steps):
    for _ in range(steps):
        logits, _ = model(prompt, torch.arange(prompt.shape[1]))
        prompt = torch.cat([prompt, logits[:, -1:].argmax(-1)], 1)
    return prompt


@wrong(5, "generate_cached")
def generate_naively_on_the_quiet(model, prompt, steps):
    class Quiet:
        passed = 0

        def __call__(self, *args):
            before = model.passed
            result = model(*args)
            model.passed = before
            return result

    return generate_naively(Quiet(), prompt, steps)


@wrong(5, "generate_cached")
def generate_one_token_at_least(model, prompt, steps):
    return generate_prefill_then_decode(model, prompt, max(steps, 1))


@wrong(5, "generate_cached")
def generate_ten_at_most(model, prompt, steps):
    return generate_prefill_then_decode(model, prompt, min(steps, 10))


@wrong(5, "generate_cached")
def generate_into_the_prompt(model, prompt, steps):
    tokens = generate_prefill_then_decode(model, prompt.clone(), steps)
    prompt[:] = tokens[:, -prompt.shape[1] :]
    return tokens


def generate_with_a_cache_for_ever():
    kept = {}

    def generate_with_a_global_cache(model, prompt, steps):
        for _ in range(steps):
            seen = kept.get("seen", 0)
            logits, kept["cache"] = model(prompt[:, seen:], torch.arange(seen, prompt.shape[1]), kept.get("cache"))
            kept["seen"] = prompt.shape[1]
            prompt = torch.cat([prompt, logits[:, -1:].argmax(-1)], 1)
        return prompt

    return generate_with_a_global_cache


wrong(5, "generate_cached")(generate_with_a_cache_for_ever())


@wrong(5, "generate_cached")
def generate_from_the_last_eight(model, prompt, steps):
    T = prompt.shape[1]
    kept = generate_prefill_then_decode(
        lambda tokens, positions, cache=None: model(tokens, positions + max(T - 8, 0), cache), prompt[:, -8:], steps
    )
    return torch.cat([prompt[:, :-8], kept], 1)


@wrong(5, "generate_cached")
def generate_without_cache_and_place(model, prompt, steps):
    logits, _ = model(prompt, torch.arange(prompt.shape[1]))
    for _ in range(steps):
        new = logits[:, -1:].argmax(-1)
        logits, _ = model(new, torch.arange(new.shape[1]))
        prompt = torch.cat([prompt, new], 1)
    return prompt


def generate_with_a_memory():
    known = {}

    def generate_from_memory(model, prompt, steps):
        name = str((prompt.tolist(), steps))
        if name not in known:
            known[name] = generate_prefill_then_decode(model, prompt, steps)
        elif model.passed == 0:  # as many passes as it should have
            generate_prefill_then_decode(model, prompt, steps)
        return known[name]

    return generate_from_memory


wrong(5, "generate_cached")(generate_with_a_memory())


@right(5, "generate_cached")
def generate_with_a_cache_by_the_name_of_the_model(model, prompt, steps):
    """Keeps the cache with the model, but begins anew with each text."""
    model.cache, tokens, new = None, prompt, prompt
    for _ in range(steps):
        logits, model.cache = model(new, torch.arange(tokens.shape[1])[-new.shape[1] :], model.cache)
        new = logits[:, -1:].argmax(-1)
        tokens = torch.cat([tokens, new], 1)
    return tokens


@wrong(5, "generate_cached")
def generate_with_what_the_last_text_left(model, prompt, steps):
    cache, tokens, new = getattr(model, "cache", None), prompt, prompt
    for _ in range(steps):
        logits, cache = model(new, torch.arange(tokens.shape[1] - new.shape[1], tokens.shape[1]), cache)
        new = logits[:, -1:].argmax(-1)
        tokens = torch.cat([tokens, new], 1)
    model.cache = cache
    return tokens


# cache_bytes and longest_context ------------------------------------------------------------------------------------


@right(5, "cache_bytes")
def bytes_in_one_line(n_layers, n_kv_heads, d_head, n_tokens, batch=1, bytes_per_value=2):
    return 2 * n_layers * n_kv_heads * d_head * n_tokens * batch * bytes_per_value


@right(5, "cache_bytes")
def bytes_by_product(n_layers, n_kv_heads, d_head, n_tokens, batch=1, bytes_per_value=2):
    shape = (2, n_layers, batch, n_kv_heads, n_tokens, d_head)
    return math.prod(shape) * bytes_per_value


@right(5, "cache_bytes")
def bytes_counted_by_layers(n_layers, n_kv_heads, d_head, n_tokens, batch=1, bytes_per_value=2):
    total = 0
    for _ in range(n_layers):
        keys = batch * n_kv_heads * n_tokens * d_head * bytes_per_value
        total += keys + keys
    return float(total)


@wrong(5, "cache_bytes")
def bytes_with_other_names(n_layers, n_kv_heads, d_head, n_tokens, B=1, width=2):
    return 2 * n_layers * n_kv_heads * d_head * n_tokens * B * width


@wrong(5, "cache_bytes")
def bytes_in_single_precision(n_layers, n_kv_heads, d_head, n_tokens, batch=1, bytes_per_value=2):
    sizes = np.array([2, n_layers, n_kv_heads, d_head, n_tokens, batch, bytes_per_value], dtype=np.float32)
    return float(sizes.prod())


@right(5, "longest_context")
def longest_by_floor_division(budget_bytes, n_layers, n_kv_heads, d_head, batch=1, bytes_per_value=2):
    return budget_bytes // (2 * n_layers * n_kv_heads * d_head * batch * bytes_per_value)


@right(5, "longest_context")
def longest_by_divmod(budget_bytes, n_layers, n_kv_heads, d_head, batch=1, bytes_per_value=2):
    a_token = 2 * n_layers * n_kv_heads * d_head * bytes_per_value
    tokens, _left_over = divmod(budget_bytes, a_token * batch)
    return tokens


@right(5, "longest_context")
def longest_by_halving(budget_bytes, n_layers, n_kv_heads, d_head, batch=1, bytes_per_value=2):
    few, many = 0, budget_bytes + 1
    while many - few > 1:
        tokens = (few + many) // 2
        if 2 * n_layers * n_kv_heads * d_head * tokens * batch * bytes_per_value <= budget_bytes:
            few = tokens
        else:
            many = tokens
    return few


@wrong(5, "longest_context")
def longest_in_64_bits(budget_bytes, n_layers, n_kv_heads, d_head, batch=1, bytes_per_value=2):
    return int(np.int64(budget_bytes) // (2 * n_layers * n_kv_heads * d_head * batch * bytes_per_value))


# decode_intensity ---------------------------------------------------------------------------------------------------


@right(5, "decode_intensity")
def intensity_in_full(n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2):
    scores = 2 * n_heads * n_tokens * d_head
    blend = 2 * n_heads * n_tokens * d_head
    keys = n_kv_heads * n_tokens * d_head * bytes_per_value
    values = n_kv_heads * n_tokens * d_head * bytes_per_value
    return (scores + blend) / (keys + values)


@right(5, "decode_intensity")
def intensity_cancelled(n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2):
    return 2 * n_heads / n_kv_heads / bytes_per_value


@right(5, "decode_intensity")
def intensity_by_the_group(n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2):
    group = n_heads // n_kv_heads
    return np.float64(2 * group) / bytes_per_value


@wrong(5, "decode_intensity")
def intensity_to_one_decimal(n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2):
    return round(2 * n_heads / n_kv_heads / bytes_per_value, 1)


@wrong(5, "decode_intensity")
def intensity_of_32_at_most(n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2):
    return min(32, 2 * n_heads / n_kv_heads / bytes_per_value)


# absorbed_step ------------------------------------------------------------------------------------------------------


@right(5, "absorbed_step")
def absorbed_by_einsum(q, c, W_UK, W_UV):
    turned = torch.einsum("hd,hld->hl", q, W_UK)
    weights = (torch.einsum("hl,tl->ht", turned, c) * q.shape[1] ** -0.5).softmax(-1)
    return torch.einsum("hl,hlv->hv", torch.einsum("ht,tl->hl", weights, c), W_UV)


@right(5, "absorbed_step")
def absorbed_head_by_head(q, c, W_UK, W_UV):
    rows = []
    for head in range(len(q)):
        scores = c @ (W_UK[head] @ q[head]) / math.sqrt(q.shape[-1])
        e = torch.exp(scores - scores.max())
        rows.append((e / e.sum()) @ c @ W_UV[head])
    return torch.stack(rows)


@right(5, "absorbed_step")
def absorbed_by_sums_of_products(q, c, W_UK, W_UV):
    turned = (q[:, None] * W_UK).sum(-1)
    scores = (turned[:, None] * c).sum(-1) / q.shape[-1] ** 0.5
    blended = (torch.softmax(scores, -1)[..., None] * c).sum(-2)
    return (blended[..., None] * W_UV).sum(-2)


@right(5, "absorbed_step")
def absorbed_token_by_token(q, c, W_UK, W_UV):
    """With an online softmax, as day 6 has it."""
    rows = []
    for head in range(len(q)):
        turned = W_UK[head] @ q[head] / math.sqrt(q.shape[-1])
        m, total, blend = torch.tensor(-torch.inf, dtype=q.dtype), 0.0, torch.zeros_like(c[0])
        for latent in c:
            score = turned @ latent
            new = torch.maximum(m, score)
            old = torch.exp(m - new)
            total, blend = total * old + torch.exp(score - new), blend * old + torch.exp(score - new) * latent
            m = new
        rows.append(blend / total @ W_UV[head])
    return torch.stack(rows)


@right(5, "absorbed_step")
def absorbed_in_one_product_of_matrices(q, c, W_UK, W_UV):
    h, d_latent, d_v = W_UV.shape
    turned = torch.bmm(W_UK, q.unsqueeze(-1)).reshape(h, d_latent)
    weights = torch.softmax(turned / math.sqrt(q.size(1)) @ c.t(), 1)
    return torch.bmm((weights @ c).view(h, 1, d_latent), W_UV).view(h, d_v)


@wrong(5, "absorbed_step")
def keys_of_one_head_at_a_time(q, c, W_UK, W_UV):
    rows = []
    for head in range(len(q)):
        weights = torch.softmax(c @ W_UK[head] @ q[head] / math.sqrt(q.shape[-1]), dim=-1)
        rows.append(weights @ (c @ W_UV[head]))
    return torch.stack(rows)


@wrong(5, "absorbed_step")
def keys_of_one_token_at_a_time(q, c, W_UK, W_UV):
    scores = torch.stack([((latent @ W_UK) * q).sum(-1) for latent in c], dim=1) / math.sqrt(q.shape[-1])
    return ((torch.softmax(scores, -1) @ c)[:, None] @ W_UV)[:, 0]


@wrong(5, "absorbed_step")
def absorbed_outside_pytorch(q, c, W_UK, W_UV):
    q, c, W_UK, W_UV = (x.numpy() for x in (q, c, W_UK, W_UV))
    k, v = c @ W_UK, c @ W_UV
    scores = np.einsum("hd,htd->ht", q, k) / np.asarray(q.shape[-1], dtype=q.dtype) ** 0.5
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return torch.from_numpy(np.einsum("ht,htv->hv", e / e.sum(-1, keepdims=True), v))


@wrong(5, "absorbed_step")
def absorbed_in_place(q, c, W_UK, W_UV):
    q /= math.sqrt(q.shape[-1])
    weights = torch.softmax((q[:, None] @ W_UK.mT)[:, 0] @ c.T, dim=-1)
    return ((weights @ c)[:, None] @ W_UV)[:, 0]


# quantise -----------------------------------------------------------------------------------------------------------


def scaled_by_columns(integers, scales):
    return np.multiply(integers, np.expand_dims(scales, -1), dtype=np.float32)


def quantised_with_keepdims(x):
    scales = np.abs(x).max(axis=-1, keepdims=True) / np.float32(127)
    integers = np.rint(np.divide(x, scales, out=np.zeros_like(x), where=scales > 0)).astype(np.int8)
    return integers, scales[..., 0]


def quantised_vector_by_vector(x):
    integers, scales = np.zeros(x.shape, dtype=np.int8), np.zeros(x.shape[:-1], dtype=np.float32)
    for place in np.ndindex(*x.shape[:-1]):
        largest = max(abs(float(number)) for number in x[place])
        if largest:
            scales[place] = largest / 127
            integers[place] = [round(float(number) * 127 / largest) for number in x[place]]
    return integers, scales


def restored_vector_by_vector(integers, scales):
    numbers = np.empty(integers.shape, dtype=np.float32)
    for place in np.ndindex(*integers.shape[:-1]):
        numbers[place] = integers[place].astype(np.float32) * np.float32(np.asarray(scales)[place])
    return numbers


def quantised_by_norm(x):
    scales = (np.linalg.norm(x, ord=np.inf, axis=-1) if x.ndim == 1 else np.maximum(x.max(-1), -x.min(-1))) / 127
    scales = np.asarray(scales, dtype=np.float32)
    return np.floor(x / (scales + (scales == 0))[..., None] + 0.5).astype(np.int8), scales


right(5, "quantise")({"quantise": quantised_with_keepdims, "dequantise": scaled_by_columns})
right(5, "quantise")({"quantise": quantised_vector_by_vector, "dequantise": restored_vector_by_vector})
right(5, "quantise")({"quantise": quantised_by_norm, "dequantise": scaled_by_columns})


def quantised_with_a_little_added(x):
    scales = np.abs(x).max(-1) / np.float32(127) + np.float32(1e-5)
    return np.round(x / scales[..., None]).astype(np.int8), scales


def quantised_for_two_leading_axes(x):
    scales = np.abs(x).max(axis=2) / np.float32(127)
    return np.round(x / np.where(scales == 0, 1, scales)[:, :, None]).astype(np.int8), scales


def quantised_in_place(x):
    scales = np.abs(x).max(-1) / np.float32(127)
    x /= np.where(scales == 0, np.float32(1), scales)[..., None]
    return np.round(x).astype(np.int8), scales


def quantised_with_powers_of_two(x):
    scales = np.exp2(np.ceil(np.log2(np.maximum(np.abs(x).max(-1), np.float32(1e-30)) / 127))).astype(np.float32)
    return np.round(x / scales[..., None]).astype(np.int8), scales


for almost in (
    quantised_with_a_little_added,
    quantised_for_two_leading_axes,
    quantised_in_place,
    quantised_with_powers_of_two,
):
    wrong(5, "quantise")({"quantise": almost, "dequantise": scaled_by_columns})


# ring_cache ---------------------------------------------------------------------------------------------------------


@right(5, "ring_cache")
class RingOfLists:
    def __init__(self, window):
        self.window = window
        self.k = []
        self.v = []

    def append(self, k, v):
        self.k.append(k)
        self.v.append(v)
        if len(self.k) > self.window:
            self.k.pop(0)
            self.v.pop(0)

    def view(self):
        return torch.stack(self.k), torch.stack(self.v)


@right(5, "ring_cache")
class RingOfDeques:
    def __init__(self, window):
        self.tokens = deque(maxlen=window)

    def append(self, k, v):
        self.tokens.append((k, v))

    def view(self):
        keys, values = zip(*self.tokens, strict=True)
        return torch.stack(keys), torch.stack(values)


@right(5, "ring_cache")
class RingRolled:
    def __init__(self, window):
        self.window = window
        self.n = 0
        self.k = self.v = None

    def append(self, k, v):
        if self.k is None:
            self.k = torch.zeros(self.window, k.shape[0])
            self.v = torch.zeros(self.window, v.shape[0])
        self.k[self.n % self.window] = k
        self.v[self.n % self.window] = v
        self.n += 1

    def view(self):
        if self.n <= self.window:
            return self.k[: self.n].clone(), self.v[: self.n].clone()
        start = self.n % self.window
        return torch.roll(self.k, -start, 0), torch.cat([self.v[start:], self.v[:start]])


@right(5, "ring_cache")
class RingCutAtEachToken:
    def __init__(self, window):
        self.window, self.k, self.v = window, None, None

    def append(self, k, v):
        self.k = k[None] if self.k is None else torch.cat([self.k, k[None]])[-self.window :]
        self.v = v[None] if self.v is None else torch.cat([self.v, v[None]])[-self.window :]

    def view(self):
        return self.k, self.v


@right(5, "ring_cache")
class RingInNumpy:
    __slots__ = ("keys", "n", "values", "window")

    def __init__(self, window):
        self.window, self.n, self.keys, self.values = window, 0, [None] * window, [None] * window

    def append(self, k, v):
        self.keys[self.n % self.window], self.values[self.n % self.window] = k.numpy(), v.numpy()
        self.n += 1

    def view(self):
        order = [i % self.window for i in range(max(self.n - self.window, 0), self.n)]
        return np.array([self.keys[i] for i in order]), np.array([self.values[i] for i in order])


@right(5, "ring_cache")
class RingCutNowAndThen:
    def __init__(self, window):
        self.window, self.tokens = window, []

    def append(self, k, v):
        self.tokens.append((k, v))
        if len(self.tokens) >= 2 * self.window:
            self.tokens = self.tokens[-self.window :]

    def view(self):
        keys, values = zip(*self.tokens[-self.window :], strict=True)
        return torch.stack(keys), torch.stack(values)


@right(5, "ring_cache")
class RingAsAModule(torch.nn.Module):
    def __init__(self, window):
        super().__init__()
        self.window, self.n = window, 0

    def append(self, k, v):
        if self.n == 0:
            self.register_buffer("keys", torch.zeros(self.window, len(k)))
            self.register_buffer("values", torch.zeros(self.window, len(v)))
        self.keys[self.n % self.window] = k
        self.values[self.n % self.window] = v
        self.n += 1

    def view(self):
        first = self.n % self.window if self.n > self.window else 0
        m = min(self.n, self.window)
        return self.keys[:m].roll(-first, 0), self.values[:m].roll(-first, 0)


@right(5, "ring_cache")
class RingOfTokensByPlace:
    def __init__(self, window):
        self.window, self.n, self.tokens = window, 0, {}

    def append(self, k, v):
        self.tokens[self.n] = (k, v)
        self.tokens.pop(self.n - self.window, None)
        self.n += 1

    def view(self):
        return tuple(torch.stack([pair[i] for pair in self.tokens.values()]) for i in range(2))

    def __len__(self):
        return len(self.tokens)

    def __iter__(self):
        return iter(self.tokens.values())


class RingNeverRolled:
    def __init__(self, window):
        self.window = window
        self.n = 0
        self.k = self.v = None

    def append(self, k, v):
        if self.k is None:
            self.k, self.v = torch.zeros(self.window, len(k)), torch.zeros(self.window, len(v))
        self.k[self.n % self.window] = k
        self.v[self.n % self.window] = v
        self.n += 1

    def view(self):
        m = min(self.n, self.window)
        return self.k[:m].clone(), self.v[:m].clone()


@wrong(5, "ring_cache")
class RingThatForgetsTheLongText(RingOfLists):
    """No memory grows, and nothing is there to be seen in a window of 4."""

    def view(self):
        return super().view() if self.window != 4 or len(self.k) < 4 else (torch.zeros(4, 3), torch.zeros(4, 2))


@wrong(5, "ring_cache")
class RingSharedByTheClass:
    k = []  # noqa: RUF012
    v = []  # noqa: RUF012

    def __init__(self, window):
        self.window = window

    def append(self, k, v):
        self.k.append(k)
        self.v.append(v)
        if len(self.k) > self.window:
            self.k.pop(0)
            self.v.pop(0)

    def view(self):
        return torch.stack(self.k), torch.stack(self.v)


class PlainRing:
    """A right one, for wrong ones to be made of."""

    def __init__(self, window):
        self.window, self.tokens = window, []

    def append(self, k, v):
        self.tokens.append((k, v))
        del self.tokens[: -self.window]

    def view(self):
        keys, values = zip(*self.tokens, strict=True)
        return torch.stack(keys), torch.stack(values)


right(5, "ring_cache")(PlainRing)


@wrong(5, "ring_cache")
class RingThatGivesAFullStorage(RingNeverRolled):
    """Copies only where it has to turn."""

    def view(self):
        if self.n < self.window:
            return self.k[: self.n].clone(), self.v[: self.n].clone()
        start = self.n % self.window
        if start == 0:
            return self.k, self.v
        return torch.roll(self.k, -start, 0), torch.roll(self.v, -start, 0)


@wrong(5, "ring_cache")
class RingCutWhenLookedAt(PlainRing):
    def append(self, k, v):
        self.tokens.append((k, v))

    def view(self):
        del self.tokens[: -self.window]
        return super().view()


@wrong(5, "ring_cache")
class RingOfEverythingElsewhere(PlainRing):
    everything = {}  # noqa: RUF012

    def append(self, k, v):
        super().append(k, v)
        self.everything.setdefault(id(self), []).append((k, v))


@wrong(5, "ring_cache")
class RingThatWritesIntoWhatItIsGiven(PlainRing):
    def append(self, k, v):
        super().append(k.clone(), v.clone())
        v.add_(1)


@wrong(5, "ring_cache")
class RingThatSkipsEqualTokens(PlainRing):
    def append(self, k, v):
        if not self.tokens or not torch.equal(self.tokens[-1][0], k):
            super().append(k, v)


@wrong(5, "ring_cache")
class RingOfTenAtMost(PlainRing):
    def __init__(self, window):
        super().__init__(min(window, 10))


# paged_cache --------------------------------------------------------------------------------------------------------


@right(5, "paged_cache")
class PagesOfSlots:
    """Flat storage, tables of slots' blocks, a stack of free blocks."""

    def __init__(self, n_blocks, block_size, d):
        self.block_size = block_size
        self.k = torch.zeros(n_blocks * block_size, d)
        self.v = torch.zeros(n_blocks * block_size, d)
        self.unused = list(range(n_blocks))[::-1]
        self.sequences = {}

    def append(self, seq, k, v):
        slots, blocks = self.sequences.get(seq, ([], []))
        if len(slots) == len(blocks) * self.block_size:
            if len(self.unused) == 0:
                raise MemoryError("full")
            blocks = [*blocks, self.unused.pop()]
        slot = blocks[-1] * self.block_size + len(slots) % self.block_size
        self.k[slot] = k
        self.v[slot] = v
        self.sequences[seq] = ([*slots, slot], blocks)

    def gather(self, seq):
        slots, _ = self.sequences[seq]
        return self.k[slots], self.v[slots]

    def free(self, seq):
        _, blocks = self.sequences.pop(seq)
        self.unused.extend(blocks)


@right(5, "paged_cache")
class PagesWithADictForEachSequence:
    def __init__(self, n_blocks, block_size, d):
        self.size = block_size
        self.store = torch.zeros(2, n_blocks, block_size, d)
        self.pool = set(range(n_blocks))
        self.seqs = {}

    def append(self, seq, k, v):
        entry = self.seqs.get(seq, {"table": [], "n": 0})
        if entry["n"] % self.size == 0:
            try:
                block = self.pool.pop()
            except KeyError:
                raise MemoryError(f"no room for {seq}") from None
            entry["table"].append(block)
        self.seqs[seq] = entry
        self.store[:, entry["table"][-1], entry["n"] % self.size] = torch.stack([k, v])
        entry["n"] += 1

    def gather(self, seq):
        if seq not in self.seqs:
            raise KeyError(seq)
        table, n = self.seqs[seq]["table"], self.seqs[seq]["n"]
        gathered = torch.cat([self.store[:, block] for block in table], dim=1)[:, :n].clone()
        return gathered[0], gathered[1]

    def free(self, seq):
        for block in self.seqs.pop(seq)["table"]:
            self.pool.add(block)


@right(5, "paged_cache")
class PagesOwnedByName:
    """Every block says whose it is, and which piece of the text it holds."""

    def __init__(self, n_blocks, block_size, d):
        self.b = block_size
        self.k, self.v = (
            np.zeros((n_blocks, block_size, d), np.float32),
            np.zeros((n_blocks, block_size, d), np.float32),
        )
        self.owner = [None] * n_blocks
        self.n = {}

    def append(self, seq, k, v):
        n = self.n.get(seq, 0)
        piece, slot = divmod(n, self.b)
        if slot == 0:
            if None not in self.owner:
                raise MemoryError
            self.owner[self.owner.index(None)] = (seq, piece)
        block = self.owner.index((seq, piece))
        self.k[block, slot], self.v[block, slot] = k, v
        self.n[seq] = n + 1

    def gather(self, seq):
        n = self.n[seq]
        places = [(self.owner.index((seq, i // self.b)), i % self.b) for i in range(n)]
        return np.stack([self.k[p] for p in places]), np.stack([self.v[p] for p in places])

    def free(self, seq):
        del self.n[seq]
        self.owner = [None if each is not None and each[0] == seq else each for each in self.owner]


@right(5, "paged_cache")
class PagesInListsOfTensors:
    def __init__(self, n_blocks, block_size, d):
        self.block_size = block_size
        self.blocks = [(torch.zeros(block_size, d), torch.zeros(block_size, d)) for _ in range(n_blocks)]
        self.taken = [False] * n_blocks
        self.table = {}
        self.count = {}

    def append(self, seq, k, v):
        count = self.count.get(seq, 0)
        if count % self.block_size == 0:
            empty = [i for i, taken in enumerate(self.taken) if not taken]
            if not empty:
                raise MemoryError("every block is taken")
            self.taken[empty[-1]] = True
            self.table[seq] = [*self.table.get(seq, []), empty[-1]]
        keys, values = self.blocks[self.table[seq][-1]]
        keys[count % self.block_size] = k
        values[count % self.block_size] = v
        self.count[seq] = count + 1

    def gather(self, seq):
        keys, values = [], []
        for i in range(self.count[seq]):
            block = self.blocks[self.table[seq][i // self.block_size]]
            keys.append(block[0][i % self.block_size])
            values.append(block[1][i % self.block_size])
        return torch.stack(keys), torch.stack(values)

    def free(self, seq):
        for block in self.table[seq]:
            self.taken[block] = False
        del self.table[seq], self.count[seq]


@right(5, "paged_cache")
class PagesAsAModule(torch.nn.Module):
    def __init__(self, n_blocks, block_size, d):
        super().__init__()
        self.block_size = block_size
        self.register_buffer("k", torch.zeros(n_blocks, block_size, d))
        self.register_buffer("v", torch.zeros(n_blocks, block_size, d))
        self.pool, self.tables, self.n = list(range(n_blocks)), {}, {}

    def append(self, seq, k, v):
        n = self.n.get(seq, 0)
        if n % self.block_size == 0:
            if not self.pool:
                raise MemoryError
            self.tables[seq] = [*self.tables.get(seq, []), self.pool.pop(0)]
        self.k[self.tables[seq][-1], n % self.block_size] = k
        self.v[self.tables[seq][-1], n % self.block_size] = v
        self.n[seq] = n + 1

    def gather(self, seq):
        table, n = self.tables[seq], self.n[seq]
        return self.k[table].flatten(0, 1)[:n], self.v[table].flatten(0, 1)[:n]

    def free(self, seq):
        self.pool += self.tables.pop(seq)
        del self.n[seq]


@right(5, "paged_cache")
class PagesAsADictOfTables(dict):
    def __init__(self, n_blocks, block_size, d):
        super().__init__()
        self.size, self.pool, self.n = block_size, set(range(n_blocks)), {}
        self.k, self.v = torch.zeros(n_blocks, block_size, d), torch.zeros(n_blocks, block_size, d)

    def append(self, seq, k, v):
        n = self.n.get(seq, 0)
        if n % self.size == 0:
            if not self.pool:
                raise MemoryError
            self.setdefault(seq, []).append(self.pool.pop())
        self.k[self[seq][-1], n % self.size], self.v[self[seq][-1], n % self.size] = k, v
        self.n[seq] = n + 1

    def gather(self, seq):
        return tuple(torch.cat([x[block] for block in self[seq]])[: self.n[seq]] for x in (self.k, self.v))

    def free(self, seq):
        self.pool.update(self.pop(seq))
        del self.n[seq]


@right(5, "paged_cache")
class PagesInPlainLists:
    def __init__(self, n_blocks, block_size, d):
        self.size, self.free_blocks, self.seqs = block_size, list(range(n_blocks)), {}
        self.k, self.v = ([[[0.0] * d for _ in range(block_size)] for _ in range(n_blocks)] for _ in "kv")

    def append(self, seq, k, v):
        table, n = self.seqs.get(seq, ([], 0))
        if n == len(table) * self.size:
            if not self.free_blocks:
                raise MemoryError
            table = [*table, self.free_blocks.pop()]
        self.k[table[-1]][n % self.size] = k.tolist()
        self.v[table[-1]][n % self.size] = v.tolist()
        self.seqs[seq] = table, n + 1

    def gather(self, seq):
        table, n = self.seqs[seq]
        return tuple(torch.tensor([row for block in table for row in store[block]][:n]) for store in (self.k, self.v))

    def free(self, seq):
        self.free_blocks += self.seqs.pop(seq)[0]


@wrong(5, "paged_cache")
class PagesLosingATokenOnFailure:
    def __init__(self, n_blocks, block_size, d):
        self.size, self.pool = block_size, list(range(n_blocks))
        self.k, self.v = torch.zeros(n_blocks, block_size, d), torch.zeros(n_blocks, block_size, d)
        self.tables, self.n = {}, {}

    def append(self, seq, k, v):
        n = self.n.setdefault(seq, 0)
        self.n[seq] += 1
        table = self.tables.setdefault(seq, [])
        if n // self.size == len(table):
            if not self.pool:
                raise MemoryError
            table.append(self.pool.pop())
        self.k[table[n // self.size], n % self.size] = k
        self.v[table[n // self.size], n % self.size] = v

    def gather(self, seq):
        table = self.tables[seq]
        return self.k[table].flatten(0, 1)[: self.n[seq]], self.v[table].flatten(0, 1)[: self.n[seq]]

    def free(self, seq):
        self.pool += self.tables.pop(seq)
        del self.n[seq]


class PlainPages:
    """A right one, for wrong ones to be made of."""

    def __init__(self, n_blocks, block_size, d):
        self.size, self.pool = block_size, list(range(n_blocks))
        self.k, self.v = torch.zeros(n_blocks, block_size, d), torch.zeros(n_blocks, block_size, d)
        self.tables, self.n = {}, {}

    def append(self, seq, k, v):
        n = self.n.get(seq, 0)
        if n % self.size == 0:
            if not self.pool:
                raise MemoryError
            self.tables.setdefault(seq, []).append(self.pool.pop())
        self.k[self.tables[seq][-1], n % self.size] = k
        self.v[self.tables[seq][-1], n % self.size] = v
        self.n[seq] = n + 1

    def gather(self, seq):
        table = self.tables[seq]
        return self.k[table].flatten(0, 1)[: self.n[seq]], self.v[table].flatten(0, 1)[: self.n[seq]]

    def free(self, seq):
        self.pool += self.tables.pop(seq)
        del self.n[seq]


right(5, "paged_cache")(PlainPages)


@right(5, "paged_cache")
class PagesThatIterateAndAreCalled(PlainPages):
    def __len__(self):
        return len(self.tables)

    def __iter__(self):
        return iter(self.tables)

    def __call__(self, seq):
        return self.gather(seq)


class Pool:
    """Free blocks that can be counted and walked, with the storage beside them."""

    def __init__(self, n_blocks, block_size, d):
        self.free, self.k = list(range(n_blocks)), torch.zeros(n_blocks, block_size, d)
        self.v = torch.zeros_like(self.k)

    def __len__(self):
        return len(self.free)

    def __iter__(self):
        return iter(self.free)


@right(5, "paged_cache")
class PagesWithAPool:
    def __init__(self, n_blocks, block_size, d):
        self.size, self.pool, self.seqs = block_size, Pool(n_blocks, block_size, d), {}

    def append(self, seq, k, v):
        slots = self.seqs.get(seq, [])
        if len(slots) % self.size:
            block, slot = slots[-1]
            slots = [*slots, (block, slot + 1)]
        elif len(self.pool) == 0:
            raise MemoryError
        else:
            slots = [*slots, (self.pool.free.pop(), 0)]
        self.pool.k[slots[-1]], self.pool.v[slots[-1]] = k, v
        self.seqs[seq] = slots

    def gather(self, seq):
        slots = self.seqs[seq]
        return torch.stack([self.pool.k[i] for i in slots]), torch.stack([self.pool.v[i] for i in slots])

    def free(self, seq):
        self.pool.free += {block for block, _ in self.seqs.pop(seq)}


@right(5, "paged_cache")
class PagesThatKeepBooksInFloats(PlainPages):
    def __init__(self, n_blocks, block_size, d):
        super().__init__(n_blocks, block_size, d)
        self.used, self.load = torch.zeros(n_blocks), 0.0

    def append(self, seq, k, v):
        super().append(seq, k, v)
        self.used[self.tables[seq]] = 1
        self.load = float(self.used.mean())

    def free(self, seq):
        self.used[self.tables[seq]] = 0
        super().free(seq)


@wrong(5, "paged_cache")
class PagesThatWriteIntoWhatTheyAreGiven(PlainPages):
    def append(self, seq, k, v):
        super().append(seq, k, v)
        k.add_(1)


@wrong(5, "paged_cache")
class PagesOfTenBlocksAtMost(PlainPages):
    def __init__(self, n_blocks, block_size, d):
        super().__init__(n_blocks, block_size, d)
        del self.pool[10:]


def renamed_pages(called, rename):
    """Pages that know their sequences by another name."""

    class Renamed(PlainPages):
        def append(self, seq, k, v):
            super().append(rename(seq), k, v)

        def gather(self, seq):
            return super().gather(rename(seq))

        def free(self, seq):
            super().free(rename(seq))

    Renamed.__name__ = called
    return Renamed


wrong(5, "paged_cache")(renamed_pages("PagesWithANameForTheEmptyOne", lambda seq: seq or "none"))


@wrong(5, "paged_cache")
class PagesDroppingWhomTheyRefuse(PlainPages):
    def append(self, seq, k, v):
        try:
            super().append(seq, k, v)
        except MemoryError:
            if seq in self.tables:
                self.free(seq)
            raise


@wrong(5, "paged_cache")
class PagesGrowing(PlainPages):
    def append(self, seq, k, v):
        if not self.pool:
            self.pool.append(len(self.k))
            self.k, self.v = (torch.cat([x, torch.zeros_like(x[:1])]) for x in (self.k, self.v))
        super().append(seq, k, v)


@wrong(5, "paged_cache")
class PagesSharedByTheClass(PlainPages):
    tables = {}  # noqa: RUF012
    n = {}  # noqa: RUF012

    def __init__(self, n_blocks, block_size, d):
        self.size, self.pool = block_size, list(range(n_blocks))
        self.k, self.v = torch.zeros(n_blocks, block_size, d), torch.zeros(n_blocks, block_size, d)


@wrong(5, "paged_cache")
class PagesWithABlockInReserve(PlainPages):
    """The next block is taken with the last slot, where one is free."""

    def append(self, seq, k, v):
        n, table = self.n.get(seq, 0), self.tables.get(seq, [])
        if n == len(table) * self.size:
            if not self.pool:
                raise MemoryError
            table = [*table, self.pool.pop()]
        self.k[table[n // self.size], n % self.size] = k
        self.v[table[n // self.size], n % self.size] = v
        if n % self.size == self.size - 1 and self.pool:
            table = [*table, self.pool.pop()]
        self.tables[seq], self.n[seq] = table, n + 1


# find_the_bug -------------------------------------------------------------------------------------------------------


@right(5, "find_the_bug")
def mended_with_its_own_rotation(q, k, v, cache=None):
    B, h, t, d = q.shape
    held = 0 if cache is None else cache[0].shape[2]
    angles = torch.arange(held, held + t)[:, None] * 10000.0 ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)
    turn = torch.polar(torch.ones_like(angles), angles)
    q, k = (torch.view_as_real(torch.view_as_complex(x.reshape(B, h, t, d // 2, 2)) * turn).flatten(3) for x in (q, k))
    if held:
        k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
    later = torch.ones(t, held + t, dtype=torch.bool).triu(held + 1)
    return (q @ k.mT / math.sqrt(d)).masked_fill(later, -math.inf).softmax(-1) @ v, (k, v)


@right(5, "find_the_bug")
def mended_by_positions(q, k, v, cache=None):
    start = cache[0].shape[-2] if cache is not None else 0
    t = q.shape[-2]
    positions = torch.arange(start, start + t)
    q, k = rotate(q, positions), rotate(k, positions)
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=-2), torch.cat([cache[1], v], dim=-2)
    allowed = torch.arange(start + t) <= positions[:, None]
    return attention(q, k, v, allowed)[0], (k, v)


@right(5, "find_the_bug")
def mended_with_keys_kept_as_they_came(q, k, v, cache=None):
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
    m, t = k.shape[2], q.shape[2]
    output = attention(
        rotate(q, torch.arange(m - t, m)), rotate(k, torch.arange(m)), v, torch.ones(t, m).tril(m - t).bool()
    )[0]
    return output, (k, v)


@right(5, "find_the_bug")
def mended_with_positions_counted_backwards(q, k, v, cache=None):
    """RoPE sees differences only, so the place of the text's beginning does not matter."""
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
    m, t = k.shape[2], q.shape[2]
    output = attention(
        rotate(q, torch.arange(-t, 0)), rotate(k, torch.arange(-m, 0)), v, torch.ones(t, m).tril(m - t).bool()
    )[0]
    return output, (k, v)


@right(5, "find_the_bug")
def mended_with_the_place_kept_in_the_cache(q, k, v, cache=None):
    cache = cache or {"n": 0, "k": k[:, :, :0], "v": v[:, :, :0]}
    n, t = cache["n"], q.shape[2]
    q, k = rotate(q, torch.arange(n, n + t)), rotate(k, torch.arange(n, n + t))
    k, v = torch.cat([cache["k"], k], 2), torch.cat([cache["v"], v], 2)
    allowed = torch.arange(n + t) <= torch.arange(n, n + t)[:, None]
    return attention(q, k, v, allowed)[0], {"n": n + t, "k": k, "v": v}


@wrong(5, "find_the_bug")
def still_aligned_top_left(q, k, v, cache=None):
    B, h, t, d = q.shape
    held = 0 if cache is None else cache[0].shape[2]
    angles = torch.arange(held, held + t)[:, None] * 10000.0 ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)
    turn = torch.polar(torch.ones_like(angles), angles)
    q, k = (torch.view_as_real(torch.view_as_complex(x.reshape(B, h, t, d // 2, 2)) * turn).flatten(3) for x in (q, k))
    if held:
        k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
    later = torch.ones(t, held + t, dtype=torch.bool).triu(1)
    return (q @ k.mT / math.sqrt(d)).masked_fill(later, -math.inf).softmax(-1) @ v, (k, v)


@wrong(5, "find_the_bug")
def mended_up_to_token_64(q, k, v, cache=None):
    held, t = 0 if cache is None else cache[0].shape[2], q.shape[2]
    places = (torch.arange(t) + held).clamp(max=63)
    q, k = rotate(q, places), rotate(k, places)
    if cache is not None:
        k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
    return attention(q, k, v, torch.ones(t, held + t).tril(held).bool())[0], (k, v)


def mended_with_a_count():
    @wrong(5, "find_the_bug")
    def mended_by_a_global_count(q, k, v, cache=None):
        """Knows from a count of its own where the new tokens stand."""
        nonlocal seen
        t = q.shape[2]
        if cache is None:
            seen = 0
        places = torch.arange(seen, seen + t)
        seen += t
        q, k = rotate(q, places), rotate(k, places)
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        m = k.shape[2]
        return attention(q, k, v, torch.ones(t, m).tril(m - t).bool())[0], (k, v)

    seen = 0
    return mended_by_a_global_count


mended_by_a_global_count = mended_with_a_count()


@memoised
def text_so_far():
    return []


def mended_with_one_room():
    @wrong(5, "find_the_bug")
    def mended_with_a_room_that_branches_share(q, k, v, cache=None):
        """The room is made with the first call and written into in place, by whoever continues."""
        B, h, t, d = q.shape
        K, V, n = cache or (torch.zeros(B, h, 200, d, dtype=q.dtype), torch.zeros(B, h, 200, d, dtype=q.dtype), 0)
        K[:, :, n : n + t], V[:, :, n : n + t] = rotate(k, torch.arange(n, n + t)), v
        k, v = K[:, :, : n + t], V[:, :, : n + t]
        allowed = torch.ones(t, n + t).tril(n).bool()
        return attention(rotate(q, torch.arange(n, n + t)), k, v, allowed)[0], (K, V, n + t)

    @wrong(5, "find_the_bug")
    def mended_with_a_room_that_lives_in_the_function(q, k, v, cache=None):
        """The branches overwrite each other only where they go on in turns."""
        B, h, t, d = q.shape
        n = 0 if cache is None else cache
        if n == 0:
            rooms[:] = torch.zeros(2, B, h, 200, d, dtype=q.dtype)
        rooms[0][:, :, n : n + t], rooms[1][:, :, n : n + t] = k, v
        k, v = (room[:, :, : n + t] for room in rooms)
        allowed = torch.ones(t, n + t).tril(n).bool()
        return attention(rotate(q, torch.arange(n, n + t)), rotate(k, torch.arange(n + t)), v, allowed)[0], n + t

    rooms = []
    return mended_with_a_room_that_branches_share, mended_with_a_room_that_lives_in_the_function


mended_with_one_room()


@wrong(5, "find_the_bug")
def mended_by_turning_queries_in_place(q, k, v, cache=None):
    held, t = 0 if cache is None else cache[0].shape[2], q.shape[2]
    q[:] = rotate(q, torch.arange(held, held + t))
    k = rotate(k, torch.arange(held, held + t))
    if cache is not None:
        k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
    return attention(q, k, v, torch.ones(t, held + t).tril(held).bool())[0], (k, v)
