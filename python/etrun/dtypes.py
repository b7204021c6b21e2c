"""Element types, and the conversion of arrays to and from the memory of the library.

Types that NumPy lacks are exchanged as their bits, in unsigned integers of the same size: bfloat16 as
uint16, 8-bit floats as uint8. If the package ml_dtypes is installed, its types are used instead, and
both are accepted.
"""

from __future__ import annotations

import array as arrays
import ctypes
import functools
import importlib
import math
import sys
from enum import IntEnum
from typing import Any, Callable, Iterator, NamedTuple, Optional, Protocol, Sequence

from .errors import InputError, InputTypeError

__all__ = ["Array", "DType"]


class Array(Protocol):
    """What arrays of NumPy, tensors of PyTorch and memoryviews have in common; they have more."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def tolist(self) -> Any: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __getattr__(self, name: str, /) -> Any: ...
    def __array__(self, *args: Any, **options: Any) -> Any: ...


class Exchangeable(Protocol):
    """Arrays with the DLPack protocol, such as those of NumPy and PyTorch."""

    def __dlpack__(self) -> Any: ...


class DType(IntEnum):
    """Element types: the values of ExecuTorch's ScalarType."""

    UINT8 = 0
    INT8 = 1
    INT16 = 2
    INT32 = 3
    INT64 = 4
    FLOAT16 = 5
    FLOAT32 = 6
    FLOAT64 = 7
    COMPLEX32 = 8
    COMPLEX64 = 9
    COMPLEX128 = 10
    BOOL = 11
    QINT8 = 12
    QUINT8 = 13
    QINT32 = 14
    BFLOAT16 = 15
    QUINT4X2 = 16
    QUINT2X4 = 17
    BITS16 = 22
    FLOAT8_E5M2 = 23
    FLOAT8_E4M3FN = 24
    FLOAT8_E5M2FNUZ = 25
    FLOAT8_E4M3FNUZ = 26
    UINT16 = 27
    UINT32 = 28
    UINT64 = 29

    __str__ = int.__repr__

    @property
    def scalar_name(self) -> str:
        """The name in ExecuTorch's descriptions, such as Float."""
        return _SCALAR_NAMES.get(self) or self.name.capitalize()

    @property
    def bits(self) -> Optional[DType]:
        """The type of the bits of a type that NumPy lacks, None for others."""
        return _BITS.get(self)

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return _LAYOUTS[_BITS.get(self, self)][1]


_SCALAR_NAMES = {
    **{DType.UINT8: "Byte", DType.INT8: "Char", DType.INT16: "Short", DType.INT32: "Int", DType.INT64: "Long"},
    **{DType.FLOAT16: "Half", DType.FLOAT32: "Float", DType.FLOAT64: "Double", DType.BFLOAT16: "BFloat16"},
    **{DType.COMPLEX32: "ComplexHalf", DType.COMPLEX64: "ComplexFloat", DType.COMPLEX128: "ComplexDouble"},
    **{DType.QINT8: "QInt8", DType.QUINT8: "QUInt8", DType.QINT32: "QInt32", DType.QUINT4X2: "QUInt4x2", DType.QUINT2X4: "QUInt2x4"},
    **{DType.UINT16: "UInt16", DType.UINT32: "UInt32", DType.UINT64: "UInt64"},
}

_BITS = {
    DType.COMPLEX32: DType.UINT32,
    DType.QINT8: DType.UINT8,
    DType.QUINT8: DType.UINT8,
    DType.QINT32: DType.UINT32,
    DType.BFLOAT16: DType.UINT16,
    DType.QUINT4X2: DType.UINT8,
    DType.QUINT2X4: DType.UINT8,
    DType.BITS16: DType.UINT16,
    DType.FLOAT8_E5M2: DType.UINT8,
    DType.FLOAT8_E4M3FN: DType.UINT8,
    DType.FLOAT8_E5M2FNUZ: DType.UINT8,
    DType.FLOAT8_E4M3FNUZ: DType.UINT8,
}

# NumPy's kind, the size, and the format of the struct module.
_LAYOUTS = {
    DType.UINT8: ("u", 1, "B"),
    DType.INT8: ("i", 1, "b"),
    DType.INT16: ("i", 2, "h"),
    DType.INT32: ("i", 4, "i"),
    DType.INT64: ("i", 8, "q"),
    DType.FLOAT16: ("f", 2, "e"),
    DType.FLOAT32: ("f", 4, "f"),
    DType.FLOAT64: ("f", 8, "d"),
    DType.COMPLEX64: ("c", 8, "Zf"),
    DType.COMPLEX128: ("c", 16, "Zd"),
    DType.BOOL: ("b", 1, "?"),
    DType.UINT16: ("u", 2, "H"),
    DType.UINT32: ("u", 4, "I"),
    DType.UINT64: ("u", 8, "Q"),
}
_CASTS = "BbhiqfdHIQ?"  # formats that memoryview casts to
_BY_LAYOUT = {(kind, size): dtype for dtype, (kind, size, _) in _LAYOUTS.items()}
_FORMAT_KINDS = {
    **dict.fromkeys("bhilqn", "i"),
    **dict.fromkeys("BHILQN", "u"),
    **dict.fromkeys("efd", "f"),
    "?": "b",
    "Zf": "c",
    "Zd": "c",
}


@functools.lru_cache(maxsize=None)
def _module(name: str) -> Any:
    """A module, None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def numpy() -> Any:
    """The module NumPy, None if it is not installed."""
    return _module("numpy")


def torch() -> Any:
    """The module PyTorch, None if it is not installed."""
    return _module("torch")


def _ml_dtypes() -> Any:
    return _module("ml_dtypes")


def numpy_dtype(dtype: DType) -> Any:
    """The NumPy type of a type's elements."""
    name = dtype.name.lower()
    if dtype.bits is not None:
        own = getattr(_ml_dtypes(), name, None)
        if own is not None:
            return numpy().dtype(own)
        name = dtype.bits.name.lower()
    return numpy().dtype(name)


class Elements(NamedTuple):
    """Elements in memory. owner keeps the memory alive."""

    dtype: DType
    shape: tuple[int, ...]
    address: int
    nbytes: int
    owner: Any

    def arguments(self) -> tuple[Any, ...]:
        """The arguments of etrun_get."""
        return (*shape_arguments(self.dtype, self.shape), self.address, self.nbytes)


def shape_arguments(dtype: DType, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The arguments for a type and a shape."""
    return int(dtype), (ctypes.c_int64 * len(shape))(*shape), len(shape)


def is_array(value: Any) -> bool:
    """Whether a value is one array, not a sequence of values."""
    return hasattr(value, "__dlpack__") or hasattr(value, "__array_interface__") or isinstance(value, (memoryview, arrays.array))


def elements(value: Any, declared: DType, what: str) -> Elements:
    """Returns the elements of an array, a number, a bool or a string, without a copy if possible."""
    np = numpy()
    if isinstance(value, (bool, int, float, str)) and not hasattr(value, "dtype"):
        found = _scalar(value, what)
    elif hasattr(value, "data_ptr"):
        found = _of_torch(value, what)
    elif np is None or not (hasattr(value, "__dlpack__") or isinstance(value, (np.ndarray, np.generic))):
        found = _of_buffer(value, what)
    else:
        found = _of_array(np, np.asarray(value) if isinstance(value, (np.ndarray, np.generic)) else np.from_dlpack(value), what)
    if declared.bits is not None and found.dtype == declared.bits:
        found = found._replace(dtype=declared)
    return found


def _scalar(value: Any, what: str) -> Elements:
    if isinstance(value, bool):
        data, dtype = bytes([value]), DType.BOOL
    elif isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise OverflowError(f"{what}: {value} does not fit 64 bits")
        data, dtype = value.to_bytes(8, sys.byteorder, signed=True), DType.INT64
    elif isinstance(value, float):
        data, dtype = bytes(ctypes.c_double(value)), DType.FLOAT64
    else:
        data, dtype = value.encode(), DType.UINT8
    return _of_bytes(data, dtype, (len(data),) if isinstance(value, str) else ())


def _of_bytes(data: Any, dtype: DType, shape: tuple[int, ...]) -> Elements:
    return Elements(dtype, shape, ctypes.cast(data, ctypes.c_void_p).value or 0, len(data), data)


def _of_torch(tensor: Any, what: str) -> Elements:
    if tensor.device.type != "cpu" or "strided" not in str(tensor.layout):
        got = f"{tensor.layout} on device {tensor.device}"
        raise InputError(f"{what}: got a tensor of {got}, want a dense one on the CPU: call .to_dense().cpu() on it")
    name = str(tensor.dtype).partition(".")[2].upper()
    if name not in DType.__members__:
        raise InputTypeError(f"{what}: elements of type {tensor.dtype}, which is not a type of tensors")
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    dtype = DType[name]
    return Elements(dtype, tuple(tensor.shape), tensor.data_ptr(), tensor.numel() * dtype.itemsize, tensor)


def _of_array(np: Any, array: Any, what: str) -> Elements:
    dtype = _BY_LAYOUT.get((array.dtype.kind, array.dtype.itemsize))
    if array.dtype.kind not in "fiubc":
        dtype = DType.__members__.get(array.dtype.name.upper())  # of ml_dtypes
    if dtype is None:
        raise InputTypeError(f"{what}: elements of type {array.dtype}, which is not a type of tensors")
    shape = array.shape
    if not array.flags.c_contiguous or not array.dtype.isnative:
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    return Elements(dtype, shape, array.ctypes.data, array.nbytes, array)


def _of_buffer(value: Any, what: str) -> Elements:
    try:
        view = memoryview(value)
    except TypeError:
        want = "an array of NumPy or one with the buffer or DLPack protocol, a number, a bool or a str"
        raise InputTypeError(f"{what}: got {type(value).__name__}, want {want}") from None
    kind = _FORMAT_KINDS.get(view.format.lstrip("@=<"), "")
    dtype = _BY_LAYOUT.get((kind, view.itemsize))
    if dtype is None:
        raise InputTypeError(f"{what}: elements of format {view.format!r}, which is not a type of tensors")
    shape = tuple(view.shape or ())
    if view.readonly or not view.c_contiguous:
        return _of_bytes(view.tobytes(), dtype, shape)
    memory = (ctypes.c_char * view.nbytes).from_buffer(view)
    return Elements(dtype, shape, ctypes.addressof(memory), view.nbytes, memory)


def allocator(dtype: DType, tensors: bool) -> Callable[[Sequence[int]], tuple[Any, int]]:
    """Returns a function from a shape to a new array and its address: a tensor of PyTorch if tensors is
    true and it has the type, else an array of NumPy, else a memoryview."""
    library: Any = torch() if tensors else None
    kind = getattr(library, dtype.name.lower(), None)
    if kind is not None and not dtype.name.startswith("Q"):

        def tensor(shape: Sequence[int]) -> tuple[Any, int]:
            made = library.empty(shape, dtype=kind)
            return made, made.data_ptr()

        return tensor
    np = numpy()
    if np is None:
        return lambda shape: _memory(dtype, tuple(shape))
    empty, of_numpy = np.empty, numpy_dtype(dtype)

    def array(shape: Sequence[int]) -> tuple[Any, int]:
        made = empty(shape, of_numpy)
        return made, made.ctypes.data

    return array


def _memory(dtype: DType, shape: tuple[int, ...]) -> tuple[Any, int]:
    memory = (ctypes.c_char * (math.prod(shape) * dtype.itemsize))()
    return shaped(memory, dtype, shape), ctypes.addressof(memory)


def shaped(memory: Any, dtype: DType, shape: tuple[int, ...]) -> Any:
    """Returns memory as an array of NumPy, or else as a memoryview, without a copy."""
    view: Any = memoryview(memory).cast("B")
    np = numpy()
    if np is not None:
        return np.frombuffer(view, numpy_dtype(dtype)).reshape(shape)
    form = _LAYOUTS[_BITS.get(dtype, dtype)][2]
    if 0 in shape or not shape or form not in _CASTS:
        return view.cast(form) if form in _CASTS else view
    return view.cast(form, shape)


def writable(array: Any, dtype: DType, what: str) -> Elements:
    """Returns the elements of an array to write to, which must be without gaps."""
    np = numpy()
    if np is not None and isinstance(array, np.ndarray):
        usable = array.flags.writeable and array.flags.c_contiguous and array.dtype.isnative
    elif hasattr(array, "data_ptr"):
        usable = array.is_contiguous() and not array.requires_grad
    else:
        array = memoryview(array)
        usable = not array.readonly and array.c_contiguous
    if not usable:
        raise InputError(f"{what}: want a writable, C-contiguous array in native byte order")
    return elements(array, dtype, what)
