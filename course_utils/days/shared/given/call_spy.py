"""The watch over tensors: what a function makes of them, keeps, works out and takes out of PyTorch."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.checks.kernel.numbers import BadResult
from course_utils.days.shared.given.draws import named


def watch_both(function: Callable, *args: Any) -> tuple[Any, Any]:
    """What a tiled attention does without a causal mask, and with it."""
    return watch(function, *args, False), watch(function, *args, True)


def watch(function: Callable, *args: Any) -> Any:
    """Run a function and see what it does with tensors.

    Returns an object with `result`; `largest`: elements of the largest tensor made; `most_kept`: of all that were there
    at once; `work`: multiply-adds of matrix products, and elements of all other results; `operations`: how many there
    were; `taken_out`: numbers that left PyTorch, except those of the result. Views of other tensors count as nothing
    new. What is given does not count. The last two answers are remembered.
    """
    key = (function, *(np.asarray(x).tobytes() for x in args))
    if key not in _watched:
        for old in list(_watched)[:-1]:
            del _watched[old]
        _watched[key] = _watch(function, args)
    return _watched[key]


_watched = {}


def _watch(function: Callable, args: tuple) -> Any:
    import torch

    tensors = [torch.as_tensor(x).clone() if isinstance(x, np.ndarray) or hasattr(x, "numel") else x for x in args]
    given = {x.untyped_storage().data_ptr() for x in tensors if hasattr(x, "numel")}
    with torch.no_grad():
        eye, door = _modes()
        eye, door = eye(given), door()
        try:
            with door, eye:
                eye.result = function(*tensors)
        finally:
            if eye.operations > MOST_OPERATIONS:
                raise BadResult(TOO_MANY) from None  # what was raised inside an operation comes out as another error
    eye.taken_out = door.taken_out_beside(eye.result)
    return eye


@functools.cache
def _modes() -> tuple[type, type]:
    """The two modes that see every operation on tensors, the one by what it makes, the other by its name."""
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Eye(TorchDispatchMode):
        def __init__(self, given):
            super().__init__()
            self.given, self.known, self.tensors_of = given, {}, {}
            self.largest = self.most_kept = self.kept = self.work = self.operations = 0

        @classmethod
        def _should_skip_dynamo(cls):
            return False  # else PyTorch loads its compiler first, which takes seconds

        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            if torch.is_inference_mode_enabled() and operation._can_decompose():
                with self:  # else a whole matmul comes here as one operation, and not the products that it is made of
                    return operation.decompose(*args, **(kwargs or {}))
            out = operation(*args, **kwargs) if kwargs else operation(*args)
            self.operations += 1
            if self.operations > MOST_OPERATIONS:
                raise RuntimeError(TOO_MANY)
            for x in (out,) if type(out) is torch.Tensor else tree_leaves(out):
                if isinstance(x, torch.Tensor):
                    self.work += _work(operation, args, x)
                    self._see(x)
            return out

        def says(self, verdict, **others):
            """A verdict as a measure, beside the start of what was returned: the result has to be right too.

            others: further runs that the verdict is about, whose results have to be right as well.
            """
            return (
                {"measure": float(verdict)}
                | self.start()
                | {f"{part}, {name}": x for name, other in others.items() for part, x in other.start().items()}
            )

        def start(self):
            """The first columns of o, and lse."""
            parts = named(self.result, ("o", "lse"))
            return {"o": torch.as_tensor(parts["o"])[:, :2], "lse": parts["lse"]}

        def _see(self, x):
            if x.layout != torch.strided:
                raise BadResult("a sparse tensor cannot be watched: make dense ones")
            storage, name = x.untyped_storage(), id(x)
            place, size = storage.data_ptr(), storage.nbytes() // x.itemsize
            if place in self.given or name in self.known or not size:
                return
            self.largest = max(self.largest, size)
            others = self.tensors_of.get(place, 0)
            self.tensors_of[place] = others + 1
            if not others:
                self.kept += size
                self.most_kept = max(self.most_kept, self.kept)
            self.known[name] = weakref.ref(x, lambda _: self._let_go(name, place, size))

        def _let_go(self, name, place, size):
            del self.known[name]
            self.tensors_of[place] -= 1
            if not self.tensors_of[place]:
                self.kept -= size

    class Door(TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.taken_out = []  # the place of each tensor's numbers, and how many there are

        def taken_out_beside(self, result):
            places = {x.untyped_storage().data_ptr() for x in tree_leaves(result) if isinstance(x, torch.Tensor)}
            return sum(numbers for place, numbers in self.taken_out if place not in places)

        def __torch_function__(self, function, types, args=(), kwargs=None):
            name = getattr(function, "__name__", "")
            taken = name in WAYS_OUT and args and isinstance(args[0], torch.Tensor)
            if taken and (name != "__format__" or not args[0].dim()):  # print(f"{tile}")
                self.taken_out.append((args[0].untyped_storage().data_ptr(), args[0].numel()))
            return function(*args, **(kwargs or {}))

    return Eye, Door


MOST_OPERATIONS = 20_000  # for at most 40 tiles; right answers that go by the rows of tiles take 8,000
TOO_MANY = (
    f"it takes more than {MOST_OPERATIONS:,} operations for at most 40 tiles: take block_q queries and block_k keys "
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
}  # which argument is the left one


def _work(operation: Any, args: tuple, result: Any) -> int:
    name = _name(operation)
    if name in VIEWS:
        return 0
    return result.numel() * (args[PRODUCTS[name]].shape[-1] if name in PRODUCTS else 1)


@functools.cache
def _name(operation: Any) -> str:
    return operation.__name__.partition(".")[0].rstrip("_")
