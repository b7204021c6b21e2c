"""Runs ExecuTorch programs (.pte) with libetrun.

The names are those of executorch.runtime:

>>> import etrun
>>> program = etrun.Runtime.get().load_program("model.pte")
>>> outputs = program.load_method("forward").execute([pixels])

A short way to the same:

>>> scores = etrun.load("model.pte")(pixels)
"""

from ._library import lib as _lib
from .dtypes import DType
from .errors import (
    BusyError,
    CancelledError,
    ClosedError,
    DeviceError,
    Error,
    FileError,
    InputError,
    MemoryLimitError,
    MissingError,
    ModelError,
    PanicError,
)
from .runtime import BackendRegistry, Kind, Method, MethodMeta, Options, Program, Runtime, TensorInfo, Verification, load
from .text import Piece, TextModel, load_text

__version__: str = _lib.etrun_version().decode()

__all__ = [
    "BackendRegistry",
    "BusyError",
    "CancelledError",
    "ClosedError",
    "DType",
    "DeviceError",
    "Error",
    "FileError",
    "InputError",
    "Kind",
    "MemoryLimitError",
    "Method",
    "MethodMeta",
    "MissingError",
    "ModelError",
    "Options",
    "PanicError",
    "Piece",
    "Program",
    "Runtime",
    "TensorInfo",
    "TextModel",
    "Verification",
    "load",
    "load_text",
]
