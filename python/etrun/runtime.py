"""Programs and methods, with the names of executorch.runtime."""

from __future__ import annotations

import ctypes
import functools
import math
import operator
import os
import threading
from collections.abc import Sequence as AnySequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, Optional, Sequence, TypedDict, Union

from . import dtypes
from ._library import ONE, Bytes, Closable, Handle, Info, Value, byref, c_block, c_content, c_list, c_path, c_text, call
from ._library import Options as COptions
from ._library import items, lib, names, owned_text
from .dtypes import Array, DType, Exchangeable
from .errors import CLASSES, Error, FileError, InputError, InputTypeError, MethodNameError, file_error

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "BackendRegistry",
    "Kind",
    "Method",
    "MethodMeta",
    "OperatorRegistry",
    "Options",
    "Program",
    "Runtime",
    "TensorInfo",
    "Verification",
    "load",
]

Path = Union[str, "os.PathLike[str]"]
Source = Union[Path, bytes, bytearray, memoryview, BinaryIO]
Content = Union[Path, bytes, bytearray, memoryview]


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

    def __int__(self) -> int:
        return self.value


class Options(TypedDict, total=False):
    """Options of a program, which are keyword arguments.

    data_files: files with external weights (.ptd): a path, the content as bytes, or a list of these.
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

    data_files: Union[Content, Sequence[Content]]
    threads: int
    max_memory: int
    seed: int
    lowering: str
    xnnpack: str
    xnnpack_library: Optional[Path]
    weights_cache: Optional[Path]
    device: Optional[str]
    delegates: Optional[Sequence[str]]
    repair: str
    mmap: bool


def _structure(o: Options) -> tuple[COptions, list[Any], list[Any]]:
    """Returns the options as a structure of C, the paths of data files, and what keeps their contents alive."""
    unknown = set(o) - set(Options.__annotations__)
    if unknown:
        raise TypeError(f"no option {min(unknown)!r}, want one of {', '.join(Options.__annotations__)}")
    given = o.get("data_files", ())
    files = [given] if isinstance(given, ONE) else items(given, "data_files")
    paths = [d for d in files if isinstance(d, (str, os.PathLike))]
    blocks = [c_content(d, "data_files") for d in files if not isinstance(d, (str, os.PathLike))]
    delegates = o.get("delegates")
    s = COptions(
        data_files=c_list(ctypes.c_char_p, [c_path(d, "data_files") for d in paths]),
        n_data_files=len(paths),
        data_bytes=c_list(Bytes, list(map(c_block, blocks))),
        n_data_bytes=len(blocks),
        threads=_int(o.get("threads", 0), 32, "threads"),
        map=int(o.get("mmap", False)),
        max_memory=_int(o.get("max_memory", 0), 64, "max_memory"),
        seed=o.get("seed", 0) & (1 << 64) - 1,
        delegates=c_text(None if delegates is None else ",".join(items(delegates, "delegates")), "delegates"),
    )
    for name in ("lowering", "xnnpack", "device", "repair"):
        setattr(s, name, c_text(o.get(name), name))
    for name in ("xnnpack_library", "weights_cache"):
        path = o.get(name)
        setattr(s, name, c_path(path, name) if path else None)
    return s, paths, blocks


def _int(n: int, bits: int, what: str) -> int:
    """Checks that a number fits a signed type: ctypes would wrap it."""
    if not -(1 << bits - 1) <= n < 1 << bits - 1:
        raise OverflowError(f"{what}: {n} does not fit {bits} bits")
    return n


@dataclass(frozen=True, repr=False)
class TensorInfo:
    """The declaration of an input, output or attribute.

    sizes are upper bounds if dynamic is true. value is that of an input which is a number or bool: the
    exporter fixed it.
    """

    kind: Kind
    _dtype: Optional[DType]
    _sizes: tuple[int, ...]
    name: str
    dynamic: bool
    value: Union[int, float, bool, None] = None
    _planned: bool = False

    @classmethod
    def of(cls, info: Info) -> TensorInfo:
        """Converts the description of the library."""
        kind = Kind(info.kind)
        value = {Kind.INT: info.int_value, Kind.BOOL: bool(info.int_value), Kind.DOUBLE: info.double_value}.get(kind)
        dtype = DType(info.dtype) if info.dtype >= 0 else None
        name = (info.name or b"").decode(errors="replace")
        return cls(kind, dtype, info.sizes(), name, info.dynamic != 0, value, info.planned != 0)

    def sizes(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return self._sizes

    def dtype(self) -> Optional[DType]:
        """The element type, an int; None for a value without elements."""
        return self._dtype

    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return 0 if self._dtype is None else math.prod(self._sizes) * self._dtype.itemsize

    def is_memory_planned(self) -> bool:
        """Whether the file has memory or contents for the tensor."""
        return self._planned

    def short(self) -> str:
        """The type and the shape, such as float32 1x10."""
        if self._dtype is None:
            return self.kind.name.lower()
        return f"{self._dtype.name.lower()} {'x'.join(map(str, self._sizes)) or 'scalar'}"

    def __repr__(self) -> str:
        if self.kind != Kind.TENSOR or self._dtype is None:
            return self.kind.name.title().replace("_", "")
        sizes, dtype = list(self._sizes), self._dtype.scalar_name
        return f"TensorInfo(sizes={sizes}, dtype={dtype}, is_memory_planned={self._planned}, nbytes={self.nbytes()})"


def _tensor(infos: list[TensorInfo], index: int, what: str) -> TensorInfo:
    """Returns a description by its index, with the errors of executorch.runtime."""
    i = operator.index(index)
    if i < 0:
        raise TypeError(f"{what} {i}: want an index of 0 or more")
    if i >= len(infos):
        raise IndexError(f"{what} {i}, the method has {len(infos)}")
    if infos[i].kind != Kind.TENSOR:
        raise IndexError(f"{what} {i} is {infos[i].short()}, not a tensor: see MethodMeta.{what}s")
    return infos[i]


class MethodMeta:
    """The declaration of a method: available without loading it.

    inputs, outputs and attributes describe values of every kind. Attributes are tensors with a name.
    """

    def __init__(self, name: str, inputs: list[TensorInfo], outputs: list[TensorInfo], attributes: list[TensorInfo]) -> None:
        self._name = name
        self.inputs = inputs
        self.outputs = outputs
        self.attributes = attributes

    def name(self) -> str:
        """The name of the method."""
        return self._name

    def num_inputs(self) -> int:
        """The number of inputs."""
        return len(self.inputs)

    def num_outputs(self) -> int:
        """The number of outputs."""
        return len(self.outputs)

    def num_attributes(self) -> int:
        """The number of attributes."""
        return len(self.attributes)

    def input_tensor_meta(self, index: int) -> TensorInfo:
        """The declaration of an input that is a tensor, else IndexError."""
        return _tensor(self.inputs, index, "input")

    def output_tensor_meta(self, index: int) -> TensorInfo:
        """The declaration of an output that is a tensor, else IndexError."""
        return _tensor(self.outputs, index, "output")

    def attribute_tensor_meta(self, index: int) -> TensorInfo:
        """The declaration of an attribute, else IndexError."""
        return _tensor(self.attributes, index, "attribute")

    def short(self) -> str:
        """The signature, such as forward(float32 1x1x8x8) -> float32 1x10."""
        return f"{self._name}({', '.join(i.short() for i in self.inputs)}) -> {', '.join(i.short() for i in self.outputs)}"

    def __repr__(self) -> str:
        inputs, outputs = list(map(str, self.inputs)), list(map(str, self.outputs))
        return (
            f"MethodMeta(name='{self._name}', num_inputs={len(inputs)}, input_tensor_meta={inputs}, "
            f"num_outputs={len(outputs)}, output_tensor_meta={outputs})"
        )


class _Input:
    """An input of a call: its declaration, and the type and the shape of the last array."""

    def __init__(self, info: TensorInfo, slot: Value, index: int) -> None:
        self.info = info
        self.slot = slot
        self.what = f"input {index}"
        self.declared = info.dtype() or DType.UINT8
        self.type: Any = None
        self.shape: tuple[int, ...] = ()
        self.bound = info.kind == Kind.NONE  # None is a value for it, or it has memory of its own

    def set(self, value: Any) -> Any:
        """Describes a value to the library; returns what must live until the end of the call."""
        if type(value) is _NDARRAY and value.dtype is self.type and value.shape == self.shape and value.flags.c_contiguous:
            self.slot.data = value.ctypes.data
            return value
        self.type = None
        if value is None:
            if not self.bound:
                raise InputError(f"{self.what} is None, want {self.info.short()}")
            self.slot.dtype = -1
            return None
        if self.info.kind == Kind.DOUBLE and type(value) is int:
            value = float(value)
        try:
            found = dtypes.elements(value, self.declared, self.what)
        except InputTypeError as e:
            raise InputTypeError(f"{e}{self._advice(value)}") from None
        self.slot.describe(found.dtype, found.shape)
        self.slot.data, self.slot.bytes = found.address or None, found.nbytes
        if type(value) is _NDARRAY and found.owner is value:
            self.type, self.shape = value.dtype, value.shape
        return found.owner

    def advice(self, value: Any) -> str:
        """What to call for a value that the library refused, empty if it is not this one."""
        if self.info.kind != Kind.TENSOR or self.slot.dtype < 0:
            return ""
        got, want = tuple(self.slot.shape[: self.slot.rank]), self.info.sizes()
        if self.slot.dtype != self.info.dtype():
            return self._advice(value)
        if got != want and not self.info.dynamic and math.prod(got) == math.prod(want):
            return f"; call .reshape({', '.join(map(str, want))}) on it"
        return ""

    def _advice(self, value: Any) -> str:
        name = self.declared.name.lower()
        if hasattr(value, "data_ptr"):
            return f"; call .to(torch.{name}) on it"
        if self.info.kind != Kind.TENSOR or self.declared.bits is not None:
            return ""
        if isinstance(value, (list, tuple)):
            return f"; call numpy.asarray(value, numpy.{name})"
        return f"; call .astype(numpy.{name}) on it" if hasattr(value, "astype") else ""


_NDARRAY: Any = getattr(dtypes.numpy(), "ndarray", ())


class _Output:
    """An output of a call: a new array of the last shape for each run."""

    def __init__(self, info: TensorInfo, slot: Value, index: int, tensors: bool) -> None:
        self.slot = slot
        self.what = f"output {index}"
        self.index = index
        self.tensors = tensors
        self.fixed = info.kind == Kind.TENSOR and not info.dynamic
        self.dtype = info.dtype()
        self.shape = info.sizes()
        self.nbytes = info.nbytes()
        self.new = None if self.dtype is None or not self.fixed else dtypes.allocator(self.dtype, tensors)

    def prepare(self) -> Any:
        """Returns an array that the call writes, None where its shape is not known."""
        if self.new is None:
            self.slot.data, self.slot.bytes = None, 0
            return None
        array, self.slot.data = self.new(self.shape)
        self.slot.bytes = self.nbytes
        return array

    def result(self, number: int, array: Any, out: Any) -> Any:
        """Returns the output of the call."""
        slot = self.slot
        if array is not None and slot.copied and self._described():
            return array
        kind = Kind(slot.kind)
        if kind == Kind.NONE:
            return None
        dtype, shape = DType(slot.dtype), tuple(slot.shape[: slot.rank])
        if out is not None:
            call("etrun_get", number, self.index, *dtypes.writable(out, dtype, self.what).arguments())
            return out
        new = dtypes.allocator(dtype, self.tensors)
        array, address = new(shape)
        call("etrun_get", number, self.index, *dtypes.shape_arguments(dtype, shape), address, slot.bytes)
        if kind == Kind.TENSOR:
            self.new, self.dtype, self.shape, self.nbytes = new, dtype, shape, slot.bytes
            return array
        data = ctypes.string_at(address, slot.bytes)
        if kind == Kind.STRING:
            return data.decode(errors="replace")
        values = memoryview(data).cast(_FORMATS[dtype]).tolist()
        return values if kind in (Kind.INT_LIST, Kind.DOUBLE_LIST, Kind.BOOL_LIST) else values[0]

    def _described(self) -> bool:
        """Whether the output has the type and the shape of the array."""
        slot = self.slot
        return slot.dtype == self.dtype and tuple(slot.shape[: slot.rank]) == self.shape


_FORMATS: Any = {DType.INT64: "q", DType.FLOAT64: "d", DType.BOOL: "?"}


class Method(Closable):
    """A loaded instance of a method, with its own memory and state.

    Threads may share it: their calls wait for each other. Methods of several threads, made by
    Program.new_method, run at the same time and share the weights.
    """

    def __init__(self, program: Program, name: str, tensors: bool = False) -> None:
        meta = self._metadata = program.metadata(name)
        self._description = meta.short()
        number = ctypes.c_uint64()
        call("etrun_load", program.handle, c_text(name, "name"), byref(number))
        self._handle = Handle("etrun_unload", number.value)
        self._lock = threading.Lock()
        ins, outs = (Value * meta.num_inputs())(), (Value * meta.num_outputs())()
        self._inputs = [_Input(info, ins[i], i) for i, info in enumerate(meta.inputs)]
        self._outputs = [_Output(info, outs[i], i, tensors) for i, info in enumerate(meta.outputs)]
        self._slots = (ins, outs)
        self._ins, self._outs = ctypes.addressof(ins), ctypes.addressof(outs)
        self._message = ctypes.c_void_p()
        self._message_at = byref(self._message)
        self._set, self._prepare = [i.set for i in self._inputs], [o.prepare for o in self._outputs]

    @property
    def metadata(self) -> MethodMeta:
        """The declaration of the method."""
        return self._metadata

    def execute(
        self,
        inputs: Union[Sequence[Any], Exchangeable, None] = None,
        *,
        timeout: Optional[float] = None,
        out: Optional[Sequence[Any]] = None,
    ) -> list[Array]:
        """Runs the method and returns its outputs.

        inputs are arrays of NumPy, tensors of PyTorch or any with the buffer or DLPack protocol, numbers,
        bools and strings, one for each input; one array is that of a method with one input. They must
        have the types and shapes of the inputs: nothing is converted. Without inputs those of the last
        run are used; None is for an input whose array is that of input_array. timeout is in seconds. out
        has arrays to write the outputs to, None for those to allocate.

        Outputs are arrays: tensors of PyTorch if it is installed and the program is from load_program,
        else arrays of NumPy, memoryviews without NumPy; or numbers, bools, strings and lists.
        """
        values = () if inputs is None else inputs if type(inputs) is list else _sequence(inputs)
        milliseconds = 0 if timeout is None else _int(max(1, math.ceil(timeout * 1000)), 53, "timeout")
        n_in, n_out = len(values), len(self._outputs)
        with self._lock:
            handle: Any = self._handle or self.handle  # lives until the end of the call
            if n_in != len(self._inputs) and inputs is not None:
                raise InputError(f"got {n_in} inputs, the method has {len(self._inputs)}: {self._description}")
            alive = [put(value) for put, value in zip(self._set, values)]
            arrays = [prepare() for prepare in self._prepare] if out is None else self._given(out)
            result = _invoke(handle.number, self._ins, n_in, self._outs, n_out, milliseconds, self._message_at)
            if result != 0:
                self._raise(result, values)
            for i, o in enumerate(self._outputs):
                if not o.fixed or not o.slot.copied:
                    arrays[i] = o.result(handle.number, arrays[i], None if out is None else out[i])
            del alive
            return arrays

    def _raise(self, result: int, values: Sequence[Any]) -> NoReturn:
        kind, text = CLASSES.get(result, Error), owned_text(self._message)
        if kind is InputError:
            for i, value in zip(self._inputs, values):
                if f"{i.what}:" in text:
                    text += i.advice(value)
        raise kind(text)

    def _given(self, out: Sequence[Any]) -> list[Any]:
        """Checks the arrays of the caller, and makes the others."""
        if len(out) != len(self._outputs):
            raise InputError(f"out: got {len(out)} arrays, the method has {len(self._outputs)} outputs")
        for o in self._outputs:
            o.slot.data, o.slot.bytes = None, 0
        return [o.prepare() if given is None else None for o, given in zip(self._outputs, out)]

    def __call__(self, *inputs: Any, timeout: Optional[float] = None, out: Optional[Sequence[Any]] = None) -> Any:
        """Runs the method like execute. Returns the output if there is one, else a tuple of all; a list if
        the argument is one list or tuple of inputs."""
        if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
            return self.execute(inputs[0], timeout=timeout, out=out)
        outputs = self.execute(inputs or None, timeout=timeout, out=out)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def input_array(self, index: int, shape: Optional[Sequence[int]] = None) -> Array:
        """Returns an array of NumPy that the method reads an input from, without a copy.

        Write its elements before each run, and pass None for the input. shape is for an input whose
        shape varies. The method reads the array until the input is passed to execute, or until reset.
        """
        with self._lock:
            info = self._metadata.inputs[index]
            dtype = info.dtype()
            if dtype is None:
                raise InputError(f"input {index} is {info.short()}")
            sizes = tuple(info.sizes() if shape is None else shape)
            data, nbytes = ctypes.c_void_p(), ctypes.c_size_t()
            request = dtypes.shape_arguments(dtype, sizes)
            call("etrun_input_memory", self.handle, index, *request, byref(data), byref(nbytes))
            self._inputs[index].bound = True
            kind: Any = type("_Memory", (ctypes.c_char * nbytes.value,), {})
            memory = kind.from_address(data.value) if data.value and nbytes.value else kind()
            memory.owner = self._handle  # the memory lives as long as the handle
            return dtypes.shaped(memory, dtype, sizes)

    def reset(self) -> None:
        """Returns the method to the state after loading: state, inputs and outputs are reset."""
        with self._lock:
            call("etrun_reset", self.handle)
            for i in self._inputs:
                i.bound = i.info.kind == Kind.NONE


_invoke = lib.etrun_invoke


def _sequence(inputs: Any) -> Sequence[Any]:
    """Returns the inputs of a call. An array alone is one input."""
    if isinstance(inputs, (list, tuple)):
        return inputs
    if dtypes.is_array(inputs):
        return (inputs,)
    if not isinstance(inputs, AnySequence):
        raise InputTypeError(f"inputs: got {type(inputs).__name__}, want a list of one value for each input")
    return list(inputs)


class Program(Closable):
    """An open program. It may be closed before its methods."""

    def __init__(
        self, data: Source, *, tensors: bool = False, enable_etdump: bool = False, debug_buffer_size: int = 0, **options: Unpack[Options]
    ) -> None:
        """Opens a program: see load. With tensors outputs are tensors of PyTorch, where it is installed."""
        number, (s, files, contents) = ctypes.c_uint64(), _structure(options)
        s.etdump, s.debug_buffer = bool(enable_etdump), _int(debug_buffer_size, 64, "debug_buffer_size")
        try:
            if isinstance(data, (str, os.PathLike)):
                files = [data, *files]
                call("etrun_open", c_path(data, "path"), byref(s), byref(number))
            else:
                content = c_content(data.read() if hasattr(data, "read") else data, "data")  # pyright: ignore[reportAttributeAccessIssue]
                call("etrun_open_memory", content, len(content), byref(s), byref(number))
        except FileError as e:
            raise file_error(e, files) from None
        del contents
        self._handle = Handle("etrun_close", number.value)
        self._tensors = tensors
        self._methods: dict[str, Optional[Method]] = dict.fromkeys(self._names())
        self._description = ", ".join(sorted(self._methods))
        self._lock = threading.Lock()

    def _names(self) -> list[str]:
        def name_of(i: int) -> Optional[bytes]:
            name = ctypes.c_char_p()
            call("etrun_method_name", self.handle, i, byref(name))
            return name.value

        return names(name_of)

    @property
    def method_names(self) -> set[str]:
        """The names of the methods."""
        self.handle  # pyright: ignore[reportUnusedExpression]
        return set(self._methods)

    def metadata(self, method_name: str = "forward") -> MethodMeta:
        """The declaration of a method."""
        name, counts = c_text(method_name, "method_name"), (ctypes.c_size_t(), ctypes.c_size_t())
        call("etrun_declared_counts", self.handle, name, byref(counts[0]), byref(counts[1]))

        def described(function: str, n: Optional[int]) -> list[TensorInfo]:
            found: list[TensorInfo] = []
            info = Info()
            while len(found) != n:
                call(function, self.handle, name, len(found), byref(info))
                if n is None and info.kind == Kind.NONE:
                    break
                found.append(TensorInfo.of(info))
            return found

        inputs = described("etrun_declared_input", counts[0].value)
        outputs = described("etrun_declared_output", counts[1].value)
        return MethodMeta(method_name, inputs, outputs, described("etrun_declared_attribute", None))

    def load_method(self, name: str = "forward") -> Method:
        """Loads a method, the first time: it is kept with its state, and the same one is returned again."""
        self.handle  # pyright: ignore[reportUnusedExpression]
        with self._lock:
            if name not in self._methods:
                raise MethodNameError(f"no method {name!r}, the program has {', '.join(sorted(self._methods))}")
            method = self._methods[name]
            if method is None or method._handle is None:
                method = self._methods[name] = self.new_method(name)
            return method

    def new_method(self, name: str = "forward") -> Method:
        """Loads a further instance of a method, with state of its own: for another thread or sequence."""
        return Method(self, name, self._tensors)

    def close(self) -> None:
        """Closes the program. Its methods stay open as long as they are used."""
        super().close()
        self._methods = dict.fromkeys(self._methods)

    def write_etdump_result_to_file(self, etdump_path: Path, debug_buffer_path: Optional[Path] = None) -> None:
        """Writes an ETDump of all runs to a file, and the values of their instructions to another, for
        ExecuTorch's Inspector: with enable_etdump, and values with debug_buffer_size."""
        values = None if debug_buffer_path is None else c_path(debug_buffer_path, "debug_buffer_path")
        call("etrun_write_etdump", self.handle, c_path(etdump_path, "etdump_path"), values)

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
        return names(lib.etrun_backend_name)

    def is_available(self, backend_name: str) -> bool:
        """Whether the library has a backend."""
        if not isinstance(backend_name, str):
            raise TypeError(f"backend_name: got {type(backend_name).__name__}, want str")
        return backend_name in self.registered_backend_names


class OperatorRegistry:
    """The operators of the library."""

    @property
    def operator_names(self) -> set[str]:
        """The names of the operators, such as aten::add.out."""
        return set(names(lib.etrun_operator_name))


class Runtime:
    """The entry point with the names of executorch.runtime: Runtime.get()."""

    def __init__(self) -> None:
        self.backend_registry = BackendRegistry()
        self.operator_registry = OperatorRegistry()

    @staticmethod
    @functools.lru_cache(maxsize=1)
    def get() -> Runtime:
        """The one instance."""
        return Runtime()

    def load_program(
        self,
        data: Source,
        *,
        verification: Verification = Verification.InternalConsistency,
        enable_etdump: bool = False,
        debug_buffer_size: int = 0,
        data_path: Optional[Path] = None,
        **options: Unpack[Options],
    ) -> Program:
        """Opens a program: a path, the content of a file, or a file opened in binary mode.

        data_path is a file with external weights (.ptd). enable_etdump records the events of runs, and
        debug_buffer_size bytes of values of instructions, for Program.write_etdump_result_to_file. Further
        options are those of Options. The file is always verified completely.
        """
        if not isinstance(verification, Verification):
            raise TypeError(f"verification: got {type(verification).__name__}, want Verification")
        if operator.index(debug_buffer_size) < 0:
            raise TypeError(f"debug_buffer_size: got {debug_buffer_size}, want 0 or more")
        if data_path is not None:
            given = options.get("data_files", ())
            more: list[Any] = [given] if isinstance(given, ONE) else list(given)
            options["data_files"] = [os.fspath(data_path), *more]
        return Program(data, tensors=True, enable_etdump=enable_etdump, debug_buffer_size=debug_buffer_size, **options)


def load(data: Source, method: str = "forward", **options: Unpack[Options]) -> Method:
    """Opens a program and loads a method. options are those of Options. Outputs are arrays of NumPy.

    >>> model = etrun.load("model.pte")
    >>> scores = model(pixels)
    """
    with Program(data, **options) as program:
        return program.new_method(method)
