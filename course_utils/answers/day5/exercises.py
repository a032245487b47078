"""Day 5: the answers to its exercises, and the mistakes that people make in them."""

import math

import numpy as np

from course_utils.answers.day5.duel import duel
from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.costs.memory import kv_cache_bytes
from course_utils.loader import lazy

torch = lazy("torch")
masks = lazy("course_utils.attention.masks")
tensors = lazy("course_utils.attention.tensors")
rotate = lazy("course_utils.attention.rotary").rotate


def attend(q, k, v, mask=None):
    return tensors.attention(q, k, v, mask)[0]


# By pencil ----------------------------------------------------------------------------------------------------------

BY_HAND = {"tokens_through": 10, "bytes_of_a_token": 384, "with_keys_made": 3360, "with_both_absorbed": 864}


def slip(name, number, message):
    return Mistake(f"{name} {number}", {name: number}, message)


BY_HAND_MISTAKES = (
    slip("tokens_through", 11, "tokens_through counts the last new token too. It need not go through, because no token "
        "is chosen after it."),
    slip("tokens_through", 40, "tokens_through is the count without a cache: 6, then 7 and so on. With a cache, each "
        "token goes through once."),
    slip("tokens_through", 5, "tokens_through leaves the prompt out. It goes through too, once."),
    slip("bytes_of_a_token", 1536, "bytes_of_a_token counts all query heads. Only the heads of keys and values leave "
        "something in the cache."),
    slip("bytes_of_a_token", 192, "bytes_of_a_token is half of what it should be. Count a key and a value, and 2 bytes "
        "for each number."),
    slip("bytes_of_a_token", 128, "bytes_of_a_token is the count for one layer."),
    slip("with_keys_made", 2880, "with_keys_made counts the products that make keys and values. The scores and the "
        "blend come on top."),
    slip("with_keys_made", 1680, "with_keys_made is half of what it should be: count keys and values, and the scores "
        "and the blend."),
    slip("with_keys_made", 1120, "with_keys_made is the count for one head."),
    slip("with_both_absorbed", 720, "with_both_absorbed counts scores and blend. The products of the query and the "
        "blend with their matrices come on top, once per head each."),
    slip("with_both_absorbed", 432, "with_both_absorbed is half of what it should be: count both matrices, and the "
        "scores and the blend."),
    slip("with_both_absorbed", 288, "with_both_absorbed is the count for one head."),
    slip("with_both_absorbed", 624, "with_both_absorbed meets the latents with vectors of 4 numbers. The query that "
        "meets them is as wide as a latent."),
)  # fmt: skip


# One step with a cache ----------------------------------------------------------------------------------------------


def grown(held, new):
    """The rows of a cache and the new one, (…, T + 1, d)."""
    return new if held is None else torch.cat([held, new], dim=-2)


def newest_first(held, new):
    return new if held is None else torch.cat([new, held], dim=-2)


def stepped(grow=grown, see=lambda all_, new: all_, keep=lambda k, v, old: (k, v), weigh=None, grow_values=None):
    """A cached step. grow(held, new): the rows to attend to, for keys alone if grow_values is given. see(all, new):
    those that are seen. keep: what is kept."""

    def cached_step(q_t, k_t, v_t, cache):
        old = cache if cache is not None else (None, None)
        k, v = grow(old[0], k_t), (grow_values or grow)(old[1], v_t)
        seen, values = see(k, k_t), see(v, v_t)
        output = attend(q_t, seen, values) if weigh is None else weigh(q_t, seen) @ values
        return output, keep(k, v, cache or (k_t, v_t))

    return cached_step


def scores_of(q, k, scale=None):
    return q @ k.mT / (math.sqrt(k.shape[-1]) if scale is None else scale(k))


def weighing(scale=None, dim=-1):
    return lambda q, k: torch.softmax(scores_of(q, k, scale), dim=dim)


def scaled_by_values(q_t, k_t, v_t, cache):
    return stepped(weigh=weighing(lambda k: math.sqrt(v_t.shape[-1])))(q_t, k_t, v_t, cache)


def in_place(q_t, k_t, v_t, cache):
    """Right for one text, but every continuation of a cache goes into the same list."""
    cache = [k_t[..., :0, :], v_t[..., :0, :]] if cache is None else cache
    if isinstance(cache, tuple):
        return stepped()(q_t, k_t, v_t, cache)
    cache[0], cache[1] = grown(cache[0], k_t), grown(cache[1], v_t)
    return attend(q_t, *cache), cache


def remembered():
    """Keeps what it has seen in the function, and looks into the cache only to learn whether a text begins."""
    held = []

    def answer(q_t, k_t, v_t, cache):
        if cache is None:
            held.clear()
        output, now = stepped()(q_t, k_t, v_t, held[0] if held else cache)
        held[:] = [now]
        return output, now

    return answer


def joined(axis):
    return lambda held, new: new if held is None else torch.cat([held, new], dim=axis)


OTHER_AXIS = (
    "Tokens are the second-to-last axis of (B, h, T, d). The new key goes after the old ones along that axis: "
    "torch.cat([…, …], dim=-2)."
)
OVER_KEYS = (
    "The softmax runs over the {}. The weights of a query add up to 1 over the keys: "
    "dim=-1 of the scores (B, h, 1, T + 1)."
)
IN_FRONT = (
    "The new {} goes in front of the old ones, and the new {} behind them, so each weight meets the value of "
    "another token. Put both behind."
)
STEP_MISTAKES = (
    Mistake("the cache not updated", stepped(keep=lambda k, v, old: old),
        "The cache comes back without the new token, so later tokens do not see it. Return the keys and values with "
        "the new ones after them."),
    Mistake("only the new token kept", lambda q_t, k_t, v_t, cache: (stepped()(q_t, k_t, v_t, cache)[0], (k_t, v_t)),
        "The returned cache holds only the newest key and value. All earlier ones must stay in it."),
    Mistake("the cache ignored", stepped(grow=lambda held, new: new),
        "The query attends to its own key only, and the cache is lost. First put the new key after those in the "
        "cache."),
    Mistake("the cache not attended to", stepped(see=lambda all_, new: new),
        "The output is v_t: the query attends to its own key only. It should also attend to all keys in the cache."),
    Mistake("its own key left out", stepped(see=lambda all_, new: all_[..., :-1, :] if all_.shape[-2] > 1 else all_),
        "The query attends to the keys in the cache, but not to its own. Append first, then attend."),
    Mistake("the first key only", stepped(see=lambda all_, new: all_[..., :1, :]),
        "The query attends to the first key only, as with a causal mask of one row that is aligned at the top left. "
        "The newest token may see all keys: no mask is needed."),
    Mistake("newest first", stepped(grow=newest_first),
        "The new token stands in front of the old ones. The outputs come out right, since a sum has no order, but "
        "the cache should be in the order of the text."),
    Mistake("keys newest first", stepped(newest_first, grow_values=grown), IN_FRONT.format("key", "value")),
    Mistake("values newest first", stepped(grow_values=newest_first), IN_FRONT.format("value", "key")),
    Mistake("k and v exchanged in the cache", stepped(keep=lambda k, v, old: (v, k)),
        "The cache comes back as (v, k). The keys come first."),
    Mistake("values as keys", lambda q_t, k_t, v_t, cache: stepped()(q_t, v_t, k_t, cache),
        "Keys and values are exchanged. Compare the query with the keys, and blend the values."),
    Mistake("joined along the heads", stepped(grow=joined(1)),
        "The new key was joined along the heads, axis 1. " + OTHER_AXIS),
    Mistake("joined along the batch", stepped(grow=joined(0)),
        "The new key was joined along the batch, axis 0. " + OTHER_AXIS),
    Mistake("joined along the features", stepped(grow=joined(-1)),
        "The new key was joined along the last axis, the features. " + OTHER_AXIS),
    Mistake("no scaling", stepped(weigh=weighing(lambda k: 1.0)), "The scores are not scaled. Divide by √d_k."),
    Mistake("scaled by d_k", stepped(weigh=weighing(lambda k: k.shape[-1])),
        "The scores are divided by d_k. Divide by √d_k."),
    Mistake("scaled by the number of keys", stepped(weigh=weighing(lambda k: math.sqrt(k.shape[-2]))),
        "The scores are divided by the root of the number of keys. Divide by √d_k, the width of one."),
    Mistake("scaled by the width of a value", scaled_by_values,
        "The scores are divided by √d_v. Divide by √d_k, the width of a key."),
    Mistake("softmax over queries", stepped(weigh=weighing(dim=-2)),
        "Every weight is 1: the softmax runs over the queries, and there is only one. It runs over "
        "the keys, the last axis of the scores."),
    Mistake("softmax over heads", stepped(weigh=weighing(dim=1)), OVER_KEYS.format("heads")),
    Mistake("softmax over the batch", stepped(weigh=weighing(dim=0)), OVER_KEYS.format("sequences of the batch")),
    Mistake("multiplied by the scale", stepped(weigh=weighing(lambda k: 1 / math.sqrt(k.shape[-1]))),
        "The scores are multiplied by √d_k. Divide by it."),
    Mistake("no softmax", stepped(weigh=scores_of),
        "The output blends the values with the raw scores. Turn the scores into weights with a softmax first."),
    Mistake("one list for every continuation", in_place,
        "Both continuations of one cache write into the same list, so each sees the other's tokens. Return a new pair, "
        "and leave the one that was passed in unchanged."),
    Mistake("remembered outside the cache", remembered(),
        "What was seen before is kept outside the cache, so a second text gets the keys of the first. Use the cache "
        "that is passed in and nothing else."),
)  # fmt: skip


# Generation ---------------------------------------------------------------------------------------------------------


def decoded(
    place=lambda T, i: T + i,
    choose=lambda logits: likeliest(logits),
    held=lambda new, first: new,
    given=lambda cache: cache,
    feed=lambda tokens, newest: newest,
    prefill=lambda model, prompt: prefilled(model, prompt),
    end=lambda tokens, T: tokens,
    last=False,
):
    """Greedy generation with a cache.

    place(T, i): the position of new token i. choose(logits): the new token. held(new, first): the cache for the next
    call, and given(cache) what it gets of it. feed(tokens, newest): what goes into it. prefill(model, prompt): the
    logits and the cache after the prompt. end(tokens, T): the result. last: the last new token goes through as well.
    """

    def generate_cached(model, prompt, steps):
        tokens, T = prompt, prompt.shape[1]
        logits, cache = first = prefill(model, prompt) if steps else (None, None)
        for i in range(steps):
            newest = choose(logits)  # (B, 1)
            tokens = torch.cat([tokens, newest], dim=1)
            if i < steps - 1 or last:
                chunk = feed(tokens, newest)
                positions = torch.arange(chunk.shape[1]) + place(T, i) - chunk.shape[1] + 1
                logits, new = model(chunk, positions, given(cache))
                cache = held(new, first[1])
        return end(tokens, T)

    return generate_cached


def prefilled(model, prompt):
    return model(prompt, torch.arange(prompt.shape[1]))


def likeliest(logits):
    return logits[:, -1].argmax(dim=-1, keepdim=True)


def last_one_twice(model, prompt):
    """The prompt, and its last token once more."""
    T = prompt.shape[1]
    _, cache = model(prompt, torch.arange(T))
    return model(prompt[:, -1:], torch.tensor([T - 1]), cache)


def recomputed(model, prompt, steps):
    tokens = prompt
    for _ in range(steps):
        tokens = torch.cat([tokens, likeliest(prefilled(model, tokens)[0])], dim=1)
    return tokens


def last_token_alone(model, prompt, steps):
    tokens = prompt
    for _ in range(steps):
        logits, _ = model(tokens[:, -1:], torch.tensor([tokens.shape[1] - 1]))
        tokens = torch.cat([tokens, likeliest(logits)], dim=1)
    return tokens


def one_more(model, prompt, steps):
    return decoded()(model, prompt, steps + 1)


def never_extended(model, prompt, steps):
    """Positions right, cache of the prompt right, but the loop always asks about the prompt's last logits."""
    if not steps:
        return prompt
    newest = likeliest(prefilled(model, prompt)[0])
    return torch.cat([prompt, *[newest] * steps], dim=1)


def whole_text(tokens, newest):
    return tokens


def stopping(kept):
    """Ends the text where token 0 is chosen in all rows. kept: that token still belongs to it."""

    def generate_cached(model, prompt, steps):
        tokens, new, cache = prompt, prompt, None
        for _ in range(steps):
            first = tokens.shape[1] - new.shape[1]
            logits, cache = model(new, torch.arange(first, tokens.shape[1]), cache)
            new = likeliest(logits)
            ends = bool((new == 0).all())
            if ends and not kept:
                break
            tokens = torch.cat([tokens, new], dim=1)
            if ends:
                break
        return tokens

    return generate_cached


def kept_with_the_model(model, prompt, steps):
    """Begins a text with the cache that the one before has left with the model."""
    tokens, new, cache = prompt, prompt, getattr(model, "cache", None)
    for _ in range(steps):
        first = tokens.shape[1] - new.shape[1]
        logits, cache = model(new, torch.arange(first, tokens.shape[1]), cache)
        new = likeliest(logits)
        tokens = torch.cat([tokens, new], dim=1)
    model.cache = cache
    return tokens


END_SIGN = (
    "The text ends early, where token 0 is chosen, as if it marked the end. It is a token like any other here: return "
    "`steps` new ones."
)
BEHIND_ITSELF = (
    "All tokens so far go through at every step, although the cache already holds them. Only the newest token is new."
)
PLACE = "The first new token is at position T, after the prompt's 0 to T − 1, and the next one at T + 1."
FROM_0 = "Each new token goes in at position 0, because a call with one token counts from 0 again. " + PLACE
AND_PLACE = "And a call with one token counts from 0 again: " + PLACE[0].lower() + PLACE[1:]
NOT_HANDED_ON = (
    "After the prompt each call begins with no cache, so a new token sees only itself. Pass each call the cache that "
    "the previous call returned."
)
GENERATE_MISTAKES = (
    Mistake("recomputed at every step", recomputed,
        "The tokens are right, but the whole text goes through at every step, as in generate_naive. Only the prompt "
        "goes through as a whole; after that the newest token alone, with the cache."),
    Mistake("the whole text, with the cache too", decoded(feed=whole_text), BEHIND_ITSELF),
    Mistake("the whole text, with the cache too, to the last", decoded(feed=whole_text, last=True), BEHIND_ITSELF),
    Mistake("positions from 0 at each step", decoded(lambda T, i: 0), FROM_0),
    Mistake("positions from 0 at each step, to the last", decoded(lambda T, i: 0, last=True), FROM_0),
    Mistake("positions counted from the prompt's end", decoded(lambda T, i: i),
        "The positions of the new tokens start again from 0. " + PLACE),
    Mistake("one position too far", decoded(lambda T, i: T + i + 1),
        "Every new token goes in one position too far. " + PLACE),
    Mistake("one position too near", decoded(lambda T, i: T + i - 1),
        "Every new token goes in one position too near: the first one shares its place with the prompt's last token. "
        + PLACE),
    Mistake("one position for all", decoded(lambda T, i: T),
        "All new tokens go in at position T. Only the first one belongs there."),
    Mistake("the cache not updated", decoded(held=lambda new, first: first),
        "Every step gets the cache of the prompt, so a new token sees the prompt and itself, but no other new token. "
        "Keep the cache that each call returns."),
    Mistake("no cache after the prompt", decoded(given=lambda cache: None), NOT_HANDED_ON),
    Mistake("no cache after the prompt, positions from 0", decoded(lambda T, i: 0, given=lambda cache: None),
        f"{NOT_HANDED_ON} {AND_PLACE}"),
    Mistake("no cache after the prompt, positions from 0, to the last",
        decoded(lambda T, i: 0, given=lambda cache: None, last=True),
        f"{NOT_HANDED_ON} {AND_PLACE}"),
    Mistake("the cache dropped", decoded(held=lambda new, first: None),
        "The cache is not passed on. Without it a call knows nothing of what came before."),
    Mistake("the last token alone", last_token_alone,
        "Only the last token goes through, without a cache: the model sees nothing of what came before it."),
    Mistake("the prompt's last token twice", decoded(prefill=last_one_twice),
        "The last token of the prompt goes through twice, so the cache holds it twice. The logits of the "
        "prompt's own call choose the first new token."),
    Mistake("the first token's logits", decoded(choose=lambda logits: logits[:, 0].argmax(dim=-1, keepdim=True)),
        "The first row of logits chooses the token. It says what follows the first token of the prompt. Take the last "
        "row: logits[:, -1]."),
    Mistake("one row's choice for all", decoded(choose=lambda logits: likeliest(logits)[:1].expand(len(logits), 1)),
        "All rows get the token of the first one. Each row has logits of its own."),
    Mistake("the least likely token", decoded(choose=lambda logits: logits[:, -1].argmin(dim=-1, keepdim=True)),
        "This chooses the least likely token at each step. Choose the likeliest: argmax."),
    Mistake("one token for all steps", never_extended,
        "The same logits choose every token. After each choice the new token has to go through the model."),
    Mistake("stops at token 0", stopping(kept=True), END_SIGN),
    Mistake("stops before token 0", stopping(kept=False), END_SIGN),
    Mistake("a cache kept between calls", kept_with_the_model,
        "A new text begins with the cache of the one before, so its tokens see those of "
        "another text. Begin each call with no cache."),
    Mistake("one token too many", one_more, "There is one new token too many: the number asked for is steps."),
    Mistake("the new tokens only", decoded(end=lambda tokens, T: tokens[:, T:]),
        "Only the new tokens come back. Return the prompt with the new tokens after it, (B, T + steps)."),
)  # fmt: skip


# Bytes and FLOPs ----------------------------------------------------------------------------------------------------


def bytes_of(n_layers, n_kv_heads, d_head, n_tokens, batch=1, bytes_per_value=2):
    return kv_cache_bytes(n_layers, n_kv_heads, d_head, n_tokens, batch, bytes_per_value)


def sized(rule):
    """A formula as an answer: rule(layers, heads, d_head, tokens, batch, width)."""

    def formula(n_layers, n_kv_heads, d_head, n_tokens, batch=1, bytes_per_value=2):
        return rule(n_layers, n_kv_heads, d_head, n_tokens, batch, bytes_per_value)

    return formula


CACHE_BYTES_MISTAKES = (
    Mistake("numbers in place of bytes", sized(lambda L, h, d, T, B, w: 2 * L * h * d * T * B),
        "These are the numbers in the cache. Each takes bytes_per_value bytes."),
    Mistake("one layer", sized(lambda L, h, d, T, B, w: 2 * h * d * T * B * w),
        "This is the cache of one layer. Every layer has one."),
    Mistake("bits", sized(lambda L, h, d, T, B, w: 16 * L * h * d * T * B * w),
        "This is 8 times too much: it counts bits."),
    Mistake("tokens squared", sized(lambda L, h, d, T, B, w: 2 * L * h * d * T * T * B * w),
        "The number of tokens enters squared. That is the size of the score matrix; the cache has one row per token."),
    Mistake("kibibytes", sized(lambda L, h, d, T, B, w: 2 * L * h * d * T * B * w / 1024),
        "This is in KiB. Return bytes."),
)  # fmt: skip


def longest(rule=lambda budget, a_token, batch, width: budget // (a_token * batch * width)):
    """budget // bytes of one token: rule(budget, numbers in a token, batch, width)."""

    def longest_context(budget_bytes, n_layers, n_kv_heads, d_head, batch=1, bytes_per_value=2):
        return int(rule(budget_bytes, 2 * n_layers * n_kv_heads * d_head, batch, bytes_per_value))

    return longest_context


LONGEST_MISTAKES = (
    Mistake("divided in floats", longest(lambda b, n, B, w: b / (n * B * w)),
        "Right, but not for a huge budget. A float keeps about 16 digits; / makes one, and so does // with a float "
        "on either side, and int or floor comes too late. Divide whole numbers with //."),
    Mistake("at least one", longest(lambda b, n, B, w: max(1, b // (n * B * w))),
        "If not even one token fits, the answer is 0."),
    Mistake("one token too few", longest(lambda b, n, B, w: max(0, (b - 1) // (n * B * w))),
        "If the budget is exactly full, the last token still fits."),
    Mistake("batch left out", longest(lambda b, n, B, w: b // (n * w)),
        "This is for one sequence. All sequences of the batch share the budget."),
    Mistake("tokens of the whole batch", longest(lambda b, n, B, w: b // (n * B * w) * B),
        "These are the tokens of all sequences together. Return the number for a single sequence."),
    Mistake("keys only", longest(lambda b, n, B, w: 2 * b // (n * B * w)),
        "This is twice too long: keys and values are both kept."),
    Mistake("2 bytes, whatever is given", longest(lambda b, n, B, w: b // (n * B * 2)),
        "This counts 2 bytes per number, even where bytes_per_value says otherwise."),
    Mistake("numbers in place of bytes", longest(lambda b, n, B, w: b // (n * B)),
        "This counts one byte per number. Each number takes bytes_per_value bytes."),
)  # fmt: skip


def intense(flops=lambda h, kv, d, T: 4 * h * d * T, values=lambda h, kv, d, T: 2 * kv * d * T, width=lambda w: w):
    """FLOPs over bytes: 2 products of h · d · T multiply-adds, over 2 · h_kv · d · T numbers."""

    def decode_intensity(n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2):
        sizes = (n_heads, n_kv_heads, d_head, n_tokens)
        return flops(*sizes) / (values(*sizes) * width(bytes_per_value))

    return decode_intensity


def rounded_down(n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2):
    return intense()(n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value) // 1


def turned_over(n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value=2):
    return 1 / intense()(n_heads, n_kv_heads, d_head, n_tokens, bytes_per_value)


INTENSITY_MISTAKES = (
    Mistake("the same heads on both sides", intense(flops=lambda h, kv, d, T: 4 * kv * d * T),
        "The heads cancel here, as if FLOPs and bytes counted the same heads. Every query head computes, but a group "
        "shares its keys and values, which are read once."),
    Mistake("FLOPs per number", intense(width=lambda w: 1),
        "This is FLOPs per number in the cache. Each number takes bytes_per_value bytes."),
    Mistake("rounded down", rounded_down,
        "The ratio is rounded down. FLOPs per byte need not be a whole number: divide with /, not with //."),
    Mistake("bytes per FLOP", turned_over, "This is bytes per FLOP, upside down."),
    Mistake("the query read too", intense(values=lambda h, kv, d, T: 2 * kv * d * T + 2 * h * d),
        "The query and the output are counted as well. Count only what is read from the cache."),
    Mistake("every token a query", intense(flops=lambda h, kv, d, T: 4 * h * d * T * T),
        "The FLOPs grow with the square of the tokens. In a decode step there is one query."),
)  # fmt: skip


# Latents ------------------------------------------------------------------------------------------------------------


def over_latents(
    turn=lambda q, W_UK: (q[:, None] @ W_UK.mT)[:, 0],
    scale=lambda q, c: math.sqrt(q.shape[-1]),
    weigh=lambda scores: torch.softmax(scores, dim=-1),
    end=lambda blended, W_UV: (blended[:, None] @ W_UV)[:, 0],
):
    """Absorbed decoding: turn the query, score the latents, blend them, and map the blend."""

    def absorbed_step(q, c, W_UK, W_UV):
        weights = weigh(turn(q, W_UK) @ c.T / scale(q, c))  # (h, T)
        return end(weights @ c, W_UV)  # (h, d_v)

    return absorbed_step


def with_keys(q, c, W_UK, W_UV):
    """The same output, with the keys and values of all heads made."""
    weights = torch.softmax((q[:, None] @ (c @ W_UK).mT)[:, 0] / math.sqrt(q.shape[-1]), dim=-1)
    return (weights[:, None] @ (c @ W_UV))[:, 0]


def read_as_transposed(q, W_UK):
    return (q[:, None] @ W_UK.reshape(len(W_UK), W_UK.shape[2], W_UK.shape[1]))[:, 0]


LATENT_MISTAKES = (
    Mistake("keys or values made", with_keys,
        "The output is right, but keys or values of all heads are made, for every token. Multiply the one query and "
        "the one blend by the matrices instead: the latents stay as they are."),
    Mistake("scaled by the latent", over_latents(scale=lambda q, c: math.sqrt(c.shape[-1])),
        "The scores are divided by √d_latent. They are the same numbers as with keys, so divide by √d_head."),
    Mistake("no scaling", over_latents(scale=lambda q, c: 1.0), "The scores are not scaled. Divide by √d_head."),
    Mistake("scaled by d_head", over_latents(scale=lambda q, c: q.shape[-1]),
        "The scores are divided by d_head. Divide by √d_head."),
    Mistake("reshaped, not transposed", over_latents(turn=read_as_transposed),
        "W_UK is reshaped to (h, d_head, d_latent), which puts its numbers in the wrong places. Transpose it: "
        "W_UK.mT."),
    Mistake("one head's W_UK for all", over_latents(turn=lambda q, W_UK: q @ W_UK[0].T),
        "All heads multiply their query by the first head's matrix. Each head has its own W_UK."),
    Mistake("one head's W_UV for all", over_latents(end=lambda blended, W_UV: blended @ W_UV[0]),
        "All heads multiply their blend by the first head's matrix. Each head has its own W_UV."),
    Mistake("softmax over heads", over_latents(weigh=lambda scores: torch.softmax(scores, dim=0)),
        "The softmax runs over the heads. The weights of each head add up to 1 over the tokens."),
    Mistake("no softmax", over_latents(weigh=lambda scores: scores),
        "The latents are blended with the raw scores. Turn the scores into weights with a softmax first."),
    Mistake("the blend returned", over_latents(end=lambda blended, W_UV: blended),
        "What you return is the blend of latents, (h, d_latent). It still has to go through W_UV."),
    Mistake("heads added up", over_latents(end=lambda blended, W_UV: (blended[:, None] @ W_UV).sum(dim=0)),
        "The outputs of the heads are added up. Each head has its own row: (h, d_v)."),
)  # fmt: skip


# Eight bits ---------------------------------------------------------------------------------------------------------


def largest_size(x):
    """The largest |x| of each vector, (…)."""
    return np.abs(x).max(axis=-1)


def quantised(largest=largest_size, most=127, to_whole=np.round, kind=np.int8, told=lambda scales: scales, zero=1.0):
    """Rounding to eight bits with one part changed.

    largest(x) is the number for each vector that becomes `most`. told changes the scales that are returned. zero stands
    in for a scale of 0 in the division.
    """

    def quantise(x):
        scales = largest(x) / np.float32(most)  # (…)
        whole = to_whole(x / np.where(scales == 0, np.float32(zero), scales)[..., None])  # (…, d_head)
        if kind is np.int8:
            whole = np.nan_to_num(whole).astype(np.int64)  # beyond 127 an int8 starts again at −128, on any processor
        return whole.astype(kind), told(scales)

    return quantise


def in_vectors(scales):
    """Scales (…) as (…, 1), to go with vectors (…, d_head)."""
    return np.asarray(scales)[..., None]


def dequantised(integers, scales):
    return integers * in_vectors(scales)


def along(axes):
    """The largest |x| along the axes that axes(x) names, told for every vector, (…)."""
    return lambda x: np.broadcast_to(np.abs(x).max(axis=axes(x), keepdims=True)[..., 0], x.shape[:-1])


def over_tokens(x):
    """The largest |x| of each number of a vector, over the tokens."""
    return np.abs(x).max(axis=max(-2, -x.ndim))


def half_the_range(x):
    return (x.max(axis=-1) - x.min(axis=-1)) / np.float32(2)


def scales_along_numbers(integers, scales):
    fits = np.shape(scales)[-1:] in ((), (1,), np.shape(integers)[-1:])
    return integers * (scales if fits else in_vectors(scales))


def eight_bits(name, message, quantise=None, dequantise=dequantised):
    return Mistake(name, {"quantise": quantise or quantised(), "dequantise": dequantise}, message)


QUANTISE_MISTAKES = (
    eight_bits("one scale for all",
        "There is one scale for the whole array, so one outlier spoils every vector. Take the maximum along the last "
        "axis.", quantised(along(lambda x: tuple(range(x.ndim))))),
    eight_bits("one scale per head",
        "There is one scale for all tokens of a head. Each token has its own: take the maximum along the last axis "
        "only.", quantised(along(lambda x: (-2, -1) if x.ndim > 1 else -1))),
    eight_bits("maximum over the tokens",
        "The maximum runs over the tokens, the second-to-last axis. It should run over the numbers of a vector: "
        "axis=-1.",
        quantised(over_tokens)),
    eight_bits("the largest number, with its sign",
        "The scale comes from the largest number, not from the largest |x|. A number far below 0 then ends up beyond "
        "−127: take np.abs(x) first.", quantised(lambda x: np.abs(x.max(axis=-1)))),
    eight_bits("half the range",
        "The scale comes from the distance between the smallest and the largest number. Here 0 stays 0, so the scale "
        "is the largest |x| over 127.", quantised(half_the_range)),
    eight_bits("divided by 128",
        "The scale is the largest |x| over 128, so the largest number becomes 128, but an int8 ends at 127. Divide by "
        "127.", quantised(most=128)),
    eight_bits("divided by 255",
        "The scale is the largest |x| over 255. An int8 has a sign, and goes from −127 to 127: divide by 127.",
        quantised(most=255)),
    eight_bits("cut off",
        "Everything after the decimal point is cut off: astype does not round. Round first, np.round(…).",
        quantised(to_whole=np.trunc)),
    eight_bits("rounded down",
        "Numbers are rounded down. Round to the nearest whole number, np.round(…).", quantised(to_whole=np.floor)),
    eight_bits("not in int8",
        "The whole numbers are right, but not in int8: they take more than a byte each. .astype(np.int8) makes it one.",
        quantised(kind=np.float32)),
    eight_bits("scales in float64",
        "The scales are right, but in float64, eight bytes each. Keep them in float32.",
        quantised(told=lambda scales: np.asarray(scales, dtype=np.float64))),
    eight_bits("scales upside down",
        "The scales are 127 over the largest |x|, upside down. A scale is the number by which a whole number is "
        "multiplied.", quantised(told=lambda scales: 1 / np.where(scales == 0, np.float32(1), scales))),
    eight_bits("scales with an axis too many",
        "The scales still have an axis of length 1 at the end. Return (…): leave out keepdims, or take [..., 0].",
        quantised(told=in_vectors)),
    eight_bits("zeros divided by zero",
        "A vector of zeros is divided by its scale, 0. Divide by 1 there, for instance with np.where(scales == 0, 1, "
        "scales).", quantised(zero=0.0)),
    eight_bits("nothing multiplied",
        "dequantise returns the whole numbers as they are. Multiply them by their scales.",
        dequantise=lambda integers, scales: integers.astype(np.float32)),
    eight_bits("divided by the scales",
        "dequantise divides by the scales. Multiply each whole number by its scale.",
        dequantise=lambda integers, scales: integers / in_vectors(scales)),
    eight_bits("scales along the numbers",
        "dequantise lays the scales along the last axis, which belongs to the numbers of a vector. scales[..., None] "
        "gives each vector its own.", dequantise=scales_along_numbers),
    eight_bits("back in float64",
        "dequantise is right, but gives float64. Keep float32: int8 times float32 gives float32.",
        dequantise=lambda integers, scales: integers.astype(np.float64) * in_vectors(scales)),
)  # fmt: skip


# A ring -------------------------------------------------------------------------------------------------------------


class RingCache:
    """The last `window` keys and values: token number n goes into slot n % window, over the one that was there."""

    def __init__(self, window):
        self.window, self.n = window, 0

    def append(self, k, v):
        if self.n == 0:
            self.keys, self.values = (x.new_zeros(self.window, len(x)) for x in (k, v))
        self.keys[self.slot(self.n)], self.values[self.slot(self.n)] = k, v
        self.n += 1

    def view(self):
        order = self.order()
        return self.keys[order], self.values[order]

    def slot(self, n):
        return n % self.window

    def order(self):
        """The slots of the tokens that are held, oldest first."""
        return [self.slot(n) for n in range(max(0, self.n - self.window), self.n)]


class NeverRolled(RingCache):
    def order(self):
        return list(range(min(self.n, self.window)))


class RolledTooFar(RingCache):
    def order(self):
        slots = super().order()
        return slots if self.n < self.window else slots[1:] + slots[:1]


class RolledTooLittle(RingCache):
    def order(self):
        slots = super().order()
        return slots if self.n < self.window else slots[-1:] + slots[:-1]


class RolledTooEarly(RingCache):
    def order(self):
        return [self.slot(self.n + i) for i in range(self.window)]


class NewestFirst(RingCache):
    def order(self):
        return super().order()[::-1]


class EmptySlotsToo(RingCache):
    def order(self):
        return list(range(self.window)) if self.n < self.window else super().order()


class Exchanged(RingCache):
    def view(self):
        return super().view()[::-1]


class OneMoreInWindow(RingCache):
    def __init__(self, window):
        super().__init__(window + 1)


class OneLessInWindow(RingCache):
    def __init__(self, window):
        super().__init__(max(1, window - 1))


class RingInDouble(RingCache):
    def append(self, k, v):
        super().append(k.double(), v.double())


class StopsWhenFull(RingCache):
    def append(self, k, v):
        if self.n < self.window:
            super().append(k, v)


class StartsAfresh(RingCache):
    def append(self, k, v):
        if self.n == self.window:
            self.n = 0
        super().append(k, v)


class LastSlotOnly(RingCache):
    def slot(self, n):
        return min(n, self.window - 1)

    def order(self):
        return list(range(min(self.n, self.window)))


class NothingDropped(RingCache):
    def __init__(self, window):
        super().__init__(window)
        self.kept = []

    def append(self, k, v):
        super().append(k, v)
        self.kept.append((k, v))


class NothingLeft(NothingDropped):
    def view(self):
        return tuple(torch.stack(each) for each in zip(*self.kept, strict=True))


class SharedRing(RingCache):
    kept: list = []  # noqa: RUF012, the mistake itself

    def __init__(self, window):
        self.window = window
        self.kept.clear()  # one ring after the other works

    def append(self, k, v):
        self.kept.append((k, v))
        del self.kept[: -self.window]

    def view(self):
        return tuple(torch.stack(each) for each in zip(*self.kept, strict=True))


class Slices(RingCache):
    def view(self):
        if self.n <= self.window:
            return self.keys[: self.n], self.values[: self.n]
        return super().view()


class Emptied(RingCache):
    def view(self):
        seen = super().view()
        self.n = 0
        return seen


RING_MISTAKES = (
    Mistake("not put in order", NeverRolled,
        "The view comes in the order of the slots. After the first round the oldest token is no longer in slot 0: it "
        "is in the slot that the next token will take."),
    Mistake("turned one slot too far", RolledTooFar,
        "The view begins one token too late, with the second oldest, and ends with the oldest. The oldest is in "
        "the slot that the next token will take."),
    Mistake("turned one slot too little", RolledTooLittle,
        "The view begins with the newest token. The oldest is in the slot that the next token will take, one after the "
        "newest."),
    Mistake("empty slots in front", RolledTooEarly,
        "Before the window is full the view holds slots that nothing was written to. Show "
        "only as many rows as there are tokens."),
    Mistake("empty slots too", EmptySlotsToo,
        "Before the window is full the view holds slots that nothing was written to. Show "
        "only as many rows as there are tokens."),
    Mistake("newest first", NewestFirst, "The view comes newest first. The oldest token is row 0."),
    Mistake("k and v exchanged", Exchanged, "view returns (v, k). The keys come first."),
    Mistake("a window one too long", OneMoreInWindow,
        "One token too many is kept: window of them, the newest included."),
    Mistake("a window one too short", OneLessInWindow,
        "One token too few is kept: window of them, the newest included."),
    Mistake("stops when full", StopsWhenFull,
        "Once the window is full, new tokens are not stored. Each goes over the oldest."),
    Mistake("starts afresh when full", StartsAfresh,
        "When the window is full, all tokens are dropped and it fills again. Only the oldest token gives way."),
    Mistake("over the newest", LastSlotOnly,
        "Once the window is full, each token goes over the one before it, in the last slot. It goes over the oldest."),
    Mistake("everything shown", NothingLeft, "All tokens so far come back. Only the last window of them are kept."),
    Mistake("nothing dropped", NothingDropped,
        "The view is right, but tokens that have left the window are still kept, or there is room for far more than "
        "a window. Overwrite them, or drop them."),
    Mistake("one store for all rings", SharedRing,
        "Two rings share one store. A list or a tensor that is made in the body of the class belongs to the "
        "class: make it in __init__, as self.name."),
    Mistake("slices of the storage", Slices,
        "Until the window is full, the view is a slice of the storage. The next tokens change it under the "
        "hands of the one who holds it. Clone it."),
    Mistake("float64 in place of float32", RingInDouble,
        "The view is right, but in float64. The tokens come in float32, and a cache that makes "
        "float64 of them takes twice the memory."),
    Mistake("emptied by looking", Emptied, "view empties the ring. It should only look."),
)  # fmt: skip


# Pages --------------------------------------------------------------------------------------------------------------


class PagedCache:
    """Blocks from one pool; each sequence has a table of its blocks and a number of tokens."""

    def __init__(self, n_blocks, block_size, d):
        self.block_size = block_size
        self.keys, self.values = (torch.zeros(n_blocks, block_size, d) for _ in "kv")
        self.free_blocks = list(range(n_blocks))
        self.tables, self.lengths = {}, {}

    def append(self, seq, k, v):
        length = self.lengths.get(seq, 0)
        if self.needs_block(length):
            self.tables.setdefault(seq, []).append(self.take()) if self.free_blocks else self.refuse(seq)
        self.store(self.tables[seq], length, k, v)
        self.lengths[seq] = length + 1

    def needs_block(self, length):
        return length % self.block_size == 0

    def take(self):
        return self.free_blocks.pop()

    def refuse(self, seq):
        raise MemoryError("no block is free")

    def store(self, table, position, k, v):
        block, slot = table[position // self.block_size], position % self.block_size
        self.keys[block, slot], self.values[block, slot] = k, v

    def gather(self, seq):
        table, length = self.tables[seq], self.lengths[seq]
        return self.look(self.keys, table, length), self.look(self.values, table, length)

    def look(self, store, table, length):
        return store[table].flatten(0, 1)[:length]

    def free(self, seq):
        self.free_blocks += self.tables.pop(seq)
        del self.lengths[seq]


class TokenLost(PagedCache):
    """Counts the token before it knows whether there is a place for it."""

    def append(self, seq, k, v):
        length = self.lengths.get(seq, 0)
        self.lengths[seq] = length + 1
        self.tables.setdefault(seq, [])
        if self.needs_block(length):
            self.tables[seq].append(self.take()) if self.free_blocks else self.refuse(seq)
        self.store(self.tables[seq], length, k, v)

    def store(self, table, position, k, v):
        if position // self.block_size < len(table):
            super().store(table, position, k, v)


class HalfBegun(PagedCache):
    """Enters a sequence into the tables before it knows whether there is a block for it."""

    def append(self, seq, k, v):
        self.tables.setdefault(seq, [])
        self.lengths.setdefault(seq, 0)
        super().append(seq, k, v)


class Silent(PagedCache):
    def append(self, seq, k, v):
        if self.needs_block(self.lengths.get(seq, 0)) and not self.free_blocks:
            return
        super().append(seq, k, v)


class IndexErrors(PagedCache):
    def append(self, seq, k, v):
        if self.needs_block(self.lengths.get(seq, 0)) and not self.free_blocks:
            [].pop()
        super().append(seq, k, v)


class Leaky(PagedCache):
    def free(self, seq):
        del self.tables[seq], self.lengths[seq]


class OneBlockFreed(PagedCache):
    def free(self, seq):
        self.free_blocks.append(self.tables.pop(seq)[-1])
        del self.lengths[seq]


class FreedButKept(PagedCache):
    def free(self, seq):
        self.free_blocks += self.tables[seq]


class TooEager(PagedCache):
    """Takes the next block as soon as one is full."""

    def append(self, seq, k, v):
        if seq not in self.tables:
            if not self.free_blocks:
                self.refuse(seq)
            self.tables[seq], self.lengths[seq] = [self.take()], 0
        length = self.lengths[seq]
        if (length + 1) % self.block_size == 0 and not self.free_blocks:
            self.refuse(seq)
        self.store(self.tables[seq], length, k, v)
        self.lengths[seq] = length + 1
        if self.lengths[seq] % self.block_size == 0:
            self.tables[seq].append(self.take())


class EagerIfItCan(PagedCache):
    """Takes the next block as soon as one is full, if one is free."""

    def append(self, seq, k, v):
        length = self.lengths.get(seq, 0)
        if length == len(self.tables.get(seq, ())) * self.block_size:
            self.tables.setdefault(seq, []).append(self.take()) if self.free_blocks else self.refuse(seq)
        self.store(self.tables[seq], length, k, v)
        self.lengths[seq] = length + 1
        if self.lengths[seq] % self.block_size == 0 and self.free_blocks:
            self.tables[seq].append(self.take())


class PagesInDouble(PagedCache):
    def __init__(self, n_blocks, block_size, d):
        super().__init__(n_blocks, block_size, d)
        self.keys, self.values = self.keys.double(), self.values.double()


class BlockForEachToken(PagedCache):
    def needs_block(self, length):
        return True

    def store(self, table, position, k, v):
        self.keys[table[-1], 0], self.values[table[-1], 0] = k, v

    def look(self, store, table, length):
        return store[table, 0]


class FullWhenAnyBlockIsMissing(PagedCache):
    def append(self, seq, k, v):
        if not self.free_blocks:
            self.refuse(seq)
        super().append(seq, k, v)


class WholeBlocks(PagedCache):
    def look(self, store, table, length):
        return store[table].flatten(0, 1)


class SortedBlocks(PagedCache):
    def look(self, store, table, length):
        return store[sorted(table)].flatten(0, 1)[:length]


class SideBySide(PagedCache):
    def look(self, store, table, length):
        return store.flatten(0, 1)[table[0] * self.block_size :][:length]


class ExchangedPages(PagedCache):
    def gather(self, seq):
        return super().gather(seq)[::-1]


class SlotWithoutModulo(PagedCache):
    def store(self, table, position, k, v):
        block, slot = table[position // self.block_size], min(position, self.block_size - 1)
        self.keys[block, slot], self.values[block, slot] = k, v


class NotPaged(PagedCache):
    """Counts blocks, but keeps the tokens in a list for each sequence."""

    def __init__(self, n_blocks, block_size, d):
        super().__init__(n_blocks, block_size, d)
        self.keys, self.values = {}, {}

    def append(self, seq, k, v):
        super().append(seq, k, v)
        for held, x in ((self.keys, k), (self.values, v)):
            held.setdefault(seq, []).append(x)

    def store(self, table, position, k, v):
        pass

    def gather(self, seq):
        return torch.stack(self.keys[seq]), torch.stack(self.values[seq])

    def free(self, seq):
        super().free(seq)
        del self.keys[seq], self.values[seq]


class SharedTables(PagedCache):
    tables, lengths = {}, {}

    def __init__(self, n_blocks, block_size, d):
        super().__init__(n_blocks, block_size, d)
        del self.tables, self.lengths
        self.tables.clear(), self.lengths.clear()  # one cache after the other works


class SlicedPages(PagedCache):
    def look(self, store, table, length):
        return store[table[0], :length] if len(table) == 1 else super().look(store, table, length)


NOT_LOST = "Look for a free block first, and change tables and lengths only when there is one."
EARLY = (
    "A new block is taken as soon as one is full. Take it when the next token comes: "
    "until then another sequence may need it."
)
PAGED_MISTAKES = (
    Mistake("the length grows before there is a block", TokenLost,
        "A refused append has counted its token all the same. " + NOT_LOST),
    Mistake("a refused sequence is known", HalfBegun,
        "A sequence whose first token was refused is in the tables all the same. It should be unknown. " + NOT_LOST),
    Mistake("refused in silence", Silent,
        "Where no block is free the token is dropped in silence. Raise MemoryError, so that the caller knows."),
    Mistake("another error when full", IndexErrors,
        "Where no block is free another error is raised. Ask whether one is free, and raise MemoryError if not."),
    Mistake("blocks leaked on free", Leaky,
        "free forgets the sequence, but its blocks do not come back to the pool. "
        "In the end the cache is full of nothing."),
    Mistake("one block given back", OneBlockFreed, "free gives back one block. The sequence may hold several."),
    Mistake("freed, but its table kept", FreedButKept,
        "free gives the blocks back, but the sequence keeps its table: two sequences hold the same blocks then."),
    Mistake("a new block too early", TooEager, EARLY),
    Mistake("a new block too early, if one is free", EagerIfItCan, EARLY),
    Mistake("a block for each token", BlockForEachToken,
        "Each token takes a block of its own. A block has room for block_size tokens."),
    Mistake("refused as soon as no block is free", FullWhenAnyBlockIsMissing,
        "Appends are refused as soon as no block is free, also where the last block of the sequence has an open slot."),
    Mistake("empty slots too", WholeBlocks,
        "gather returns whole blocks, with the empty slots of the last one. Cut it to the number of tokens."),
    Mistake("blocks in the order of their numbers", SortedBlocks,
        "gather puts the blocks in the order of their numbers. Their order is that of the sequence's table."),
    Mistake("blocks taken for neighbours", SideBySide,
        "gather reads on from the first block, as if the others lay behind it. Look each "
        "block up in the table of the sequence."),
    Mistake("k and v exchanged", ExchangedPages, "gather returns (v, k). The keys come first."),
    Mistake("a slot that does not start again", SlotWithoutModulo,
        "In every block but the first all tokens go to the last slot. The slot is position % block_size."),
    Mistake("not stored in blocks", NotPaged,
        "The blocks are only counted, and the tokens kept elsewhere, so the object grows. Reserve all room in "
        "__init__, (n_blocks, block_size, d) for keys and for values, and store into it."),
    Mistake("one table for all caches", SharedTables,
        "Two caches share one table. A dict that is made in the body of the class belongs to the "
        "class: make it in __init__, as self.name."),
    Mistake("float64 in place of float32", PagesInDouble,
        "All is right, but in float64. The tokens come in float32, and a cache that makes "
        "float64 of them takes twice the memory."),
    Mistake("slices of the storage", SlicedPages,
        "Of a sequence with one block, gather returns a slice of the storage. Later tokens change it under the "
        "hands of the one who holds it. Clone it."),
)  # fmt: skip


# Find the bug -------------------------------------------------------------------------------------------------------


def chunk_of(first=lambda m, t, h: m - t, top=None, blocked=True, turn=rotate):
    """A chunk of attention with a cache.

    first(m, t, h): the position of the first new token; top: the mask's idea of it.
    """

    def broken_cached_attention(q, k, v, cache=None):
        t, h = q.shape[-2], q.shape[1]
        m = t if cache is None else t + cache[0].shape[-2]
        positions = torch.arange(t) + first(m, t, h)
        q, k = turn(q, positions), turn(k, positions)
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=-2), torch.cat([cache[1], v], dim=-2)
        allowed = torch.arange(m) <= torch.arange(t)[:, None] + (top or (lambda m, t, h: m - t))(m, t, h)
        return attend(q, k, v, allowed if blocked else None), (k, v)

    return broken_cached_attention


def turned_again(q, k, v, cache=None):
    """Keeps the keys as they came, and turns the old ones by the positions of nobody: all are turned at each call."""
    t = q.shape[-2]
    m = t if cache is None else t + cache[0].shape[-2]
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=-2), torch.cat([cache[1], v], dim=-2)
    q, k = rotate(q, torch.arange(m - t, m)), rotate(k, torch.arange(m))
    return attend(q, k, v, masks.causal(t, m)), (k, v)


def queries_only(q, k, v, cache=None):
    """Queries get their place, new keys start from 0 in every chunk."""
    t = q.shape[-2]
    m = t if cache is None else t + cache[0].shape[-2]
    q, k = rotate(q, torch.arange(m - t, m)), rotate(k, torch.arange(t))
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=-2), torch.cat([cache[1], v], dim=-2)
    return attend(q, k, v, masks.causal(t, m)), (k, v)


def counted_outside():
    """Counts the tokens of a text itself, from where the cache is None, whoever continues."""
    seen = [0]

    def broken_cached_attention(q, k, v, cache=None):
        place = 0 if cache is None else seen[0]
        seen[0] = place + q.shape[-2]
        return chunk_of(lambda m, t, h: place)(q, k, v, cache)

    return broken_cached_attention


def from_the_top(m, t, h):
    return 0


def by_the_heads(m, t, h):
    return h if m > t else 0


def one_too_far(m, t, h):
    return m - t + 1 if m > t else 0


def one_too_near(m, t, h):
    return max(m - t - 1, 0)


BUG_MISTAKES = (
    Mistake("as it stands", chunk_of(from_the_top, from_the_top),
        "The first call comes out right, every later one does not. What is different "
        "in a later call, and who is told of it?"),
    Mistake("only the mask mended", chunk_of(from_the_top),
        "The mask is right now. Something else still believes that each call begins at the beginning of the text."),
    Mistake("only the rotation mended", chunk_of(top=from_the_top),
        "The rotation is right now. But look at the weights of a single new token: which keys does it see?"),
    Mistake("only the queries mended", queries_only,
        "The queries are turned by their places in the text now, but the new keys are not."),
    Mistake("no mask", chunk_of(blocked=False),
        "Nothing is blocked. For one new token that is right; of several, the first must not see those after it."),
    Mistake("no mask behind a cache", chunk_of(top=lambda m, t, h: m if m > t else 0),
        "With a cache nothing is blocked. For one new token that is right; of several, "
        "the first must not see those after it."),
    Mistake("positions without mask", chunk_of(from_the_top, blocked=False),
        "The mask is gone and the positions are as before. Of several new tokens, the first must not see those after "
        "it; and each has its own place in the text."),
    Mistake("one position too far", chunk_of(one_too_far),
        "New tokens are turned one position too far: with m keys in all, the last of them stands at position m − 1."),
    Mistake("one position too near", chunk_of(one_too_near),
        "New tokens are turned one position too near: the first of them shares "
        "its place with the last one in the cache."),
    Mistake("one key too few", chunk_of(top=lambda m, t, h: max(m - t - 1, 0)),
        "The mask blocks one key too many: a new token does not see itself. Query i stands at position m − t + i."),
    Mistake("one key too many", chunk_of(top=lambda m, t, h: m - t + 1),
        "The mask lets each query see one key too many, the next token. Query i stands at position m − t + i."),
    Mistake("the axis of the heads", chunk_of(by_the_heads, by_the_heads),
        "The tokens in the cache are counted along the axis of the heads. Of (B, h, T, "
        "d_head) the tokens are the last axis but one."),
    Mistake("turned at every call", turned_again,
        "The keys in the cache are turned again at every call. Keep them as they came, or turn each once."),
    Mistake("counted outside the cache", counted_outside(),
        "The tokens are counted outside the cache, so where one cache is continued twice the second goes on behind "
        "the first. The cache itself knows how many it holds."),
    Mistake("not turned at all", chunk_of(turn=lambda x, positions: x), "Queries and keys are not rotated any more."),
)  # fmt: skip


EXERCISES = {
    "cached_step": Exercise(4, {"cached_step": stepped()}, STEP_MISTAKES),
    "generate_cached": Exercise(4, {"generate_cached": decoded()}, GENERATE_MISTAKES),
    "find_the_bug": Exercise(3, {"broken_cached_attention": chunk_of()}, BUG_MISTAKES),
    "cache_bytes": Exercise(2, {"kv_cache_bytes": bytes_of}, CACHE_BYTES_MISTAKES, rtol=1e-7),
    "longest_context": Exercise(1, {"longest_context": longest()}, LONGEST_MISTAKES, uses=("cache_bytes",)),
    "decode_intensity": Exercise(3, {"decode_intensity": intense()}, INTENSITY_MISTAKES, uses=("cache_bytes",)),
    "counts_by_hand": Exercise(2, BY_HAND, BY_HAND_MISTAKES, rtol=0.0, atol=1e-3),
    "absorbed_step": Exercise(4, {"absorbed_step": over_latents()}, LATENT_MISTAKES),
    "quantise": Exercise(3, {"quantise": quantised(), "dequantise": dequantised}, QUANTISE_MISTAKES),
    "ring_cache": Exercise(3, {"RingCache": RingCache}, RING_MISTAKES),
    "paged_cache": Exercise(5, {"PagedCache": PagedCache}, PAGED_MISTAKES),
    "tells_right": duel(),
}
