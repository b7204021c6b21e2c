"""Element types, and the conversion of arrays to and from the memory of the library.

Types that NumPy lacks are exchanged as their bits, in unsigned integers of the same size: bfloat16 as
uint16, 8-bit floats as uint8. If the package ml_dtypes is installed, its types are used instead, and
both are accepted.
"""

from __future__ import annotations

import ctypes
import math
import sys
from enum import IntEnum
from typing import Any, NamedTuple, Optional

__all__ = ["DType"]


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

    @property
    def bits(self) -> Optional[DType]:
        """The type of the bits of a type that NumPy lacks, None for others."""
        return _BITS.get(self)

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return _LAYOUTS[_BITS.get(self, self)][1]


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


def numpy() -> Any:
    """The module NumPy, None if it is not installed."""
    try:
        import numpy as np
    except ImportError:
        return None
    return np


def _ml_dtypes() -> Any:
    try:
        import ml_dtypes
    except ImportError:
        return None
    return ml_dtypes


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
    address: Any
    nbytes: int
    owner: Any

    def arguments(self) -> tuple[Any, ...]:
        """The arguments of etrun_set and etrun_get."""
        return (*shape_arguments(self.dtype, self.shape), self.address, self.nbytes)


def shape_arguments(dtype: DType, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The arguments for a type and a shape."""
    return int(dtype), (ctypes.c_int64 * len(shape))(*shape), len(shape)


def elements(value: Any, declared: DType, what: str) -> Elements:
    """Returns the elements of an array, a number, a bool or a string, without a copy if possible."""
    if isinstance(value, (bool, int, float, str)) and not hasattr(value, "dtype"):
        return _scalar(value, what)
    np = numpy()
    if np is not None and not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "__dlpack__"):
        value = np.from_dlpack(value)
    if np is not None and isinstance(value, (np.ndarray, np.generic)):
        found = _of_array(np, np.asarray(value), what)
    else:
        found = _of_buffer(value, what)
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
    shape = (len(data),) if isinstance(value, str) else ()
    return Elements(dtype, shape, ctypes.c_char_p(data), len(data), data)


def _of_array(np: Any, array: Any, what: str) -> Elements:
    dtype = _BY_LAYOUT.get((array.dtype.kind, array.dtype.itemsize))
    if array.dtype.kind not in "fiubc":
        dtype = DType.__members__.get(array.dtype.name.upper())  # of ml_dtypes
    if dtype is None:
        raise TypeError(f"{what}: elements of type {array.dtype}, which is not a type of tensors")
    shape = array.shape
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    return Elements(dtype, shape, ctypes.c_void_p(array.ctypes.data), array.nbytes, array)


def _of_buffer(value: Any, what: str) -> Elements:
    try:
        view = memoryview(value)
    except TypeError:
        want = "an array of NumPy or one with the buffer or DLPack protocol, a number, a bool or a str"
        raise TypeError(f"{what}: got {type(value).__name__}, want {want}") from None
    kind = _FORMAT_KINDS.get(view.format.lstrip("@=<"), "")
    dtype = _BY_LAYOUT.get((kind, view.itemsize))
    if dtype is None:
        raise TypeError(f"{what}: elements of format {view.format!r}, which is not a type of tensors")
    shape = view.shape
    if view.readonly or not view.c_contiguous:
        data = view.tobytes()
        return Elements(dtype, shape, ctypes.c_char_p(data), len(data), data)
    memory = (ctypes.c_char * view.nbytes).from_buffer(view)
    return Elements(dtype, shape, ctypes.c_void_p(ctypes.addressof(memory)), view.nbytes, memory)


def empty(dtype: DType, shape: tuple[int, ...]) -> tuple[Any, Elements]:
    """Returns a new array, of NumPy or else a memoryview, and its elements."""
    nbytes = math.prod(shape) * dtype.itemsize
    np = numpy()
    if np is not None:
        array = np.empty(shape, numpy_dtype(dtype))
        return array, Elements(dtype, shape, ctypes.c_void_p(array.ctypes.data), nbytes, array)
    memory = (ctypes.c_char * nbytes)()
    return shaped(memory, dtype, shape), Elements(dtype, shape, ctypes.c_void_p(ctypes.addressof(memory)), nbytes, memory)


def shaped(memory: Any, dtype: DType, shape: tuple[int, ...]) -> Any:
    """Returns memory as an array of NumPy, or else as a memoryview, without a copy."""
    view = memoryview(memory).cast("B")
    np = numpy()
    if np is not None:
        return np.frombuffer(view, numpy_dtype(dtype)).reshape(shape)
    form = _LAYOUTS[_BITS.get(dtype, dtype)][2]
    if 0 in shape or not shape or form not in _CASTS:
        return view.cast(form) if form in _CASTS else view
    return view.cast(form, shape)


def writable(array: Any, dtype: DType, shape: tuple[int, ...], what: str) -> Elements:
    """Returns the elements of an array to write to. It must have the type and the shape, without gaps."""
    np = numpy()
    if np is not None and isinstance(array, np.ndarray):
        if not array.flags.writeable or not array.flags.c_contiguous or not array.dtype.isnative:
            raise ValueError(f"{what}: want a writable, C-contiguous array in native byte order")
        found = elements(array, dtype, what)
    else:
        view = memoryview(array)
        if view.readonly or not view.c_contiguous:
            raise ValueError(f"{what}: want writable, C-contiguous memory")
        found = _of_buffer(view, what)
        if dtype.bits is not None and found.dtype == dtype.bits:
            found = found._replace(dtype=dtype)
    return found
