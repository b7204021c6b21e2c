"""Programs and methods, with the names of executorch.runtime."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import threading
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, BinaryIO, Optional, Sequence, Union

from . import dtypes
from ._library import Bytes, Closable, Handle, Info, byref, c_content, c_list, c_path, c_text, call, items, lib, owned_text
from ._library import Options as COptions
from .dtypes import DType
from .errors import InputError

__all__ = ["Kind", "Verification", "Options", "TensorInfo", "MethodMeta", "Method", "Program", "BackendRegistry", "Runtime", "load"]

Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, BinaryIO]


class Kind(IntEnum):
    """Kinds of inputs and outputs: ExecuTorch's tags."""

    NONE = 0
    TENSOR = 1
    STRING = 2
    DOUBLE = 3
    INT = 4
    BOOL = 5
    BOOL_LIST = 6
    DOUBLE_LIST = 7
    INT_LIST = 8
    TENSOR_LIST = 9
    OPTIONAL_TENSOR_LIST = 10


class Verification(Enum):
    """For programs written for executorch.runtime: files are always verified completely."""

    Minimal = 0
    InternalConsistency = 1


@dataclass(frozen=True)
class Options:
    """Options of a program.

    data_files: files with external weights (.ptd): paths, or their contents as bytes.
    threads: number of threads, 0 for the available processors.
    max_memory: memory limit in bytes, 0 for the default limits.
    seed: seed of operators that draw random numbers.
    lowering: optimizations at load: "auto", "off", "rewrite" or "all".
    xnnpack: engine: "auto", "native" (libXNNPACK) or "go".
    xnnpack_library: path of libXNNPACK or its folder.
    weights_cache: folder for packed weights, accessible to this user only.
    device: of Ethos-U delegates: "auto", "npu" (software) or a path.
    delegates: IDs of the allowed delegates, None for all.
    repair: known faults of exporters: "auto" repairs them, "off" does not.
    mmap: map files instead of reading them; they must not change.
    """

    data_files: Sequence[Any] = ()
    threads: int = 0
    max_memory: int = 0
    seed: int = 0
    lowering: str = "auto"
    xnnpack: str = "auto"
    xnnpack_library: Optional[str] = None
    weights_cache: Optional[str] = None
    device: Optional[str] = None
    delegates: Optional[Sequence[str]] = None
    repair: str = "auto"
    mmap: bool = False
    _kept: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    def structure(self) -> COptions:
        """The options as a structure of C, valid as long as this object."""
        files = items(self.data_files, "data_files")
        blocks = [c_content(d, "data_files") for d in files if not isinstance(d, (str, os.PathLike))]
        paths = c_list(ctypes.c_char_p, [c_path(d, "data_files") for d in files if isinstance(d, (str, os.PathLike))])
        contents = c_list(Bytes, [Bytes(ctypes.cast(b, ctypes.c_void_p), len(b)) for b in blocks])
        self._kept[:] = [blocks, paths, contents]
        return COptions(
            data_files=paths,
            n_data_files=len(paths or ()),
            data_bytes=contents,
            n_data_bytes=len(contents or ()),
            threads=_int(self.threads, 32, "threads"),
            map=int(self.mmap),
            max_memory=_int(self.max_memory, 64, "max_memory"),
            seed=self.seed & (1 << 64) - 1,
            lowering=c_text(self.lowering, "lowering"),
            xnnpack=c_text(self.xnnpack, "xnnpack"),
            xnnpack_library=c_path(self.xnnpack_library, "xnnpack_library") if self.xnnpack_library else None,
            weights_cache=c_path(self.weights_cache, "weights_cache") if self.weights_cache else None,
            device=c_text(self.device, "device"),
            delegates=c_text(None if self.delegates is None else ",".join(items(self.delegates, "delegates")), "delegates"),
            repair=c_text(self.repair, "repair"),
        )


def _int(n: int, bits: int, what: str) -> int:
    """Checks that a number fits a signed type: ctypes would wrap it."""
    if not -(1 << bits - 1) <= n < 1 << bits - 1:
        raise OverflowError(f"{what}: {n} does not fit {bits} bits")
    return n


@dataclass(frozen=True)
class TensorInfo:
    """The declaration of an input or output.

    sizes are upper bounds if dynamic is true. value is that of an input which is a number or bool: the
    exporter fixed it.
    """

    kind: Kind
    _dtype: Optional[DType]
    _sizes: tuple[int, ...]
    name: str
    dynamic: bool
    value: Union[int, float, bool, None] = None

    @classmethod
    def of(cls, info: Info) -> TensorInfo:
        """Converts the description of the library."""
        kind = Kind(info.kind)
        value = {Kind.INT: info.int_value, Kind.BOOL: bool(info.int_value), Kind.DOUBLE: info.double_value}.get(kind)
        dtype = DType(info.dtype) if info.dtype >= 0 else None
        return cls(kind, dtype, info.sizes(), (info.name or b"").decode(errors="replace"), info.dynamic != 0, value)

    def sizes(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return self._sizes

    def dtype(self) -> Optional[DType]:
        """The element type, None for a value without elements."""
        return self._dtype

    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return 0 if self._dtype is None else math.prod(self._sizes) * self._dtype.itemsize

    def __str__(self) -> str:
        if self._dtype is None:
            return self.kind.name.lower()
        return f"{self._dtype.name.lower()} {'x'.join(map(str, self._sizes)) or 'scalar'}"


class MethodMeta:
    """The declaration of a method: available without loading it."""

    def __init__(self, name: str, inputs: list[TensorInfo], outputs: list[TensorInfo]) -> None:
        self._name = name
        self.inputs = inputs
        self.outputs = outputs

    def name(self) -> str:
        """The name of the method."""
        return self._name

    def num_inputs(self) -> int:
        """The number of inputs."""
        return len(self.inputs)

    def num_outputs(self) -> int:
        """The number of outputs."""
        return len(self.outputs)

    def input_tensor_meta(self, index: int) -> TensorInfo:
        """The declaration of an input."""
        return self.inputs[index]

    def output_tensor_meta(self, index: int) -> TensorInfo:
        """The declaration of an output."""
        return self.outputs[index]

    def __repr__(self) -> str:
        return f"MethodMeta({self})"

    def __str__(self) -> str:
        return f"{self._name}({', '.join(map(str, self.inputs))}) -> {', '.join(map(str, self.outputs))}"


class Method(Closable):
    """A loaded instance of a method, with its own memory and state.

    Threads may share it: their calls wait for each other. Methods of several threads, loaded from one
    program, run at the same time and share its weights.
    """

    def __init__(self, program: Program, name: str) -> None:
        self._metadata = program.metadata(name)
        self._description = str(self._metadata)
        number = ctypes.c_uint64()
        call("etrun_load", program.handle, c_text(name, "name"), byref(number))
        self._handle = Handle("etrun_unload", number.value)
        self._lock = threading.Lock()
        self._program = program

    @property
    def metadata(self) -> MethodMeta:
        """The declaration of the method."""
        return self._metadata

    def execute(self, inputs: Sequence[Any] = (), *, timeout: Optional[float] = None, out: Optional[Sequence[Any]] = None) -> list[Any]:
        """Runs the method and returns its outputs.

        inputs are arrays of NumPy or any with the buffer or DLPack protocol, numbers, bools and strings.
        They must have the types and shapes of the inputs: nothing is converted. Fewer inputs than the
        method has leave the others as they were; so does None. timeout is in seconds. out has arrays
        to write the outputs to, None for those to allocate.

        Outputs are arrays of NumPy, memoryviews without NumPy; or numbers, bools, strings and lists.
        """
        with self._lock:
            handle = self._handle  # lives until the end of the call
            number = self.handle
            if len(inputs) > self._metadata.num_inputs():
                raise InputError(f"got {len(inputs)} inputs, the method has {self._metadata.num_inputs()}")
            for i, value in enumerate(inputs):
                if value is not None:
                    self._set(number, i, value)
            milliseconds = 0 if timeout is None else max(1, math.ceil(timeout * 1000))
            call("etrun_run", number, _int(milliseconds, 53, "timeout"))
            outputs = [self._get(number, i, out[i] if out else None) for i in range(self._metadata.num_outputs())]
            del handle
            return outputs

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Runs the method like execute. Returns the output if there is one, else a tuple of all."""
        outputs = self.execute(inputs, **options)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def input_array(self, index: int, shape: Optional[Sequence[int]] = None) -> Any:
        """Returns an array that the method reads an input from, without a copy.

        Write its elements before each run, and pass None for the input. shape is for an input whose
        shape varies. The method reads the array until the input is passed to execute, or until reset.
        """
        with self._lock:
            info = self._metadata.input_tensor_meta(index)
            if info.dtype() is None:
                raise InputError(f"input {index} is {info}")
            dtype, sizes = DType(info.dtype()), tuple(info.sizes() if shape is None else shape)
            data, nbytes = ctypes.c_void_p(), ctypes.c_size_t()
            request = dtypes.shape_arguments(dtype, sizes)
            call("etrun_input_memory", self.handle, index, *request, byref(data), byref(nbytes))
            kind = type("_Memory", (ctypes.c_char * nbytes.value,), {})
            memory = kind.from_address(data.value) if nbytes.value else kind()
            memory.owner = self._handle  # the memory lives as long as the handle
            return dtypes.shaped(memory, dtype, sizes)

    def reset(self) -> None:
        """Returns the method to the state after loading: state, inputs and outputs are reset."""
        with self._lock:
            call("etrun_reset", self.handle)

    def _set(self, number: int, i: int, value: Any) -> None:
        info = self._metadata.inputs[i]
        if info.kind == Kind.DOUBLE and type(value) is int:
            value = float(value)
        found = dtypes.elements(value, info.dtype() or DType.UINT8, f"input {i}")
        call("etrun_set", number, i, *found.arguments())

    def _get(self, number: int, i: int, out: Any) -> Any:
        info = Info()
        call("etrun_output", number, i, byref(info))
        kind, shape = Kind(info.kind), info.sizes()
        if kind == Kind.NONE:
            return None
        dtype = DType(info.dtype)
        if out is not None:
            array, to = out, dtypes.writable(out, dtype, shape, f"output {i}")
        else:
            array, to = dtypes.empty(dtype, shape)
        call("etrun_get", number, i, *to.arguments())
        if kind == Kind.TENSOR or out is not None:
            return array
        data = memoryview(array).tobytes()
        if kind == Kind.STRING:
            return data.decode(errors="replace")
        values = memoryview(data).cast({DType.INT64: "q", DType.FLOAT64: "d", DType.BOOL: "?"}[dtype]).tolist()
        return values if kind in (Kind.INT_LIST, Kind.DOUBLE_LIST, Kind.BOOL_LIST) else values[0]


class Program(Closable):
    """An open program. It may be closed before its methods."""

    def __init__(self, data: Source, options: Options) -> None:
        number, with_options = ctypes.c_uint64(), options.structure()
        if isinstance(data, (str, os.PathLike)):
            call("etrun_open", c_path(data, "path"), byref(with_options), byref(number))
        else:
            content = c_content(data.read() if hasattr(data, "read") else data, "data")
            call("etrun_open_memory", content, len(content), byref(with_options), byref(number))
        self._handle = Handle("etrun_close", number.value)
        self._description = ", ".join(sorted(self.method_names))

    @property
    def method_names(self) -> set[str]:
        """The names of the methods."""
        names: list[str] = []
        name = ctypes.c_char_p()
        while True:
            call("etrun_method_name", self.handle, len(names), byref(name))
            if name.value is None:
                return set(names)
            names.append(name.value.decode(errors="replace"))

    def metadata(self, method_name: str = "forward") -> MethodMeta:
        """The declaration of a method."""
        name, counts = c_text(method_name, "method_name"), (ctypes.c_size_t(), ctypes.c_size_t())
        call("etrun_declared_counts", self.handle, name, byref(counts[0]), byref(counts[1]))
        lists: list[list[TensorInfo]] = []
        for function, n in zip(("etrun_declared_input", "etrun_declared_output"), counts):
            info, found = Info(), []
            for i in range(n.value):
                call(function, self.handle, name, i, byref(info))
                found.append(TensorInfo.of(info))
            lists.append(found)
        return MethodMeta(method_name, *lists)

    def load_method(self, name: str = "forward") -> Method:
        """Loads a method."""
        return Method(self, name)

    @property
    def warnings(self) -> list[str]:
        """What the program does not use, or runs slower than it could. Loading a method may add some."""
        found: list[str] = []
        while True:
            text = ctypes.c_void_p()
            call("etrun_warning", self.handle, len(found), byref(text))
            if not text:
                return found
            found.append(owned_text(text))


class BackendRegistry:
    """The backends of the library."""

    @property
    def registered_backend_names(self) -> list[str]:
        """The IDs of the backends."""
        names: list[str] = []
        while True:
            name = lib.etrun_backend_name(len(names))
            if name is None:
                return names
            names.append(name.decode())

    def is_available(self, backend_name: str) -> bool:
        """Whether the library has a backend."""
        return backend_name in self.registered_backend_names


class Runtime:
    """The entry point with the names of executorch.runtime: Runtime.get()."""

    @classmethod
    @functools.lru_cache(maxsize=None)
    def get(cls) -> Runtime:
        """The one instance."""
        return cls()

    @property
    def backend_registry(self) -> BackendRegistry:
        """The backends of the library."""
        return BackendRegistry()

    def load_program(self, data: Source, *, verification: Verification = Verification.InternalConsistency, **options: Any) -> Program:
        """Opens a program: a path, the content of a file, or a file opened in binary mode.

        options are those of Options. The file is always verified completely.
        """
        del verification
        return Program(data, Options(**options))


def load(data: Source, method: str = "forward", **options: Any) -> Method:
    """Opens a program and loads a method. options are those of Options.

    >>> model = etrun.load("model.pte")
    >>> scores = model(pixels)
    """
    with Program(data, Options(**options)) as program:
        return program.load_method(method)
