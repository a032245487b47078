"""Store of the pretrained model on this machine, converted once so that loading only maps the file into memory.

The environment variable COURSE_MODEL names a GGUF file to use instead of the course's own model, or is `none` to
disable the model. A file is written under a temporary name and then moved to its place, so that a reader sees a
complete file or none; if two processes write, the last one wins.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pickle
import shutil
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import platformdirs
import torch

from course_utils.errors import CourseError
from course_utils.models.pretrained.gguf_file import Contents, contents, open_gguf, weights

NAME = "smollm2-135m-instruct"
GET = "python -m course_utils.models.fetch"
HOW = f"the real model is not on this machine: {GET} brings it (93 MB, once)"
FORMAT = 1  # version of the format of converted files
DTYPES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
HOUR = 3600
PART = ".part"


class NoModel(CourseError):
    """This machine has no model. The message says in one line how to get it."""


def folder() -> Path:
    """Return the course's cache folder for this user."""
    return platformdirs.user_cache_path("attention-from-pencil-to-kernel", appauthor=False)


def chosen() -> Path | None:
    """Return the file that COURSE_MODEL names, or None for the course's own model.

    Raises:
        NoModel: COURSE_MODEL is `none`.
    """
    name = os.environ.get("COURSE_MODEL", "")
    if name.lower() == "none":
        raise NoModel("COURSE_MODEL is none: unset it, or name a GGUF file, to run the real model")
    return Path(name).expanduser() if name else None


def model_path(dtype: torch.dtype = torch.float32) -> Path:
    """Return the path of the converted file with weights of this dtype, whether or not the file exists.

    Raises:
        NoModel: COURSE_MODEL is `none`.
        CourseError: the file that COURSE_MODEL names cannot be read.
        TypeError: the model is not stored in this dtype.
    """
    if dtype not in DTYPES:
        raise TypeError(f"dtype is {dtype}: the model is kept in {' and '.join(DTYPES.values())}")
    path = chosen()
    if path is None:
        return folder() / f"{NAME}-{DTYPES[dtype]}.pt"
    try:
        status = path.stat()
    except OSError as error:
        raise CourseError(f"COURSE_MODEL is {path}: cannot be read ({error.strerror})") from None
    key = sha256(f"{path.resolve()} {status.st_size} {status.st_mtime_ns}".encode()).hexdigest()[:16]
    return folder() / f"{path.stem}-{key}-{DTYPES[dtype]}.pt"


def convert(path: Path, target: Path, done: Callable[[int, int], None] = lambda n, of: None) -> None:
    """Convert a GGUF file to float32 and write it to `target`.

    Args:
        done: called after each tensor with the number of tensors read, and the number of all tensors.

    Raises:
        CourseError: the file cannot be read or run, or `target` cannot be written.
    """
    file = open_gguf(path)
    description = contents(file)
    write(target, description, weights(file, description.sizes["n_layers"], done))


def write(target: Path, description: Contents, tensors: dict[str, torch.Tensor]) -> None:
    """Write a converted file completely or not at all.

    Raises:
        CourseError: there is no room on the disk, or no write access.
    """
    content = {"format": FORMAT, "contents": dataclasses.asdict(description), "weights": tensors}
    beside = target.with_name(f".{target.name}.{os.getpid()}{PART}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target.parent)
        torch.save(content, beside)
        os.replace(beside, target)
    except (OSError, RuntimeError) as error:  # PyTorch raises RuntimeError for a full disk
        size = sum({tensor.data_ptr(): tensor.nbytes for tensor in tensors.values()}.values()) // 10**6
        why = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise CourseError(f"{target}: cannot be written ({why}); the model takes {size} MB there") from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def read(dtype: torch.dtype = torch.float32) -> tuple[Contents, dict[str, torch.Tensor]]:
    """Return the stored model, with its weights mapped into memory. Convert it first if this dtype is not stored yet.

    Raises:
        NoModel: the model is not on this machine.
        CourseError: a file is damaged or cannot be read or written.
    """
    path = model_path(dtype)
    if not path.exists():
        if dtype != torch.float32:
            description, tensors = read()
            narrow = {name: tensor.to(dtype) for name, tensor in tensors.items()}
            if description.sizes["tied"]:
                narrow["unembedding.weight"] = narrow["embedding.weight"]
            write(path, description, narrow)
        elif (source := chosen()) is not None:
            convert(source, path)
        else:
            raise NoModel(HOW)
    return _load(path)


def _load(path: Path) -> tuple[Contents, dict[str, torch.Tensor]]:
    again = f"delete it, and {GET} makes it again"
    try:
        content: dict[str, Any] = torch.load(path, mmap=True, weights_only=True)
        if content["format"] != FORMAT:
            raise CourseError(f"{path}: written by another version of the course; {again}")
        return Contents(**content["contents"]), content["weights"]
    except OSError as error:
        raise CourseError(f"{path}: cannot be read ({error.strerror}); {again}") from None
    except (RuntimeError, BadZipFile, pickle.UnpicklingError, KeyError, TypeError, EOFError, ValueError):
        raise CourseError(f"{path}: the file is damaged; {again}") from None


def sweep(where: Path) -> None:
    """Delete partial files in a folder that are more than an hour old, because an interrupted process left them."""
    for part in where.glob(f".*{PART}"):
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime > HOUR:
                shutil.rmtree(part) if part.is_dir() else part.unlink()
