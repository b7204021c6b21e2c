"""Runs ExecuTorch programs (.pte) with libetrun.

The names are those of executorch.runtime:

>>> import etrun
>>> program = etrun.Runtime.get().load_program("model.pte")
>>> outputs = program.load_method("forward").execute([pixels])

A short way to the same:

>>> scores = etrun.load("model.pte")(pixels)

With the names of onnxruntime:

>>> scores = etrun.InferenceSession("model.pte").run(None, {"input_0": pixels})
"""

from ._library import lib as _lib
from .dtypes import Array, DType
from .errors import (
    BusyError,
    CancelledError,
    ClosedError,
    DeviceError,
    Error,
    FileError,
    InputError,
    InputTypeError,
    MemoryLimitError,
    MethodNameError,
    MissingError,
    ModelError,
    PanicError,
)
from .portable_lib import (
    ExecuTorchMethod,
    ExecuTorchModule,
    ExecuTorchProgram,
    _get_operator_names,
    _get_registered_backend_names,
    _is_available,
    _load_for_executorch,
    _load_for_executorch_from_buffer,
    _load_program,
    _load_program_from_buffer,
)
from .runtime import (
    BackendRegistry,
    Kind,
    Method,
    MethodMeta,
    OperatorRegistry,
    Options,
    Program,
    Runtime,
    TensorInfo,
    Verification,
    load,
)
from .session import (
    ExecutionMode,
    GraphOptimizationLevel,
    InferenceSession,
    NodeArg,
    RunOptions,
    SessionOptions,
    get_available_providers,
    get_device,
)
from .text import Embedder, Generation, Piece, TextModel, load_embedder, load_text

__version__: str = _lib.etrun_version().decode()

__all__ = [
    "Array",
    "BackendRegistry",
    "BusyError",
    "CancelledError",
    "ClosedError",
    "DType",
    "DeviceError",
    "Embedder",
    "Error",
    "ExecuTorchMethod",
    "ExecuTorchModule",
    "ExecuTorchProgram",
    "ExecutionMode",
    "FileError",
    "Generation",
    "GraphOptimizationLevel",
    "InferenceSession",
    "InputError",
    "InputTypeError",
    "Kind",
    "MemoryLimitError",
    "Method",
    "MethodMeta",
    "MethodNameError",
    "MissingError",
    "ModelError",
    "NodeArg",
    "OperatorRegistry",
    "Options",
    "PanicError",
    "Piece",
    "Program",
    "RunOptions",
    "Runtime",
    "SessionOptions",
    "TensorInfo",
    "TextModel",
    "Verification",
    "_get_operator_names",
    "_get_registered_backend_names",
    "_is_available",
    "_load_for_executorch",
    "_load_for_executorch_from_buffer",
    "_load_program",
    "_load_program_from_buffer",
    "get_available_providers",
    "get_device",
    "load",
    "load_embedder",
    "load_text",
]
