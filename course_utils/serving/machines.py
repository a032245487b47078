"""More machines than one: heads split, keys split, prefill and decode apart, and the bytes that move between them.

Heads split (tensor parallel): each machine has some heads and their rows of W_O, and the sum of what they give goes
round (Shoeybi et al. 2019, Megatron-LM, section 3). Keys split (context parallel): each machine has some of the cached
tokens, and outputs are merged by their log-sum-exp, as day 6 merges tiles (`attention.tiled.merge`). Prefill and decode
apart: one machine computes prompts and sends their caches to the other (Zhong et al. 2024, DistServe).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from course_utils.attention import arrays
from course_utils.attention.shapes import check_scale, whole
from course_utils.costs.configurations import Configuration
from course_utils.serving.simulate import Log, Part, Served, ServerStep, simulate
from course_utils.serving.traffic import Request, check


class Link(NamedTuple):
    """A connection between two machines: bytes a second in one direction, and the source of the number."""

    name: str
    bytes_per_second: float
    source: str

    def seconds(self, n_bytes: float) -> float:
        """Seconds to send so many bytes at full speed. Raises ValueError for a negative number."""
        if n_bytes < 0:
            raise ValueError(f"n_bytes is {n_bytes}: bytes to send, at least 0")
        return n_bytes / self.bytes_per_second


LINKS = {  # those of servers with an A100, whose step costs the day uses
    link.name: link
    for link in (
        Link("NVLink 3", 300e9, "NVIDIA A100 data sheet: 600 GB/s, both directions together"),
        Link("PCIe 4 x16", 32e9, "NVIDIA A100 data sheet: 64 GB/s, both directions together"),
        Link("InfiniBand HDR", 25e9, "NVIDIA ConnectX-6 data sheet: 200 Gb/s"),
        Link("Ethernet 25G", 3.125e9, "25 Gb/s"),
    )
}

# --- heads split ----------------------------------------------------------------------------------------------------


def split_heads(outputs: np.ndarray, w_o: np.ndarray, machines: int) -> list[np.ndarray]:
    """Return what each machine adds to the output: its heads' outputs times its rows of W_O, each (n, d_model).

    outputs is (h, n, d_head), of all heads, and w_o (h · d_head, d_model). The sum over the machines is the whole
    product, since a product with a matrix is a sum over its rows. Raises ValueError when h is no multiple of machines.
    """
    h, n, d_head = outputs.shape
    if h % whole("machines", machines):
        raise ValueError(f"{h} heads on {machines} machines: the first must be a multiple of the second")
    if len(w_o) != h * d_head:
        raise ValueError(f"w_o is {w_o.shape}: expected (h · d_head, d_model) = ({h * d_head}, d_model)")
    joined = outputs.transpose(1, 0, 2).reshape(n, machines, -1)  # (n, machines, h · d_head / machines)
    return [joined[:, i] @ rows for i, rows in enumerate(np.split(w_o, machines))]


def ring_all_reduce(parts: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
    """Every machine gets the sum of all parts, passing chunks round a ring: (sums, numbers that each machine sent).

    parts holds one array for each machine, all of one shape, whose size is a multiple of the number of machines. In the
    first N − 1 rounds each chunk gathers its sum on its way round; in the next N − 1 the sums go round.
    Source: Patarasuk and Yuan 2009. Raises ValueError for shapes that differ or cannot be cut into chunks.
    """
    N = len(parts)
    if not N or len({part.shape for part in parts}) > 1:
        raise ValueError("parts: give one array for each machine, all of one shape")
    if parts[0].size % N:
        raise ValueError(f"{parts[0].size} numbers cannot be cut into {N} equal chunks")
    held = [np.array(part, dtype=float).reshape(N, -1) for part in parts]  # held[machine][chunk]
    sent = 0
    for turn in range(2 * (N - 1)):
        gathers = turn < N - 1
        chunks = [(machine - turn) % N for machine in range(N)]
        moving = [held[machine][chunk].copy() for machine, chunk in enumerate(chunks)]
        for machine, (chunk, numbers) in enumerate(zip(chunks, moving, strict=True)):
            target = held[(machine + 1) % N]
            target[chunk] = target[chunk] + numbers if gathers else numbers
        sent += moving[0].size
    return [chunks.reshape(parts[0].shape) for chunks in held], sent


def all_reduce_bytes(payload: float, machines: int) -> float:
    """Bytes that each machine sends so that all have the sum of payloads of so many bytes: 2 (N − 1) / N · payload."""
    return 2 * (whole("machines", machines) - 1) / machines * payload


def heads_split_bytes(configuration: Configuration, tokens: int, machines: int, bytes_per_value: float = 2) -> float:
    """Return the bytes that each machine sends in a step of so many tokens, with heads and feed-forward networks split.

    Two sums a layer, each of tokens · d_model numbers: one behind W_O, one behind the feed-forward network.
    Source: Shoeybi et al. 2019, section 3, figure 4. Raises ValueError when the heads do not divide.
    """
    if configuration.n_heads % whole("machines", machines):
        raise ValueError(f"{configuration.n_heads} heads on {machines} machines: give a divisor of the heads")
    payload = whole("tokens", tokens, least=0) * configuration.d_model * bytes_per_value
    return 2 * configuration.layers * all_reduce_bytes(payload, machines)


# --- keys split -----------------------------------------------------------------------------------------------------


class PartialOutput(NamedTuple):
    """What one machine found in its keys: o, (…, n, d_v), the attention over them alone, and lse, (…, n)."""

    o: np.ndarray
    lse: np.ndarray


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float | None = None) -> PartialOutput:
    """Attention of q (…, n, d_k) over some of the keys, k (…, m, d_k) and v (…, m, d_v), with its log-sum-exp.

    No keys give zeros and −inf. scale is 1/√d_k when left out. Raises ValueError for shapes that do not fit.
    """
    scores = q @ np.swapaxes(k, -1, -2) * check_scale(scale, q.shape[-1])
    return PartialOutput(np.asarray(arrays.attention(q, k, v, scale=scale)[0]), arrays.logsumexp(scores))


def merge(a: PartialOutput, b: PartialOutput) -> PartialOutput:
    """Join two parts: lse = log(e^lse_a + e^lse_b), and each o counts by e^(its lse − lse). Any order gives the same.

    It is day 6's rule, for outputs that are divided by their sums already. Source: Dao et al. 2022, section 3.1.
    """
    lse = np.logaddexp(a.lse, b.lse)
    finite_lse = np.where(np.isneginf(lse), 0, lse)  # −inf − −inf would be NaN; no keys on either side give zeros
    o = sum(np.exp(part.lse - finite_lse)[..., None] * part.o for part in (a, b))
    return PartialOutput(np.asarray(o), lse)


def split_keys(q: np.ndarray, k: np.ndarray, v: np.ndarray, machines: int, scale: float | None = None) -> PartialOutput:
    """Attention with the keys on several machines, as equal as they divide, merged: equal to attention in one place."""
    pieces = zip(
        np.array_split(k, whole("machines", machines), axis=-2), np.array_split(v, machines, axis=-2), strict=True
    )
    return functools.reduce(merge, (attend(q, k_piece, v_piece, scale) for k_piece, v_piece in pieces))


def keys_split_bytes(configuration: Configuration, tokens: int, machines: int, bytes_per_value: float = 4) -> float:
    """Bytes that each machine sends in a step of so many tokens, with the keys split: its o and lse to all others.

    A layer, token and head: d_head + 1 numbers, in float32 unless said otherwise. The context does not enter: that is
    what the split is for. Every machine has the weights, and so every query.
    """
    numbers = configuration.layers * configuration.n_heads * (configuration.d_head + 1)
    return (whole("machines", machines) - 1) * whole("tokens", tokens, least=0) * numbers * bytes_per_value


# --- prefill and decode apart ---------------------------------------------------------------------------------------


def handed_over_bytes(configuration: Configuration, T: int, bytes_per_value: float = 2) -> float:
    """Bytes that go from the prefill machine to the decode machine with a prompt of T tokens: its whole cache."""
    return configuration.cache_bytes(T, 1, bytes_per_value)


class Apart(NamedTuple):
    """The log of the requests with the steps of the decode machine, and the steps of the prefill machine."""

    log: Log
    prefill: tuple[ServerStep, ...]


def apart(
    requests: Sequence[Request], cost: Callable[[int, int], float], n_slots: int, seconds_a_token: float = 0.0
) -> Apart:
    """Serve with two machines: one computes prompts one after another, the other decodes, with n_slots slots.

    A prompt's step gives the first token. Its cache then takes seconds_a_token for each token of the prompt to move,
    beside all other work; only then may the request have a slot, where every step gives a token. Both machines have the
    same cost(tokens, context). Raises as `simulate` does.
    """
    if seconds_a_token < 0:
        raise ValueError(f"seconds_a_token is {seconds_a_token}: time to move a token's cache, at least 0")
    check(requests)
    now = 0.0
    prompts = {}
    later = []
    for request in sorted(requests, key=lambda request: request.arrival):
        part = Part(request.name, request.prompt, 0, True)
        step = prompts[request.name] = ServerStep(max(now, request.arrival), cost(request.prompt, 0), (part,))
        now = step.end
        if request.new > 1:
            arrives = now + seconds_a_token * request.prompt
            later.append(request._replace(arrival=arrives, new=request.new - 1))
    decoded = simulate(later, cost, n_slots, prefilled=True)
    rest = {served.name: served.times for served in decoded.served}
    served = []
    for name, arrival, _, _ in requests:
        step = prompts[name]
        served.append(Served(name, arrival, step.start, (step.end, *rest.get(name, ()))))
    return Apart(Log(n_slots, tuple(served), decoded.steps), tuple(prompts.values()))
