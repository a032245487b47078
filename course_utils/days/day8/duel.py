"""Day 8: ways to bring positions into a score, f(q, k, i, j) -> the score of a query at i and a key at j.

Right ones depend on i and j by their difference alone, whatever else they do.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from course_utils.checks.judge.implementation import only_if, right, wrong


def speeds(d: int, base: float = 10000.0) -> np.ndarray:
    """Return the angle per position of each pair, (d / 2)."""
    return base ** (-np.arange(0, d, 2) / d)


def rotated(x: np.ndarray, positions: np.ndarray | float, base: float = 10000.0) -> np.ndarray:
    """Return x (…, d) with pairs of neighbours rotated by the positions (…)."""
    return turned(x, np.multiply.outer(positions, speeds(x.shape[-1], base)))


def turned(x: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Return x (…, d) with pair p, numbers 2p and 2p + 1, rotated by angles[…, p]."""
    cos, sin = np.cos(angles), np.sin(angles)
    even, odd = x[..., 0::2], x[..., 1::2]
    return np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(x.shape)


def halves(x: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Return x (d) with pair p, numbers p and p + d/2, rotated by angles[p]."""
    cos, sin = np.cos(angles), np.sin(angles)
    first, second = np.split(x, 2)
    return np.concatenate([first * cos - second * sin, first * sin + second * cos])


def two_minuses(x: np.ndarray, angles: np.ndarray) -> np.ndarray:
    cos, sin = np.cos(angles), np.sin(angles)
    first, second = x[0::2], x[1::2]
    return np.stack([first * cos - second * sin, second * cos - first * sin], axis=-1).reshape(x.shape)


def overwritten(x: np.ndarray, angles: np.ndarray) -> np.ndarray:
    cos, sin = np.cos(angles), np.sin(angles)
    first, second = x[0::2], x[1::2]
    first = first * cos - second * sin
    return np.stack([first, first * sin + second * cos], axis=-1).reshape(x.shape)


def scaled(score: Callable) -> Callable:
    """Return f(q, k, i, j) that divides a score by √d and works on float64 arrays and whole numbers."""

    def f(q, k, i, j):
        q, k = np.asarray(q, dtype=float), np.asarray(k, dtype=float)
        return float(score(q, k, int(i), int(j))) / math.sqrt(q.shape[-1])

    return f


def made_of(
    turn_q: Callable = turned,
    turn_k: Callable = turned,
    place_q: Callable = lambda i, j: i,
    place_k: Callable = lambda i, j: j,
    speeds_q: Callable = speeds,
    speeds_k: Callable | None = None,
    bias: Callable = lambda i, j: 0.0,
    times: Callable = lambda i, j: 1.0,
) -> Callable:
    """Return a score by rotation with these steps; without any, that of RoPE."""

    def score(q, k, i, j):
        d = q.shape[-1]
        query = turn_q(q, place_q(i, j) * speeds_q(d))
        key = turn_k(k, place_k(i, j) * (speeds_k or speeds_q)(d))
        return times(i, j) * (query @ key) + bias(i, j)

    return scaled(score)


ROPE = made_of()


def still(x: np.ndarray, angles: np.ndarray) -> np.ndarray:
    return x


def biased(bias: Callable, times: Callable = lambda i, j: 1.0) -> Callable:
    """Return a score without rotation, to which bias(i, j) is added."""
    return made_of(turn_q=still, turn_k=still, bias=bias, times=times)


def added(vector_at: Callable, to_keys: bool = True) -> Callable:
    """Return a score of queries and keys to which a vector of their position is added, vector_at(t, d)."""

    def score(q, k, i, j):
        d = q.shape[-1]
        return (q + vector_at(i, d)) @ (k + vector_at(j, d) if to_keys else k)

    return scaled(score)


def waves(t: int, d: int) -> np.ndarray:
    angles = t * speeds(d)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(d)


def learned(t: int, d: int) -> np.ndarray:
    return np.random.default_rng([t, d]).standard_normal(d)


def one_number(t: int, d: int) -> np.ndarray:
    return np.eye(d)[0] * t / 100


def as_complex(q, k, i, j):
    q, k = np.asarray(q, dtype=float), np.asarray(k, dtype=float)
    pairs_q, pairs_k = q[0::2] + 1j * q[1::2], k[0::2] + 1j * k[1::2]
    away = np.exp(1j * (int(i) - int(j)) * speeds(len(q)))
    return float((pairs_q * pairs_k.conj() * away).real.sum()) / math.sqrt(len(q))


def in_float32(q, k, i, j):
    q, k = np.asarray(q, dtype=np.float32), np.asarray(k, dtype=np.float32)
    slow = speeds(len(q)).astype(np.float32)
    a, b = turned(q, np.float32(i) * slow), turned(k, np.float32(j) * slow)
    return np.float32(a @ b / np.float32(math.sqrt(len(q))))


def first_half(x: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Turn the pairs of the first half, at least one, and leave the others as they are."""
    turns = max(1, len(angles) // 2)
    return turned(x, np.where(np.arange(len(angles)) < turns, angles, 0.0))


def not_the_last(x: np.ndarray, angles: np.ndarray) -> np.ndarray:
    return turned(x, np.where(np.arange(len(angles)) < len(angles) - 1, angles, 0.0))


def by_distance(i: int, j: int) -> float:
    """Return a learned number for each distance up to 32, and one for all beyond."""
    away = max(-32, min(32, i - j))
    return float(np.random.default_rng(away + 32).standard_normal())


def with_a_table() -> Callable:
    """Return RoPE with a table of angles that is as long as the first call needs, at least 8, and ends there."""
    longest: list[int] = []

    def f(q, k, i, j):
        if not longest:
            longest.append(max(int(i), int(j), 8))
        return ROPE(q, k, min(int(i), longest[0]), min(int(j), longest[0]))

    return f


def in_float16(x: np.ndarray, angles: np.ndarray) -> np.ndarray:
    return turned(x, angles.astype(np.float16).astype(float))


ABSOLUTE = "Compare (i, j) with (i + 1, j + 1), for several i and j."
FAR = "Move both far along: by some hundred positions, at the beginning of a text and later."
SIZES = "Try vectors of 2, 4, 8 and 16 numbers."

CALLS = {"": ("q", "k", "i", "j")}  # what a test may call, and how

IMPLEMENTATIONS = (
    right("RoPE, neighbours in pairs", ROPE),
    right("RoPE, halves in pairs", made_of(turn_q=halves, turn_k=halves),
        "Its pairs are other numbers than those of the paper. Both sides have the same pairs, so it is right."),
    right("pairs as complex numbers", as_complex),
    right("the query rotated by the difference", made_of(turn_k=still, place_q=lambda i, j: i - j)),
    right("rotated the other way", made_of(place_q=lambda i, j: -i, place_k=lambda i, j: -j),
        "It rotates the other way, both queries and keys, so it depends on the difference alone."),
    right("RoPE with another base", made_of(speeds_q=lambda d: speeds(d, 500_000.0))),
    right("only some pairs rotated", made_of(turn_q=first_half, turn_k=first_half),
        "It leaves some pairs as they are, in queries and keys. These add the same wherever they stand."),
    right("no positions at all", biased(lambda i, j: 0.0),
        "It knows nothing of positions, so moving both changes nothing. That is what was asked."),
    right("ALiBi", biased(lambda i, j: -abs(i - j) / 16)),
    right("a learned number for each distance", biased(by_distance)),
    right("in float32", in_float32,
        "This one calculates in float32. It is right: leave room for rounding, 1e-3 say, and never ask for ==."),
    right("angles divided by four", made_of(speeds_q=lambda d: speeds(d) / 4)),
    right("rotated, and faded by distance", made_of(times=lambda i, j: 0.99 ** abs(i - j))),
    right("positions from 7", made_of(place_q=lambda i, j: i + 7, place_k=lambda i, j: j + 7),
        "It counts positions from 7, for queries and keys. The difference is the same."),
    right("roles exchanged", made_of(place_q=lambda i, j: j, place_k=lambda i, j: i),
        "It rotates the query by j and the key by i. That is another score, but it depends on the difference alone."),
    # something absolute is added
    wrong("waves added", added(waves), "Sines and cosines of the positions are added to q and k: q · wave(j) depends "
        "on j.", ABSOLUTE, gross=True),
    wrong("a learned table added", added(learned), "A learned vector for each position is added to q and k.", ABSOLUTE,
        gross=True),
    wrong("waves added to queries only", added(waves, to_keys=False), "A wave is added to the query: wave(i) · k "
        "depends on i.", ABSOLUTE, gross=True),
    wrong("the position as a number", added(one_number), "The position is added to the first number of q and k.",
        ABSOLUTE),
    wrong("a bias by the key's position", biased(lambda i, j: j / 16),
        "The bias grows with j, not with the distance. The weights of a row would be the same after a softmax, but the "
        "score is not.", ABSOLUTE),
    wrong("a bias by the sum", biased(lambda i, j: -(i + j) / 64), "The bias depends on i + j.", ABSOLUTE),
    wrong("a bias by the share of the text", biased(lambda i, j: -abs(i - j) / (i + 1)),
        "The distance is divided by the length of the text so far.", "Let i and j differ, and move both."),
    wrong("a distance in blocks of eight", biased(lambda i, j: -abs(i // 8 - j // 8)),
        "The distance counts blocks of 8 positions, so it depends on where the blocks begin.",
        "Move both by 1, many times."),
    # one side only, or both in different ways
    wrong("keys not rotated", made_of(turn_k=still), "Only queries are rotated.", ABSOLUTE, gross=True),
    wrong("queries not rotated", made_of(turn_q=still), "Only keys are rotated.", ABSOLUTE, gross=True),
    wrong("keys rotated twice", made_of(place_k=lambda i, j: 2 * j), "Keys are rotated twice, as in a cache that "
        "rotates all its keys in each step.", ABSOLUTE, gross=True),
    wrong("opposite directions", made_of(place_k=lambda i, j: -j), "Keys are rotated the other way than queries, so "
        "the score depends on i + j.", ABSOLUTE),
    wrong("two kinds of pairs", made_of(turn_k=halves), "Queries have neighbours in pairs, keys have halves.",
        "Let d be more than 2: with one pair both kinds are the same."),
    wrong("two bases", made_of(speeds_k=lambda d: speeds(d, 500_000.0)), "Queries and keys have different bases.",
        "Let d be more than 2: pair 0 turns at the same speed for every base."),
    wrong("keys with speeds in reverse", made_of(speeds_k=lambda d: speeds(d)[::-1]), "The slowest pair of a key "
        "comes first, that of a query last.", "Let d be more than 2."),
    wrong("the last pair of keys still", made_of(turn_k=not_the_last), "The last pair of the keys is not rotated.",
        FAR),
    wrong("keys divided by four", made_of(speeds_k=lambda d: speeds(d) / 4), "The angles of keys are divided by four, "
        "those of queries are not.", ABSOLUTE),
    # what is no rotation
    wrong("two minuses", made_of(turn_q=two_minuses, turn_k=two_minuses), "(a cos − b sin, b cos − a sin) is no "
        "rotation: lengths change.", ABSOLUTE),
    wrong("the first number overwritten", made_of(turn_q=overwritten, turn_k=overwritten), "The second number of a "
        "pair is made from the first after it has changed.", ABSOLUTE),
    # other positions
    wrong("positions squared", made_of(place_q=lambda i, j: i * i, place_k=lambda i, j: j * j), "It rotates by the "
        "square of the position.", "Let i and j differ, and move both."),
    wrong("the logarithm of positions", made_of(place_q=lambda i, j: 8 * math.log1p(i), place_k=lambda i, j: 8
        * math.log1p(j)), "It rotates by the logarithm of the position.", "Let i and j differ, and move both."),
    wrong("positions in pairs", made_of(place_q=lambda i, j: i // 2 * 2, place_k=lambda i, j: j // 2 * 2),
        "Positions are rounded down to an even number.", "Move both by 1, and let i and j differ by an odd number."),
    wrong("positions modulo 16", made_of(place_q=lambda i, j: i % 16, place_k=lambda i, j: j % 16), "Positions begin "
        "anew after 16.", "Let one of the two be beyond 16 and the other not."),
    wrong("keys that begin anew after 64", made_of(place_k=lambda i, j: j % 64), "The positions of keys begin anew "
        "after 64.", FAR),
    wrong("a table of 100 positions", made_of(place_q=lambda i, j: min(i, 99), place_k=lambda i, j: min(j, 99)),
        "Beyond position 99 nothing changes any more.", FAR),
    wrong("positions in eight bits", made_of(place_q=lambda i, j: i % 256, place_k=lambda i, j: j % 256), "Positions "
        "are kept in eight bits: 256 is 0.", FAR),
    wrong("a table for the first call", with_a_table, "It makes a table of angles at the first call, and positions "
        "beyond it are taken for its last.", "Call it with small positions first.", anew=True),
    wrong("a base that grows with the text", made_of(speeds_q=lambda d: speeds(d), times=lambda i, j: math.log(2 + i)),
        "Scores are multiplied by the logarithm of the query's position.", ABSOLUTE),
    wrong("a new base beyond 512", only_if(lambda q, k, i, j: i > 512, made_of(speeds_q=lambda d: speeds(d, 40_000.0),
        speeds_k=speeds), ROPE), "Beyond 512 queries have a new base, and keys in the cache keep the old one.", FAR),
    wrong("angles in float16", made_of(turn_q=in_float16, turn_k=in_float16), "Angles are computed in float16, which "
        "keeps three digits.", FAR),
    # some inputs only
    wrong("position 0 is special", only_if(lambda q, k, i, j: j == 0, made_of(bias=lambda i, j: 1.0), ROPE),
        "A key at position 0 scores more.", "Begin at position 0."),
    wrong("later keys by their position", only_if(lambda q, k, i, j: j > i, made_of(bias=lambda i, j: j / 8), ROPE),
        "Where the key comes later, its position is added.", "Let the key come after the query, too."),
    wrong("vectors of two numbers", only_if(lambda q, k, i, j: len(q) == 2, made_of(turn_k=still), ROPE),
        "With one pair, keys are not rotated.", SIZES),
    wrong("vectors of more than eight numbers", only_if(lambda q, k, i, j: len(q) > 8, added(waves), ROPE),
        "With more than 8 numbers it adds waves.", SIZES),
)  # fmt: skip
