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
with open(images, "rb") as f, open(out, "wb") as to:
    for _ in range(20):
        call(etrun.etrun_set, method, ctypes.c_size_t(0), f.read(256), ctypes.c_size_t(256), None, ctypes.c_size_t(0))
        call(etrun.etrun_run, method, ctypes.c_int64(0))
        scores = ctypes.create_string_buffer(40)
        call(etrun.etrun_get, method, ctypes.c_size_t(0), scores, ctypes.c_size_t(40))
        to.write(scores.raw)
try:
    call(etrun.etrun_set, method, ctypes.c_size_t(0), b"x", ctypes.c_size_t(1), None, ctypes.c_size_t(0))
    sys.exit("one byte is taken for an image")
except RuntimeError as e:
    assert "class 5" in str(e), e
call(etrun.etrun_unload, method)
call(etrun.etrun_close, program)
