"""Sets the scalar inputs of a program with and without a type: scalars.py LIBRARY MODEL."""

import ctypes
import struct
import sys

library, model = sys.argv[1:]
etrun = ctypes.CDLL(library)
etrun.etrun_free.argtypes = [ctypes.c_void_p]
error = ctypes.c_void_p()


def call(function, *arguments):
    """Calls a function and returns its error."""
    code = function(*arguments, ctypes.byref(error))
    if code == 0:
        return ""
    text = ctypes.string_at(error.value).decode()
    etrun.etrun_free(error)
    return f"class {code}: {text}"


def typed(i, dtype, sizes, data):
    """Sets input i to elements of a type."""
    shape = (ctypes.c_int64 * max(len(sizes), 1))(*sizes)
    return call(etrun.etrun_set_typed, method, ctypes.c_size_t(i), ctypes.c_int32(dtype), shape, ctypes.c_size_t(len(sizes)), data, ctypes.c_size_t(len(data)))


UINT8, INT32, INT64, FLOAT32, FLOAT64, BOOL = 0, 3, 4, 6, 7, 11
handle = ctypes.c_size_t
program, method = handle(), handle()
assert not call(etrun.etrun_open, model.encode(), None, ctypes.c_size_t(0), 1, ctypes.c_int64(0), ctypes.byref(program))
assert not call(etrun.etrun_load, program, None, ctypes.byref(method))
three, half, true = struct.pack("<q", 3), struct.pack("<d", 0.5), b"\x01"
for i, dtype, sizes, data, want in [
    (1, INT64, [], three, ""),
    (2, FLOAT64, [], half, ""),
    (3, BOOL, [], true, ""),
    (1, INT32, [], struct.pack("<i", 3), "input 1: got int32 of rank 0, want int64 of rank 0"),
    (1, FLOAT64, [], half, "got float64 of rank 0, want int64 of rank 0"),
    (1, INT64, [1], three, "got int64 of rank 1, want int64 of rank 0"),
    (1, INT64, [], three[:4], "got 4 bytes, want 8"),
    (2, FLOAT32, [], struct.pack("<f", 0.5), "got float32 of rank 0, want float64 of rank 0"),
    (2, INT64, [], three, "got int64 of rank 0, want float64 of rank 0"),
    (3, UINT8, [], true, "got uint8 of rank 0, want bool of rank 0"),
]:
    got = typed(i, dtype, sizes, data)
    if want not in got or (got == "") != (want == "") or want and "class 5" not in got:
        sys.exit(f"input {i}, type {dtype}, sizes {sizes}: {got!r}, want {want!r}")
assert not call(etrun.etrun_unload, method)
assert not call(etrun.etrun_close, program)
