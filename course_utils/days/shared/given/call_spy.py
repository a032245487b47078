"""Observe what a function does with tensors: those it makes and keeps, the work, and numbers that leave PyTorch."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.checks.kernel.result_numbers import BadResult
from course_utils.days.shared.given.draws import named


def watch_both(function: Callable, *args: Any) -> tuple[Any, Any]:
    """Watch a tiled attention without a causal mask and with it."""
    return watch(function, *args, False), watch(function, *args, True)


def watch(function: Callable, *args: Any) -> Any:
    """Run a function and observe what it does with tensors.

    The arguments and views of other tensors do not count as new tensors. The last two calls are cached.

    Returns:
        an object with the attributes
        result: what the function returned,
        largest: elements of the largest tensor made,
        most_kept: the most elements that existed at one time,
        work: multiply-adds of matrix products, plus the elements of all other results,
        operations: the number of operations,
        taken_out: numbers that left PyTorch, except those of the result.
    """
    key = (function, *(np.asarray(x).tobytes() for x in args))
    if key not in _watched:
        for old in list(_watched)[:-1]:
            del _watched[old]
        _watched[key] = _watch(function, args)
    return _watched[key]


_watched: dict[tuple, Any] = {}


def _watch(function: Callable, args: tuple) -> Any:
    import torch

    tensors = [torch.as_tensor(x).clone() if isinstance(x, np.ndarray) or hasattr(x, "numel") else x for x in args]
    inputs = {x.untyped_storage().data_ptr() for x in tensors if hasattr(x, "numel")}
    with torch.no_grad():
        OperationRecorder, ExitRecorder = _recorders()
        operations_seen = OperationRecorder(inputs)
        numbers_out = ExitRecorder()
        try:
            with numbers_out, operations_seen:
                operations_seen.result = function(*tensors)
        finally:
            if operations_seen.operations > MAX_OPERATIONS:
                raise BadResult(TOO_MANY) from None  # an error raised inside an operation reaches us as another one
    operations_seen.taken_out = numbers_out.taken_out_beside(operations_seen.result)
    return operations_seen


@functools.cache
def _recorders() -> tuple[type, type]:
    """Return two modes that see every call on tensors: one records operations, the other numbers that leave PyTorch.

    They are classes of PyTorch's, made here so that PyTorch is imported only when something is watched.
    """
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class OperationRecorder(TorchDispatchMode):
        result: Any  # what the function returned

        def __init__(self, inputs):
            super().__init__()
            self.inputs = inputs  # addresses of the arguments' storages, which do not count
            self.tracked = {}  # by id, a weak reference to each tensor that exists
            self.tensors_of = {}  # by address of a storage, how many tensors use it
            self.kept = 0  # elements that exist now
            self.largest = self.most_kept = self.work = self.operations = 0

        @classmethod
        def _should_skip_dynamo(cls):
            return False  # otherwise PyTorch loads its compiler first, which takes seconds

        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            if torch.is_inference_mode_enabled() and operation._can_decompose():
                with self:  # otherwise a matmul arrives whole, not as the products that it consists of
                    return operation.decompose(*args, **(kwargs or {}))
            out = operation(*args, **kwargs) if kwargs else operation(*args)
            # an answer with far too many operations is stopped, since each is slow when it is watched
            self.operations += 1
            if self.operations > MAX_OPERATIONS:
                raise RuntimeError(TOO_MANY)
            # all tensors of the result are recorded, and the work that they took
            for x in (out,) if type(out) is torch.Tensor else tree_leaves(out):
                if isinstance(x, torch.Tensor):
                    self.work += _work(operation, args, x)
                    self._record(x)
            return out

        def report(self, verdict, **others):
            """Return a verdict as a measure, with the start of the result, because the result must be right too.

            Args:
                others: further runs behind the verdict, whose results must be right as well.
            """
            return (
                {"measure": float(verdict)}
                | self.start()
                | {f"{part}, {name}": x for name, other in others.items() for part, x in other.start().items()}
            )

        def start(self):
            """Return the first two columns of o, and lse."""
            parts = named(self.result, ("o", "lse"))
            return {"o": torch.as_tensor(parts["o"])[:, :2], "lse": parts["lse"]}

        def _record(self, x):
            if x.layout != torch.strided:
                raise BadResult("a sparse tensor cannot be watched: make dense ones")
            storage = x.untyped_storage()
            name = id(x)
            place = storage.data_ptr()
            size = storage.nbytes() // x.itemsize
            if place in self.inputs or name in self.tracked or not size:
                return
            self.largest = max(self.largest, size)
            # views share a storage: its elements count with the first tensor, and until the last one is gone
            others = self.tensors_of.get(place, 0)
            self.tensors_of[place] = others + 1
            if not others:
                self.kept += size
                self.most_kept = max(self.most_kept, self.kept)
            self.tracked[name] = weakref.ref(x, lambda _: self._forget(name, place, size))

        def _forget(self, name, place, size):
            del self.tracked[name]
            self.tensors_of[place] -= 1
            if not self.tensors_of[place]:
                self.kept -= size

    class ExitRecorder(TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.taken_out = []  # address and number of elements of each tensor taken out

        def taken_out_beside(self, result):
            """Count the numbers taken out of tensors other than those of the result, which may be looked at."""
            places = {x.untyped_storage().data_ptr() for x in tree_leaves(result) if isinstance(x, torch.Tensor)}
            return sum(numbers for place, numbers in self.taken_out if place not in places)

        def __torch_function__(self, function, types, args=(), kwargs=None):
            name = getattr(function, "__name__", "")
            taken = name in WAYS_OUT and args and isinstance(args[0], torch.Tensor)
            if taken and (name != "__format__" or not args[0].dim()):  # print(f"{tile}")
                self.taken_out.append((args[0].untyped_storage().data_ptr(), args[0].numel()))
            return function(*args, **(kwargs or {}))

    return OperationRecorder, ExitRecorder


MAX_OPERATIONS = 20_000  # for at most 40 tiles; right answers that go row by row in each tile take 8,000
TOO_MANY = (
    f"it takes more than {MAX_OPERATIONS:,} operations for at most 40 tiles: take block_q queries and block_k keys "
    "at a time, no fewer"
)
WAYS_OUT = {
    "numpy", "tolist", "item", "__array__", "__dlpack__", "__float__", "__int__", "__complex__", "__index__",
    "__format__", "__reduce_ex__", "untyped_storage", "data_ptr",
}  # fmt: skip
VIEWS = {
    "view", "t", "transpose", "permute", "expand", "slice", "select", "unsqueeze", "squeeze", "detach", "alias",
    "_unsafe_view", "unbind", "split", "as_strided",
}  # fmt: skip
PRODUCTS = {
    "mm": 0,
    "bmm": 0,
    "mv": 0,
    "dot": 0,
    "addmm": 1,
    "baddbmm": 1,
    "addmv": 1,
}  # index of the left argument


def _work(operation: Any, args: tuple, result: Any) -> int:
    name = _name(operation)
    if name in VIEWS:
        return 0
    return result.numel() * (args[PRODUCTS[name]].shape[-1] if name in PRODUCTS else 1)


@functools.cache
def _name(operation: Any) -> str:
    return operation.__name__.partition(".")[0].rstrip("_")
