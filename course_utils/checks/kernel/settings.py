"""The settings of NumPy, PyTorch and Python under which a check runs, whatever an answer has set.

A setting holds for the whole process, so that one answer could otherwise make others fail: `np.seterr(all="raise")`,
warnings as errors, another usual dtype, no gradients.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

NUMPY_ERRORS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
PRINT_OPTIONS = np.get_printoptions()
MIN_RECURSION_DEPTH = 1000  # of recursion; an answer may have raised it


def use_usual_settings() -> None:
    """Set all settings to their usual values."""
    warnings.simplefilter("ignore")  # an overflow shows in the result
    np.seterr(**NUMPY_ERRORS)  # type: ignore[arg-type]
    np.set_printoptions(**PRINT_OPTIONS)
    sys.setrecursionlimit(max(sys.getrecursionlimit(), MIN_RECURSION_DEPTH))
    _set(_torch_settings())


@contextmanager
def usual_settings() -> Iterator[None]:
    """Use the usual settings within a block, and those that were set before again after it."""
    before = [(read, change, read()) for read, change, _ in _torch_settings()]
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(np.errstate())
        stack.enter_context(np.printoptions())
        stack.callback(sys.setrecursionlimit, sys.getrecursionlimit())
        stack.callback(_set, before)
        use_usual_settings()
        yield


Setting = tuple[Callable[[], Any], Callable[[Any], Any], Any]


def _set(settings: list[Setting]) -> None:
    """Change the settings that have another value; some of PyTorch's import its compiler, which takes seconds."""
    for read, change, value in settings:
        if read() != value:
            change(value)


def _torch_settings() -> list[Setting]:
    """Return the settings of PyTorch, if it is loaded: how each is read and changed, and its usual value."""
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    return [
        (torch.get_default_dtype, torch.set_default_dtype, torch.float32),
        (torch.is_grad_enabled, torch.set_grad_enabled, True),
        (torch.is_anomaly_enabled, torch.set_anomaly_enabled, False),
        (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, False),
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest"),
    ]
