"""Runs the digits model through libetrun: digits.py LIBRARY MODEL IMAGES OUT."""

import ctypes
import sys

library, model, images, out = sys.argv[1:]
etrun = ctypes.CDLL(library)
etrun.etrun_free.argtypes = [ctypes.c_void_p]
error = ctypes.c_void_p()


def call(function, *arguments):
    """Calls a function and raises its error."""
    code = function(*arguments, ctypes.byref(error))
    if code != 0:
        text = ctypes.string_at(error.value).decode()
        etrun.etrun_free(error)
        raise RuntimeError(f"class {code}: {text}")


handle = ctypes.c_size_t
program, method = handle(), handle()
call(etrun.etrun_open, model.encode(), None, ctypes.c_size_t(0), 1, ctypes.c_int64(0), ctypes.byref(program))
call(etrun.etrun_load, program, None, ctypes.byref(method))
FLOAT32, INT32 = 6, 3
sizes = (ctypes.c_int64 * 4)(1, 1, 8, 8)


def set_input(dtype, data):
    """Sets input 0 to elements of a type."""
    call(etrun.etrun_set_typed, method, ctypes.c_size_t(0), ctypes.c_int32(dtype), sizes, ctypes.c_size_t(4), data, ctypes.c_size_t(len(data)))


with open(images, "rb") as f, open(out, "wb") as to:
    for _ in range(20):
        set_input(FLOAT32, f.read(256))
        call(etrun.etrun_run, method, ctypes.c_int64(0))
        scores = ctypes.create_string_buffer(40)
        call(etrun.etrun_get, method, ctypes.c_size_t(0), scores, ctypes.c_size_t(40))
        to.write(scores.raw)
try:
    call(etrun.etrun_set, method, ctypes.c_size_t(0), b"x", ctypes.c_size_t(1), None, ctypes.c_size_t(0))
    sys.exit("one byte is taken for an image")
except RuntimeError as e:
    assert "class 5" in str(e), e
try:
    set_input(INT32, bytes(256))
    sys.exit("integers are taken for floats")
except RuntimeError as e:
    assert "got int32" in str(e) and "want float32" in str(e), e
call(etrun.etrun_unload, method)
call(etrun.etrun_close, program)
