"""Day 9: tokens, a sampler, losses and training, as people write them."""

import math
from collections import Counter
from itertools import chain, pairwise

import numpy as np
import torch
import torch.nn.functional as F

from . import right, wrong

# merge_step ---------------------------------------------------------------------------------------------------------


@right(9, "merge_step")
def merge_by_a_counter(tokens, new):
    counts = Counter(pairwise(tokens))
    most = max(counts.values())
    pair = min(each for each in counts if counts[each] == most)
    merged = []
    i = 0
    while i < len(tokens):
        if i + 1 < len(tokens) and (tokens[i], tokens[i + 1]) == pair:
            merged.append(new)
            i += 2
        else:
            merged.append(tokens[i])
            i += 1
    return pair, merged


@right(9, "merge_step")
def merge_by_sorting(tokens, new):
    pairs = [(tokens[i], tokens[i + 1]) for i in range(len(tokens) - 1)]
    first, second = sorted(pairs, key=lambda pair: (-pairs.count(pair), pair[0], pair[1]))[0]
    merged = []
    for token in tokens:
        if merged and merged[-1] == first and token == second:
            merged[-1] = new
        else:
            merged.append(token)
    return [first, second], merged


@right(9, "merge_step")
def merge_on_a_copy(tokens, new):
    tokens = list(tokens)
    counts = {}
    for pair in pairwise(tokens):
        counts[pair] = counts.get(pair, 0) + 1
    best = None
    for pair, count in counts.items():
        if best is None or count > counts[best] or (count == counts[best] and pair < best):
            best = pair
    place = 0
    while place < len(tokens) - 1:
        if tokens[place] == best[0] and tokens[place + 1] == best[1]:
            tokens[place : place + 2] = [new]
        place += 1
    return best, tokens


@wrong(9, "merge_step")
def merge_the_first_pair(tokens, new):
    return (tokens[0], tokens[1]), [new, *tokens[2:]]


@wrong(9, "merge_step")
def merge_in_place(tokens, new):
    pair, tokens[:] = merge_by_a_counter(tokens, new)
    return pair, tokens


@wrong(9, "merge_step")
def merge_as_text(tokens, new):
    """Numbers are replaced in a text of numbers, where 1 2 is found in 1 25 too."""
    pair, _ = merge_by_a_counter(tokens, new)
    text = " ".join(map(str, tokens)).replace(" ".join(map(str, pair)), str(new))
    return pair, [int(each) for each in text.split()]


# encode_decode ------------------------------------------------------------------------------------------------------


def encode_by_the_lowest_rank(text, merges):
    """As tokenizers do it: whichever pair in the text has the lowest rank goes first."""
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    tokens = list(text)
    while len(tokens) > 1:
        rank = min(ranks.get(pair, len(merges)) for pair in pairwise(tokens))
        if rank == len(merges):
            break
        merged = []
        for token in tokens:
            if merged and (merged[-1], token) == merges[rank]:
                merged[-1] = 256 + rank
            else:
                merged.append(token)
        tokens = merged
    return tokens


def decode_from_a_table(tokens, merges):
    table = {byte: bytes([byte]) for byte in range(256)}
    for rank, (one, other) in enumerate(merges):
        table[256 + rank] = table[one] + table[other]
    return b"".join(table[token] for token in tokens)


def encode_merge_by_merge(text, merges):
    tokens = list(text)
    for i, pair in enumerate(merges):
        place = 0
        while place < len(tokens) - 1:
            if (tokens[place], tokens[place + 1]) == tuple(pair):
                tokens[place : place + 2] = [256 + i]
            place += 1
    return tokens


def decode_by_recursion(tokens, merges):
    def spell(token):
        if token < 256:
            return [token]
        first, second = merges[token - 256]
        return spell(first) + spell(second)

    return bytes(chain.from_iterable(map(spell, tokens)))


def decode_by_undoing_the_last_merge_first(tokens, merges):
    spelled = list(tokens)
    for number in reversed(range(len(merges))):
        parts = []
        for token in spelled:
            parts += merges[number] if token == number + 256 else [token]
        spelled = parts
    return bytearray(spelled)


def encode_into_a_new_list(text, merges):
    tokens = [int(byte) for byte in text]
    for i in range(len(merges)):
        first, second = merges[i]
        merged, place = [], 0
        while place < len(tokens):
            if tokens[place : place + 2] == [first, second]:
                merged.append(256 + i)
                place += 2
            else:
                merged.append(tokens[place])
                place += 1
        tokens = merged
    return tokens


right(9, "encode_decode")({"encode": encode_by_the_lowest_rank, "decode": decode_from_a_table})
right(9, "encode_decode")({"encode": encode_merge_by_merge, "decode": decode_by_recursion})
right(9, "encode_decode")({"encode": encode_into_a_new_list, "decode": decode_by_undoing_the_last_merge_first})


def decode_as_text(tokens, merges):
    return decode_from_a_table(tokens, merges).decode("utf-8", "replace")


def encode_and_use_up_the_merges(text, merges):
    tokens = list(text)
    number = 256
    while merges:
        pair = merges.pop(0)
        tokens = encode_merge_by_merge(tokens, [(-1, -1)] * (number - 256) + [pair])
        number += 1
    return tokens


def decode_with_a_table_that_stays(tokens, merges, table={}):  # noqa: B006  # the mistake
    for rank, pair in enumerate(merges):
        word = [table.get(part, bytes([part % 256])) for part in pair]
        table.setdefault(256 + rank, b"".join(word))
    return b"".join(table.get(token, bytes([token % 256])) for token in tokens)


wrong(9, "encode_decode")({"encode": encode_merge_by_merge, "decode": decode_as_text})
wrong(9, "encode_decode")({"encode": encode_and_use_up_the_merges, "decode": decode_from_a_table})
wrong(9, "encode_decode")({"encode": encode_merge_by_merge, "decode": decode_with_a_table_that_stays})


# padded_loss --------------------------------------------------------------------------------------------------------


@right(9, "padded_loss")
def loss_in_loops(logits, targets, lengths):
    total, count = 0.0, 0
    for b in range(len(lengths)):
        for t in range(lengths[b]):
            most = max(logits[b, t])
            total += most + math.log(sum(math.exp(x - most) for x in logits[b, t])) - logits[b, t, targets[b, t]]
            count += 1
    return total / count


@right(9, "padded_loss")
def loss_by_where(logits, targets, lengths):
    real = np.arange(logits.shape[1])[None, :] < np.array(lengths)[:, None]
    logits = np.where(real[:, :, None], logits, 0.0)
    targets = np.where(real, targets, 0)
    most = logits.max(axis=-1)
    sums = most + np.log(np.exp(logits - most[..., None]).sum(axis=-1))
    chosen = np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return ((sums - chosen) * real).sum() / real.sum()


@right(9, "padded_loss")
def loss_row_by_row(logits, targets, lengths):
    losses = []
    for row, words, length in zip(logits, targets, lengths, strict=True):
        row, words = row[:length], words[:length]
        shifted = row - row.max(axis=1, keepdims=True)
        chosen = shifted[np.arange(length), words]
        losses.extend(np.log(np.exp(shifted).sum(axis=1)) - chosen)
    return np.mean(losses)


@right(9, "padded_loss")
def loss_of_what_is_real(logits, targets, lengths):
    keep = np.zeros(targets.shape, dtype=bool)
    for b, length in enumerate(lengths):
        keep[b, :length] = True
    rows, words = logits[keep], targets[keep]
    rows = rows - np.max(rows, axis=-1, keepdims=True)
    return float(np.mean(np.log(np.sum(np.exp(rows), axis=-1)) - rows[range(len(rows)), words]))


@wrong(9, "padded_loss")
def loss_without_a_softmax(logits, targets, lengths):
    return float(-logits[0, 0, targets[0, 0]])


@wrong(9, "padded_loss")
def loss_with_the_padding_set_to_zero_in_place(logits, targets, lengths):
    for b, length in enumerate(lengths):
        logits[b, length:], targets[b, length:] = 0, 0
    return loss_of_what_is_real(logits, targets, lengths)


@wrong(9, "padded_loss")
def loss_without_the_impossible(logits, targets, lengths):
    """NaN becomes 0 after the sum, so that all tokens with an impossible word count for nothing, too."""
    logits = np.where(np.isinf(logits).any(axis=-1, keepdims=True), 0.0, logits)
    return loss_of_what_is_real(logits, targets, lengths)


# top_p --------------------------------------------------------------------------------------------------------------


@right(9, "top_p")
def sample_in_a_loop(logits, p, u):
    exps = [math.exp(x - max(logits)) for x in logits]
    shares = [x / sum(exps) for x in exps]
    words = sorted(range(len(shares)), key=lambda word: -shares[word])
    kept, total = [], 0.0
    for word in words:
        kept.append(word)
        total += shares[word]
        if total >= p:
            break
    running = 0.0
    for word in kept:
        running += shares[word] / total
        if running > u:
            return kept, word
    return kept, kept[-1]


@right(9, "top_p")
def sample_by_searching(logits, p, u):
    shares = np.exp(logits - np.max(logits))
    shares = shares / np.sum(shares)
    words = np.argsort(-shares, kind="stable")
    sums = np.cumsum(shares[words])
    words = words[: np.searchsorted(sums, p) + 1]
    sums = np.cumsum(shares[words] / shares[words].sum())
    place = np.searchsorted(sums, u, side="right")
    return words, words[min(place, len(words) - 1)]


@right(9, "top_p")
def sample_by_what_comes_before(logits, p, u):
    shares = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    order = np.lexsort((np.arange(len(logits)), -shares))
    sorted_shares = shares[order]
    before = np.cumsum(sorted_shares) - sorted_shares
    keep = before < p
    keep[0] = True
    kept, weights = order[keep], sorted_shares[keep]
    return list(kept), kept[np.argmax(np.cumsum(weights) > u * weights.sum())]


@wrong(9, "top_p")
def sample_the_likeliest(logits, p, u):
    word = int(np.argmax(logits))
    return [word], word


@wrong(9, "top_p")
def sample_with_a_generator(logits, p, u):
    kept, _ = sample_by_searching(logits, p, u)
    return kept, np.random.default_rng(int(u * 1000)).choice(kept)


@wrong(9, "top_p")
def sample_as_a_list_of_one(logits, p, u):
    kept, token = sample_by_searching(logits, p, u)
    return kept, [token]


@wrong(9, "top_p")
def sample_on_the_logits_themselves(logits, p, u):
    logits -= logits.max()
    return sample_by_searching(logits, p, u)


# batch_without_leak -------------------------------------------------------------------------------------------------


@right(9, "batch_without_leak")
def batch_by_stacking(tokens, held_out, part, context, u):
    cut = len(tokens) - held_out
    own = tokens[:cut] if part == "train" else tokens[cut:]
    inputs, targets = [], []
    for each in u:
        start = int(each * (len(own) - context))
        inputs.append(own[start : start + context])
        targets.append(own[start + 1 : start + context + 1])
    return np.stack(inputs), np.stack(targets)


@right(9, "batch_without_leak")
def batch_by_places_in_the_text(tokens, held_out, part, context, u):
    first, end = (0, len(tokens) - held_out) if part == "train" else (len(tokens) - held_out, len(tokens))
    starts = first + np.floor(np.array(u) * (end - first - context)).astype(int)
    places = starts[:, None] + np.arange(context + 1)
    windows = tokens[places]
    return windows[:, :-1], windows[:, 1:]


@right(9, "batch_without_leak")
def batch_of_all_windows(tokens, held_out, part, context, u):
    training, held = np.split(np.asarray(tokens), [len(tokens) - held_out])
    own = held if part == "held out" else training
    every = np.lib.stride_tricks.sliding_window_view(own, context + 1)
    chosen = every[(u * len(every)).astype(int)]
    return [chosen[:, :context].tolist(), chosen[:, 1:].tolist()]


@wrong(9, "batch_without_leak")
def batch_from_the_beginning(tokens, held_out, part, context, u):
    inputs = np.stack([tokens[:context]] * len(u))
    return inputs, np.stack([tokens[1 : context + 1]] * len(u))


@wrong(9, "batch_without_leak")
def batch_that_shifts_its_last_target_in(tokens, held_out, part, context, u):
    """The last target of a window is its first input, as a roll makes it."""
    inputs, _ = batch_by_stacking(tokens, held_out, part, context, u)
    return inputs, np.roll(inputs, -1, axis=1)


@wrong(9, "batch_without_leak")
def batch_with_a_share_in_place_of_a_number(tokens, held_out, part, context, u):
    return batch_by_stacking(tokens, int(len(tokens) * 0.1) if held_out else 0, part, context, u)


# first_checks -------------------------------------------------------------------------------------------------------


def surprises(logits, words):
    """The losses of the words (…) that rows of logits (…, V) are for."""
    most = logits.max(axis=-1, keepdims=True)
    sums = np.log(np.exp(logits - most).sum(axis=-1)) + most[..., 0]
    return sums - np.take_along_axis(logits, words[..., None], axis=-1)[..., 0]


@right(9, "first_checks")
def checks_token_by_token(model, tokens, vocabulary):
    logits = model(tokens)
    loss = surprises(logits[:, :-1], tokens[:, 1:]).mean()
    causal, apart = True, True
    B, T = tokens.shape
    for b in range(B):
        for t in range(T):
            changed = tokens.copy()
            changed[b, t] = (changed[b, t] + 1) % vocabulary
            off = np.abs(model(changed) - logits).max(axis=-1)
            causal = causal and bool((off[b, :t] < 1e-4).all())
            off[b] = 0
            apart = apart and bool((off < 1e-4).all())
    return bool(abs(loss - math.log(vocabulary)) <= 0.1), causal, apart


@right(9, "first_checks")
def checks_with_new_ends(model, tokens, vocabulary):
    before = model(tokens)
    near = np.isclose(surprises(before[:, :-1], tokens[:, 1:]).mean(), np.log(vocabulary), rtol=0, atol=0.1)
    causal = True
    for t in range(1, tokens.shape[1]):
        others = np.concatenate([tokens[:, :t], (tokens[:, t:] + 1) % vocabulary], axis=1)
        causal &= np.allclose(model(others)[:, :t], before[:, :t], rtol=0, atol=1e-5)
    apart = True
    for b in range(len(tokens)):
        others = np.array([row if i == b else (row + 1) % vocabulary for i, row in enumerate(tokens)])
        apart &= np.allclose(model(others)[b], before[b], rtol=0, atol=1e-5)
    return near, causal, apart


@right(9, "first_checks")
def checks_with_beginnings_and_single_rows(model, tokens, vocabulary):
    """Other questions to the same end: single rows alone, and changes of one token each."""
    logits = model(tokens)
    near = abs(np.mean(surprises(logits[:, :-1], tokens[:, 1:])) - np.log(vocabulary)) < 0.1
    moved = (tokens + 1) % vocabulary
    leaks = []
    for t in range(1, tokens.shape[1]):
        changed = tokens.copy()
        changed[:, t] = moved[:, t]
        leaks.append(np.abs(model(changed)[:, :t] - logits[:, :t]).max())
    mixes = []
    for b in range(tokens.shape[0]):
        changed = tokens.copy()
        changed[b] = moved[b]
        off = np.abs(model(changed) - logits)
        off[b] = 0
        mixes.append(off.max())
    return [bool(near), bool(max(leaks) < 1e-4), bool(max(mixes) < 1e-4)]


@wrong(9, "first_checks")
def checks_as_numbers(model, tokens, vocabulary):
    return [float(each) for each in checks_token_by_token(model, tokens, vocabulary)]


@wrong(9, "first_checks")
def checks_with_the_rows_in_another_order(model, tokens, vocabulary):
    """Rows that exchange their places say nothing of rows that mix evenly."""
    near, causal, _ = checks_token_by_token(model, tokens, vocabulary)
    turned = model(tokens[::-1])[::-1]
    return near, causal, bool(np.allclose(turned, model(tokens), atol=1e-5))


# assemble -----------------------------------------------------------------------------------------------------------


def turned(x):
    """Pairs of neighbours as complex numbers."""
    T, d = x.shape[-2:]
    speeds = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = torch.arange(T, dtype=torch.float64)[:, None] * speeds
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], d // 2, 2).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def logits_with_library_parts(weights, tokens, heads):
    x = F.embedding(tokens, weights["embedding"])
    B, T, d = x.shape
    mask = torch.full((T, T), -math.inf, dtype=x.dtype).triu(1)
    for layer in range(2):
        y = F.rms_norm(x, (d,), weights[f"{layer}.norm_1"], eps=1e-5)
        parts = [y @ weights[f"{layer}.{name}"] for name in ("q", "k", "v")]
        q, k, v = [part.view(B, T, heads, d // heads).transpose(1, 2) for part in parts]
        scores = turned(q) @ turned(k).transpose(-2, -1) / math.sqrt(d // heads) + mask
        found = (F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, d)
        x = x + found @ weights[f"{layer}.o"]
        y = F.rms_norm(x, (d,), weights[f"{layer}.norm_2"], eps=1e-5)
        gate = F.silu(y @ weights[f"{layer}.gate"])
        x = x + (gate * (y @ weights[f"{layer}.up"])) @ weights[f"{layer}.down"]
    return F.linear(F.rms_norm(x, (d,), weights["norm"], eps=1e-5), weights["embedding"])


def train_with_a_schedule(weights, batches, heads, rate, warm_up):
    own = {name: torch.nn.Parameter(weight.clone()) for name, weight in weights.items()}
    matrices = [weight for weight in own.values() if weight.ndim > 1]
    vectors = [weight for weight in own.values() if weight.ndim == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.99), eps=1e-8)
    steps = len(batches)

    def share(done):
        if done < warm_up:
            return (done + 1) / warm_up
        return 0.1 + 0.9 * (1 + math.cos(math.pi * (done + 1 - warm_up) / (steps - warm_up))) / 2

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share)
    losses = []
    for inputs, targets in batches:
        logits = logits_with_library_parts(own, inputs, heads)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(own.values(), max_norm=1.0)
        optimizer.step()
        if len(losses) < steps - 1:
            schedule.step()
        losses.append(loss.item())
    return losses


def logits_head_by_head(weights, tokens, heads):
    def normed(x, weight):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight

    x = weights["embedding"][tokens]
    T, d = x.shape[1:]
    size = d // heads
    for layer in "01":
        w = {name[2:]: weight for name, weight in weights.items() if name[:2] == layer + "."}
        y = normed(x, w["norm_1"])
        found = []
        for start in range(0, d, size):
            own = slice(start, start + size)
            q, k, v = turned(y @ w["q"][:, own]), turned(y @ w["k"][:, own]), y @ w["v"][:, own]
            scores = torch.einsum("bid,bjd->bij", q, k) / size**0.5
            exps = torch.exp(scores - scores.amax(dim=-1, keepdim=True)) * torch.tril(torch.ones(T, T))
            exps = torch.where(torch.ones(T, T).tril() > 0, scores, -torch.inf).softmax(-1) if T > 1 else exps / exps
            found.append(exps @ v)
        x = x + torch.cat(found, dim=-1) @ w["o"]
        y = normed(x, w["norm_2"])
        gate = y @ w["gate"]
        x = x + (gate * torch.sigmoid(gate) * (y @ w["up"])) @ w["down"]
    return normed(x, weights["norm"]) @ weights["embedding"].mT


def train_with_an_optimizer_of_its_own(weights, batches, heads, rate, warm_up):
    own = {name: weight.clone() for name, weight in weights.items()}
    first = {name: torch.zeros_like(weight) for name, weight in own.items()}
    second = {name: torch.zeros_like(weight) for name, weight in own.items()}
    losses = []
    for step, (inputs, targets) in enumerate(batches, 1):
        leaves = {name: weight.detach().requires_grad_() for name, weight in own.items()}
        logits = logits_head_by_head(leaves, inputs, heads)
        chosen = logits.log_softmax(dim=-1).gather(-1, targets[..., None])
        loss = -chosen.mean()
        losses.append(float(loss))
        gradients = dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))
        norm = torch.sqrt(sum((each**2).sum() for each in gradients.values()))
        factor = min(1.0, 1.0 / float(norm))
        now = rate * step / warm_up
        if step > warm_up:
            least = rate / 10
            turn = math.pi * (step - warm_up) / (len(batches) - warm_up)
            now = least + (rate - least) * (1 + math.cos(turn)) / 2
        for name, weight in own.items():
            gradient = factor * gradients[name]
            first[name] = 0.9 * first[name] + 0.1 * gradient
            second[name] = 0.99 * second[name] + 0.01 * gradient**2
            mean, square = first[name] / (1 - 0.9**step), second[name] / (1 - 0.99**step)
            decay = 0.1 if weight.ndim == 2 else 0.0
            own[name] = weight - now * decay * weight - now * mean / (square.sqrt() + 1e-8)
    return losses


right(9, "assemble")({"logits_of": logits_with_library_parts, "train": train_with_a_schedule})
right(9, "assemble")({"logits_of": logits_head_by_head, "train": train_with_an_optimizer_of_its_own})


def train_the_weights_themselves(weights, batches, heads, rate, warm_up):
    for weight in weights.values():
        weight.requires_grad_()
    losses = train_with_a_schedule(weights, batches, heads, rate, warm_up)
    with torch.no_grad():
        weights["norm"] *= 0.99
    return losses


def logits_in_single_precision(weights, tokens, heads):
    single = {name: weight.float() for name, weight in weights.items()}
    return logits_with_library_parts(single, tokens, heads).double()


def train_with_averages_that_stay(weights, batches, heads, rate, warm_up, kept={}):  # noqa: B006  # the mistake
    """What an earlier call left of its weights goes on."""
    kept.setdefault(len(weights["norm"]), {name: weight.clone() for name, weight in weights.items()})
    begun = kept[len(weights["norm"])]
    begun = begun if all(begun[name].shape == weights[name].shape for name in weights) else weights
    return train_with_a_schedule(begun, batches, heads, rate, warm_up)


wrong(9, "assemble")({"logits_of": logits_with_library_parts, "train": train_the_weights_themselves})
wrong(9, "assemble")({"logits_of": logits_in_single_precision, "train": train_with_a_schedule})
wrong(9, "assemble")({"logits_of": logits_with_library_parts, "train": train_with_averages_that_stay})


# find_the_illness ---------------------------------------------------------------------------------------------------


def errors_of(x, U, targets):
    """The loss, and the gradient with respect to the logits."""
    logits = x @ U
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    loss = surprises(logits, targets).mean()
    return loss, (e / e.sum(axis=1, keepdims=True) - np.eye(U.shape[1])[targets]) / len(targets)


@right(9, "find_the_illness")
def step_with_one_hot_inputs(E, U, inputs, targets, rate):
    hot = np.eye(len(E))[inputs]
    loss, off = errors_of(hot @ E, U, targets)
    return loss, E - rate * hot.T @ off @ U.T, U - rate * (hot @ E).T @ off


@right(9, "find_the_illness")
def step_place_by_place(E, U, inputs, targets, rate):
    loss, off = errors_of(E[inputs], U, targets)
    new_E, new_U = E.copy(), U.copy()
    for t, token in enumerate(inputs):
        new_E[token] -= rate * (U @ off[t])
        new_U -= rate * np.outer(E[token], off[t])
    return loss, new_E, new_U


@right(9, "find_the_illness")
def step_row_by_row(E, U, inputs, targets, rate):
    x = E[inputs]
    loss, off = errors_of(x, U, targets)
    back = off @ U.T
    gradient = np.array([back[inputs == token].sum(axis=0) for token in range(len(E))])
    return [loss, E - rate * gradient, U - rate * x.T @ off]


@right(9, "find_the_illness")
def step_by_subtracting_at(E, U, inputs, targets, rate):
    x = E[inputs]
    loss, off = errors_of(x, U, targets)
    new_E = E.copy()
    np.subtract.at(new_E, inputs, rate * off @ U.T)
    return loss, new_E, U - rate * (x.T @ off)


@right(9, "find_the_illness")
def step_in_logarithms(E, U, inputs, targets, rate):
    x, rows = E[inputs], np.arange(len(inputs))
    logits = x @ U
    logits = logits - logits.max(axis=1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    errors = np.exp(logs)
    errors[rows, targets] -= 1
    errors = errors / len(inputs)
    new = E.copy()
    for token, change in zip(inputs, errors @ U.T, strict=True):
        new[token] = new[token] - rate * change
    return -logs[rows, targets].mean(), new, U - rate * x.T @ errors


@wrong(9, "find_the_illness")
def step_that_moves_nothing(E, U, inputs, targets, rate):
    logits = E[inputs] @ U
    logits = logits - logits.max(axis=1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return -logs[np.arange(len(inputs)), targets].mean(), E.copy(), U.copy()


@wrong(9, "find_the_illness")
def step_in_place(E, U, inputs, targets, rate):
    loss, new_E, new_U = step_place_by_place(E, U, inputs, targets, rate)
    E[:], U[:] = new_E, new_U
    return loss, E, U


@wrong(9, "find_the_illness")
def step_place_by_place_with_what_has_moved(E, U, inputs, targets, rate):
    """Each place sees the rows as the places before it left them."""
    E, U, losses = E.copy(), U.copy(), []
    for t, token in enumerate(inputs):
        loss, off = errors_of(E[token][None], U, targets[t : t + 1])
        losses.append(loss)
        row = E[token].copy()
        E[token] -= rate / len(inputs) * (U @ off[0])
        U -= rate / len(inputs) * np.outer(row, off[0])
    return np.mean(losses), E, U
