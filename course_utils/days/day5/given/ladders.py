"""The ladders of day 5, the test inputs (rungs) of each exercise, and the tiny model that `generate_cached` runs.

Every known mistake fails on some rung: d_k and d_v differ, B and h too, and where a confused axis would raise an error,
there is also a rung with all sizes equal. Caches are tried with scripts of calls: over many steps, two caches at a
time, and again after a call was refused.
"""

from __future__ import annotations

import gc
import weakref
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.kernel.forbidden import WHOLE_ATTENTION
from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.measures import changes
from course_utils.checks.kernel.result_numbers import NOTHING, RETURNED_NONE, BadResult, as_numbers
from course_utils.checks.kernel.small import BLANK, FROM_RUNG, Draft, Drawn, Small, whole
from course_utils.days.shared.given.call_spy import watch
from course_utils.days.shared.given.draws import UNTOUCHED, Array, draw, named

if TYPE_CHECKING:
    import torch

SINGLE = {part: (1e-4, 1e-4) for part in ("output", "outputs", "keys", "values")}


def tensor(array: Array) -> torch.Tensor:
    import torch

    return torch.as_tensor(array).clone()


# One step with a cache ----------------------------------------------------------------------------------------------


def cached_step(rng: np.random.Generator) -> list[Rung]:
    def tokens(T, d_k, d_v, lead=(1, 1)):
        return draw(rng, *lead, T, d_k), draw(rng, *lead, T, d_k), draw(rng, *lead, T, d_v)

    def after(T, d_k, d_v, lead=(1, 1)):
        return *tokens(1, d_k, d_v, lead), draw(rng, *lead, T, d_k), draw(rng, *lead, T, d_v)

    large: tuple[np.ndarray, ...]
    large = (np.full((1, 1, 1, 1), 1.0), np.full((1, 1, 1, 1), 1003.0), draw(rng, 1, 1, 1, 2))
    large += (rng.permutation([0.0, 1001.0, 1002.0]).reshape(1, 1, 3, 1), draw(rng, 1, 1, 3, 2))
    near: tuple[np.ndarray, ...]
    near = (np.full((1, 1, 1, 1), 1000.0), np.full((1, 1, 1, 1), 1000.00411), draw(rng, 1, 1, 1, 2))
    near += (1000.0 + 0.00137 * rng.permutation(3).reshape(1, 1, 3, 1), draw(rng, 1, 1, 3, 2))
    single = tuple(each.astype(np.float32) for each in tokens(4, 3, 2, (2, 2)))
    return [
        Rung("the first token: cache is None", tokens(1, 3, 2),
            "With cache=None there is one key: the output is v_t, and the returned cache is (k_t, v_t).",
            first_step),
        Rung("one token after three", after(3, 3, 2),
            "The new key and value go after those in the cache, along the token axis. Then the query attends to all "
            "four tokens, its own included.",
            one_step),
        Rung("one token after one", after(1, 2, 5), "Two keys now: the one in the cache, and the token's own.",
            one_step),
        Rung("d_k = 9, d_v = 2", after(2, 9, 2), "The scale is √d_k, the width of a key.", one_step),
        Rung("3 sequences, 2 heads", after(4, 5, 3, (3, 2)),
            "All sequences and heads at once: output (B, h, 1, d_v), keys (B, h, T + 1, d_k).",
            one_step),
        Rung("all sizes equal", after(2, 2, 2, (2, 2)),
            "With B = h = T = d, a wrong axis raises no error. Tokens are the second-to-last axis.",
            one_step),
        Rung("large scores", large, "exp(1000) is infinity: torch.softmax is safe for large scores.", one_step),
        Rung("keys that differ in the seventh digit", near,
            "Everything is float64 here. float32 keeps about seven digits, too few to tell "
            "these keys apart: leave the dtype as it is.",
            one_step),
        Rung("6 tokens, one by one", tokens(6, 3, 2), EVERY_STEP, decode),
        Rung("24 tokens, 2 sequences, 3 heads", tokens(24, 5, 4, (2, 3)), EVERY_STEP, decode),
        Rung("120 tokens", tokens(120, 1, 1), EVERY_STEP, decode),
        Rung("as many tokens as heads and sequences", tokens(3, 3, 3, (3, 3)), EVERY_STEP, decode),
        Rung("two texts in turns", (*tokens(4, 3, 2), *tokens(4, 3, 2, (2, 1))),
            "Two sequences are decoded in turns, each with its own cache. Everything that is remembered must be in the "
            "returned cache, and nowhere else.",
            in_turns),
        Rung("two continuations of one cache",
            (*tokens(3, 3, 2, (1, 2)), *tokens(2, 3, 2, (1, 2)), *tokens(2, 3, 2, (1, 2))),
            "One cache is continued twice, with different tokens: neither continuation may see the other's. So the "
            "cache that is passed in must stay as it was: make new tensors, and a new pair.",
            forked),
        Rung("float32", single,
            "Everything is float32 here, and what you return must be too: a cache in float64 takes twice the memory.",
            decode, SINGLE),
        Rung(UNTOUCHED, after(2, 3, 2, (2, 1)),
            "The answer is right but writes into its arguments. Make new tensors, with torch.cat.",
            untouched),
    ]  # fmt: skip


EVERY_STEP = (
    "Each token goes in with the cache that the previous step returned. After T steps it holds T keys, and each output "
    "is a row of causal attention over the whole text."
)


def first_step(function: Callable, q_t: Array, k_t: Array, v_t: Array) -> dict[str, Any]:
    output, cache = step_of(function(*map(tensor, (q_t, k_t, v_t)), None))
    return {"output": output, "keys": cache[0], "values": cache[1]}


def one_step(function: Callable, q_t: Array, k_t: Array, v_t: Array, keys: Array, values: Array) -> dict[str, Any]:
    output, cache = step_of(function(*map(tensor, (q_t, k_t, v_t)), (tensor(keys), tensor(values))))
    return {"output": output, "keys": cache[0], "values": cache[1]}


def decode(function: Callable, q: Array, k: Array, v: Array) -> dict[str, Any]:
    outputs, cache = steps(function, *map(tensor, (q, k, v)))
    for name, value in (
        ("the output is", outputs[0]),
        ("the keys in the cache are", cache[0]),
        ("the values in the cache are", cache[1]),
    ):
        check_dtype(name, value, q.dtype)
    return {"outputs": side_by_side(outputs), "keys": cache[0], "values": cache[1]}


def in_turns(function: Callable, *texts: np.ndarray) -> dict[str, Any]:
    caches = [None, None]
    outputs: list[list] = [[], []]
    both = [list(map(tensor, text)) for text in (texts[:3], texts[3:])]
    for t in range(both[0][0].shape[-2]):
        for i, text in enumerate(both):
            output, caches[i] = step_of(function(*(x[..., t : t + 1, :] for x in text), caches[i]))
            outputs[i].append(output)
    return {f"outputs of text {i}": side_by_side(each) for i, each in enumerate(outputs)}


def forked(function: Callable, *arrays: np.ndarray) -> dict[str, Any]:
    start, first, second = (list(map(tensor, arrays[i : i + 3])) for i in (0, 3, 6))
    _, cache = steps(function, *start)
    results: dict[str, Any] = {}
    for name, (q, k, v) in (("one", first), ("the other", second)):
        outputs, ended = steps(function, q, k, v, cache)
        results |= {f"outputs of {name}": side_by_side(outputs), f"keys of {name}": ended[0]}
    return results | {"keys before": cache[0], "values before": cache[1]}


def untouched(function: Callable, q_t: Array, k_t: Array, v_t: Array, keys: Array, values: Array) -> float:
    return changes(function, *map(tensor, (q_t, k_t, v_t)), (tensor(keys), tensor(values)))


def steps(function: Callable, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cache: Any = None) -> tuple[list, Any]:
    """Decode all tokens of q, k, v with one call per token; return the list of outputs and the last cache."""
    outputs = []
    for t in range(q.shape[-2]):
        output, cache = step_of(function(*(x[..., t : t + 1, :].clone() for x in (q, k, v)), cache))
        outputs.append(output)
    return outputs, cache


def step_of(result: Any) -> tuple:
    """Return the output and the cache of a step. Raises BadResult unless they are (output, (k, v))."""
    output, cache = output_and_cache(result)
    if not isinstance(cache, (tuple, list)) or len(cache) != 2:
        raise BadResult(f"the cache that came back is {describe_kind(cache)}; it should be the pair (k, v)")
    return output, cache


def output_and_cache(result: Any) -> Sequence:
    """Return the output and the cache of a step, whatever the cache consists of. Raises BadResult for anything else."""
    if result is None:
        raise BadResult(NOTHING)
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise BadResult(f"the function returned {describe_kind(result)}; it should return (output, cache)")
    return result


def side_by_side(outputs: Sequence) -> np.ndarray:
    """Join the outputs of several steps, (…, t, d_v) each, along the tokens; if they do not fit, return the odd one."""
    arrays = [array_of(output) for output in outputs]
    try:
        return np.concatenate(arrays, axis=-2)
    except ValueError:
        return next(array for array in arrays if array.ndim < 2 or not fits(array, arrays[0]))


def fits(array: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two outputs have the same shape except along the tokens."""
    return array.shape[:-2] == other.shape[:-2] and array.shape[-1:] == other.shape[-1:]


def array_of(value: Any) -> np.ndarray:
    """Return numbers of any kind as a float64 array. Raises BadResult for anything else."""
    try:
        return as_numbers(value).as_array()
    except TypeError as error:
        raise BadResult(str(error)) from None


def check_dtype(name: str, value: Any, dtype: Any) -> None:
    """Raise BadResult, which names the dtype of the value, unless it is the given one."""
    kind, expected = (
        str(each).removeprefix("torch.") for each in (getattr(value, "dtype", describe_kind(value)), dtype)
    )
    if kind != expected:
        raise BadResult(f"{name} {kind}, and the inputs are {expected}")


def describe_kind(value: Any) -> str:
    """Describe in words what kind of thing a value is."""
    if hasattr(value, "shape"):
        return f"a {type(value).__name__} of shape {tuple(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return "None" if value is None else f"a {type(value).__name__}"


# Generation ---------------------------------------------------------------------------------------------------------


class TinyModel:
    """An untrained decoder of two layers with one head each; the seed fixes its random weights.

    logits, cache = model(tokens, positions, cache): tokens (B, t) are whole numbers below `vocabulary`, positions (t,)
    their places in the text, from 0. cache is None, or what an earlier call returned; the tokens then follow those that
    it holds. logits is (B, t, vocabulary); after the positions in `zero_after` token 0 is the most likely. `passed`
    counts the tokens per text that went through so far.
    """

    def __init__(self, seed=0, vocabulary=23, d_model=16, zero_after=()):
        rng = np.random.default_rng(seed)
        self.vocabulary = vocabulary
        self.passed = 0
        self._zero_after = list(zero_after)
        self._embedding = draw(rng, vocabulary, d_model)
        self._unembedding = draw(rng, d_model, vocabulary)
        self._layers = [[draw(rng, d_model, d_model) / d_model**0.5 for _ in "qkvo"] for _ in range(2)]

    def __call__(self, tokens, positions, cache=None):
        import torch

        tokens = torch.as_tensor(tokens)
        positions = torch.as_tensor(positions)
        self._check(tokens, positions)
        t = tokens.shape[1]
        d_model = self._embedding.shape[1]
        self.passed += t
        if _counts is not None:
            _counts.update(positions.tolist() * len(tokens))
        x = torch.as_tensor(self._embedding)[tokens] + waves(positions, d_model)  # (B, t, d_model)
        now_held = []
        for matrices, held in zip(self._layers, cache or [None] * len(self._layers), strict=True):
            W_q, W_k, W_v, W_o = map(torch.as_tensor, matrices)
            q, k, v = (x @ W for W in (W_q, W_k, W_v))  # (B, t, d_model)
            if held is not None:
                k, v = (torch.cat(pair, dim=1) for pair in zip(held, (k, v), strict=True))  # (B, m, d_model)
            m = k.shape[1]
            allowed = torch.arange(m) <= torch.arange(m - t, m)[:, None]  # (t, m)
            scores = (q @ k.mT / d_model**0.5).masked_fill(~allowed, -torch.inf)
            x = torch.sin(x + 8 * torch.softmax(scores, dim=-1) @ v @ W_o)  # restless, so that no two tokens are alike
            now_held.append((k, v))
        logits = x @ torch.as_tensor(self._unembedding)
        if self._zero_after:  # the positions after which token 0 is the most likely
            logits[:, torch.isin(positions, torch.tensor(self._zero_after)), 0] += 1e3
        return logits, tuple(now_held)

    def _check(self, tokens, positions):
        if tokens.ndim != 2 or tokens.shape[1] == 0:
            raise ValueError(f"tokens is {tuple(tokens.shape)}: give (B, t) with t at least 1; one new token is (B, 1)")
        if tuple(positions.shape) != (tokens.shape[1],):
            shapes = f"positions is {tuple(positions.shape)} but tokens is {tuple(tokens.shape)}"
            raise ValueError(
                f"{shapes}: give one position for each of the {tokens.shape[1]} tokens, a tensor of one axis"
            )


def waves(positions: torch.Tensor, d_model: int) -> torch.Tensor:
    """Return a vector for each position, (t, d_model): sines and cosines, each pair slower than the one before."""
    import torch

    speeds = 2.0 ** -torch.arange(d_model // 2, dtype=torch.float64)
    angles = positions.to(torch.float64)[:, None] * speeds  # (t, d_model/2)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def generate_cached(rng: np.random.Generator) -> list[Rung]:
    def text(B, T):
        return rng.integers(0, 23, (B, T))

    def seed():
        return int(rng.integers(1000))

    return [
        Rung("one new token", (seed(), text(1, 4), 1),
            "The prompt goes through the model, and the last of its logits chooses the "
            "new token. Nothing goes through twice.",
            generated),
        Rung("two new tokens", (seed(), text(1, 4), 2), AGAIN, generated),
        Rung("a prompt of 5, 6 new tokens", (seed(), text(1, 5), 6), AGAIN, generated),
        Rung("a prompt of one token", (seed(), text(1, 1), 5), "A prompt may have one token. " + AGAIN, generated),
        Rung("no new tokens", (seed(), text(2, 3), 0), "With steps=0 the prompt comes back as it is.", generated),
        Rung("a batch of 3", (seed(), text(3, 4), 5),
            "Every row chooses its own token: argmax along the last axis, the "
            "vocabulary. The result is (B, T + steps).",
            generated),
        Rung("as many rows as tokens", (seed(), text(4, 4), 4),
            "With B = T, a wrong axis raises no error. logits is (B, t, vocabulary), and what counts is the "
            "last token of each row: logits[:, -1].",
            generated),
        Rung("60 new tokens", (seed(), text(1, 3), 60), "Return as many new tokens as are asked for. " + AGAIN,
            generated),
        Rung("a prompt of 40", (seed(), text(2, 40), 3), "The whole prompt goes through, however long it is. " + AGAIN,
            generated),
        Rung("token 0 among the new ones", (seed(), text(1, 4), 7, (5, 6)),
            "Token 0 is a token like any other, and occurs twice in a row here. Nothing ends the text before it has "
            "`steps` new tokens.",
            generated),
        Rung("two texts, one after the other", (seed(), text(1, 4), 4, text(1, 3)),
            "A new text starts without a cache: the second call of your function must know nothing of the first.",
            one_after_the_other),
        Rung("one prompt, two models", (seed(), text(1, 4), 4),
            "Two models continue the same prompt, each in its own way. What your function remembers about a prompt is "
            "of no use to another model.",
            two_models),
        Rung(UNTOUCHED, (seed(), text(1, 4), 3),
            "The tokens are right, but prompt is changed too. Make a new tensor, with torch.cat.",
            prompt_changed),
    ]  # fmt: skip


AGAIN = (
    "After the prompt only the newest token goes through, (B, 1), with the cache that the previous call returned, and "
    "with its own position in the text: the first new token is at position T."
)


_counts: Counter | None = None


@contextmanager
def counted_places() -> Iterator:
    """Count how often each position of a text goes through any TinyModel, copies included."""
    global _counts
    before = _counts
    _counts = Counter()
    try:
        yield _counts
    finally:
        _counts = before


def generated(
    function: Callable, seed: int, prompt: np.ndarray, n_new: int, zero_after: Sequence[int] = ()
) -> dict[str, Any]:
    """Return the generated tokens, and how often each position of the text went through the model."""
    (B, T) = prompt.shape
    model = TinyModel(seed, zero_after=zero_after)
    with counted_places() as passes:
        tokens = tokens_of(function(model, tensor(prompt), n_new))
    counted = [passes[place] / B for place in range(T + n_new)]
    free = range(T + n_new - 1, T + n_new) if n_new else range(T)  # what follows these positions is not needed
    return {
        "tokens": tokens,
        "passes by position": [max(1, n) if place in free else n for place, n in enumerate(counted)],
    }


def one_after_the_other(
    function: Callable, seed: int, prompt: np.ndarray, n_new: int, other: np.ndarray
) -> dict[str, Any]:
    model = TinyModel(seed)
    return {
        f"tokens of text {i}": tokens_of(function(model, tensor(each), n_new))
        for i, each in enumerate((prompt, other, prompt))
    }


def two_models(function: Callable, seed: int, prompt: np.ndarray, n_new: int) -> dict[str, Any]:
    return {f"tokens of model {i}": tokens_of(function(TinyModel(seed + i), tensor(prompt), n_new)) for i in range(2)}


def tokens_of(result: Any) -> np.ndarray:
    if result is None:
        raise BadResult(NOTHING)
    kind = str(getattr(result, "dtype", "")).removeprefix("torch.")
    if kind.startswith(("float", "bfloat")):
        raise BadResult(f"the tokens are {kind}, and should be whole numbers, like those of the prompt")
    return array_of(result)


def prompt_changed(function: Callable, seed: int, prompt: np.ndarray, n_new: int) -> float:
    given = tensor(prompt)
    before = given.clone()
    function(TinyModel(seed), given, n_new)
    return float(before.shape != given.shape or bool((before != given).any()))


# Bytes and FLOPs ----------------------------------------------------------------------------------------------------


def cache_bytes(rng: np.random.Generator) -> list[Rung]:
    layers, heads, d_head, tokens = (int(rng.integers(*ends)) for ends in ((2, 90), (2, 12), (30, 300), (100, 9000)))
    return [
        Rung("one layer, one head, one number, one token", (1, 1, 1, 1),
            "Two numbers, a key and a value, of 2 bytes each."),
        Rung("one token of Llama 2 7B", (32, 32, 128, 1),
            "A key and a value, in every layer, for every kv head, with d_head numbers each. 512 KiB in all."),
        Rung("4096 tokens", (32, 32, 128, 4096), "Each token takes as much as the first."),
        Rung("8 kv heads, 8192 tokens", (32, 8, 128, 8192), "n_kv_heads counts, not the number of query heads."),
        Rung("a batch of 5", (layers, heads, d_head, tokens, 5), "Each sequence has a cache of its own: times batch."),
        Rung("4 bytes a value", (layers, heads, d_head, tokens, 1, 4), "bytes_per_value is the width of one number."),
        Rung("by keyword", (layers, heads, d_head, tokens),
            "The last two arguments may be given by name: batch=3, bytes_per_value=1. Without them they are 1 and 2.",
            by_keyword),
        Rung("exact to the last byte", (3 * layers, heads, 2 * d_head + 1, 100 * tokens + 3, 7, 1),
            "Bytes can be counted to the last digit. Multiply whole numbers as they are: float32 keeps about seven "
            "digits.",
            to_the_last_byte),
        Rung("other numbers", (heads, layers, 7, d_head, 3, 1),
            "2 · n_layers · n_kv_heads · d_head · n_tokens · batch · bytes_per_value."),
    ]  # fmt: skip


def by_keyword(function: Callable, *sizes: Any) -> dict[str, Any]:
    return {
        "with both named": function(*sizes, batch=3, bytes_per_value=1),
        "with batch named": function(*sizes, batch=3),
        "with bytes_per_value named": function(*sizes, bytes_per_value=8),
    }


def to_the_last_byte(function: Callable, *sizes: Any) -> dict[str, Any]:
    """Return the bytes, and their last digits, which eight significant digits would not show."""
    n_bytes = function(*sizes)
    if n_bytes is None:
        raise BadResult(NOTHING)
    return {"bytes": n_bytes, "last four digits": float(n_bytes) % 10_000}


def longest_context(rng: np.random.Generator) -> list[Rung]:
    heads = int(rng.integers(2, 9))
    d_head = int(rng.integers(30, 200))
    tokens = int(rng.integers(1000, 90000))
    tokens += tokens % 7 == 0  # the number of tokens must not divide evenly by a batch of 7
    a_token = 2 * 3 * heads * d_head * 2  # bytes per token, for three layers
    return [
        Rung("exactly one token", (4, 1, 1, 1),
            "A key and a value of one number each, at 2 bytes per number: a token takes 4 bytes.",
            whole_tokens),
        Rung("exactly full", (tokens * a_token, 3, heads, d_head), "The budget over the bytes of one token.",
            whole_tokens),
        Rung("one byte too few", (tokens * a_token - 1, 3, heads, d_head),
            "The last token does not fit any more: round down.",
            whole_tokens),
        Rung("one byte over", (tokens * a_token + 1, 3, heads, d_head),
            "The byte that is left over is not a token: round down.",
            whole_tokens),
        Rung("some bytes over", (tokens * a_token + a_token - 1, 3, heads, d_head),
            "Part of a token is not a token: round down, not to the nearest number.",
            whole_tokens),
        Rung("not even one token", (a_token - 1, 3, heads, d_head), "Not even one token fits: return 0.", whole_tokens),
        Rung("nothing", (0, 3, heads, d_head), "No bytes, no tokens: return 0.", whole_tokens),
        Rung("a batch of 7", (tokens * a_token, 3, heads, d_head, 7),
            "All sequences of the batch have the same length and share the budget. So one more "
            "token in each takes batch times as much.",
            whole_tokens),
        Rung("4 bytes a value", (tokens * a_token + 5, 3, heads, d_head, 1, 4),
            "bytes_per_value is the width of one number.",
            whole_tokens),
        Rung("40 GB for Llama 3 8B", (40 * 10**9, 32, 8, 128),
            "131 072 bytes per token. Return a whole number of tokens.",
            whole_tokens),
        Rung("a huge budget, one byte too few", (4 * 3 * (10**17 + 16) - 1, 1, 3, 1),
            "Whole numbers of any size divide exactly with //. A float, from / or before a floor, keeps about 16 "
            "digits. Any upper bound that you set on the tokens is too small for some budget.",
            whole_tokens),
        Rung("a budget beyond 64 bits", (10**30 - int(rng.integers(1, 10**6)), 3, heads, d_head),
            "A budget may be any whole number. Python's own integers have no limit; those of NumPy and PyTorch end at "
            "2^63.",
            whole_tokens),
    ]  # fmt: skip


def whole_tokens(function: Callable, *args: Any) -> dict[str, Any]:
    """Return the number of tokens, and its last digits, which eight significant digits would not show."""
    tokens = function(*args)
    if tokens is None:
        raise BadResult(NOTHING)
    if isinstance(tokens, bool) or not isinstance(tokens, (int, np.integer)):
        plain = isinstance(tokens, (int, float, str))
        text = f"{f'{tokens!r}'[:40]}, a {type(tokens).__name__}" if plain else describe_kind(tokens)
        raise BadResult(f"the function returned {text}; return a whole number, an int")
    tokens = int(tokens)
    return {"tokens": float(tokens), "last four digits": float(abs(tokens) % 10_000)}


def decode_intensity(rng: np.random.Generator) -> list[Rung]:
    group, kv, d_head, tokens = (int(rng.integers(*ends)) for ends in ((3, 7), (2, 5), (30, 200), (500, 9000)))
    return [
        Rung("every query head its own kv head, fp16", (32, 32, 128, 4096),
            "Work out both sides: the FLOPs of QKᵀ and of weights times V, then the bytes of all keys and values. Each "
            "number in the cache takes 2 bytes and takes part in one multiply-add, 2 FLOPs."),
        Rung("four query heads to a kv head", (32, 8, 128, 4096),
            "Each query head computes, but keys and values are read once for the whole group."),
        Rung("one kv head for all", (32, 1, 128, 4096), "With one kv head all query heads use what is read once."),
        Rung("4 bytes a value", (8, 8, 64, 100, 4), "bytes_per_value is the width of one number of the cache."),
        Rung("1 byte a value", (8, 2, 64, 100, 1), "bytes_per_value is the width of one number of the cache."),
        Rung("8 bytes a value, three query heads to a kv head", (6, 2, 64, 100, 8),
            "The ratio is not a whole number. Do not round it."),
        Rung("64 query heads, one kv head", (64, 1, 128, 2000), "All 64 query heads use what is read once."),
        Rung("one token, one number", (1, 1, 1, 1),
            "One score and one output number: two multiply-adds. One key and one value: 4 bytes."),
        Rung("10 tokens", (8, 4, 16, 10), "Ten times the tokens take ten times the FLOPs and ten times the bytes."),
        Rung("a group that is no power of two", (group * kv, kv, d_head, tokens),
            "FLOPs depend on the number of query heads, bytes on the number of kv heads."),
        Rung("by keyword", (group * kv, kv, d_head, tokens),
            "bytes_per_value is 2 when left out. It may be given by name.",
            intensity_by_keyword),
        Rung("a million tokens", (64, 8, 128, 2**20),
            "There are more FLOPs than 32 bits can count: use Python's own whole numbers."),
    ]  # fmt: skip


def intensity_by_keyword(function: Callable, *sizes: Any) -> dict[str, Any]:
    return {"named": function(*sizes, bytes_per_value=1), "left out": function(*sizes)}


# Latents ------------------------------------------------------------------------------------------------------------


def absorbed_step(rng: np.random.Generator) -> list[Rung]:
    def sizes(h, T, d_latent, d_head, d_v):
        drawn = (draw(rng, *shape) for shape in ((h, d_head), (T, d_latent), (h, d_latent, d_head), (h, d_latent, d_v)))
        return tuple(drawn)

    latents = np.stack([1.0 + rng.permutation(3), rng.permutation(3)], axis=1)  # (3, 2)
    large = (np.array([[1000.0, 500.0, 3.0]]), latents, np.eye(2, 3)[None], draw(rng, 1, 2, 4))
    apart = (np.array([[3000.0, 0.0], [0.0, 1.0]]), np.array([[2.0, 0.0], [1.0, 2.0], [3.0, 1.0]]),
        np.stack([np.eye(2)] * 2), draw(rng, 2, 2, 4))  # fmt: skip
    watched = sizes(2, 24, 8, 9, 8)
    return [
        Rung("one token", sizes(2, 1, 3, 2, 4), "A single weight is 1: the output of head i is c W_UV[i].",
            over_latents),
        Rung("one head, two tokens", sizes(1, 2, 3, 4, 2),
            "Multiply the query by W_UK, score the latents, take the softmax, blend the latents, and multiply the "
            "blend by W_UV.",
            over_latents),
        Rung("3 heads, 5 tokens", sizes(3, 5, 4, 2, 6), "Each head has its own query, W_UK and W_UV, and all have the "
            "same latents.", over_latents),
        Rung("d_latent = 2, d_head = 16", sizes(2, 4, 2, 16, 3),
            "The scale is √d_head, from the width of the keys, although no key is made: the scores are the same "
            "numbers.", over_latents),
        Rung("d_latent = 16, d_head = 2", sizes(2, 4, 16, 2, 3),
            "The scale is √d_head, from the width of the keys, although no key is made: the scores are the same "
            "numbers.", over_latents),
        Rung("all sizes equal", sizes(3, 3, 3, 3, 3),
            "With h = T = d_latent = d_head, a wrong axis raises no error. q W_UKᵀ is a sum over d_head, the last "
            "axis of both.", over_latents),
        Rung("one head", sizes(1, 6, 3, 5, 2), "A single head has its axis too: the output is (1, d_v).",
            over_latents),
        Rung("large scores", large, "exp(1000) is infinity: torch.softmax is safe for large scores.", over_latents),
        Rung("large scores in one of two heads", apart,
            "Each head has its own maximum, and that is what has to be subtracted: not the maximum over both heads, "
            "not the mean, not the first score. torch.softmax along the tokens does it.", over_latents),
        Rung("80 tokens", sizes(4, 80, 6, 3, 2), "The softmax runs over the T tokens.", over_latents),
        Rung("float32", tuple(x.astype(np.float32) for x in sizes(2, 5, 3, 4, 2)),
            "Everything is float32 here, and so is the output.", over_latents, SINGLE),
        Rung(UNTOUCHED, sizes(2, 4, 3, 2, 3), "The answer is right but writes into its arguments. Make new tensors.",
            latents_changed),
        Rung("the products are PyTorch's", watched,
            "The output is right, but the products are computed where they cannot be counted. Compute them with "
            "PyTorch: no .numpy(), .tolist() or .item().", products_elsewhere),
        Rung("no keys or values are made", watched,
            "The output is right, but it takes several times the multiply-adds that are needed. Multiply the one query "
            "and the one blend by the matrices, and leave the latents as they are.", makes_keys),
    ]  # fmt: skip


def over_latents(function: Callable, *arrays: Array) -> dict[str, Any]:
    inputs = list(map(tensor, arrays))
    output = function(*inputs)
    if output is None:
        raise BadResult(NOTHING)
    check_dtype("the output is", output, inputs[0].dtype)
    return {"output": output}


def latents_changed(function: Callable, *arrays: Array) -> float:
    return changes(function, *map(tensor, arrays))


def products_elsewhere(function: Callable, *arrays: np.ndarray) -> dict[str, Any]:
    """Return 1.0 if PyTorch runs clearly fewer multiply-adds than absorbed decoding takes, else 0.0; and the output."""
    observed = watch(function, *arrays)
    return {"measure": float(observed.work < 0.9 * least_work(*arrays)), "output": observed.result}


def makes_keys(function: Callable, *arrays: np.ndarray) -> dict[str, Any]:
    """Return 1.0 if PyTorch runs more than 2.6 times the multiply-adds of absorbed decoding, else 0.0; and the output.

    Products of single elements count twice, for the product and the sum. The keys alone take four times as many.
    """
    observed = watch(function, *arrays)
    return {"measure": float(observed.work > 2.6 * least_work(*arrays)), "output": observed.result}


def least_work(q: np.ndarray, c: np.ndarray, W_UK: np.ndarray, W_UV: np.ndarray) -> int:
    """Return the multiply-adds of absorbed decoding: two products per head, then scores and average over latents."""
    return W_UK.size + W_UV.size + 2 * len(q) * c.size


# Eight bits ---------------------------------------------------------------------------------------------------------


def quantise(rng: np.random.Generator) -> list[Rung]:
    def vectors(*shape, size=1.0):
        return clear_of_halves(rng, *shape, size=size)

    def stored(*shape):
        integers = rng.integers(-127, 128, shape).astype(np.int8)
        return integers, (np.abs(draw(rng, *shape[:-1])) + 0.01).astype(np.float32)

    def back(name, args, why, measure=restored):
        return Rung(name, args, why, measure, SINGLE_NUMBERS, of="dequantise")

    def there(name, x, why, measure=rounded):
        return Rung(name, (x,), why, measure, SINGLE_NUMBERS,
            shape_hint="Return (integers, scales), of the shapes (…, d_head) and (…).")  # fmt: skip

    negative = -np.abs(vectors(1, 6))
    outlier = clear_of_halves(rng, 2, 5, outlier=40.0)
    empty = vectors(3, 4)
    empty[1] = 0
    return [
        there("3 tokens", vectors(3, 5),
            "Each token has its own scale: the largest |x| of its vector, divided by 127. Its numbers are divided by "
            "the scale and rounded."),
        there("all numbers negative", negative, "The scale comes from the largest |x|, so the sign plays no part."),
        there("all numbers positive", np.abs(vectors(2, 3)),
            "The whole numbers go from −127 to 127: the scale is the largest |x| divided by 127."),
        there("2 heads, 5 tokens", vectors(2, 5, 4), "Scales are (h, T): one for each token and head."),
        there("3 texts, 2 heads, 4 tokens", vectors(3, 2, 4, 6), "Any number of leading axes: count from the end."),
        there("all sizes equal", vectors(3, 3, 3),
            "With equal sizes, a wrong axis raises no error. Take the largest |x| along the last axis."),
        there("one vector, no leading axis", vectors(7), "Without leading axes there is a single scale."),
        there("one outlier", outlier,
            "A large number spoils the vector that it is in, and no other: each vector has its own scale."),
        there("very small numbers", vectors(2, 4, size=1e-6), "Small vectors have small scales; nothing is added."),
        there("a vector of zeros", empty, "A vector of zeros has the scale 0 and whole numbers 0."),
        there("no warning for a vector of zeros", empty,
            "0 / 0 is NaN, and int8 has no NaN, so NumPy warns. Divide by something else where the scale is 0.",
            without_a_warning),
        there("int8 and float32", vectors(2, 3, 4),
            "The numbers are right, but not in int8 and float32. Whole numbers of a different type take more than a "
            "byte each, and a scale in float64 takes eight.", in_one_byte),
        there("x stays as it was", vectors(2, 3), "The function writes into x. Make new arrays.", changes),
        back("back: 3 tokens", stored(3, 5), "Each whole number times the scale of its vector."),
        back("back: 2 heads, 4 tokens", stored(2, 4, 6), "scales[..., None] has an axis for the numbers of a vector."),
        back("back: all sizes equal", stored(3, 3, 3),
            "With equal sizes, a scale that lies along the wrong axis raises no error. scales[..., None] belongs to "
            "the vectors."),
        back("back: float32", stored(2, 3, 4), "The numbers are right, but not in float32.", back_in_float32),
        back("back: both stay as they were", stored(2, 3), "The function writes into its arguments.", changes),
        there("one token in each head", vectors(2, 1, 4), "Scales are (2, 1): an axis of length 1 stays."),
    ]  # fmt: skip


SINGLE_NUMBERS = {"scales": (1e-5, 1e-12), "numbers": (1e-5, 1e-9)}


def clear_of_halves(rng: np.random.Generator, *shape: int, size: float = 1.0, outlier: float = 0.0) -> np.ndarray:
    """Return vectors (…, d) in float32 in which no number lies near the middle between two whole ones, or is 0.

    outlier: how many times as large the first number of the first vector is.
    """
    while True:
        x = draw(rng, *shape)
        if outlier:
            x[(0,) * len(shape)] = outlier
        x = (size * x).astype(np.float32)
        if is_clear_of_halves(x):
            return x


def is_clear_of_halves(x: np.ndarray, *_: Any) -> bool:
    """Return whether each vector has a number, and none lies near the middle between two whole ones."""
    largest = np.abs(x).max(axis=-1, keepdims=True)
    if not largest.all():
        return False
    steps = x / largest.astype(np.float64) * 127
    return bool((np.abs(np.abs(steps - np.floor(steps)) - 0.5) > 0.02).all())


def rounded(function: Callable, x: np.ndarray) -> dict[str, Any]:
    with np.errstate(all="ignore"):
        return named(function(x), ("integers", "scales"))


def without_a_warning(function: Callable, x: np.ndarray) -> dict[str, Any]:
    """Return 1.0 as "measure" if NumPy would warn of a division by 0 or of a NaN, else 0.0; and the result."""
    try:
        with np.errstate(divide="raise", invalid="raise"):
            return {"measure": 0.0} | named(function(x), ("integers", "scales"))
    except FloatingPointError:
        return {"measure": 1.0} | rounded(function, x)


def in_one_byte(function: Callable, x: np.ndarray) -> dict[str, Any]:
    """Return as "measure" 0.0, plus 1.0 if the whole numbers are not int8 and 2.0 if the scales are not float32."""
    result = rounded(function, x)
    integers, scales = (str(getattr(part, "dtype", "")) for part in result.values())
    return {"measure": 1.0 * (integers != "int8") + 2.0 * (scales != "float32")} | result


def restored(function: Callable, integers: np.ndarray, scales: np.ndarray) -> dict[str, Any]:
    return {"numbers": function(integers, scales)}


def back_in_float32(function: Callable, integers: np.ndarray, scales: np.ndarray) -> dict[str, Any]:
    """Return 1.0 as "measure" if the numbers are not float32, else 0.0; and the numbers."""
    numbers = function(integers, scales)
    return {"measure": float(str(getattr(numbers, "dtype", "")) != "float32"), "numbers": numbers}


# A ring -------------------------------------------------------------------------------------------------------------


def ring_cache(rng: np.random.Generator) -> list[Rung]:
    def tokens(T, d_k=3, d_v=2):
        return draw(rng, T, d_k).astype(np.float32), draw(rng, T, d_v).astype(np.float32)

    alike = [x[[0, 0, 1, 1, 1, 0, 2, 2, 0]] * [[1], [1], [1], [1], [1], [0], [0], [1], [1]] for x in tokens(3)]
    alike = [x.astype(np.float32) for x in alike]
    return [
        Rung("one token", (3, *tokens(1), [1]),
            "view returns (k, v) of the shapes (1, d_k) and (1, d_v): only what was appended, no empty slots.",
            ring_views),
        Rung("before it is full", (4, *tokens(3), [1, 2, 3]),
            "If a view has more rows than there are tokens, they come from another ring: create what belongs to a ring "
            "in __init__, as self.name.",
            ring_views,
            shape_hint="Before the window is full the view has a row for each token so far, oldest first."),
        Rung("exactly full", (3, *tokens(3), [3]), "All three tokens are still there.", ring_views),
        Rung("one token more than the window", (3, *tokens(4), [4]),
            "The oldest token is gone, and the newest is the last row.",
            ring_views),
        Rung("a view after each of 11 tokens", (4, *tokens(11), list(range(1, 12))),
            "The view always has the last tokens, oldest first, however often the ring has gone round.",
            ring_views),
        Rung("keys and values of the same width", (3, *tokens(5, 2, 2), [2, 5]),
            "view returns the keys first, then the values.",
            ring_views),
        Rung("a window of one", (1, *tokens(3), [1, 2, 3]), "Only the newest token is there.", ring_views),
        Rung("60 tokens", (7, *tokens(60), [13, 14, 15, 60]), "The last seven tokens, oldest first.", ring_views),
        Rung("view called twice", (3, *tokens(5), 4),
            "view only looks: called twice, it returns the same tokens both times, and the next append works as if "
            "nobody had looked.",
            view_twice),
        Rung("two rings at once", (3, 2, *tokens(5)),
            "Two rings are filled in turn and must not share anything. Create what belongs to a ring in __init__, as "
            "self.name.",
            two_rings),
        Rung("a view kept while tokens are appended", (3, *tokens(7), list(range(1, 8))),
            "A view that was returned stays as it was, whatever is appended later. It must not be part of the storage, "
            "neither a slice nor the list itself: clone it, or stack it again.",
            store_views),
        Rung("keys of one number, a window of 20", (20, *tokens(50, 1, 4), [19, 21, 50]),
            "Keys and values may have any width, and the window may be any number from 1.",
            ring_views),
        Rung("equal tokens, and zeros", (4, *alike, list(range(1, 10))),
            "Two tokens may be equal, and a key may be all zeros. Each is a token and takes up a row.",
            ring_views),
        Rung(UNTOUCHED, (3, *tokens(7)), "The view is right, but append writes into the tensors it is given.",
            ring_changes),
        Rung("float32 comes back", (3, *tokens(5)),
            "Keys and values come in as float32 and must come out as float32, in two tensors: a cache in float64 takes "
            "twice the memory. torch.zeros makes float32, or take k.dtype.",
            ring_types),
        Rung("the memory does not grow", (4, *tokens(80), True),
            f"{TOO_MUCH} What leaves the window must be overwritten or dropped.",
            ring_grows),
        Rung("nor does it while nobody asks for a view", (4, *tokens(80), False),
            f"{TOO_MUCH} Here view is never called: append itself must overwrite or drop what leaves the window.",
            ring_grows),
    ]  # fmt: skip


TOO_MUCH = "At some point in a text of 80 tokens, with a window of 4, more numbers are kept than three windows hold."


def ring_views(cls: Callable, window: int, keys: Array, values: Array, looks: Sequence[int]) -> dict[str, Any]:
    ring = cls(window)
    views = {}
    for n, (k, v) in enumerate(zip(keys, values, strict=True), start=1):
        ring.append(tensor(k), tensor(v))
        if n in looks:
            views[f"keys after {count(n)}"], views[f"values after {count(n)}"] = pair_of(ring.view(), "view")
    return views


def ring_types(cls: Callable, window: int, keys: Array, values: Array) -> dict[str, Any]:
    ring = cls(window)
    for k, v in zip(keys, values, strict=True):
        ring.append(tensor(k), tensor(v))
    return in_float32(ring.view(), "view")


def in_float32(result: Any, method: str) -> dict[str, Any]:
    """Return the keys and values that a method returned, and as "measure" 1.0 if they are not in float32, else 0.0.

    Raises:
        BadResult: for lists.
    """
    parts = dict(zip(("keys", "values"), pair_of(result, method), strict=True))
    for name, part in zip(parts, result, strict=True):
        if not hasattr(part, "dtype"):
            raise BadResult(f"{method} returned the {name} as {describe_kind(part)}; return a tensor")
    kinds = {str(part.dtype).removeprefix("torch.") for part in result}
    return parts | {"measure": float(kinds != {"float32"})}


def view_twice(cls: Callable, window: int, keys: Array, values: Array, first: int) -> dict[str, Any]:
    ring = cls(window)
    views = {}
    for n, (k, v) in enumerate(zip(keys, values, strict=True), start=1):
        ring.append(tensor(k), tensor(v))
        if n == first:
            for each in ("once", "twice"):
                views[f"keys, asked {each}"], views[f"values, asked {each}"] = pair_of(ring.view(), "view")
    views["keys at the end"], views["values at the end"] = pair_of(ring.view(), "view")
    return views


def two_rings(cls: Callable, one: int, other: int, keys: Array, values: Array) -> dict[str, Any]:
    rings = (cls(one), cls(other))
    views = {}
    for i, (k, v) in enumerate(zip(keys, values, strict=True)):
        rings[i % 2].append(tensor(k), tensor(v))
    for i, ring in enumerate(rings):
        views[f"keys of ring {i}"], views[f"values of ring {i}"] = pair_of(ring.view(), "view")
    return views


def store_views(cls: Callable, window: int, keys: Array, values: Array, looks: Sequence[int]) -> dict[str, Any]:
    ring = cls(window)
    stored = {}
    for n, (k, v) in enumerate(zip(keys, values, strict=True), start=1):
        ring.append(tensor(k), tensor(v))
        if n in looks:
            stored[n] = ring.view()
    views = {}
    for n, view in stored.items():
        views[f"keys after {count(n)}"], views[f"values after {count(n)}"] = pair_of(view, "view")
    return views


def ring_grows(cls: Callable, window: int, keys: Array, values: Array, looked_at: int) -> dict[str, Any]:
    """Return 1.0 if the ring ever keeps more than three windows of numbers, inside or elsewhere; and the last view."""
    ring = cls(window)
    references = []
    most = 0
    for k, v in map(lambda *pair: tuple(map(tensor, pair)), keys, values):
        references += [weakref.ref(k), weakref.ref(v)]
        ring.append(k, v)
        if looked_at:
            ring.view()
        most = max(most, numbers_held(ring))
    grows = most > 3 * window * (keys.shape[1] + values.shape[1]) or alive(references) > 6 * window
    views = dict(zip(("keys at the end", "values at the end"), pair_of(ring.view(), "view"), strict=True))
    return views | {"measure": float(grows)}


def alive(references: Sequence[Callable]) -> int:
    """Count the weak references whose object still exists."""
    if sum(reference() is not None for reference in references) > len(references) / 3:
        gc.collect()  # frees reference cycles
    return sum(reference() is not None for reference in references)


def ring_changes(cls: Callable, window: int, keys: Array, values: Array) -> float:
    """Return 1.0 if append or view writes into the arguments of append, else 0.0."""
    ring = cls(window)
    inputs = [(tensor(k), tensor(v)) for k, v in zip(keys, values, strict=True)]
    for k, v in inputs:
        ring.append(k, v)
        ring.view()
    return written_into(inputs, keys, values)


def written_into(inputs: Sequence, keys: Array, values: Array) -> float:
    """Return 1.0 if the tensors given for the tokens have changed, else 0.0."""
    return float(not all(unchanged(k, keys[i]) and unchanged(v, values[i]) for i, (k, v) in enumerate(inputs)))


def unchanged(tensor_now: torch.Tensor, before: Array) -> bool:
    return np.array_equal(tensor_now.detach().numpy(), before)


def count(n: int) -> str:
    return f"{n} token" if n == 1 else f"{n} tokens"


def pair_of(result: Any, method: str) -> list[np.ndarray]:
    """Return the keys and values that a method returned. Raises BadResult unless they are a pair."""
    if result is None:
        raise BadResult(RETURNED_NONE.format(method))
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise BadResult(f"{method} returned {describe_kind(result)}; it should return (k, v)")
    return [array_of(part) for part in result]


SHARED = (type, ModuleType, CodeType, FrameType, TracebackType)  # objects that lead far beyond an object's own data


def numbers_held(thing: Any) -> int:
    """Count the floating-point numbers that an object holds in its attributes, lists and closures, at any depth.

    A slice of a tensor counts with its whole storage; an object that two attributes share counts once. Bytes count as
    float32. Objects that belong to a class or a module do not count.
    """
    loose = 0
    stored: dict[int, int] = {}
    visited = {}
    waiting = [thing]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (float, np.floating)):
            loose += 1
        elif id(each) not in visited and not isinstance(each, SHARED):
            visited[id(each)] = each  # kept alive, so that its id stays unique
            stored |= stored_in(each)
            waiting += hanging_on(each)
    return loose + sum(stored.values())


def stored_in(each: Any) -> dict[int, int]:
    """Map the address of the storage of a tensor, an array or bytes to its number of floating-point numbers."""
    if hasattr(each, "untyped_storage"):
        storage = each.untyped_storage()
        return {storage.data_ptr(): storage.nbytes() // each.element_size()} if each.dtype.is_floating_point else {}
    if isinstance(each, np.ndarray):
        while isinstance(each.base, np.ndarray):
            each = each.base
        return {each.ctypes.data: each.size} if each.dtype.kind == "f" else {}
    if isinstance(each, array):
        return {id(each): len(each)} if each.typecode in "fd" else {}
    return {id(each): len(each) // 4} if isinstance(each, (bytes, bytearray)) else {}


def hanging_on(each: Any) -> list:
    """Return the objects that an object refers to as its own."""
    if isinstance(each, FunctionType):
        return [each.__closure__, each.__defaults__, each.__kwdefaults__, each.__dict__]
    if isinstance(each, np.ndarray) and each.dtype.kind == "O":
        return each.ravel().tolist()
    return [] if hasattr(each, "untyped_storage") else gc.get_referents(each)


# Pages --------------------------------------------------------------------------------------------------------------


def paged_cache(rng: np.random.Generator) -> list[Rung]:
    def rung(name, n_blocks, block_size, script, why, measure=paged, d=3):
        if measure is paged and len(script) < 60:
            why += f" The calls, with n_blocks={n_blocks} and block_size={block_size}: {in_words(script)}."
        return Rung(name, (n_blocks, block_size, script, *vectors(rng, 300, d)), why, measure)

    return [
        rung("one token", 2, 2, "a ?a",
            "gather returns (k, v) of the shapes (1, d): only what was appended, no empty slots."),
        rung("one sequence over two blocks", 3, 2, "a a a ?a",
            "Three tokens take two blocks of 2. The second one is half empty, and its empty slot is not a token. Any "
            "other extra rows come from another cache: create what belongs to a cache in __init__, as self.name."),
        rung("every block full", 3, 2, "a a a a a a ?a",
            "Three blocks of 2 have room for six tokens, and not one append is refused. A new block is needed only "
            "when the last one has no slot left and another token comes."),
        rung("one token too many", 3, 2, "a a a a a a a ?a",
            "The seventh token needs a fourth block, and there are three: "
            "MemoryError, raised before anything is changed."),
        rung("two sequences in turns", 6, 2, "a b a b b a a b ?a ?b",
            "The blocks of a sequence need not lie side by side: each sequence has a list of its blocks, in order."),
        rung("three sequences, blocks of three", 5, 3, "a b c c a a a c c b ?a ?b ?c",
            "Position p of a sequence is in slot p % block_size of block number p // block_size of its list."),
        rung("a slot left in an open block", 2, 3, "a b a c ?a b b a ?a ?b",
            "Both blocks are taken, but neither is full: a and b may go on, but c, which needs a new block, is "
            "refused."),
        rung("refused, and nothing is lost", 2, 2, "a a b b a b a ?a ?b",
            "A refused append leaves every sequence as it was: no half token, no length that has grown."),
        rung("the blocks of a freed sequence are used again", 3, 2, "a a b a -a c c c ?c ?b b ?b",
            "free gives back every block of the sequence. Here a gives back two, and c needs both."),
        rung("freed and filled many times", 2, 2, "a a a -a b b b -b c c c ?c -c d d d d ?d",
            "After each free, all blocks are available again. If some are missing, free does not give back all of "
            "them."),
        rung("refused, then a block comes free", 2, 2, "a a b a a -b a a ?a",
            "After MemoryError the sequence goes on as if that append had never been. The token that was refused is "
            "gone, and the next one follows the last that was stored."),
        rung("a new sequence that is refused", 1, 2, "a b ?b ?a",
            "b was refused its first token, so it is still unknown: gather raises KeyError."),
        rung("freed blocks go to two sequences", 4, 2, "a a b b a c -a b b c c ?b ?c d ?d ?b ?c",
            "A block belongs to one sequence at a time. If two sequences hold the same block, it was given out twice."),
        rung("the same name again", 3, 2, "a a a -a a ?a",
            "After free, the sequence starts again from its first token."),
        rung("an unknown sequence", 2, 2, "a ?b -b -a ?a -a b ?b",
            "gather and free raise KeyError for a sequence that was never appended to, or that was freed."),
        rung("blocks of one token", 4, 1, "a b a b c ?a ?b -a c ?c",
            "With block_size 1 each token has a block of its own."),
        rung("one block", 1, 3, "a a a a ?a b -a b ?b", "With one block there is one sequence at a time."),
        rung("names of other kinds", 12, 2, [*NAMES, *NAMES[:5], 0],
            "A sequence is named by a number, a string, or anything else that can be the key of a dict. 0 and '0' are "
            "two names, and None, 0 and an empty string are names too. Ask whether a name is in your tables, not "
            "whether it is true.",
            paged_names),
        rung("keys of one number", 3, 2, "a b a a ?a ?b", "d may be 1: gather returns (T, 1).", d=1),
        rung("many sequences, in any order", 7, 3, busy(rng),
            "Forty appends and some frees of five sequences, in random order.",
            d=5),
        rung("a larger pool, blocks of 16", 14, 16, busy(rng, 280, 59),
            "280 appends and some frees of five sequences, in random order.",
            d=1),
        rung("two caches at once", 2, 2, "a a b",
            "Two caches are filled in turn and must not share anything. Create what belongs to a cache in __init__, as "
            "self.name.",
            two_paged),
        rung("what gather returned stays as it was", 2, 2, "a a a",
            "Keys and values that were returned stay as they were, whatever is appended or freed later. They must not "
            "be slices of the storage: clone them.",
            store_gathered),
        rung("all room is reserved at the start", 4, 2, "a b a a -a b b b",
            "The numbers that the object holds are counted after __init__, when it is full, and after a free. They "
            "should always be those of n_blocks · block_size keys and as many values; a few more for bookkeeping do "
            "not matter.",
            reserved),
        rung("float32 comes back", 3, 2, "a b a",
            "Keys and values come in as float32 and must come out as float32, in two tensors: a cache in float64 takes "
            "twice the memory. torch.zeros makes float32.",
            paged_types),
        rung(UNTOUCHED, 6, 2, "a b a b a",
            "The keys and values are right, but append writes into the tensors it is given.",
            paged_changes),
    ]  # fmt: skip


NAMES = (0, None, "", -1, -2, "0", (0, 1), frozenset({7}))


def in_words(script: str) -> str:
    """Return a script of calls in words: "a a -a" is "append a, a; free a"."""
    calls: list[str] = []
    for op in script.split():
        verb = {"?": "gather", "-": "free"}.get(op[0], "append")
        if calls and calls[-1].startswith(verb):
            calls[-1] += f", {op[-1]}"
        else:
            calls.append(f"{verb} {op[-1]}")
    return "; ".join(calls)


def vectors(rng: np.random.Generator, n: int, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    return draw(rng, n, d).astype(np.float32), draw(rng, n, d).astype(np.float32)


def busy(rng: np.random.Generator, n: int = 40, between: int = 6) -> str:
    """Draw a script of n appends to five sequences; now and then one is freed, and gathered after that."""
    names = "abcde"
    script = []
    for i in range(n):
        script.append(names[int(rng.integers(5))])
        if i % between == between - 1:
            freed = names[int(rng.integers(5))]
            script += [f"-{freed}", f"?{freed}"]
    return " ".join([*script, *(f"?{name}" for name in names)])


def paged(cls: Callable, n_blocks: int, block_size: int, script: str, keys: Array, values: Array) -> dict[str, Any]:
    """Run a script on a cache and record MemoryErrors of append, gathered keys and values, and KeyErrors.

    "a" appends the next token to sequence a, "?a" gathers it, "-a" frees it. An unknown sequence raises KeyError.
    """
    cache = cls(n_blocks, block_size, keys.shape[1])
    refused = []
    results: dict[str, Any] = {}
    tokens = pairs(keys, values)
    for i, op in enumerate(script.split(), start=1):
        name = op[-1]
        place = f"{op[-1]} at call {i}"
        if op == name:
            refused.append(is_refused(cache, name, *next(tokens)))
        elif op[0] == "?":
            results |= gathered(cache, name, place)
        else:
            results[f"KeyError from free of {place}"] = is_unknown(lambda name=name: cache.free(name))
    return {"MemoryError at append": refused, **results}


def paged_names(
    cls: Callable, n_blocks: int, block_size: int, names: Sequence, keys: Array, values: Array
) -> dict[str, Any]:
    cache = cls(n_blocks, block_size, keys.shape[1])
    results = {
        "MemoryError at append": [
            is_refused(cache, *token) for token in zip(names, keys[: len(names)], values[: len(names)], strict=True)
        ]
    }
    for name in dict.fromkeys(names):
        results |= gathered(cache, name, repr(name))
    return results


def two_paged(cls: Callable, n_blocks: int, block_size: int, script: str, keys: Array, values: Array) -> dict[str, Any]:
    caches = [cls(n_blocks, block_size, keys.shape[1]) for _ in range(2)]
    tokens = pairs(keys, values)
    results: dict[str, Any] = {}
    refused = [is_refused(cache, name, *next(tokens)) for name in script.split() for cache in caches]
    for i, cache in enumerate(caches):
        for name in dict.fromkeys(script.split()):
            results |= gathered(cache, name, f"{name} in cache {i}")
    return {"MemoryError at append": refused, **results}


def store_gathered(
    cls: Callable, n_blocks: int, block_size: int, script: str, keys: Array, values: Array
) -> dict[str, Any]:
    cache = cls(n_blocks, block_size, keys.shape[1])
    stored = {}
    tokens = pairs(keys, values)
    names = script.split()
    refused = []
    for n, name in enumerate(names, start=1):
        refused.append(is_refused(cache, name, *next(tokens)))
        stored[n] = cache.gather(name) if not refused[-1] else None
    results: dict[str, Any] = {"KeyError from free of a": is_unknown(lambda: cache.free("a"))}
    for _ in range(n_blocks * block_size - names.count("b")):
        refused.append(is_refused(cache, "b", *next(tokens)))
    for n, pair in stored.items():
        if pair is not None:
            results |= {
                f"{part} gathered after {count(n)}": x
                for part, x in zip(("keys", "values"), pair_of(pair, "gather"), strict=True)
            }
    return {"MemoryError at append": refused, **results}


def reserved(cls: Callable, n_blocks: int, block_size: int, script: str, keys: Array, values: Array) -> dict[str, Any]:
    d = keys.shape[1]
    cache = cls(n_blocks, block_size, d)
    tokens = pairs(keys, values)
    refused = []
    room = 2 * n_blocks * block_size * d
    start = numbers_held(cache)

    def held():
        """Return the count of numbers held; exactly `room` if the cache holds little more than that."""
        now = numbers_held(cache)
        return float(room if room <= now < 1.5 * room and now - start < d else now)

    counts = {"numbers held at the start": held()}
    for op in script.split():
        if op[0] == "-":
            counts["numbers held before a free"] = held()
            counts["KeyError from free"] = is_unknown(lambda name=op[-1]: cache.free(name))
            counts["numbers held after a free"] = held()
        else:
            refused.append(is_refused(cache, op, *next(tokens)))
    counts["numbers held at the end"] = held()
    for name in dict.fromkeys(script.replace("-", "").split()):
        counts |= gathered(cache, name, f"{name} at the end")
    return {"MemoryError at append": refused, **counts}


def paged_types(
    cls: Callable, n_blocks: int, block_size: int, script: str, keys: Array, values: Array
) -> dict[str, Any]:
    cache = cls(n_blocks, block_size, keys.shape[1])
    tokens = pairs(keys, values)
    refused = [is_refused(cache, name, *next(tokens)) for name in script.split()]
    return {"MemoryError at append": refused, **in_float32(cache.gather("a"), "gather")}


def paged_changes(cls: Callable, n_blocks: int, block_size: int, script: str, keys: Array, values: Array) -> float:
    """Return 1.0 if append or gather writes into the arguments of append, else 0.0."""
    cache = cls(n_blocks, block_size, keys.shape[1])
    names = script.split()
    keys, values = keys[: len(names)], values[: len(names)]
    inputs = [(tensor(k), tensor(v)) for k, v in zip(keys, values, strict=True)]
    for name, (k, v) in zip(names, inputs, strict=True):
        with suppress(MemoryError, KeyError):
            cache.append(name, k, v)
            cache.gather(name)
    return written_into(inputs, keys, values)


def pairs(keys: Array, values: Array) -> Iterator:
    return iter(list(zip(keys, values, strict=True)))


def gathered(cache: Any, name: str, place: str) -> dict[str, Any]:
    """Return the keys and values that gather gives, or no rows if it raised KeyError, and whether it did."""
    results = []
    unknown = is_unknown(lambda: results.append(cache.gather(name)))
    keys, values = (np.zeros((0, 0)),) * 2 if unknown else pair_of(results[0], "gather")
    return {f"KeyError from gather of {place}": unknown, f"keys of {place}": keys, f"values of {place}": values}


def is_refused(cache: Any, name: str, k: Array, v: Array) -> float:
    """Return 1.0 if the append raises MemoryError, else 0.0."""
    try:
        cache.append(name, tensor(k), tensor(v))
    except MemoryError:
        return 1.0
    return 0.0


def is_unknown(call: Callable) -> float:
    """Return 1.0 if the call raises KeyError, else 0.0."""
    try:
        call()
    except KeyError:
        return 1.0
    return 0.0


# Find the bug -------------------------------------------------------------------------------------------------------


def rotate(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """RoPE: turn pairs of neighbours in x (…, t, d_head) by their positions (t,), as `attention.rotary.rotate` does.

    The answers of find_the_bug call it, and where they are graded there is no `course_utils.attention`.
    """
    import torch

    even = torch.arange(0, x.shape[-1], 2, dtype=torch.float64)
    angles = positions[:, None] * 10000.0 ** -(even / x.shape[-1])  # (t, d_head/2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]  # (…, t, d_head/2) each
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)  # (…, t, d_head)


def find_the_bug(rng: np.random.Generator) -> list[Rung]:
    def tokens(T, d_head, B=1, h=1):
        return tuple(draw(rng, B, h, T, d_head) for _ in "qkv")

    return [
        Rung("a prompt of 5 in one call", (*tokens(5, 4), [5]),
            "Without a cache it is causal attention with rotated queries and keys. That part was right.",
            in_chunks),
        Rung("a prompt of 4, then one token", (*tokens(5, 4), [4, 1]),
            "The fifth token comes alone, after four. Its output should be the last row of one call with all five.",
            in_chunks),
        Rung("one token at a time", (*tokens(6, 4), [1] * 6),
            "Six calls of one token each should give the six rows of one call.",
            in_chunks),
        Rung("a prompt of 3, then two tokens at once", (*tokens(5, 4), [3, 2]),
            "Of two new tokens the first must not see the second, and both see everything in the cache.",
            in_chunks),
        Rung("chunks of 2, 3 and 1", (*tokens(6, 6), [2, 3, 1]), "How a text is cut into calls must change nothing.",
            in_chunks),
        Rung("2 sequences, 3 heads", (*tokens(7, 4, 2, 3), [4, 1, 2]),
            "How a text is cut into calls must change nothing, for every sequence and head.",
            in_chunks),
        Rung("as many tokens as heads and sequences", (*tokens(6, 2, 3, 3), [3, 1, 2]),
            "Tokens are the second-to-last axis: with equal sizes, a wrong axis raises no error.",
            in_chunks),
        Rung("20 tokens one at a time", (*tokens(20, 8, 1, 2), [1] * 20),
            "Far into the text, too, each output is the same row that a single call gives.",
            in_chunks),
        Rung("100 tokens in chunks", (*tokens(100, 2), [40, 1, 27, 1, 1, 30]),
            "Far into the text, too, each output is the same row that a single call gives.",
            in_chunks),
        Rung("large scores", (*(5 * x for x in tokens(5, 4)), [2, 1, 2]),
            "The scale is √d_head, and a blocked score is −∞.",
            in_chunks),
        Rung("two continuations of one cache", (*tokens(3, 4), *tokens(2, 4), *tokens(2, 4)),
            "One cache is continued twice, in turn, with different tokens: neither continuation may see the other's. "
            "Make new tensors.",
            forked_chunks),
        Rung(UNTOUCHED, tokens(5, 4, 2, 1), "The outputs are right, but q, k or v is written into. Make new tensors.",
            chunk_changes),
    ]  # fmt: skip


def in_chunks(function: Callable, q: Array, k: Array, v: Array, sizes: Sequence[int]) -> dict[str, Any]:
    outputs, _ = chunks(function, tensor(q), tensor(k), tensor(v), sizes)
    return {"outputs": side_by_side(outputs)}


def forked_chunks(function: Callable, *arrays: np.ndarray) -> dict[str, Any]:
    (q, k, v), *texts = (list(map(tensor, arrays[i : i + 3])) for i in (0, 3, 6))
    _, cache = chunks(function, q, k, v, [3])
    caches = [cache, cache]
    outputs: list[list] = [[], []]
    for t in range(texts[0][0].shape[-2]):
        for i, text in enumerate(texts):
            q, k, v = (x[..., t : t + 1, :] for x in text)
            (output,), caches[i] = chunks(function, q, k, v, [1], caches[i])
            outputs[i].append(output)
    return {f"outputs of {name}": side_by_side(outputs[i]) for i, name in enumerate(("one", "the other"))}


def chunk_changes(function: Callable, *arrays: np.ndarray) -> float:
    """Return 1.0 if the function writes into q, k or v, else 0.0."""
    cache = None
    changed = False
    for chunk in (slice(0, 3), slice(3, 5)):
        inputs = [tensor(x[..., chunk, :]) for x in arrays]
        _, cache = output_and_cache(function(*inputs, cache))
        changed |= not all(unchanged(new, x[..., chunk, :]) for new, x in zip(inputs, arrays, strict=True))
    return float(changed)


def chunks(
    function: Callable, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sizes: Sequence[int], cache: Any = None
) -> tuple[list, Any]:
    """Run q, k and v through in chunks of the given sizes; return the list of outputs and the last cache."""
    outputs = []
    start = 0
    for size in sizes:
        output, cache = output_and_cache(function(*(x[..., start : start + size, :].clone() for x in (q, k, v)), cache))
        outputs.append(output)
        start += size
    return outputs, cache


# What numbers may be made of ----------------------------------------------------------------------------------------


def cached(rung: Rung) -> dict[str, Any]:
    names = ("n_layers", "n_kv_heads", "d_head", "n_tokens", "batch", "bytes_per_value")
    return dict(zip(names, (*rung.args, *(1, 2)[len(rung.args) - 4 :]), strict=True))


def fitted(rung: Rung) -> dict[str, Any]:
    names = ("budget_bytes", "n_layers", "n_kv_heads", "d_head", "batch", "bytes_per_value")
    return dict(zip(names, (*rung.args, *(1, 2)[len(rung.args) - 4 :]), strict=True))


def decoded(rung: Rung) -> dict[str, Any]:
    names = ("n_heads", "n_kv_heads", "d_head", "n_tokens", "bytes_per_value")
    return dict(zip(names, (*rung.args, 2)[:5], strict=True))


SHARING = (
    ("where heads share keys and values", "where each has its own", lambda h, h_kv, *_: h != h_kv),
    ("where bytes_per_value is not 2", "where it is 2", lambda *args: args[4:] not in ((), (2,))),
)
BATCHED = (
    ("where batch is not 1", "where batch is 1", lambda *args: args[4:5] not in ((), (1,))),
    ("where bytes_per_value is not 2", "where it is 2", lambda *args: args[5:] not in ((), (2,))),
)


def shared_evenly(n_heads: int, n_kv_heads: int, *sizes: int) -> bool:
    """Return whether each key head serves the same number of query heads."""
    return n_heads % n_kv_heads == 0


def looks(draft: Draft) -> list[int]:
    """Draw after which tokens the cache is read: after the last, and perhaps after others."""
    T = draft.size("T")
    return [t for t in range(1, T + 1) if t == T or draft.choose(0, 1)]


def cut_into_chunks(draft: Draft) -> list[int]:
    """Draw the sizes of chunks that make up the text."""
    remaining = draft.size("T")
    sizes = []
    while remaining:
        sizes.append(draft.whole(1, remaining))
        remaining -= sizes[-1]
    return sizes


def calls(draft: Draft) -> str:
    """Draw a script from the calls of the rung's script, with at most two sequences; if `cut`, return the rung's."""
    if draft.cut:
        return draft.rung[2]
    known = sorted({op for op in draft.rung[2].split() if op[-1] in "ab"}, key=lambda op: (len(op), op))
    count = draft.whole(1, min(8, len(draft.rung[2].split())))
    return " ".join(known[draft.choose(0, len(known) - 1)] for _ in range(count))


def a_row_a_call(draft: Draft) -> np.ndarray:
    """Draw enough keys or values for a script."""
    like = draft.rung[len(draft.args)]
    if draft.cut:
        return like[: 2 * len(draft.args[2].split()), : draft.size("d")]
    return draft.numbers((2 * len(draft.args[2].split()), draft.size("d")), like)


def room(draft: Draft) -> int:
    """Draw a small whole number, at most the rung's; if `cut`, return the rung's."""
    own = draft.rung[len(draft.args)]
    return own if draft.cut else draft.whole(1, min(4, own))


TELLS = """def tell(call, *args):
    try:
        print(call.__name__, args[0], call(*args))
    except (KeyError, MemoryError) as error:
        print(call.__name__, args[0], type(error).__name__)

"""


def script_as_code(name: str, n_blocks: int, block_size: int, script: str, keys: Array, values: Array) -> str:
    """Return the Python code of the calls of a script."""
    lines = [f"cache = {name}({n_blocks}, {block_size}, {keys.shape[1]})"]
    tokens = iter(zip(keys.tolist(), values.tolist(), strict=True))
    for op in script.split():
        if op[0] in "?-":
            lines.append(f'tell(cache.{"gather" if op[0] == "?" else "free"}, "{op[-1]}")')
        else:
            k, v = next(tokens)
            lines.append(f'tell(cache.append, "{op}", torch.tensor({k}), torch.tensor({v}))')
    return TELLS + "\n".join(lines)


TOKENS = ("B h T d", "B h T d", "B h T e")
STEP = ("B h 1 d", "B h 1 d", "B h 1 e")
ONE_BY_ONE = "\n    output, cache = {f}(*(x[..., t : t + 1, :] for x in (q, k, v)), cache)\n    print(output)"
SMALL_STEPS = (
    Small(STEP, measures=(first_step,), tensors=True, names=("q_t", "k_t", "v_t"), code="{f}(q_t, k_t, v_t, None)"),
    Small(
        (*STEP, "B h t d", "B h t e"),
        measures=(one_step, untouched),
        tensors=True,
        names=("q_t", "k_t", "v_t", "keys", "values"),
        code="{f}(q_t, k_t, v_t, (keys, values))",
    ),
    Small(
        (*TOKENS, "C h T d", "C h T d", "C h T e"),
        measures=(in_turns,),
        tensors=True,
        names=("q", "k", "v", "q_2", "k_2", "v_2"),
        code="texts, caches = [(q, k, v), (q_2, k_2, v_2)], [None, None]\nfor t in range(q.shape[-2]):\n"
        "    for i in range(2):\n        token = [x[..., t : t + 1, :] for x in texts[i]]\n"
        "        output, caches[i] = {f}(*token, caches[i])\n        print(i, output)",
    ),
    Small(
        ("B h s d", "B h s d", "B h s e") + 2 * TOKENS,
        measures=(forked,),
        tensors=True,
        names=("q", "k", "v", "q_2", "k_2", "v_2", "q_3", "k_3", "v_3"),
        code="def decode(q, k, v, cache=None):\n    for t in range(q.shape[-2]):\n"
        "        output, cache = {f}(*(x[..., t : t + 1, :] for x in (q, k, v)), cache)\n        print(output)\n"
        "    return cache\n\ncache = decode(q, k, v)\n"
        "decode(q_2, k_2, v_2, cache)\ndecode(q_3, k_3, v_3, cache)\ncache",
    ),
    Small(TOKENS, measures=(decode,), tensors=True, names=("q", "k", "v"),
        code="cache = None\nfor t in range(q.shape[-2]):" + ONE_BY_ONE),
)  # fmt: skip
TINY = "from course_utils.days.day5.given.ladders import TinyModel\n"
SMALL_TEXTS = (
    Small(
        (FROM_RUNG, "B T", whole(0), "B S"),
        measures=(one_after_the_other,),
        tensors=True,
        names=("seed", "prompt", "steps", "other"),
        code=TINY + "model = TinyModel(seed)\n[{f}(model, text, steps) for text in (prompt, other, prompt)]",
    ),
    Small(
        (FROM_RUNG, "B T", whole(0)),
        measures=(generated, prompt_changed),
        tensors=True,
        names=("seed", "prompt", "steps", "zero_after"),
        code=TINY + "{f}(TinyModel(seed), prompt, steps)",
    ),
    Small(
        (FROM_RUNG, "B T", whole(0)),
        measures=(two_models,),
        tensors=True,
        names=("seed", "prompt", "steps"),
        code=TINY + "[{f}(TinyModel(seed + i), prompt, steps) for i in range(2)]",
    ),
)
SMALL_LATENTS = (
    Small(("h d", "T l", "h l d", "h l e"), measures=(over_latents, latents_changed), tensors=True,
        names=("q", "c", "W_UK", "W_UV"), code="{f}(q, c, W_UK, W_UV)"),
)  # fmt: skip
RING = (room, "T d", "T e")
FILL = "for t, (k, v) in enumerate(zip(keys, values), start=1):\n    ring.append(k, v)\n"
SMALL_RINGS = (
    Small(
        (FROM_RUNG, BLANK, BLANK, FROM_RUNG),
        measures=(ring_grows,),
        tensors=True,
        names=("window", "keys", "values", "looked_at"),
        code="ring = {f}(window)\n" + FILL + "    if looked_at:\n        ring.view()",
    ),
    Small(
        (room, room, "T d", "T e"),
        measures=(two_rings,),
        tensors=True,
        names=("one", "other", "keys", "values"),
        code="rings = {f}(one), {f}(other)\nfor t, (k, v) in enumerate(zip(keys, values)):\n"
        "    rings[t % 2].append(k, v)\n[ring.view() for ring in rings]",
    ),
    Small(
        (*RING, looks),
        measures=(ring_views,),
        tensors=True,
        names=("window", "keys", "values", "looks"),
        code="ring = {f}(window)\n" + FILL + "    if t in looks:\n        print(ring.view())",
    ),
    Small(
        (*RING, looks),
        measures=(store_views,),
        tensors=True,
        names=("window", "keys", "values", "looks"),
        code="ring, kept = {f}(window), []\n" + FILL + "    if t in looks:\n        kept.append(ring.view())\nkept",
    ),
    Small(
        (*RING, "=T"),
        measures=(view_twice,),
        tensors=True,
        names=("window", "keys", "values", "first"),
        code="ring = {f}(window)\n" + FILL + "    if t == first:\n        print(ring.view(), ring.view())\nring.view()",
    ),
    Small(
        RING,
        measures=(ring_types, ring_changes),
        tensors=True,
        names=("window", "keys", "values"),
        code="ring = {f}(window)\n" + FILL + "ring.view()",
    ),
)
ROWS = Drawn("rows d", a_row_a_call)
SMALL_PAGES = (
    Small(
        (room, room, calls, ROWS, ROWS),
        measures=(paged, two_paged, store_gathered, reserved, paged_types, paged_changes),
        code=script_as_code,
    ),
)
TEXT = ("B h T 2*f",) * 3
IN_CHUNKS = (
    "cache, start = None, 0\nfor size in sizes:\n"
    "    output, cache = {f}(*(x[..., start : start + size, :] for x in (q, k, v)), cache)\n"
    "    print(output)\n    start += size"
)
SMALL_CHUNKS = (
    Small((*TEXT, cut_into_chunks), measures=(in_chunks,), tensors=True,
        names=("q", "k", "v", "sizes"), code=IN_CHUNKS),
    Small(("B h S 2*f",) * 3 + 2 * TEXT, measures=(forked_chunks,), fixed_sizes=("S",), tensors=True,
        names=("q", "k", "v", "q_2", "k_2", "v_2", "q_3", "k_3", "v_3"),
        code="_, cache = {f}(q, k, v)\ncaches = [cache, cache]\nfor t in range(q_2.shape[-2]):\n"
        "    for i, text in enumerate([(q_2, k_2, v_2), (q_3, k_3, v_3)]):\n"
        "        output, caches[i] = {f}(*(x[..., t : t + 1, :] for x in text), caches[i])\n        print(i, output)"),
    Small(TEXT, measures=(chunk_changes,), fixed_sizes=("T",), tensors=True, names=("q", "k", "v"),
        code="_, cache = {f}(*(x[..., :3, :] for x in (q, k, v)))\n{f}(*(x[..., 3:, :] for x in (q, k, v)), cache)"),
)  # fmt: skip
SMALL_SIZES = (
    Small(
        (whole(),) * 4,
        measures=(by_keyword,),
        code="{f}({args}, batch=3, bytes_per_value=1)  # with both named\n"
        "{f}({args}, batch=3)  # with batch named\n"
        "{f}({args}, bytes_per_value=8)  # with bytes_per_value named",
    ),
    Small((whole(),) * 6),
)
INTENSITY_BY_NAME = "{f}({args}, bytes_per_value=1)  # named\n{f}({args})  # left out"
LADDERS = {
    "cached_step": Ladder(("cached_step",), rungs=cached_step, forbidden=WHOLE_ATTENTION, small=SMALL_STEPS),
    "generate_cached": Ladder(
        ("generate_cached",), ("tokens", "passes by position"), generate_cached, small=SMALL_TEXTS
    ),
    "find_the_bug": Ladder(
        ("broken_cached_attention",), rungs=find_the_bug, forbidden=WHOLE_ATTENTION, small=SMALL_CHUNKS
    ),
    "cache_bytes": Ladder(
        ("kv_cache_bytes",), ("bytes",), cache_bytes, quantities=cached, cases=BATCHED, small=SMALL_SIZES
    ),
    "longest_context": Ladder(
        ("longest_context",),
        rungs=longest_context,
        quantities=fitted,
        cases=BATCHED,
        small=(Small((whole(0),) + (whole(),) * 5),),
    ),
    "decode_intensity": Ladder(
        ("decode_intensity",),
        ("FLOPs per byte",),
        decode_intensity,
        quantities=decoded,
        cases=SHARING,
        small=(
            Small((whole(),) * 4, measures=(intensity_by_keyword,), fits=shared_evenly, code=INTENSITY_BY_NAME),
            Small((whole(),) * 5, fits=shared_evenly),
        ),
    ),
    "counts_by_hand": Ladder(
        ("tokens_through", "bytes_of_a_token", "with_keys_made", "with_both_absorbed"),
        by_hand=True,
        advice="Go through it again: what happens for every token, what for every head, and what twice?",
    ),
    "absorbed_step": Ladder(
        ("absorbed_step",), ("output",), absorbed_step, forbidden=WHOLE_ATTENTION, small=SMALL_LATENTS
    ),
    "quantise": Ladder(
        ("quantise", "dequantise"),
        rungs=quantise,
        small=(Small(("… d",), measures=(rounded,), fits=is_clear_of_halves),),
    ),
    "ring_cache": Ladder(("RingCache",), rungs=ring_cache, small=SMALL_RINGS),
    "paged_cache": Ladder(("PagedCache",), rungs=paged_cache, small=SMALL_PAGES),
    "tells_right": Ladder(("tells_right",), ("verdict",), duel=True),
}
