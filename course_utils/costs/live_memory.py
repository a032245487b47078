"""Memory of the tensors that a function makes, counted while it runs: the same on every machine.

`measure.peak_memory` asks the system what a whole process takes. This counts tensors alone, one storage at a time, so
that the result depends on what a function does and on nothing else.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def peak_of_tensors(function: Callable[..., Any], *args: Any) -> tuple[Any, int]:
    """Call function(*args) without gradients; return its result and the most bytes that its new tensors held at once.

    The tensors of the arguments, and others that were there before, do not count.
    """
    meter = _Meter()
    with torch.no_grad(), meter:
        result = function(*args)
    return result, meter.peak


class _Meter(TorchDispatchMode):
    """Count the bytes of the storages of all tensors that operations return, as long as one of the tensors lives."""

    def __init__(self) -> None:
        super().__init__()
        self.peak = self._held = 0
        self._users: dict[int, int] = {}  # by address of a storage: how many tensors use it
        self._before: set[int] = set()  # addresses of storages that operations were given, and did not make

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # otherwise PyTorch loads its compiler first, which takes seconds

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for x in tree_leaves((args, kwargs)):
            if isinstance(x, Tensor) and (place := x.untyped_storage().data_ptr()) not in self._users:
                self._before.add(place)
        out = operation(*args, **(kwargs or {}))
        for x in tree_leaves(out):
            if isinstance(x, Tensor):
                self._count(x)
        return out

    def _count(self, x: Tensor) -> None:
        storage = x.untyped_storage()
        place, size = storage.data_ptr(), storage.nbytes()
        if not size or place in self._before:
            return
        users = self._users.get(place, 0)
        self._users[place] = users + 1
        if not users:
            self._held += size
            self.peak = max(self.peak, self._held)
        weakref.finalize(x, self._let_go, place, size)

    def _let_go(self, place: int, size: int) -> None:
        self._users[place] -= 1
        if not self._users[place]:
            del self._users[place]
            self._held -= size
