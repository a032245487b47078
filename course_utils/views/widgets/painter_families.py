"""The families of masks that the painter offers: their names, what is said about them, and every mask of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from course_utils.attention import masks

Entry = dict[str, Any]  # a mask of a family: family, setting, value, mask, code
SETTINGS = {"sliding window": "window", "prefix-LM": "prefix", "padding": "length"}


ABOUT = {
    "bidirectional": "Every query may attend to every key.",
    "causal": "Each query may attend to its own place and to what came before it.",
    "causal, upper left": "The triangle starts at the first key: query 0 may attend to key 0 alone.",
    "sliding window": "Causal, and only the last few places: a query's own and those just before it.",
    "prefix-LM": "Every query may attend to the first keys, the prefix; after it the mask is causal.",
    "padding": "The first keys are real, the others are padding, which no query may attend to.",
    "painted": "Your own mask, none of the families. After you look at one of them, this button brings it back.",
}


RECTANGLE = {"causal": "The triangle ends at the last key: the last query may attend to every key."}


def families_of(n: int, m: int) -> list[Entry]:
    """Every mask of every family: its text, its line of Python, and the value of the family's setting if it has one."""

    def entry(family, mask, code, setting=None, value=None):
        mask = np.broadcast_to(mask.numpy().reshape(-1, m), (n, m))
        return {"family": family, "setting": setting, "value": value, "mask": as_signs(mask), "code": f"mask = {code}"}

    everything = f"torch.ones({n}, {m}, dtype=torch.bool)"
    lower_right = f"{everything}.tril({m - n if n != m else ''})"
    entries = [
        entry("bidirectional", torch.ones(n, m, dtype=torch.bool), everything),
        entry("causal", masks.causal(n, m), lower_right),
    ]
    if n != m:
        upper_left = masks.causal(n, m, align="upper-left")
        entries.append(entry("causal, upper left", upper_left, f"{everything}.tril()"))
    for window in range(1, m + 1):
        code = f"{lower_right}.triu({m - n - window + 1})"
        entries.append(entry("sliding window", masks.sliding_window(n, window, m), code, "window", window))
    for prefix in range(n + 1 if n == m else 0):
        code = f"{lower_right} | (torch.arange({m}) < {prefix})"
        entries.append(entry("prefix-LM", masks.prefix_lm(n, prefix), code, "prefix", prefix))
    for length in range(m + 1):
        code = f"(torch.arange({m}) < {length}).expand({n}, {m})"
        entries.append(entry("padding", masks.padding([length], m), code, "length", length))
    return entries


def find_entry(catalogue: Sequence[Entry], family: str, settings: Mapping[str, int]) -> Entry:
    return next(e for e in catalogue if e["family"] == family and e["value"] == settings.get(e["setting"]))


def recognise(
    catalogue: Sequence[Entry], mask: str, family: str, settings: dict[str, int]
) -> tuple[str, dict[str, int]]:
    """Return the family of a mask and its setting: the one it was if that still fits, else the first that does."""
    if family != "painted" and find_entry(catalogue, family, settings)["mask"] == mask:
        return family, settings
    for entry in catalogue:
        if entry["mask"] == mask:
            return entry["family"], settings | ({entry["setting"]: entry["value"]} if entry["setting"] else {})
    return "painted", settings


def family_names(catalogue: Sequence[Entry]) -> list[str]:
    return list(dict.fromkeys(entry["family"] for entry in catalogue))


def as_signs(mask: Any) -> str:
    return "".join("1" if may else "0" for may in np.ravel(mask))
