"""Bytes: what the score matrix takes for a moment, what the KV cache takes for as long as a text is written.

GB is 1000³ bytes and GiB is 1024³, 7% more. Bandwidth is quoted in the first, memory is often sold as the first and
built as the second. `in_decimal_units` and `in_binary_units` write the unit out.
"""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING

from course_utils.costs.sizes import whole

if TYPE_CHECKING:
    import torch

BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8": 1, "int8": 1, "int4": 0.5}
SHORT = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp8": "float8"}


def value_bytes(bytes_per_value: float | str | torch.dtype) -> float:
    """Return the bytes of one value: a number as it is, or the width of a dtype: "bfloat16", "bf16" or torch.bfloat16.

    Whole numbers come back as integers. Raises ValueError for other names and for numbers no value can have.
    """
    name = str(bytes_per_value).removeprefix("torch.")
    name = "float8" if name.startswith("float8_") else SHORT.get(name, name)  # float8_e4m3fn, float8_e5m2 and so on
    width = BYTES.get(name, bytes_per_value)
    if isinstance(width, bool) or not isinstance(width, numbers.Real) or not 0 < float(width) < 1000:
        known = ", ".join([*BYTES, *SHORT])
        raise ValueError(f"bytes_per_value is {bytes_per_value!r}: give a number of bytes, or one of {known}")
    size = float(width)
    return int(size) if size.is_integer() else size


def score_bytes(B: int, h: int, n: int, m: int | None = None, bytes_per_value: float | str | torch.dtype = 2) -> float:
    """Bytes of the scores of one layer, (B, h, n, m), if they are ever stored; fp16 or bf16 when nothing is said.

    m is n when left out. Softmax makes a second matrix of the same size, so naive attention holds twice this.
    """
    B, h, n, m = whole(B=B, h=h, n=n, m=n if m is None else m)
    return B * h * n * m * value_bytes(bytes_per_value)


def kv_cache_bytes(
    layers: int, n_kv_heads: int, d_head: int, T: int, B: int = 1, bytes_per_value: float | str | torch.dtype = 2
) -> float:
    """Bytes of a KV cache: 2 · layers · n_kv_heads · d_head · T · B · bytes per value; the 2 is for keys and values.

    T = 1 and B = 1 give the bytes per token. Source: Kwon et al. 2023 (PagedAttention), section 3; for fewer heads
    Pope et al. 2022, section 3.3.
    """
    layers, n_kv_heads, d_head, T, B = whole(layers=layers, n_kv_heads=n_kv_heads, d_head=d_head, T=T, B=B)
    return 2 * layers * n_kv_heads * d_head * T * B * value_bytes(bytes_per_value)


def latent_cache_bytes(
    layers: int, d_latent: int, d_rope: int, T: int, B: int = 1, bytes_per_value: float | str | torch.dtype = 2
) -> float:
    """Return the bytes of the cache of multi-head latent attention: a latent and a rotary key for each token and layer.

    Keys and values are both read out of the latent, so there is no 2. Source: DeepSeek-AI 2024 (DeepSeek-V2),
    section 2.1.4, table 1.
    """
    layers, d_latent, d_rope, T, B = whole(layers=layers, d_latent=d_latent, d_rope=d_rope, T=T, B=B)
    return layers * (d_latent + d_rope) * T * B * value_bytes(bytes_per_value)


def in_decimal_units(number_of_bytes: float, unit: str | None = None, digits: int = 3) -> str:
    """The bytes in words, by thousands: 34_359_738_368 is "34.4 GB". unit fixes the unit: "GB" for a column in GB.

    `digits` significant digits. Raises ValueError for a unit it does not know.
    """
    return _in_words(number_of_bytes, 1000, ("bytes", "kB", "MB", "GB", "TB", "PB"), unit, digits)


def in_binary_units(number_of_bytes: float, unit: str | None = None, digits: int = 3) -> str:
    """Return the bytes in words, by 1024s: 34_359_738_368 is "32.0 GiB". Arguments as in in_decimal_units."""
    return _in_words(number_of_bytes, 1024, ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"), unit, digits)


def _in_words(number_of_bytes: float, step: int, units: tuple[str, ...], unit: str | None, digits: int) -> str:
    if unit is not None and unit not in units:
        raise ValueError(f"unit is {unit!r}: it must be one of {', '.join(units)}")
    power = 0 if unit is None else units.index(unit)
    while unit is None and power < len(units) - 1 and _round(number_of_bytes / step**power, digits) >= step:
        power += 1
    amount = _round(number_of_bytes / step**power, digits)
    decimals = max(0, digits - 1 - _magnitude(amount)) if power else 0
    return f"{amount:.{decimals}f} {units[power]}"


def _round(amount: float, digits: int) -> float:
    """To so many significant digits, but never fewer than stand before the point."""
    return round(amount, max(0, digits - 1 - _magnitude(amount)))


def _magnitude(amount: float) -> int:
    """The power of ten of the first digit: 0 for 1 to 9, 1 for 10 to 99, -1 for 0.1 to 0.9."""
    return math.floor(math.log10(amount)) if amount else 0
